// A run while it works: its steps, the evidence found so far, and the draft of each section.

import { announce } from "./api.js";
import { Draft } from "./draft.js";
import { showPanel } from "./panel.js";
import { element } from "./text.js";

/** The live part of the page of a run; a paper has a draft for each section. */
export class LiveRun {
  constructor(root, kind) {
    this.root = root;
    this.kind = kind;
    this.of = (name) => root.querySelector(`#live-${name}`);
    this.reset();
  }

  /** Forget what was shown: the server begins again. */
  reset() {
    for (const name of ["stages", "evidence", "drafts"]) this.of(name).replaceChildren();
    this.of("found").hidden = true;
    this.count = 0;
    this.section = "";
    this.draft = null;
    this.say("");
  }

  say(text) {
    this.of("status").replaceChildren(element("span", { dir: "auto" }, text));
  }

  stage({ stage, text, section }) {
    if (section) this.section = section;
    this.of("stages").append(element("li", { dir: "auto" }, text));
    this.say("");
    announce(text);
    if (stage === "writing") this.open();
  }

  /** Begin the draft that the following words belong to. */
  open() {
    const prose = element("div", { class: "prose draft" });
    const title = this.kind === "paper" && this.section ? [element("h2", {}, this.section[0].toUpperCase() + this.section.slice(1))] : [];
    const section = element("section", {}, ...title, prose);
    for (const earlier of this.of("drafts").querySelectorAll(".draft")) earlier.classList.remove("draft");
    if (this.kind === "paper") this.of("drafts").append(section);
    else this.of("drafts").replaceChildren(section);
    this.draft = new Draft(prose, showCited);
  }

  /** What a passage says, as it is read, until the findings that are kept have their ids. */
  finding({ key, text }) {
    this.of("evidence").append(element("li", { class: "read", title: text, dir: "auto" }, element("b", {}, key), ` ${text}`));
    this.of("found").hidden = false;
  }

  evidence({ id, key, page, section }) {
    for (const read of this.of("evidence").querySelectorAll(".read")) read.remove();
    const place = [page === null ? "" : `p. ${page}`, section].filter(Boolean).join(", ");
    const link = element("a", { href: `/library/${encodeURIComponent(key)}`, target: "_blank" }, key);
    this.of("evidence").append(element("li", { title: `${key}, ${place}` }, element("b", {}, id), " ", link, ` ${place}`));
    this.of("found").hidden = false;
    this.of("count").textContent = String(++this.count);
  }

  cite(citation) {
    this.writing().cite(citation);
  }

  add(text) {
    this.writing().add(text);
  }

  restart() {
    this.draft?.clear();
  }

  writing() {
    if (!this.draft) this.open();
    return this.draft;
  }
}

function showCited(citations, button) {
  const places = citations.map(({ evidence_id: id, key, page, section }) =>
    element("li", { dir: "auto" }, element("b", { class: "id" }, id), ` ${key}, ${page === null ? "" : `page ${page}, `}section “${section}”`),
  );
  showPanel(button, "Citation", [
    element("ul", { class: "rows" }, ...places),
    element("p", { class: "quiet" }, "The passage and the judge's verdict are shown when the text is checked."),
  ]);
}

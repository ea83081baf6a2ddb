// What is shown of a question or a text while it is worked on: its status, its steps and the evidence found so far.

import { announce, problemCard } from "./api.js";
import { Draft } from "./draft.js";
import { follow } from "./events.js";
import { showPanel } from "./panel.js";
import { clean, element } from "./text.js";

/** Events as they are shown; `part(name)` is the element of the page for each kind, `open()` begins a draft. */
class Live {
  /** Show the events of a stream; `ends` are for its last one, `ended` for when the server has no more to say. */
  follow(address, ends, ended, change = (show) => show()) {
    const events = {
      reset: () => this.reset(),
      stage: (event) => change(() => this.stage(event)),
      notice: ({ text }) => this.say(text),
      finding: (event) => change(() => this.finding(event)),
      evidence: (event) => change(() => this.evidence(event)),
      citation: (event) => this.writing().cite(event),
      token: ({ text }) => change(() => this.writing().add(text)),
      restarted: () => this.draft?.clear(),
      ...ends,
    };
    const lost = () => this.say("The connection is lost; trying again.");
    return follow(address, events, { connected: () => this.say(""), lost, ended });
  }

  writing() {
    if (!this.draft) this.open();
    return this.draft;
  }

  say(text) {
    this.part("status").replaceChildren(element("span", { dir: "auto" }, text));
  }

  stage({ text }) {
    this.part("stages").append(element("li", { dir: "auto" }, text));
    this.say("");
    announce(text);
  }

  /** What a passage says, as it is read, until the findings that are kept have their ids. */
  finding({ key, text }) {
    this.part("evidence").append(element("li", { class: "read", title: text, dir: "auto" }, element("b", {}, key), ` ${text}`));
  }

  evidence({ id, key, page, section }) {
    for (const read of this.part("evidence").querySelectorAll(".read")) read.remove();
    const place = [page === null ? "" : `p. ${page}`, section].filter(Boolean).join(", ");
    const link = element("a", { href: `/library/${encodeURIComponent(key)}`, target: "_blank" }, key);
    this.part("evidence").append(element("li", { title: `${key}, ${place}` }, element("b", {}, id), " ", link, ` ${place}`));
  }
}

/** What is known of a citation before the text is checked. */
function showCited(citations, button) {
  const first = citations[0];
  const places = citations.map(({ evidence_id: id, page, section }) =>
    element("li", { dir: "auto" }, element("b", { class: "id" }, id), ` ${page === null ? "" : `page ${page}, `}section “${section}”`),
  );
  showPanel(button, `Citation ${first.number}`, [
    element("h3", { class: "paper" }, element("a", { href: `/library/${encodeURIComponent(first.key)}` }, first.key)),
    element("ul", { class: "rows" }, ...places),
    element("p", { class: "quiet" }, "The passage, its scores and the judge's verdict are shown when the text is checked."),
  ]);
}

/** The live part of the page of a run; a paper has a draft for each section. */
export class LiveRun extends Live {
  constructor(root, kind) {
    super();
    this.kind = kind;
    this.part = (name) => root.querySelector(`#live-${name}`);
    this.reset();
  }

  /** Forget what was shown: the server begins again. */
  reset() {
    for (const name of ["stages", "evidence", "drafts"]) this.part(name).replaceChildren();
    this.section = "";
    this.draft = null;
    this.say("");
  }

  stage(event) {
    if (event.section) this.section = event.section;
    super.stage(event);
    if (event.stage === "writing") this.open();
  }

  /** Begin the draft that the following words belong to. */
  open() {
    const prose = element("div", { class: "prose draft" });
    const title = this.kind === "paper" && this.section ? [element("h2", {}, this.section[0].toUpperCase() + this.section.slice(1))] : [];
    const section = element("section", {}, ...title, prose);
    for (const earlier of this.part("drafts").querySelectorAll(".draft")) earlier.classList.remove("draft");
    if (this.kind === "paper") this.part("drafts").append(section);
    else this.part("drafts").replaceChildren(section);
    this.draft = new Draft(prose, showCited);
  }

  evidence(event) {
    super.evidence(event);
    this.part("count").textContent = String(this.part("evidence").childElementCount);
  }
}

/** A turn under way, shown in `place` until the finished one replaces it. */
export class LiveTurn extends Live {
  constructor(place, asked, kind) {
    super();
    this.asked = asked;
    this.kind = kind;
    const content = document.getElementById("live-turn").content.cloneNode(true);
    this.root = content.querySelector(".turn");
    this.part = (name) => this.root.querySelector(`.${name}`);
    this.part("asked").textContent = clean(kind === "improve" ? `Improve: ${asked}` : asked);
    this.draft = new Draft(this.part("draft"), showCited);
    place.replaceChildren(content);
    this.say("Waiting for the server");
  }

  /** Forget what was shown: the server begins again. */
  reset() {
    for (const name of ["stages", "evidence", "ending"]) this.part(name).replaceChildren();
    this.draft.clear();
    this.working(true);
  }

  /** The turn has ended without an answer: why, and what can be done. */
  end(card, message, action) {
    this.working(false);
    this.say("");
    this.part("ending").replaceChildren(card, element("p", { class: "row" }, action));
    announce(message);
  }

  failed(problem, action) {
    this.end(problemCard(problem), problem.message || problem.detail, action);
  }

  stopped(message, action) {
    this.end(element("p", { class: "notice" }, message), message, action);
  }

  working(yes) {
    this.root.setAttribute("aria-busy", String(yes));
    this.root.classList.toggle("working", yes);
    this.part("stages").classList.toggle("working", yes);
    this.part("prose").classList.toggle("draft", yes);
  }
}

// The turn that is being answered: its steps, the evidence found so far, the draft, and how it ended.

import { announce, problemCard } from "./api.js";
import { Draft } from "./draft.js";
import { showPanel } from "./panel.js";
import { element } from "./text.js";

/** A turn under way, shown in `place` until the finished one replaces it. */
export class LiveTurn {
  constructor(place, asked, kind) {
    this.asked = asked;
    this.kind = kind;
    const content = document.getElementById("live-turn").content.cloneNode(true);
    this.root = content.querySelector(".turn");
    this.part = (name) => this.root.querySelector(`.${name}`);
    this.part("asked").textContent = kind === "improve" ? `Improve: ${asked}` : asked;
    this.draft = new Draft(this.part("draft"), showCited);
    place.replaceChildren(content);
    this.say("Waiting for the server");
  }

  /** Forget what was shown: the server begins again. */
  reset() {
    this.part("stages").replaceChildren();
    this.part("evidence").replaceChildren();
    this.part("ending").replaceChildren();
    this.draft.clear();
    this.working(true);
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

  /** The turn has ended without an answer: why, and what can be done. */
  end(card, ...actions) {
    this.working(false);
    this.say("");
    this.part("ending").replaceChildren(card, element("p", { class: "row" }, ...actions));
  }

  failed(problem, ...actions) {
    this.end(problemCard(problem), ...actions);
    announce(problem.message || problem.detail);
  }

  stopped(message, ...actions) {
    this.end(element("p", { class: "notice" }, message), ...actions);
    announce(message);
  }

  working(yes) {
    this.root.setAttribute("aria-busy", String(yes));
    this.root.classList.toggle("working", yes);
    this.part("stages").classList.toggle("working", yes);
    this.part("prose").classList.toggle("draft", yes);
  }
}

/** What is known of a citation before the answer is checked. */
function showCited(citations, button) {
  const first = citations[0];
  const address = `/library/${encodeURIComponent(first.key)}`;
  const places = citations.map(({ evidence_id: id, page, section }) =>
    element("li", { dir: "auto" }, element("b", { class: "id" }, id), ` ${page === null ? "" : `page ${page}, `}section “${section}”`),
  );
  showPanel(button, `Citation ${first.number}`, [
    element("h3", { class: "paper" }, element("a", { href: address }, first.key)),
    element("ul", { class: "rows" }, ...places),
    element("p", { class: "quiet" }, "The passage, its scores and the judge's verdict are shown when the answer is checked."),
  ]);
}

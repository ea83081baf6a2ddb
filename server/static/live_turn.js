// The turn that is being answered: its steps, the evidence found so far, the draft, and how it ended.

import { announce, problemCard } from "./api.js";
import { Draft } from "./draft.js";
import { Live, showCited } from "./live.js";
import { clean, element } from "./text.js";

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
    this.part("stages").replaceChildren();
    this.part("evidence").replaceChildren();
    this.part("ending").replaceChildren();
    this.draft.clear();
    this.working(true);
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

// A run while it works: its steps, the evidence found so far, and the draft of each section.

import { Draft } from "./draft.js";
import { Live, showCited } from "./live.js";
import { element } from "./text.js";

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

  writing() {
    if (!this.draft) this.open();
    return this.draft;
  }
}

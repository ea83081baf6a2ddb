// A draft as it streams: paragraphs of plain text, in which the numbers of citations are buttons.

import { clean, element } from "./text.js";

const HEADING = /^#{1,6}\s+/;

/** The text of a draft in an element; `choose(number, button)` is called when a citation is chosen. */
export class Draft {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.clear();
  }

  /** Forget all text. */
  clear() {
    this.rest = "";
    this.cited = new Map();
    this.last = null;
    this.root.replaceChildren();
    this.root.hidden = true;
  }

  /** Add text; it is shown with the next frame. */
  add(text) {
    this.rest += clean(text);
    this.root.hidden = false;
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  /** Remember what a number in the text after this stands for. */
  cite(citation) {
    const known = this.cited.get(String(citation.number)) ?? [];
    this.cited.set(String(citation.number), [...known, citation]);
  }

  draw() {
    const parts = this.rest.split(/\n{2,}/);
    parts.forEach((part, index) => {
      this.last ??= this.root.appendChild(element(HEADING.test(part) ? "h3" : "p"));
      this.last.replaceChildren(...this.pieces(part.replace(HEADING, "")));
      if (index < parts.length - 1) this.last = null;
    });
    this.rest = parts.at(-1);
  }

  pieces(text) {
    return text.split(/(\[\d+(?:, pp?\. [\d, ]+)?\])/).map((piece) => {
      const number = /^\[(\d+)(?:, pp?\. [\d, ]+)?\]$/.exec(piece)?.[1];
      if (!this.cited.has(number)) return piece;
      const button = element("button", { class: "citation", type: "button", "aria-label": `Citation ${piece}` }, piece);
      button.addEventListener("click", () => this.choose(this.cited.get(number), button));
      return button;
    });
  }
}

// A draft as it streams: headings, paragraphs and lists, in which the numbers of citations are buttons.

import { clean, element } from "./text.js";

const HEADING = /^#{1,6}\s+/;
const ITEM = /^\s*(?:[-*]|\d{1,3}[.)])\s+/;
const PARTS = /\n{2,}|\n(?=[ \t]*(?:[-*]|\d{1,3}[.)])[ \t])/;

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
    const parts = this.rest.split(PARTS);
    parts.forEach((part, index) => {
      if (part.trim()) {
        this.last ??= this.begin(part);
        this.last.replaceChildren(...this.pieces(part.replace(HEADING, "").replace(ITEM, "")));
      }
      if (index < parts.length - 1) this.last = null;
    });
    this.rest = parts.at(-1);
  }

  begin(part) {
    if (!ITEM.test(part)) return this.root.appendChild(element(HEADING.test(part) ? "h3" : "p"));
    const before = this.root.lastElementChild;
    const list = before?.tagName === "UL" ? before : this.root.appendChild(element("ul"));
    return list.appendChild(element("li"));
  }

  pieces(text) {
    return text.split(/(\[\d+(?:, pp?\. [\d, ]+)?\]|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*)/).map((piece) => {
      if (piece.startsWith("*") && piece.endsWith("*") && piece.length > 2) {
        return element(piece.startsWith("**") ? "strong" : "em", {}, piece.replaceAll("*", ""));
      }
      const number = /^\[(\d+)(?:, pp?\. [\d, ]+)?\]$/.exec(piece)?.[1];
      if (!this.cited.has(number)) return piece;
      const button = element("button", { class: "citation", type: "button", "aria-label": `Citation ${piece}` }, piece);
      button.addEventListener("click", () => this.choose(this.cited.get(number), button));
      return button;
    });
  }
}

// What is shown of a question or a text while it is worked on: its status, its steps and the evidence found so far.

import { announce } from "./api.js";
import { showPanel } from "./panel.js";
import { element } from "./text.js";

/** Events as they are shown; `part(name)` is the element of the page for each kind. */
export class Live {
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
export function showCited(citations, button) {
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

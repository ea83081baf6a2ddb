// What a run asks: findings are chosen by a click, and the field of a sentence stands where the sentence is shown.

import { element } from "./text.js";

const FINDING = /^(E\d+) \(([^),]+)/;
const SENTENCE = /^(S\d+): /;

/** Put boxes beside the findings that fill the fields of ids, links to their papers, and fields to their sentences. */
export function arrangeQuestion(section) {
  const { pin, ban, search, papers } = section.querySelector("form").elements;
  papers?.previousElementSibling.append(" ", outside("/library", "Library"));
  for (const item of section.querySelectorAll(".prose li")) {
    const [, id, key] = FINDING.exec(item.textContent) ?? [];
    if (!id) continue;
    const paper = outside(`/library/${encodeURIComponent(key)}`, "Paper", `Paper of ${id}`);
    const boxes = pin ? [box("Show it to the writer", pin, id), box("Leave it out", ban, id)] : [];
    item.append(element("span", { class: "row question-acts" }, ...boxes, paper));
  }
  for (const line of section.querySelectorAll(".prose > p")) {
    const [, name] = SENTENCE.exec(line.textContent) ?? [];
    const field = section.querySelector(`textarea[name="${name}"]`)?.closest(".field");
    if (!field) continue;
    line.nextElementSibling?.after(element("div", { class: "question-acts" }, field, box("Search for it again", search, name)));
  }
}

/** A link to another page, which opens beside this one: what is typed here stays. */
function outside(href, words, label = words) {
  return element("a", { href, target: "_blank", rel: "noopener", "aria-label": label }, words);
}

/** A box that puts an id into a field with one a line, and takes it out. */
function box(label, field, id) {
  const input = element("input", { type: "checkbox", "aria-label": `${label}: ${id}` });
  const ids = () => field.value.split(/[\n,]+/).map((line) => line.trim()).filter(Boolean);
  const show = () => (input.checked = ids().includes(id));
  input.addEventListener("change", () => {
    field.value = [...ids().filter((line) => line !== id), ...(input.checked ? [id] : [])].join("\n");
  });
  field.addEventListener("input", show);
  show();
  return element("label", { class: "check" }, input, label);
}

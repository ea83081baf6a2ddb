// Check: a text is sent to the API, and its sentences are shown beside the passages of the papers.

import { problemCard, send } from "./api.js";
import { byId, counted, element } from "./text.js";

const form = byId("check");
const result = byId("result");
const LABELS = JSON.parse(result.dataset.labels);

byId("file").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  if (!file) return;
  byId("text").value = await file.text();
  const ending = file.name.split(".").pop().toLowerCase();
  byId("format").value = ["tex", "typ"].includes(ending) ? ending : "md";
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  result.replaceChildren(element("p", { class: "quiet" }, "Checking …"));
  try {
    const body = { text: byId("text").value, format: byId("format").value, bib: byId("bib").value };
    show(await send("POST", "/api/v1/checks", body));
  } catch (problem) {
    result.replaceChildren(problemCard(problem));
  } finally {
    button.disabled = false;
  }
});

function show(record) {
  const doubtful = (one) => one.faults.length || (one.kind === "cited" && !["supported", "unjudged"].includes(one.label));
  const remarked = record.sentences.filter(doubtful);
  const unjudged = record.sentences.filter((one) => one.kind === "cited" && one.label === "unjudged" && !doubtful(one));
  const summary = `${counted(record.sentences.length, "sentence")}, ${remarked.length} with remarks.`;
  const left = unjudged.length ? [element("h2", {}, `${unjudged.length} not judged, with the nearest passages`)] : [];
  const warnings = record.warnings.map((line) => element("p", { class: "notice", dir: "auto" }, line));
  const entries = record.references.flatMap((entry) =>
    entry.cited ? entry.faults.map((fault) => element("p", { dir: "auto" }, `${entry.key}: ${fault.message}`)) : []);
  const first = element("h2", {}, summary);
  result.replaceChildren(first, ...warnings, ...remarked.map(sentence), ...entries, ...left, ...unjudged.map(sentence));
}

function sentence(one) {
  const card = element("article", { class: "card" });
  const line = one.place.line === null ? "" : `Line ${one.place.line}`;
  card.append(element("p", { class: "quiet" }, line), element("p", { dir: "auto" }, one.claim));
  if (one.kind === "cited") card.append(element("p", {}, element("b", {}, LABELS[one.label]), one.reason ? `: ${one.reason}` : ""));
  for (const fault of one.faults) card.append(element("p", { class: "field-error", dir: "auto" }, fault.message));
  const passages = one.sources.flatMap((source) => source.passages.slice(0, 1));
  for (const passage of [...passages, ...one.elsewhere.slice(0, 2)]) {
    const page = passage.page === null ? "" : `, page ${passage.page}`;
    card.append(element("blockquote", { class: "passage", dir: "auto" }, passage.shown), element("p", { class: "quiet" }, `${passage.key}${page}`));
  }
  return card;
}

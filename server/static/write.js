// Write: the form of an experiment, checked as it is filled in; starting a section or a paper.

import { Problem, problemCard, send, toast } from "./api.js";
import { collect, fieldsOf, fill } from "./experiment_form.js";
import { readLimits } from "./limits.js";
import { byId, element, keep, recall } from "./text.js";

const KEPT = "citeloom-experiment"; // the form survives a reload
const KEPT_PLOTS = "citeloom-plots"; // so do the images, until the server deletes them
const KEPT_CHOICES = "citeloom-choices"; // and, in this tab, kind, limits and what cannot be read yet
const LARGEST = 4_000_000; // bytes
const PAUSE = 400; // milliseconds after the last key until the form is checked
const form = byId("experiment");
const fields = fieldsOf(form);
let rest = {};
let timer = 0;
let checks = 0;
let plots = recall(KEPT_PLOTS) ?? { id: "", files: [] };

const options = [...form.querySelectorAll(".limits input")];
const chosen = () => form.elements.kind.value;
const kindName = () => (chosen() === "paper" ? "whole paper" : chosen());

// The experiment

function load(experiment, said) {
  rest = fill(fields, experiment);
  const more = Object.keys(rest);
  const message = element("p", { class: "notice" }, said);
  if (more.length) message.append(` Kept as well, without a place in the form: ${more.join(", ")}.`);
  byId("upload-message").replaceChildren(...(said ? [message] : []));
  changed();
}

async function upload(file) {
  try {
    if (file.size > LARGEST) throw new Problem({ detail: `${file.name} is larger than 4 MB.`, help: "Leave out what the paper does not need, such as a complete log." });
    load(parse(await file.text(), file.name), `${file.name} is loaded.`);
  } catch (problem) {
    byId("upload-message").replaceChildren(problemCard(problem));
  }
}

function uploadAll(files) {
  const given = [...files];
  given.filter(({ name }) => name.toLowerCase().endsWith(".json")).slice(0, 1).forEach(upload);
  const images = given.filter(({ name }) => !name.toLowerCase().endsWith(".json"));
  if (images.length) uploadPlots(images);
}

async function uploadPlots(images, base = plots.id) {
  const body = new FormData();
  for (const image of images) body.append("files", image);
  if (base) body.append("base", base);
  try {
    const stored = await send("POST", "/api/v1/plots", body);
    showPlots({ id: stored.id, files: stored.files }, stored.refused);
    mention(stored.files);
  } catch (problem) {
    if (problem.status === 404 && base) return uploadPlots(images, ""); // the earlier images were deleted
    byId("images-message").replaceChildren(problemCard(problem));
  }
}

function showPlots(stored, refused = []) {
  plots = stored;
  keep(KEPT_PLOTS, plots);
  byId("no-images").hidden = !plots.id;
  const said = plots.files.length ? [element("p", { class: "notice" }, `Images: ${plots.files.join(", ")}.`)] : [];
  const wrong = refused.map(({ name, reason }) => element("p", { class: "problem" }, `${name} ${reason}.`));
  byId("images-message").replaceChildren(...said, ...wrong);
}

// Each image has a line in the field of the plots, where its caption is written.
function mention(names) {
  const field = fields.find(({ form: kind }) => kind === "plots");
  const last = (line) => line.split("|")[0].trim().split(/[\\/]/).pop().toLowerCase();
  const known = new Set(field.input.value.split("\n").map(last));
  const missing = names.filter((name) => !known.has(name.toLowerCase()));
  field.input.value = [field.input.value.trimEnd(), ...missing.map((name) => `${name} | `)].filter(Boolean).join("\n");
  changed();
}

function parse(text, name) {
  let experiment;
  try {
    experiment = JSON.parse(text);
  } catch (error) {
    throw new Problem({ detail: `${name} is not JSON: ${error.message}`, help: "Choose an exp.json file; commas between fields and quotes around names are easily missed." });
  }
  if (typeof experiment !== "object" || experiment === null || Array.isArray(experiment)) {
    throw new Problem({ detail: `${name} is not an experiment: a JSON object is expected at the top.` });
  }
  return experiment;
}

function save() {
  const { experiment } = collect(fields, rest);
  const address = URL.createObjectURL(new Blob([`${JSON.stringify(experiment, null, 2)}\n`], { type: "application/json" }));
  const link = element("a", { href: address, download: "exp.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Checking

function changed() {
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

async function check() {
  const number = ++checks;
  const { experiment, problems } = collect(fields, rest);
  keepForm(experiment, problems);
  let report;
  try {
    report = await send("POST", "/api/v1/experiments/check", { experiment, plot_upload: plots.id });
  } catch (problem) {
    if (problem.status === 404 && plots.id) {
      showPlots({ id: "", files: [] }, [{ name: "The images", reason: "are no longer on the server; add them again" }]);
      return check();
    }
    if (number === checks) byId("warnings").replaceChildren(problemCard(problem));
    return null;
  }
  if (number === checks) show(report, problems);
  return report;
}

function show(report, own) {
  const wrong = new Map([...report.problems.map(({ field, message }) => [field, message]), ...Object.entries(own)]);
  const placed = new Set();
  for (const field of fields) {
    const found = [...wrong].find(([path]) => path === field.path || path.startsWith(`${field.path}.`) || path.startsWith(`${field.path}[`));
    if (found) placed.add(found[0]);
    field.error.textContent = found ? found[1] : "";
    field.input.setAttribute("aria-invalid", String(Boolean(found)));
  }
  const others = [...wrong].filter(([path]) => !placed.has(path)).map(([path, message]) => (path ? `${path}: ${message}` : message));
  const notices = [
    ...others.map((text) => element("p", { class: "problem" }, text)),
    ...report.warnings.map((text) => element("p", { class: "notice" }, text.replace(/^exp\.json: /, ""))),
  ];
  byId("warnings").replaceChildren(...notices);
  showNeeds(report.missing, wrong.size > 0);
}

function showNeeds(missing, broken) {
  const all = Object.values(missing).flat();
  for (const needs of form.querySelectorAll("[data-needs]")) {
    const needed = needs.dataset.needs === "paper" ? unique(all) : missing[needs.dataset.needs];
    const lacking = broken && !needed?.length ? null : needed;
    needs.textContent = lacking?.length ? `needs ${lacking.map((group) => group.map(label).join(" or ")).join("; ")}` : lacking ? "✓ ready" : "";
    needs.classList.toggle("lacking", Boolean(lacking?.length));
    needs.classList.toggle("ready", lacking?.length === 0);
  }
}

const unique = (groups) => [...new Map(groups.map((group) => [[...group].sort().join(), group])).values()];
const label = (path) => byId(`field-${path.replaceAll(".", "-")}`)?.closest(".field").querySelector("label").textContent ?? path;

function keepForm(experiment, problems) {
  keep(KEPT, experiment);
  const values = options.map(({ id, type, value, checked }) => [id, type === "checkbox" ? checked : value]);
  const unread = fields.filter(({ path }) => problems[path]).map(({ path, input }) => [path, input.value]);
  keep(KEPT_CHOICES, { kind: chosen(), values, unread }, () => sessionStorage);
}

function recallChoices() {
  const kept = recall(KEPT_CHOICES, () => sessionStorage);
  if (!kept) return;
  form.elements.kind.value = kept.kind;
  const values = new Map(kept.values);
  for (const option of options.filter(({ id }) => values.has(id))) {
    option[option.type === "checkbox" ? "checked" : "value"] = values.get(option.id);
  }
  form.querySelector(".limits").open = options.some(({ type, value }) => type !== "checkbox" && value);
  const unread = new Map(kept.unread);
  for (const { path, input } of fields) if (unread.has(path)) input.value = unread.get(path);
}

// Starting

// What the text rests on

function weighsStudies() {
  return form.querySelector("[name=kind]:checked").matches("[data-weighs]");
}

function offerTables() {
  const tables = byId("tables");
  if (tables) tables.hidden = !weighsStudies();
}

async function start() {
  clearTimeout(timer);
  byId("refusal").replaceChildren();
  const { experiment, problems } = collect(fields, rest);
  keepForm(experiment, problems);
  const first = fields.find(({ path }) => problems[path]);
  if (first) {
    show({ problems: [], warnings: [], missing: {} }, problems);
    first.input.focus();
    return;
  }
  byId("submit").disabled = true;
  try {
    const body = { experiment, plot_upload: plots.id, ...readLimits(byId), strict: byId("strict").checked, depth: byId("depth").value, fresh: byId("fresh").checked, interrupts: byId("ask").checked ? ["all"] : [] };
    const tables = [...form.querySelectorAll("[name=table]:checked")].map(({ value }) => value);
    if (tables.length && weighsStudies()) Object.assign(body, { tables, show_tables: byId("show_tables").checked });
    const address = chosen() === "paper" ? "/api/v1/manuscripts" : `/api/v1/sections/${chosen()}`;
    const job = await send("POST", address, body, { Prefer: "respond-async", "Idempotency-Key": crypto.randomUUID() });
    location.assign(`/runs/${encodeURIComponent(job.id)}`);
  } catch (problem) {
    refuse(problem);
    await check();
  } finally {
    byId("submit").disabled = false;
  }
}

function refuse(problem) {
  byId("refusal").replaceChildren(problemCard(problem));
  const named = fields.find(({ path }) => problem.message.includes(`field ${path}`));
  named?.input.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
form.addEventListener("input", (event) => {
  if (event.target.name === "kind") byId("chosen").textContent = kindName();
  offerTables();
  changed();
});
byId("file").addEventListener("change", ({ target }) => {
  if (target.files.length) upload(target.files[0]);
  target.value = "";
});
byId("images").addEventListener("change", ({ target }) => {
  if (target.files.length) uploadPlots([...target.files]);
  target.value = "";
});
byId("no-images").addEventListener("click", () => {
  showPlots({ id: "", files: [] });
  changed();
});
byId("save").addEventListener("click", save);
byId("clear").addEventListener("click", () => {
  const before = collect(fields, rest).experiment;
  load({}, "");
  const undo = element("button", { class: "button small", type: "button" }, "Undo");
  undo.addEventListener("click", () => load(before, "The form is as before."));
  byId("upload-message").replaceChildren(element("p", { class: "notice row" }, "The form is empty.", undo));
});
const drop = byId("drop");
for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", over);
    if (name === "drop" && event.dataTransfer.files.length) uploadAll(event.dataTransfer.files);
  });
}
window.addEventListener("storage", ({ key }) => {
  if (key === KEPT) toast("The form was changed in another tab; the last change is kept.");
});

load(recall(KEPT) ?? {}, "");
recallChoices();
showPlots(plots);
byId("chosen").textContent = kindName();
offerTables();

// The fields of an experiment: reads them from the form and writes them into it. What has no field is kept.

const LINES = /\r?\n/;

/** The fields of a form, each with its path in exp.json. */
export const fieldsOf = (form) =>
  [...form.querySelectorAll("[data-field]")].map((root) => ({
    path: root.dataset.field,
    form: root.dataset.form,
    input: root.querySelector("input, textarea"),
    error: root.querySelector(".field-error"),
  }));

/** Fill the form from an experiment; returns what has no field, and is kept beside it. */
export function fill(fields, experiment) {
  const rest = structuredClone(experiment);
  for (const field of fields) {
    // A hypothesis or concept of plain words is its description.
    const [name, part] = field.path.split(".");
    if (part === "description" && typeof rest[name] === "string") rest[name] = { description: rest[name] };
    const value = take(rest, field.path.split("."));
    const text = value === undefined || value === null ? "" : written(field.form, value);
    // A value of a type that the field does not have stays beside the form, where the check names it.
    if (text === null) put(rest, field.path.split("."), value);
    field.input.value = text ?? "";
    field.loaded = text === null || value === undefined ? null : { value, text: field.input.value };
  }
  return rest;
}

/** The experiment as it stands in the form; `problems` are those of single lines, by path. */
export function collect(fields, rest) {
  const experiment = structuredClone(rest);
  const problems = {};
  for (const { path, form, input, loaded } of fields) {
    const text = input.value;
    if (loaded?.text === text) {
      put(experiment, path.split("."), loaded.value); // as it was loaded, to the character
      continue;
    }
    if (!text.trim()) continue;
    try {
      put(experiment, path.split("."), parsed(form, text));
    } catch (error) {
      problems[path] = error.message;
    }
  }
  return { experiment, problems };
}

function written(form, value) {
  if (form === "list") return strings(value) ? value.join("\n") : null;
  if (form === "pairs") return isRecord(value) ? Object.entries(value).map(([name, item]) => `${name} = ${shown(item)}`).join("\n") : null;
  if (form === "plots") return plots(value);
  if (form === "number") return Number.isInteger(value) ? String(value) : null;
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join("\n\n");
  return typeof value === "string" ? value : null;
}

function parsed(form, text) {
  if (form === "list") return lines(text);
  if (form === "pairs") return Object.fromEntries(lines(text).map(pair));
  if (form === "plots") return lines(text).map(plot);
  if (form === "number") {
    if (!/^\s*-?\d{1,9}\s*$/.test(text)) throw new Error("Write a whole number.");
    return Number(text);
  }
  return text;
}

function pair(line) {
  const at = line.indexOf("=");
  if (at < 1) throw new Error(`Write “name = value”, not “${line.slice(0, 40)}”.`);
  const value = line.slice(at + 1).trim();
  return [line.slice(0, at).trim(), readJson(value)];
}

function plot(line) {
  const [path, ...caption] = line.split("|");
  return { path: path.trim(), caption: caption.join("|").trim() };
}

function plots(value) {
  const known = (item) => typeof item === "string" || (isRecord(item) && Object.keys(item).every((name) => ["path", "caption"].includes(name)));
  if (!Array.isArray(value) || !value.every(known)) return null;
  return value.map((item) => (typeof item === "string" ? item : `${item.path ?? ""} | ${item.caption ?? ""}`)).join("\n");
}

function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const lines = (text) => text.split(LINES).map((line) => line.trim()).filter(Boolean);
const shown = (value) => (typeof value === "string" && readJson(value) === value ? value : JSON.stringify(value));
const strings = (value) => Array.isArray(value) && value.every((item) => typeof item === "string" && !LINES.test(item));
const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function take(record, [name, ...below]) {
  if (!isRecord(record) || !Object.hasOwn(record, name)) return undefined;
  if (below.length) {
    const value = take(record[name], below);
    if (isRecord(record[name]) && !Object.keys(record[name]).length) delete record[name];
    return value;
  }
  const value = record[name];
  delete record[name];
  return value;
}

function put(record, [name, ...below], value) {
  if (!below.length) record[name] = value;
  else {
    if (!isRecord(record[name])) record[name] = {};
    put(record[name], below, value);
  }
}

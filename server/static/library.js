// The library: adding papers by choosing or dropping files, and checking it.

import { announce, part, Problem, problemCard, send } from "./api.js";
import { follow } from "./events.js";
import { byId, counted, element } from "./text.js";

const files = byId("files");
const progress = byId("adding-progress");
let uploadId = null;
let request = null;
let embedded = 0;
let refreshing = null;

// Sending

/** Send files; the browser tells how far it is, which `fetch` cannot. */
function add(chosen) {
  if (!chosen.length || request || uploadId) return;
  const form = new FormData();
  for (const file of chosen) form.append("files", file);
  byId("added").replaceChildren();
  working(`Sending ${chosen.length === 1 ? chosen[0].name : `${chosen.length} files`}`);
  request = new XMLHttpRequest();
  request.open("POST", "/api/v1/papers");
  request.setRequestHeader("Accept", "application/json");
  request.setRequestHeader("Prefer", "respond-async");
  request.upload.addEventListener("progress", ({ loaded, total }) => (progress.value = total ? loaded / total : 0));
  request.addEventListener("load", sent);
  request.addEventListener("error", () => failed(new Problem({ detail: "The server cannot be reached.", help: "Is it still running?" })));
  request.addEventListener("abort", () => failed(new Problem({ detail: "Nothing was added." })));
  request.send(form);
}

function sent() {
  let answer = {};
  try {
    answer = JSON.parse(request.responseText);
  } catch {
    // A proxy's own page, say.
  }
  if (request.status === 202) listen(answer.id);
  else failed(new Problem({ detail: `The files were not accepted (${request.status}).`, ...answer }), answer.errors);
}

// Following

function listen(id) {
  request = null;
  uploadId = id;
  embedded = 0;
  let texts = 0;
  let stored = []; // keys
  let wanted = ""; // how many papers there are to read
  const read = new Map(); // titles of those being read, by key
  const tell = () => say([stored.length && `${stored.length} of ${wanted} added`, read.size && `reading ${[...read.values()][0]}`].filter(Boolean).join(", "));
  working("Reading");
  progress.removeAttribute("value");
  const events = {
    reset: () => {
      embedded = 0;
      stored = [];
      read.clear();
    },
    waiting: () => say("Waiting for another process that writes to the library"),
    planned: (plan) => {
      texts = plan.texts;
      wanted = counted(plan.papers, "paper");
      say(`Indexing ${wanted}`);
    },
    begun: ({ key, title }) => {
      read.set(key, title);
      tell();
    },
    embedded: ({ count }) => {
      embedded += count;
      if (texts) progress.value = embedded / texts;
    },
    stored: ({ key }) => {
      stored.push(key);
      read.delete(key);
      tell();
      refreshing ??= refresh(); // one at a time
    },
    described: ({ done, total }) => say(`Described ${done} of ${counted(total, "figure")}`),
    done: ({ result }) => over(() => finished(result)),
    error: (problem) => over(() => failed(problem)),
    stopped: () => over(() => stopped(stored)),
  };
  const stream = follow(`/api/v1/ingests/${id}/events`, events, {
    lost: () => say("The connection is lost; trying again"),
    ended: () => over(() => location.reload()),
  });
  const over = (then) => {
    stream.close();
    uploadId = null;
    then();
  };
}

function finished(report) {
  const parts = [[report.added, "added"], [report.updated, "updated"]].filter(([keys]) => keys.length).map(([keys, became]) => papers(keys, `${were(keys, "paper")} ${became}:`));
  if (report.unchanged.length) parts.push(element("p", { class: "notice" }, `Already in the library: ${report.unchanged.join(", ")}.`));
  if (report.refused.length) parts.push(refusals(report.refused.map(({ name, reason }) => [name, reason])));
  const remarks = report.warnings.map((warning) => element("li", { dir: "auto" }, warning));
  if (remarks.length) parts.push(element("details", { class: "notice", open: remarks.length < 3 }, element("summary", {}, counted(remarks.length, "remark")), element("ul", {}, ...remarks)));
  ended(parts, `${counted(report.added.length, "paper")} added, ${report.updated.length} updated, ${report.refused.length} refused.`);
}

function stopped(keys) {
  const said = `Stopped. ${were(keys, "paper")} kept${keys.length ? ":" : "."}`;
  ended([papers(keys, said)], said);
}

function failed(problem, errors = []) {
  const parts = [problemCard(problem)];
  if (errors.length) parts.push(refusals(errors.map(({ field, message }) => [field, message])));
  ended(parts, problem.message || problem.detail);
}

/** Show what became of the files, and the list as it is now. */
function ended(parts, said) {
  idle();
  byId("added").replaceChildren(...parts);
  Promise.resolve(refreshing).then(refresh);
  announce(said);
}

/** What became of papers, with a link to each. */
function papers(keys, said) {
  const links = keys.map((key) => element("li", {}, element("a", { href: `/library/${encodeURIComponent(key)}` }, key)));
  return element("div", { class: "notice" }, element("p", {}, said), element("ul", {}, ...links));
}

function refusals(pairs) {
  const items = pairs.map(([name, reason]) => element("li", { dir: "auto" }, element("b", {}, name), `: ${reason}`));
  return element("div", { class: "problem" }, element("p", {}, `${were(items, "file")} refused:`), element("ul", {}, ...items));
}

/** Show the list as it is now; if that fails, it stays as it is. */
async function refresh() {
  await part(location.pathname + location.search).then((content) => byId("paper-list").replaceChildren(content), () => {});
  refreshing = null;
}

const were = (things, noun) => `${counted(things.length, noun)} ${things.length === 1 ? "was" : "were"}`;

function working(text) {
  byId("adding").hidden = false;
  byId("adding-stop").disabled = false;
  progress.value = 0;
  say(text);
}

function idle() {
  request = null;
  byId("adding").hidden = true;
  files.value = "";
}

function say(text) {
  byId("adding-status").textContent = text;
}

files.addEventListener("change", () => add([...files.files]));

byId("adding-stop").addEventListener("click", () => {
  byId("adding-stop").disabled = true;
  if (request) request.abort();
  else if (uploadId) send("POST", `/api/v1/ingests/${uploadId}/cancel`).catch(failed);
});

byId("identifiers")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const identifiers = form.elements.identifiers.value.split(/[\s,;]+/).filter(Boolean);
  if (!identifiers.length) return;
  byId("added").replaceChildren();
  try {
    const body = { identifiers, download: form.elements.download.checked };
    const job = await send("POST", "/api/v1/papers/by-identifier", body, { "Idempotency-Key": crypto.randomUUID() });
    form.reset();
    listen(job.id);
  } catch (problem) {
    failed(problem);
  }
});

// Dropping

const holdsFiles = (event) => byId("drop").checkVisibility() && [...(event.dataTransfer?.types ?? [])].includes("Files");
let depth = 0;

function dragged(event, change) {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  depth = Math.max(0, depth + change);
  byId("drop").classList.toggle("over", depth > 0);
}

addEventListener("dragenter", (event) => dragged(event, 1));
addEventListener("dragleave", (event) => dragged(event, -1));
addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
addEventListener("drop", (event) => {
  dragged(event, -depth);
  if (holdsFiles(event)) add([...event.dataTransfer.files]);
});

// The rest

byId("filters").addEventListener("change", (event) => event.target.matches("select, [list]") && event.target.form.requestSubmit());

byId("check").addEventListener("toggle", async () => {
  if (!byId("check").open) return;
  try {
    byId("check-result").replaceChildren(await part("/library-check"));
  } catch (problem) {
    byId("check-result").replaceChildren(problemCard(problem));
  }
});

if (byId("drop").dataset.ingest) listen(byId("drop").dataset.ingest);

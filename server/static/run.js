// One run: follows it while it works, and resumes it; its text is edited in `document.js`.

import { announce, part, problemCard, send, toast } from "./api.js";
import { beginDocument, editDocument, editing, tookBack } from "./document.js";
import { readLimits } from "./limits.js";
import { LiveRun } from "./live.js";
import { arrangeQuestion } from "./question.js";
import { byId, element } from "./text.js";

const AGAIN = 4000; // milliseconds until a run of another process, or a lost server, is looked at again
const body = byId("run-body");
let stream = null;
let timer = 0;

const run = () => byId("run");
const address = () => `/api/v1/runs/${encodeURIComponent(run().dataset.id)}`;

/** Show the run as it stands now, and say how it ended if it did. */
async function refresh(focus = "") {
  clearTimeout(timer);
  const before = run().dataset.state;
  try {
    const content = await part(location.pathname);
    if (editing(run().dataset.id)) return;
    body.replaceChildren(content);
  } catch (problem) {
    if (problem.status) toast(problem);
    timer = setTimeout(refresh, AGAIN);
    return;
  }
  if (focus) body.querySelector(focus)?.focus();
  if (run().dataset.state !== before) announce(`The run is now: ${byId("run-state").textContent}`);
  begin();
}

function begin() {
  const state = run().dataset.state;
  if (byId("answer-form")) arrangeQuestion(byId("waiting"));
  if (state === "waiting" || state === "working") listen();
  else if (state === "running") timer = setTimeout(refresh, AGAIN);
  else beginDocument();
}

/** After the browser has scrolled to the form, which takes the focus away. */
function focusResume() {
  if (location.hash === "#resume") document.querySelector("#resume-form input")?.focus();
}

function listen() {
  const live = new LiveRun(byId("live"), run().dataset.kind);
  const over = () => {
    stream?.close();
    stream = null;
    return refresh("#run-title");
  };
  stream = live.follow(`${address()}/events`, { done: over, error: over, stopped: over }, over);
}

async function resume(form) {
  const refusal = byId("resume-refusal");
  refusal.replaceChildren();
  try {
    const limits = readLimits((name) => form.elements[name]);
    form.querySelector("button").disabled = true;
    await send("POST", `${address()}/resume`, limits, { Prefer: "respond-async" });
    history.replaceState(null, "", location.pathname);
    await refresh("#run-title");
  } catch (problem) {
    refusal.replaceChildren(problemCard(problem));
    form.querySelector("button").disabled = false;
  }
}

async function answer(form, type) {
  const refusal = byId("answer-refusal");
  refusal.replaceChildren();
  const args = Object.fromEntries([...form.querySelectorAll("textarea")].map((area) => [area.name, area.value]));
  const given = { type, args, question: form.dataset.question, by: "on the page" };
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  try {
    await send("POST", `${address()}/answer`, given, { Prefer: "respond-async" });
  } catch (problem) {
    for (const button of buttons) button.disabled = false;
    if (problem.status !== 409) return refusal.replaceChildren(problemCard(problem));
    toast(problem); // somebody else answered: the page shows what became of it
  }
  return refresh("#run-title");
}

/** Take back a file that was edited elsewhere, and say what became of its sentences. */
async function takeBack(form) {
  try {
    const { counts, warnings } = await send("POST", `${address()}/import`, new FormData(form));
    await tookBack(run().dataset.id);
    const said = Object.entries(counts).map(([state, count]) => `${count} ${state}`);
    byId("import-result").replaceChildren(...[`Sentences: ${said.join(", ")}.`, ...warnings].map((line) => element("p", {}, line)));
  } catch (problem) {
    byId("import-result").replaceChildren(problemCard(problem));
  }
}

body.addEventListener("submit", (event) => {
  if (!["resume-form", "answer-form", "import-form"].includes(event.target.id)) return;
  event.preventDefault();
  if (event.target.id === "answer-form") answer(event.target, "edit");
  else if (event.target.id === "import-form") takeBack(event.target);
  else resume(event.target);
});
body.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-ignore]");
  if (button) answer(button.form, "ignore");
});

editDocument(body, () => refresh());
begin();
window.addEventListener("load", () => setTimeout(focusResume));
window.addEventListener("hashchange", focusResume);

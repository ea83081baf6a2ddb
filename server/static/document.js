// A text edited where it stands: a sentence becomes a field in its place, and Enter keeps and checks it.

import { announce, part, problemCard, send, toast } from "./api.js";
import { byId, element, keep, recall } from "./text.js";

const run = () => byId("run");
const address = () => `/api/v1/runs/${encodeURIComponent(run().dataset.id)}/sentences`;
const draftName = () => `citeloom-draft-${run().dataset.id}`; // the words of a field survive a reload, in this tab
const stepsName = () => `citeloom-steps-${run().dataset.id}`; // so does what can be undone and redone
const here = () => sessionStorage;
const place = (position) => byId(`sentence-${position}`);
const tabs = new BroadcastChannel("citeloom-texts");
let refresh = null;
let stepped = Promise.resolve();
let field = null; // the sentence that is edited: its element, its nodes, its tools, and the words it had
const words = () => field.sentence.textContent.replace(/\s+/g, " ").trim();
const result = () => field.tools.querySelector(".check-result") ?? field.tools;

/** Make the sentences below `body` editable; `shown` shows the run again. */
export function editDocument(body, shown) {
  refresh = shown;
  body.addEventListener("click", (event) => {
    const { target } = event;
    const act = target.closest("[data-act]");
    const sentence = target.closest(".sentence");
    if (act) ACTS[act.dataset.act](act);
    else if (sentence && byId("undo").checkVisibility() && !target.closest("a") && getSelection().isCollapsed) edit(sentence, sentence.dataset.text, event);
  });
  body.addEventListener("keydown", (event) => {
    if (!field?.sentence.contains(event.target) || event.isComposing) return;
    if (event.key === "Escape") close();
    else if (event.key === "Enter") keepWords();
    else return;
    event.preventDefault();
  });
  body.addEventListener("input", ({ target }) => {
    if (field?.sentence === target) remember();
  });
  document.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || !["z", "y"].includes(key) || event.target.closest("input, textarea, [contenteditable]")) return;
    event.preventDefault();
    step(key === "y" || event.shiftKey ? "undone" : "done");
  });
  document.addEventListener("quoted", ({ detail }) => quote(detail));
  tabs.addEventListener("message", ({ data }) => data === run().dataset.id && !field && refresh());
}

/** Put words of a paper into the sentence that is edited, else into the one whose citation was opened, else the last. */
async function quote(text) {
  const beside = document.querySelector('.sentence [aria-expanded="true"]') ?? document.activeElement;
  const sentence = beside.closest(".sentence") ?? [...document.querySelectorAll(".sentence")].at(-1);
  if (!field) await edit(sentence, sentence.dataset.text);
  const [, said, stop] = /^(.*?)([.!?]?)$/s.exec(words());
  replaceWords(`${said} ${text}${stop}`.trim());
}

/** Show what can be undone, and take up what was being edited before a reload. */
export function beginDocument() {
  const steps = recall(stepsName(), here);
  for (const [name, kind] of [["undo", "done"], ["redo", "undone"]]) if (byId(name)) byId(name).disabled = !steps?.[kind].length;
  if (!byId("undo")) return; // an answer, which is not edited
  keep("citeloom-section", run().dataset.id); // where the reader puts what is selected
  const quoted = recall("citeloom-quoted");
  if (quoted?.id === run().dataset.id) {
    keep("citeloom-quoted", null);
    quote(quoted.text);
    return;
  }
  const draft = recall(draftName(), here);
  if (draft && !field && place(draft.position)) edit(place(draft.position), draft.text).then(() => (field.before = draft.before));
}

const ACTS = {
  keep: () => keepWords(),
  unchecked: () => keepWords({ check: false }),
  mine: () => keepWords({ before: field.now }),
  cancel: () => close(),
  rewrite: ({ dataset }) => rewrite(dataset.how),
  written: ({ dataset }) => replaceWords(dataset.words),
  remove: () => replaceWords(""),
  undo: () => step("done"),
  redo: () => step("undone"),
  done: (button) => button.closest(".sentence-tools").remove(),
  finding: () => nextFinding(),
};

async function edit(sentence, text, { clientX, clientY } = {}) {
  if (field?.sentence === sentence) return;
  if (field && !(await keepWords())) return;
  for (const notes of document.querySelectorAll(".sentence-tools")) notes.remove();
  const tools = element("div", { class: "sentence-tools" });
  field = { sentence, tools, nodes: [...sentence.childNodes], before: sentence.dataset.text, position: Number(sentence.dataset.position) };
  sentence.replaceChildren(text);
  for (const [name, value] of Object.entries({ contenteditable: "plaintext-only", role: "textbox", "aria-label": `Sentence ${field.position + 1}` })) sentence.setAttribute(name, value);
  if (!sentence.isContentEditable) sentence.contentEditable = "true"; // a browser that does not know plain text
  putBelow(sentence, tools);
  sentence.focus();
  const at = clientX && document.caretPositionFromPoint?.(clientX, clientY);
  if (at && sentence.contains(at.offsetNode)) getSelection().collapse(at.offsetNode, at.offset);
  else {
    getSelection().selectAllChildren(sentence);
    getSelection().collapseToEnd();
  }
  await showTools();
}

function putBelow(sentence, tools) {
  const block = sentence.closest("li, p, h3, h4, h5, h6, blockquote");
  if (block.matches("li")) block.append(tools);
  else block.after(tools);
}

async function showTools() {
  const { tools, position } = field;
  try {
    const content = await part(`${location.pathname}/sentences/${position}`);
    if (field?.tools === tools) field.now = content.querySelector("[data-text]").dataset.text;
    tools.replaceChildren(content);
  } catch (problem) {
    tools.replaceChildren(problemCard(problem));
  }
}

function remember() {
  keep(draftName(), { position: field.position, text: words(), before: field.before }, here);
}

function close() {
  const { sentence, nodes, tools } = field;
  field = null;
  keep(draftName(), null, here);
  tools.remove();
  for (const name of ["contenteditable", "role", "aria-label"]) sentence.removeAttribute(name);
  sentence.replaceChildren(...nodes);
  sentence.querySelector(".edit").focus();
}

/** Keep what was written, checked unless told otherwise; true if the field is closed. */
async function keepWords(more = {}) {
  const { position, before, tools } = field;
  const text = words();
  if (text === before) {
    close();
    return true;
  }
  working("Checking and keeping …");
  try {
    const checked = await send("POST", address(), { position, text, before, keep: true, ...more });
    field = null;
    keep(draftName(), null, here);
    await kept({ position, before: more.before ?? before });
    if (checked.ok || checked.verdict === null) toast(checked.ok ? "Kept. No problem was found." : "Kept, not checked.");
    else await showNotes(position);
    return true;
  } catch (problem) {
    const button = (act, said) => element("button", { class: "button small", type: "button", "data-act": act }, said);
    const further = { 409: [["mine", "Keep mine all the same"]], 422: [] }[problem.status] ?? [["unchecked", "Keep it unchecked"]];
    if (problem.status === 409) await showTools();
    (tools.querySelector(".check-result") ?? tools).replaceChildren(problemCard(problem), ...further.map((one) => button(...one)));
    return false;
  }
}

/** After a file was taken back: show it, and that it can be undone, before anything else is. */
export const tookBack = () => (stepped = stepped.then(() => kept({ imported: true })));

/** After a change: show the text again, and remember how to undo it. */
async function kept(change, from = "") {
  const steps = recall(stepsName(), here) ?? { done: [], undone: [] };
  await refresh();
  if (from) steps[from].pop();
  if (!from) steps.undone = [];
  if (change) steps[from === "done" ? "undone" : "done"].push({ ...change, after: place(change.position)?.dataset.text ?? "" });
  keep(stepsName(), steps, here);
  beginDocument();
  tabs.postMessage(run().dataset.id);
  (place(change?.position)?.querySelector(".edit") ?? byId("undo"))?.focus();
}

/** Undo the last change, or redo the one that was undone last, when earlier steps are done. */
function step(from) {
  stepped = stepped.then(() => takeStep(from));
}

async function takeStep(from) {
  const change = recall(stepsName(), here)?.[from].at(-1);
  if (!change || field) return;
  const { position, before, after, imported } = change;
  try {
    if (imported) await withdrawImport();
    else await send("POST", address(), { position, text: before, before: after, keep: true });
    await kept(imported ? null : { position, before: after }, from);
    announce(from === "done" ? "Undone." : "Done again.");
  } catch (problem) {
    toast(problem);
  }
}

/** The imported text of each section stands at a place below 0; edits from before it count again without it. */
async function withdrawImport() {
  const sections = run().dataset.kind === "paper" ? 6 : 1;
  const answers = await Promise.allSettled(Array.from({ length: sections }, (_, index) => send("DELETE", `${address()}/${-1 - index}`)));
  if (answers.every(({ status }) => status === "rejected")) throw answers[0].reason;
}

/** What the check of a sentence found, below it. */
async function showNotes(position) {
  const content = await part(`${location.pathname}/sentences/${position}`);
  if (place(position)) putBelow(place(position), element("div", { class: "sentence-tools notes" }, content));
}

async function rewrite(how) {
  const { sentence, position } = field;
  working("Asking the model …");
  try {
    const { text } = await send("POST", `${address()}/${position}/rewrite`, { text: words(), how });
    if (field?.sentence !== sentence) return;
    replaceWords(text);
    working("Enter keeps it, Escape goes back.");
  } catch (problem) {
    result().replaceChildren(problemCard(problem));
  }
}

/** Other words in the field, which the browser's own undo takes back. */
function replaceWords(text) {
  field.sentence.focus();
  getSelection().selectAllChildren(field.sentence);
  document.execCommand(text ? "insertText" : "delete", false, text);
  remember();
}

function working(said) {
  result().replaceChildren(element("p", { class: "quiet" }, said));
}

function nextFinding() {
  const troubled = [...document.querySelectorAll(".sentence.troubled")];
  const next = troubled.find((one) => one.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_PRECEDING) ?? troubled[0];
  next?.scrollIntoView({ block: "center" });
  if (next) edit(next, next.dataset.text);
}

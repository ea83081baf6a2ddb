// Texts edited where they stand: a sentence becomes a field in its place, and Enter keeps and checks it.
// `data-document` has the id of a text: a run, or an answer as CONVERSATION.NUMBER.

import { announce, part, problemCard, send, toast } from "./api.js";
import { element, keep, recall } from "./text.js";

const address = (id) => `/api/v1/runs/${encodeURIComponent(id)}/sentences`;
const toolsOf = (id, position) => part(`/runs/${encodeURIComponent(id)}/sentences/${position}`);
const draftName = (id, position) => `citeloom-draft-${id}-${position}`; // the words of a field survive a reload, in this tab
const stepsName = (id) => `citeloom-steps-${id}`; // so does what can be undone and redone
const here = () => sessionStorage;
const textOf = (id) => document.querySelector(`[data-document="${CSS.escape(id)}"]`);
const idOf = (node) => node.closest("[data-document]")?.dataset.document;
const place = (id, position) => textOf(id)?.querySelector(`[data-position="${position}"]`);
const tabs = new BroadcastChannel("citeloom-texts");
let refresh = null;
let stepped = Promise.resolve();
let keeping = Promise.resolve();
let latest = ""; // the id of the text that was changed last
let field = null; // the sentence that is edited: its text's id, its element, nodes and tools, and the words it had
const words = () => field.sentence.textContent.replace(/\s+/g, " ").trim();
const result = (tools) => tools.querySelector(".check-result") ?? tools;

/** Whether a sentence of a text is edited: the text is then not shown again before that ends. */
export const editing = (id) => field?.id === id;

/** Make the sentences below `body` editable; `shown(id)` shows a text again. */
export function editDocument(body, shown) {
  refresh = shown;
  body.addEventListener("click", (event) => {
    const { target } = event;
    const act = target.closest("[data-act]");
    const sentence = target.closest(".sentence");
    if (act) ACTS[act.dataset.act](act);
    else if (sentence?.querySelector(".edit")?.checkVisibility() && !target.closest("a") && getSelection().isCollapsed) edit(sentence, event);
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
    if (latest) step(latest, key === "y" || event.shiftKey ? "undone" : "done");
  });
  document.addEventListener("quoted", ({ detail }) => quote(detail));
  tabs.addEventListener("message", ({ data }) => textOf(data) && !field && refresh(data));
}

/** Put words of a paper into the sentence that is edited, else into the one whose citation was opened, else the last. */
async function quote(text) {
  const beside = document.querySelector('.sentence [aria-expanded="true"]') ?? document.activeElement;
  const sentence = beside.closest(".sentence") ?? [...document.querySelectorAll(".sentence")].at(-1);
  if (!field) await edit(sentence);
  const [, said, stop] = /^(.*?)([.!?]?)$/s.exec(words());
  replaceWords(`${said} ${text}${stop}`.trim());
}

/** Show what can be undone in all texts, and take up what was being edited before a reload. */
export function beginDocument() {
  if (document.querySelector(".sentence")) keep("citeloom-text", location.pathname); // where the reader puts what is selected
  const quoted = recall("citeloom-quoted");
  if (quoted?.place === location.pathname) {
    keep("citeloom-quoted", null);
    quote(quoted.text);
  }
  for (const text of document.querySelectorAll("[data-document]")) {
    const id = text.dataset.document;
    const steps = recall(stepsName(id), here);
    if (steps) latest ||= id;
    for (const [act, kind] of [["undo", "done"], ["redo", "undone"]]) {
      for (const button of text.querySelectorAll(`[data-act="${act}"]`)) button.disabled = !steps?.[kind].length;
    }
    const draft = !field && [...text.querySelectorAll(".sentence")].find(({ dataset }) => recall(draftName(id, dataset.position), here));
    if (draft) edit(draft);
  }
}

const ACTS = {
  keep: () => keepWords(),
  unchecked: () => keepWords({ check: false }),
  mine: () => keepWords({ before: field.now }),
  cancel: () => close(),
  rewrite: ({ dataset }) => rewrite(dataset.how),
  written: ({ dataset }) => replaceWords(dataset.words),
  remove: () => replaceWords(""),
  undo: (button) => step(idOf(button), "done"),
  redo: (button) => step(idOf(button), "undone"),
  done: (button) => button.closest(".sentence-tools").remove(),
  finding: (button) => nextFinding(textOf(idOf(button))),
};

async function edit(sentence, { clientX, clientY } = {}) {
  if (field?.sentence === sentence) return;
  const { top } = sentence.getBoundingClientRect();
  if (field) leave();
  for (const notes of document.querySelectorAll(".sentence-tools")) notes.remove();
  const tools = element("div", { class: "sentence-tools" });
  const [id, position] = [idOf(sentence), Number(sentence.dataset.position)];
  const { text, before } = recall(draftName(id, position), here) ?? { text: sentence.dataset.text, before: sentence.dataset.text };
  field = { id, sentence, tools, nodes: [...sentence.childNodes], before, position };
  sentence.replaceChildren(text);
  for (const [name, value] of Object.entries({ contenteditable: "plaintext-only", role: "textbox", "aria-label": `Sentence ${position + 1}` })) sentence.setAttribute(name, value);
  if (!sentence.isContentEditable) sentence.contentEditable = "true"; // a browser that does not know plain text
  putBelow(sentence, tools);
  sentence.focus({ preventScroll: clientX !== undefined });
  const moved = sentence.getBoundingClientRect().top - top; // as the tools of the field before are gone
  const at = clientX && document.caretPositionFromPoint?.(clientX, clientY + moved);
  if (at && sentence.contains(at.offsetNode)) getSelection().collapse(at.offsetNode, at.offset);
  else {
    getSelection().selectAllChildren(sentence);
    getSelection().collapseToEnd();
  }
  await showTools();
}

/** Leave the field for another one, which does not wait until its words are kept. */
function leave() {
  const [one, said] = [field, words()];
  if (said !== one.before && said !== one.sent) keepWords();
  if (field) shut(one, said === one.before ? one.nodes : [said, one.nodes.at(-1)]);
}

function putBelow(sentence, tools) {
  const block = sentence.closest("li, p, h3, h4, h5, h6, blockquote");
  if (block.matches("li")) block.append(tools);
  else block.after(tools);
}

async function showTools() {
  const { id, tools, position } = field;
  try {
    const content = await toolsOf(id, position);
    if (field?.tools === tools) field.now = content.querySelector("[data-text]").dataset.text;
    tools.replaceChildren(content);
    tools.scrollIntoView({ block: "nearest" });
  } catch (problem) {
    tools.replaceChildren(problemCard(problem));
  }
}

function remember() {
  keep(draftName(field.id, field.position), { text: words(), before: field.before }, here);
}

/** Make a field a sentence again; its draft stays. */
function shut({ sentence, tools, nodes }, shown = nodes) {
  field = null;
  tools.remove();
  for (const name of ["contenteditable", "role", "aria-label"]) sentence.removeAttribute(name);
  sentence.replaceChildren(...shown);
}

async function close() {
  const { id, position, sentence } = field;
  keep(draftName(id, position), null, here);
  shut(field);
  sentence.querySelector(".edit").focus();
  if (!("stale" in textOf(id).dataset)) return;
  await refresh(id);
  if (!field) place(id, position)?.querySelector(".edit").focus();
}

/** Keep what was written, checked unless told otherwise, after what is being kept already. */
function keepWords(more = {}) {
  const [one, text] = [field, words()];
  if (text === one.before) return close();
  one.sent = text;
  working("Checking and keeping …");
  keeping = keeping.then(() => keepText(one, text, more));
}

async function keepText(one, text, more) {
  const { id, position, before } = one;
  const open = () => editing(id) && field.position === position;
  try {
    const checked = await send("POST", address(id), { position, text, before, keep: true, ...more });
    if (recall(draftName(id, position), here)?.text === text) keep(draftName(id, position), null, here);
    if (open() && words() === text) shut(field, [text, field.nodes.at(-1)]);
    await kept(id, { position, before: more.before ?? before });
    if (open()) await showTools();
    if (checked.ok || checked.verdict === null) toast(checked.ok ? "Kept. No problem was found." : "Kept, not checked.");
    else if (!open()) await showNotes(id, position);
  } catch (problem) {
    one.sent = null;
    await notKept(id, position, problem);
  }
}

/** Say why words were not kept: in their field, else below their sentence, whose field has them again when it opens. */
async function notKept(id, position, problem) {
  const sentence = place(id, position);
  if (!field) await edit(sentence);
  if (field.sentence !== sentence) {
    const said = `Sentence ${position + 1} was not kept. Click it: your words are still there.`;
    putBelow(sentence, element("div", { class: "sentence-tools notes" }, problemCard(problem), element("p", {}, said)));
    return toast(said);
  }
  const button = (act, said) => element("button", { class: "button small", type: "button", "data-act": act }, said);
  const further = { 409: [["mine", "Keep mine all the same"]], 422: [] }[problem.status] ?? [["unchecked", "Keep it unchecked"]];
  if (problem.status === 409) await showTools();
  result(field.tools).replaceChildren(problemCard(problem), ...further.map((one) => button(...one)));
}

/** Undo the last change of a text, or redo the one that was undone last, when earlier steps are done and words are kept. */
const step = (id, from) => (stepped = Promise.all([stepped, keeping]).then(() => takeStep(id, from)));

/** After a file was taken back: show it, and that it can be undone, before anything else is. */
export const tookBack = (id) => (stepped = stepped.then(() => kept(id, { imported: true })));

/** After a change: show the text again, and remember how to undo it. */
async function kept(id, change, from = "") {
  const steps = recall(stepsName(id), here) ?? { done: [], undone: [] };
  if (!editing(id)) await refresh(id);
  if (editing(id)) await showKept(id, change.position);
  if (from) steps[from].pop();
  if (!from) steps.undone = [];
  if (change) steps[from === "done" ? "undone" : "done"].push({ ...change, after: place(id, change.position)?.dataset.text ?? "" });
  keep(stepsName(id), steps, here);
  latest = id;
  beginDocument();
  tabs.postMessage(id);
  if (!field) (place(id, change?.position)?.querySelector(".edit") ?? textOf(id).querySelector('[data-act="undo"]')).focus();
}

/** Show what is kept of a sentence while another one is edited; the text is shown again after that. */
async function showKept(id, position) {
  textOf(id).dataset.stale = "";
  const sentence = place(id, position);
  if (!sentence) return;
  const content = await toolsOf(id, position).catch(() => null); // none of a sentence that was removed
  sentence.dataset.text = content?.querySelector("[data-text]").dataset.text ?? "";
  if (field?.sentence === sentence) field.before = sentence.dataset.text;
  else sentence.replaceChildren(sentence.dataset.text, sentence.lastChild);
}

async function takeStep(id, from) {
  const change = recall(stepsName(id), here)?.[from].at(-1);
  if (!change || field) return;
  const { position, before, after, imported } = change;
  try {
    if (imported) await withdrawImport(id);
    else await send("POST", address(id), { position, text: before, before: after, keep: true });
    await kept(id, imported ? null : { position, before: after }, from);
    toast(from === "done" ? "Undone." : "Done again.");
  } catch (problem) {
    toast(problem);
  }
}

/** The imported text of each section stands at a place below 0; edits from before it count again without it. */
async function withdrawImport(id) {
  const sections = textOf(id).dataset.kind === "paper" ? 6 : 1;
  const answers = await Promise.allSettled(Array.from({ length: sections }, (_, index) => send("DELETE", `${address(id)}/${-1 - index}`)));
  if (answers.every(({ status }) => status === "rejected")) throw answers[0].reason;
}

/** What the check of a sentence found, below it. */
async function showNotes(id, position) {
  const content = await toolsOf(id, position);
  if (place(id, position)) putBelow(place(id, position), element("div", { class: "sentence-tools notes" }, content));
}

async function rewrite(how) {
  const { id, sentence, tools, position } = field;
  working("Asking the model …");
  try {
    const { text } = await send("POST", `${address(id)}/${position}/rewrite`, { text: words(), how });
    if (field?.sentence !== sentence) return;
    replaceWords(text);
    working("Enter keeps it, Escape goes back.");
  } catch (problem) {
    result(tools).replaceChildren(problemCard(problem));
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
  result(field.tools).replaceChildren(element("p", { class: "quiet" }, said));
}

function nextFinding(text) {
  const troubled = [...text.querySelectorAll(".sentence.troubled")];
  const next = troubled.find((one) => one.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_PRECEDING) ?? troubled[0];
  next?.scrollIntoView({ block: "center" });
  if (next) edit(next);
}

// A conversation: asks, follows the answer as it is written, stops, resumes, improves, deletes.

import { announce, copy, part, Problem, send, toast } from "./api.js";
import { beginDocument, editDocument, editing } from "./document.js";
import { LiveTurn } from "./live.js";
import { closePanel } from "./panel.js";
import { byId, counted, element, keep, recall } from "./text.js";

const API = "/api/v1/conversations";
const AGAIN = 3000; // milliseconds until an unreachable server is tried again
const conversation = byId("conversation");
const composer = byId("composer");
const question = byId("question");
const tabs = new BroadcastChannel("citeloom-conversations");
let live = null;
let stream = null;
let improving = false;

const threadId = () => conversation.dataset.id;
const draftName = () => `citeloom-question-${threadId()}`; // a question that is being written survives a reload, in this tab
const scopeName = () => `citeloom-scope-${threadId()}`; // the papers to ask stay with the conversation, in this browser
const here = () => sessionStorage;
const shownTurns = () => byId("turns").childElementCount;

// Asking

async function ask(asked, kind, within = chosen()) {
  byId("welcome")?.remove();
  document.body.classList.remove("fresh");
  live = new LiveTurn(byId("live"), asked, kind);
  live.within = within;
  busy(true);
  live.root.scrollIntoView({ block: "start" });
  try {
    if (!threadId()) await begin(asked);
    await send("POST", turnAddress(kind), turnBody(asked, kind, within), { Prefer: "respond-async" });
  } catch (problem) {
    busy(false);
    live.failed(problem, actionButton("Try again", () => ask(asked, kind, within)));
    if (!question.value && kind !== "improve") {
      question.value = asked;
      byId("alone").checked = kind === "question";
    }
    return;
  }
  listen();
  tabs.postMessage(threadId());
  refreshList();
}

async function begin(asked) {
  const begun = await send("POST", API, {});
  conversation.dataset.id = begun.thread_id;
  history.replaceState(null, "", `/conversations/${begun.thread_id}`);
  document.title = `${asked.slice(0, 60)} – Citeloom`;
  showScope();
}

const turnAddress = (kind) => `${API}/${threadId()}/${kind === "improve" ? "improve" : "turns"}`;
const turnBody = (asked, kind, within) => ({
  ...(kind === "improve" ? { feedback: asked } : { question: asked, alone: kind === "question", ...within }),
  ...Object.fromEntries(selects.map(({ name, value }) => [name, value])),
});

// Following

function listen() {
  stream?.close();
  busy(true);
  const ends = {
    done: ({ result }) => over(() => finished(result.number)),
    error: (problem) => over(() => live.failed(problem, resumeButton(problem.paused ? "Resume" : "Try again"))),
    stopped: ({ message }) => over(() => live.stopped(message, resumeButton("Resume"))),
  };
  stream = live.follow(`${API}/${threadId()}/events`, ends, () => over(sync), keepInView);
}

function over(then) {
  stream.close();
  stream = null;
  busy(false);
  return then();
}

async function finished(number) {
  try {
    await addTurn(number);
  } catch (problem) {
    live.failed(problem, actionButton("Load it again", () => finished(number)));
    return;
  }
  const citations = byId(`turn-${number}`).querySelectorAll("a.citation").length;
  announce(`The answer is complete, with ${counted(citations, "citation")}.`);
  tabs.postMessage(threadId());
  refreshList();
}

async function addTurn(number) {
  const address = `/conversations/${threadId()}`;
  const [content, head] = await Promise.all([part(`${address}/turns/${number}`), part(address)]);
  if (byId(`turn-${number}`)) return;
  const followed = atEnd();
  byId("turns").append(content);
  byId("head").replaceChildren(head);
  byId("live").replaceChildren();
  beginDocument();
  live = null;
  if (followed) {
    byId(`turn-${number}`).scrollIntoView({ block: "start" });
    uncover(byId(`turn-${number}`).querySelector(".suggested"));
  }
  byId("alone-box").hidden = false;
  question.placeholder = "Ask a follow-up, or something else";
}

/** Scroll on if the question box hides a part of what is suggested to be asked next. */
function uncover(suggested) {
  const hidden = suggested ? suggested.getBoundingClientRect().bottom - composer.getBoundingClientRect().top : 0;
  if (hidden > 0 && hidden < suggested.offsetHeight) scrollBy({ top: hidden });
}

/** Show an answer again, after its text was changed. */
async function refreshTurn(id) {
  const number = id.split(".").at(-1);
  const content = await part(`/conversations/${threadId()}/turns/${number}`);
  if (editing(id)) return;
  byId(`turn-${number}`).replaceWith(content);
  beginDocument();
}

/** Show what happened while this tab was not following: in another tab, or before the server was restarted. */
async function sync() {
  if (!threadId() || stream) return;
  try {
    const state = await send("GET", `/conversations/${threadId()}/state`);
    for (let number = shownTurns() + 1; number <= state.turns; number++) await addTurn(number);
    if (!stream) showOpen(state.open);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 404) location.assign("/");
    else if (!problem.status) setTimeout(sync, AGAIN);
    else toast(problem);
  }
}

function showOpen(open) {
  if (!open) return;
  if (!live || live.asked !== open.asked) {
    live = new LiveTurn(byId("live"), open.asked, open.kind);
    live.within = open.papers.length ? { papers: open.papers } : {};
  }
  if (open.active) listen();
  else live.stopped("This question was not answered to the end. What was paid for is saved.", resumeButton("Resume"));
}

function resumeButton(label) {
  const { asked, kind, within } = live;
  return actionButton(label, () => ask(asked, kind, within));
}

function actionButton(label, act) {
  const button = element("button", { class: "button small", type: "button" }, label);
  button.addEventListener("click", act);
  return button;
}

/** Change the page; one that was scrolled to its end stays there. */
function keepInView(change) {
  const followed = atEnd();
  change();
  if (followed) requestAnimationFrame(() => scrollTo({ top: document.scrollingElement.scrollHeight }));
}

function atEnd() {
  const page = document.scrollingElement;
  return page.scrollHeight - page.scrollTop - page.clientHeight < 120;
}

// The question box

function busy(yes) {
  byId("send").hidden = yes;
  byId("stop").hidden = !yes;
  byId("stop").disabled = false;
}

function improve(yes) {
  improving = yes;
  byId("improving").hidden = !yes;
  byId("alone-box").hidden = yes || !shownTurns();
  question.placeholder = yes ? "What should be better about the last answer?" : "Ask a follow-up, or something else";
  question.focus();
}

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = question.value.trim();
  if (!asked || stream) return;
  const kind = improving ? "improve" : byId("alone").checked ? "question" : "follow-up";
  question.value = "";
  keep(draftName(), null, here);
  byId("alone").checked = false;
  if (improving) improve(false);
  closePanel();
  ask(asked, kind);
});

question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
});

addEventListener("pagehide", () => keep(draftName(), question.value ? { words: question.value, improving } : null, here));

byId("stop").addEventListener("click", async () => {
  byId("stop").disabled = true;
  live?.say("Stopping");
  try {
    await send("POST", `${API}/${threadId()}/cancel`);
  } catch (problem) {
    byId("stop").disabled = false;
    toast(problem);
  }
  question.focus();
});

byId("not-improving").addEventListener("click", () => improve(false));

byId("turns").addEventListener("click", (event) => {
  const turn = event.target.closest(".turn");
  if (event.target.closest("[data-improve]")) improve(true);
  else if (event.target.closest("[data-copy]")) copy(textOf(turn), "Copied, with its references.");
  else if (event.target.closest("[data-link]")) {
    event.preventDefault();
    copy(event.target.href, `The address of this answer is copied. ${byId("share") ? "It opens for you, and for those with whom you share the conversation (above)." : "It opens for whoever may see this conversation."}`);
  }
});

function textOf(turn) {
  const references = [...turn.querySelectorAll(".references > li")].map(
    (item) => `${item.querySelector(".id").textContent} ${item.querySelector("[dir]").textContent.trim()}`,
  );
  return `${[turn.querySelector(".prose").innerText.trim(), ...references].join("\n\n")}\n`;
}

// The papers to ask

const selects = [...composer.querySelectorAll("select:not(#scope-labels *)")]; // how the next answer is written
const kept = (threadId() && recall(scopeName())) || { only: JSON.parse(byId("scope").dataset.chosen), without: [], fields: {} };
const scope = { only: new Set(kept.only), without: new Set(kept.without) };

/** What a question may draw on, as its request says it. */
function chosen() {
  const given = { papers: [...scope.only], without: [...scope.without], from_year: year("from"), to_year: year("to"), ...labels() };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => (Array.isArray(value) ? value.length : value)));
}

/** The chosen kind, tag and collection. */
const labels = () => Object.fromEntries(labelFields().map(({ name, value }) => [name, value.trim()]));
const labelFields = () => [...byId("scope-labels").querySelectorAll("[name]")];
/** A field's choice in words, in place of the … of its `data-said`; empty without a choice. */
const inWords = ({ value, selectedOptions, dataset }) => value.trim() && (dataset.said ?? "…").replace("…", () => selectedOptions?.[0].text ?? `tag ${value.trim()}`);
const scopeFields = () => [byId("scope-from"), byId("scope-to"), ...labelFields()];
const year = (name) => Number(byId(`scope-${name}`).value.trim()) || null;

function showScope() {
  const { from_year: from, to_year: to } = chosen();
  const parts = [scope.only.size && `only ${counted(scope.only.size, "paper")}`, scope.without.size && `all but ${counted(scope.without.size, "paper")}`, (from || to) && `years ${from ?? "…"} to ${to ?? "…"}`, ...labelFields().map(inWords)];
  byId("scope-line").textContent = `Options: ${[parts.filter(Boolean).join(", ") || "all papers", ...selects.map(inWords)].join(", ")}`;
  const chips = ["only", "without"].flatMap((kind) =>
    [...scope[kind]].map((key) => {
      const button = element("button", { class: `chip ${kind === "only" ? "active" : "doubt"}`, type: "button", "aria-label": `Remove: ${kind} ${key}` }, `${kind} ${key} ×`);
      button.addEventListener("click", () => choose(kind, key, false));
      return element("li", {}, button);
    }),
  );
  byId("scope-chips").replaceChildren(...chips);
  if (threadId()) keep(scopeName(), { only: [...scope.only], without: [...scope.without], fields: Object.fromEntries(scopeFields().map(({ name, id, value }) => [name || id, value])) });
}

function choose(kind, key, yes = true) {
  for (const name of ["only", "without"]) scope[name].delete(key);
  if (yes) scope[kind].add(key);
  showScope();
}

byId("scope").addEventListener("input", ({ target }) => {
  const option = target.id === "scope-paper" && [...byId("scope-papers").options].find(({ value }) => value === target.value.trim());
  if (option) {
    choose("only", option.value);
    target.value = "";
  } else showScope();
});
if (byId("models")) byId("scope").addEventListener("toggle", offerModels, { once: true });

async function offerModels() {
  const { models } = await send("GET", "/api/v1/models").catch(() => ({ models: [] })); // the settings' model is there
  byId("models").append(...models.slice(1).map((name) => new Option(name === "extractive" ? "none, passages only" : name, name)));
}

byId("scope-paper").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  if (event.target.value.trim()) choose("only", event.target.value.trim());
  event.target.value = "";
});
for (const field of scopeFields()) field.value = kept.fields[field.name || field.id] ?? field.value;
showScope();

byId("panel").addEventListener("click", ({ target }) => {
  const button = target.closest("[data-scope]");
  if (!button) return;
  const { scope: act, key } = button.dataset;
  choose(act === "only" ? "only" : "without", key);
  closePanel();
  if (act === "again" && !stream) ask(button.dataset.question, "question");
  else {
    byId("scope").open = true;
    question.focus();
  }
});

document.addEventListener("click", ({ target }) => {
  const suggested = target.closest("[data-suggest]");
  if (!suggested) return;
  question.value = suggested.textContent.trim();
  question.focus();
  question.setSelectionRange(question.value.length, question.value.length);
});

// The list of conversations

const listed = () => new URLSearchParams([...new FormData(byId("list-search")), ["current", threadId()]]).toString();

async function refreshList() {
  const asked = listed();
  const content = await part(`/conversations?${asked}`).catch(() => null); // it is refreshed with the next answer
  if (content && asked === listed()) byId("conversation-list").replaceChildren(content);
}

byId("list-search").addEventListener("input", refreshList);
byId("list-search").addEventListener("submit", (event) => event.preventDefault());

byId("list-button").addEventListener("click", () => {
  const open = byId("side").classList.toggle("open");
  byId("list-button").setAttribute("aria-expanded", String(open));
});

tabs.addEventListener("message", ({ data }) => {
  refreshList();
  if (data === threadId()) sync();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) sync();
});

editDocument(byId("turns"), refreshTurn);
beginDocument();
const draft = recall(draftName(), here);
if (draft && !question.value) {
  if (draft.improving) improve(true);
  question.value = draft.words;
}
showOpen(JSON.parse(conversation.dataset.open));

// Tables: makes and follows one, sorts and filters its rows, and keeps edits of cells.

import { part, problemCard, send, toast } from "./api.js";
import { follow } from "./events.js";
import { closePanel } from "./panel.js";
import { byId, element } from "./text.js";

const API = "/api/v1/tables";
const table = byId("table");
const address = () => `${API}/${encodeURIComponent(table.dataset.id)}`;

// Making

/** What a form asks for: the address, and the body. */
function asked(form) {
  const papers = JSON.parse(form.dataset.papers);
  if (form.id === "agree") return [`${API}/agree`, { claim: form.elements.claim.value, papers }];
  const { columns: field } = form.elements;
  const separator = field.matches("textarea") ? "\n" : ","; // a name may have a comma
  const columns = field.value.split(separator).map((name) => name.trim()).filter(Boolean);
  return [API, { question: form.dataset.question ?? form.elements.question.value, columns, papers }];
}

async function make(event) {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button:not([type])");
  button.disabled = true;
  try {
    const job = await send("POST", ...asked(form), { Prefer: "respond-async" });
    location.assign(`/tables/${encodeURIComponent(job.id)}`);
  } catch (problem) {
    button.disabled = false;
    byId("refusal").replaceChildren(problemCard(problem));
  }
}

byId("make")?.addEventListener("submit", make);
byId("agree")?.addEventListener("submit", make);

if (table?.dataset.active === "yes") {
  const stages = byId("stages");
  const say = ({ text }) => stages.append(element("li", { dir: "auto" }, text));
  const ended = (problem) => {
    stream.close();
    stages.classList.remove("working");
    byId("refusal").replaceChildren(problemCard(problem));
  };
  const stream = follow(`${address()}/events`, {
    reset: () => stages.replaceChildren(),
    stage: say,
    notice: say,
    done: () => location.reload(),
    error: ended,
    stopped: () => location.reload(),
  });
}

table?.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-sort]");
  if (button) sort(Number(button.dataset.sort), button);
});

// Sorting and filtering

const value = (row, column) => row.children[column].dataset.value;
const numeric = (text) => (/^[-+]?[\d.,]*\d/.test(text) ? Number.parseFloat(text.replaceAll(",", "")) : NaN);

/** Sort the rows by a column, numbers by size and before words; the second time the other way round. */
function sort(column, button) {
  const head = button.closest("th");
  const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const compared = (one, other) => {
    const [first, second] = [value(one, column), value(other, column)];
    const [left, right] = [numeric(first), numeric(second)];
    if (!Number.isNaN(left) && !Number.isNaN(right)) return order * (left - right);
    if (!first || !second) return first ? -1 : second ? 1 : 0; // empty cells come last in both orders
    return order * first.localeCompare(second);
  };
  for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
  byId("rows").append(...[...byId("rows").children].sort(compared));
}

function filter() {
  const wanted = [...table.querySelectorAll("[data-filter]")].map((input) => [Number(input.dataset.filter), input.value.trim().toLowerCase()]);
  for (const row of byId("rows").children) {
    row.hidden = wanted.some(([column, words]) => !row.children[column].textContent.toLowerCase().includes(words));
  }
}

table?.addEventListener("input", (event) => {
  if (event.target.matches("[data-filter]")) filter();
});

// Editing

byId("panel").addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-cell]");
  if (!form) return;
  event.preventDefault();
  const { table: id, key, study, column, revision } = form.dataset;
  try {
    const body = { key, study, column, value: form.elements.value.value, revision: Number(revision) };
    await send("PUT", `${API}/${encodeURIComponent(id)}/cells`, body);
    const content = await part(location.pathname);
    byId("rows").replaceChildren(...content.querySelector("#rows").children);
    filter();
    closePanel();
    toast("Your value is kept.");
  } catch (problem) {
    const shown = [problemCard(problem)];
    if (problem.cell) {
      form.dataset.revision = problem.cell.revision; // to keep one's own value now is a decision
      shown.push(element("p", { dir: "auto" }, `It now holds “${problem.cell.value}”. Keep yours all the same?`));
    }
    form.querySelector(".check-result").replaceChildren(...shown);
  }
});

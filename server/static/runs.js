// Runs: stops and deletes runs, and keeps the list up to date while something works.

import { part, send, toast } from "./api.js";
import { confirmed } from "./confirm.js";

const EVERY = 4000; // milliseconds
const list = document.getElementById("run-list");

async function refresh() {
  const content = await part(location.pathname + location.search);
  const focused = document.activeElement?.closest("[data-run]")?.dataset.run;
  list.replaceChildren(content);
  if (focused) list.querySelector(`[data-run="${CSS.escape(focused)}"] a`)?.focus();
}

async function act(button) {
  const id = button.closest("[data-run]").dataset.run;
  const address = `/api/v1/runs/${encodeURIComponent(id)}`;
  if ("delete" in button.dataset) {
    if (!(await confirmed("Delete this run with its text and your edits? Answers that were paid for stay cached.", "Delete"))) return;
    await send("DELETE", address);
    toast("The run is deleted.");
  } else {
    button.disabled = true;
    await send("POST", `${address}/cancel`);
  }
  await refresh();
}

list.addEventListener("click", (event) => {
  const button = event.target.closest("[data-stop], [data-delete]");
  if (button) act(button).catch((problem) => toast(problem));
});

setInterval(() => {
  const busy = list.querySelector('[data-busy="yes"]');
  if (busy && !document.hidden && !document.querySelector("dialog[open]")) refresh().catch(() => {});
}, EVERY);

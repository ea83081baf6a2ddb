// Runs: keeps the list up to date while something works.

import { part } from "./api.js";

const EVERY = 4000; // milliseconds
const list = document.getElementById("run-list");

async function refresh() {
  const content = await part(location.pathname + location.search);
  const focused = document.activeElement?.closest("[data-run]")?.dataset.run;
  list.replaceChildren(content);
  if (focused) list.querySelector(`[data-run="${CSS.escape(focused)}"] a`)?.focus();
}

setInterval(() => {
  const busy = list.querySelector('[data-busy="yes"]');
  if (busy && !document.hidden && !document.querySelector("dialog[open]")) refresh().catch(() => {});
}, EVERY);

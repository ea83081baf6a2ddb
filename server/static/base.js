// What every page shares: requests to the API, short messages, the side panel, times in the reader's own zone.

import { copy } from "./api.js";
import "./card.js";
import "./confirm.js";
import { openPanel } from "./panel.js";
import { localTimes } from "./text.js";

localTimes(document);
if (document.querySelector("[data-reader]")) import("./reader.js").then(({ openReader }) => openReader(document.querySelector("[data-reader]")));

document.addEventListener("click", (event) => {
  const copies = event.target.closest("[data-copies]")?.dataset.copies;
  if (copies) copy(document.getElementById(copies).textContent, "Copied.");
  const link = event.target.closest("a[data-panel]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  openPanel(link);
});

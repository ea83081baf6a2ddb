// The side panel: shows a part of a page that a link points to, beside the page or, on a phone, over it.

import { part, problemCard } from "./api.js";
import { element, localTimes } from "./text.js";

const panel = document.getElementById("panel");
const WIDE = matchMedia("(min-width: 64rem)");
let opener = null;
let latest = 0;

/** Load what the link points to into the panel; the focus comes back to the link when it closes. */
export async function openPanel(link) {
  const number = ++latest;
  release();
  opener = link;
  link.setAttribute("aria-expanded", "true");
  let content;
  try {
    content = await part(link.dataset.panel || link.href);
  } catch (problem) {
    content = failed(problem);
  }
  if (number !== latest) return; // another link was chosen meanwhile
  panel.replaceChildren(content);
  localTimes(panel);
  panel.scrollTop = 0;
  if (!panel.open) WIDE.matches ? panel.show() : panel.showModal();
  panel.querySelector("h2")?.focus({ preventScroll: true });
  if (WIDE.matches) link.scrollIntoView({ block: "nearest" });
}

/** Close the panel, and go back to the link that opened it. */
export function closePanel() {
  latest++;
  if (panel.open) panel.close();
}

function release() {
  opener?.removeAttribute("aria-expanded");
}

function failed(problem) {
  const fragment = document.createDocumentFragment();
  const close = element("button", { class: "button small", type: "button", "data-close": true }, "Close");
  fragment.append(
    element("header", {}, element("h2", { id: "panel-title", tabindex: "-1" }, "This cannot be shown"), close),
    element("div", { class: "panel-body" }, problemCard(problem)),
  );
  return fragment;
}

panel.addEventListener("close", () => {
  release();
  if (opener?.isConnected) opener.focus();
  opener = null;
});

panel.addEventListener("click", (event) => {
  const step = event.target.closest("[data-step]");
  if (event.target === panel || event.target.closest("[data-close]")) closePanel();
  else if (step) {
    const next = document.getElementById(step.dataset.step);
    if (next) openPanel(next);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.open && !event.defaultPrevented) {
    event.preventDefault();
    closePanel();
  }
});

WIDE.addEventListener("change", () => {
  if (!panel.open) return;
  const kept = opener;
  opener = null;
  panel.close();
  opener = kept;
  opener?.setAttribute("aria-expanded", "true");
  WIDE.matches ? panel.show() : panel.showModal();
});

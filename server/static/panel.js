// The side panel: shows what a link points to, beside the page or, on a phone, over it.

import { part, problemCard } from "./api.js";
import { element } from "./text.js";

const panel = document.getElementById("panel");
const WIDE = matchMedia("(min-width: 64rem)");
let opener = null;
let latest = 0;
let shown = ""; // the address of what the panel shows
let before = ""; // what it showed when a link in it was followed

/** Load what the link points to into the panel; the focus comes back to the link when it closes. */
export function openPanel(link) {
  before = panel.contains(link) ? shown : "";
  return load(before ? opener : link, link.dataset.panel || link.href);
}

async function load(link, address) {
  const number = take(link);
  try {
    const content = await part(address);
    if (number !== latest) return; // another link was chosen meanwhile
    shown = address;
    show(content);
  } catch (problem) {
    if (number === latest) showPanel(link, "This cannot be shown", [problemCard(problem)]);
  }
}

/** Show elements under a title in the panel. */
export function showPanel(link, title, content) {
  take(link);
  const fragment = document.createDocumentFragment();
  const close = element("button", { class: "button small", type: "button", "data-close": true }, "Close");
  fragment.append(
    element("header", {}, element("h2", { id: "panel-title", tabindex: "-1" }, title), close),
    element("div", { class: "panel-body" }, ...content),
  );
  show(fragment);
}

/** Close the panel, and go back to the link that opened it. */
export function closePanel() {
  latest++;
  if (panel.open) panel.close();
}

function take(link) {
  opener?.removeAttribute("aria-expanded");
  opener = link;
  link?.setAttribute("aria-expanded", "true");
  return ++latest;
}

function show(content) {
  panel.replaceChildren(content);
  markMissing(panel);
  panel.scrollTop = 0;
  open();
  const back = panel.querySelector("[data-back]");
  if (back) back.hidden = !before;
  const reader = panel.querySelector("[data-reader]");
  if (reader) import("./reader.js").then(({ openReader }) => openReader(reader));
  panel.querySelector("h2")?.focus({ preventScroll: true });
  if (WIDE.matches) opener?.scrollIntoView({ block: "nearest" });
}

function open() {
  if (panel.open) return;
  if (WIDE.matches) panel.show();
  else panel.showModal();
}

/** Say so where the image of a page cannot be drawn; its link to the PDF stays. */
function markMissing(root) {
  for (const image of root.querySelectorAll("[data-page-image] img")) {
    image.addEventListener("error", () => {
      image.replaceWith(element("p", { class: "notice" }, "The page cannot be shown as an image."));
    });
    image.addEventListener("load", () => image.classList.add("loaded"));
  }
}

panel.addEventListener("close", () => {
  opener?.removeAttribute("aria-expanded");
  if (opener?.isConnected) opener.focus();
  opener = null;
});

panel.addEventListener("click", (event) => {
  const other = event.target.closest("[data-load]");
  const link = document.getElementById(other?.dataset.step); // none for a citation that shares its place with another
  if (event.target === panel || event.target.closest("[data-close]")) closePanel();
  else if (event.target.closest("[data-back]")) {
    const address = before;
    before = "";
    load(opener, address);
  } else if (link) openPanel(link);
  else if (other) load(opener, other.dataset.load);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || !panel.open) return;
  event.preventDefault();
  closePanel();
});

// Open it in its other form when the window gets wider or narrower.
WIDE.addEventListener("change", () => {
  if (!panel.open) return;
  const kept = opener;
  opener = null;
  panel.close();
  setTimeout(() => {
    if (kept) take(kept);
    open();
  });
});

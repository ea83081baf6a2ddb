// A card beside a citation that is pointed at or focused: title, page, quote and verdict.

import { part } from "./api.js";
import { element } from "./text.js";

const WAIT = 250; // milliseconds
const LINKS = "a.citation[data-panel], a.finding[data-panel], a.number[data-panel]";
const known = new Map();
const card = element("div", { id: "card", class: "card-beside", role: "tooltip", hidden: true });
let timer = 0;
let current = null;
document.body.append(card);

async function show(link) {
  current = link;
  const address = link.href;
  if (!known.has(address)) known.set(address, part(address, "card").catch(() => null));
  const content = await known.get(address);
  if (!content || current !== link || !link.isConnected) return;
  card.replaceChildren(content.cloneNode(true));
  card.hidden = false;
  link.setAttribute("aria-describedby", "card");
  const at = link.getClientRects()[0];
  const { offsetWidth: width, offsetHeight: height } = card;
  card.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8))}px`;
  card.style.top = `${at.bottom + height + 10 > innerHeight ? Math.max(8, at.top - height - 6) : at.bottom + 6}px`;
}

function hide() {
  clearTimeout(timer);
  current?.removeAttribute("aria-describedby");
  current = null;
  card.hidden = true;
}

function begin({ target, pointerType }) {
  const link = target.closest?.(LINKS);
  if (!link || pointerType === "touch" || link.getAttribute("aria-expanded") === "true") return;
  hide();
  timer = setTimeout(() => show(link), WAIT);
}

document.addEventListener("pointerover", begin);
document.addEventListener("focusin", begin);
for (const kind of ["pointerout", "focusout", "click"]) document.addEventListener(kind, ({ target }) => target.closest?.(LINKS) && hide());
document.addEventListener("scroll", hide, { passive: true });
document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());

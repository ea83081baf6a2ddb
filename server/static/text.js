// Text as a page may show it. Whatever comes from a model or a document becomes text nodes, never markup.

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The text without characters that change the direction of what surrounds it. */
export const clean = (text) => String(text ?? "").replace(TURNING, "");

export const byId = (id) => document.getElementById(id);

/** A count with its noun: "1 sentence", "2 sentences". */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** An element with attributes and children; strings become text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.map((child) => (typeof child === "string" ? clean(child) : child)));
  return made;
}

/** Keep a value in this browser, or with `store` in this tab. */
export function keep(name, value, store = () => localStorage) {
  try {
    store().setItem(name, JSON.stringify(value));
  } catch {
    // too large, or forbidden: the page works without
  }
}

/** What was kept; null if nothing was. */
export function recall(name, store = () => localStorage) {
  try {
    return JSON.parse(store().getItem(name) ?? "null");
  } catch {
    return null;
  }
}

/** Show the times of `<time datetime>` in the reader's own zone. */
export function localTimes(root) {
  const form = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.dataset.local = "";
    time.title = time.dateTime;
    time.textContent = form.format(at);
  }
}

// Requests to the server's API. Every error has the same form: a message, and what to do about it.

import { clean, element, localTimes } from "./text.js";

/** A refused or failed request: `message`, `help` and `status`. */
export class Problem extends Error {
  constructor({ detail, help = "", status = 0, cell = null }) {
    super(clean(detail) || "The request failed.");
    this.help = clean(help);
    this.status = status;
    this.cell = cell; // what is stored, when an edit was refused
  }
}

/** Send a request with a JSON body; returns the parsed answer, or null when there is none. Throws `Problem`. */
export async function send(method, address, body, headers = {}) {
  const options = { method, headers: { Accept: "application/json", ...headers } };
  if (body instanceof FormData) options.body = body;
  else if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await reached(address, options);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** A part of a page, rendered by the server for what is sent if anything is, as a fragment of the document. */
export async function part(address, name = "1", body = undefined) {
  const headers = { Accept: "text/html", "X-Part": name, ...(body && { "Content-Type": "application/json" }) };
  const response = await reached(address, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
  const fragment = document.createDocumentFragment();
  fragment.append(...parsed.body.childNodes);
  localTimes(fragment);
  return fragment;
}

async function reached(address, options) {
  let response;
  try {
    response = await fetch(address, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem({ detail: "The server cannot be reached.", help: "Is it still running? Try again in a moment." });
  }
  if (response.ok && !response.redirected) return response;
  if (response.status === 401 || response.redirected) {
    location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
  }
  const problem = await response.json().catch(() => ({}));
  throw new Problem({ detail: `The server answered with an error (${response.status}).`, ...problem, status: response.status });
}

/** A problem as an element: its message and its help line. */
export function problemCard(problem) {
  const card = element("div", { class: "problem" }, element("p", { dir: "auto" }, problem.message || problem.detail));
  if (problem.help) card.append(element("p", { class: "help", dir: "auto" }, problem.help));
  return card;
}

/** A short message, or a problem, that goes away by itself; screen readers say it. */
export function toast(said) {
  const shown = element("p", { class: "toast" }, said instanceof Error ? [said.message, said.help].filter(Boolean).join(" ") : said);
  document.getElementById("toasts").replaceChildren(shown);
  setTimeout(() => shown.remove(), 6000);
}

/** Copy a text to the clipboard, and say so. */
export function copy(text, said) {
  navigator.clipboard.writeText(text).then(() => toast(said), () => toast("The browser does not permit copying here."));
}

/** Have screen readers say something that is seen anyway. */
export function announce(message) {
  document.getElementById("announcer").textContent = clean(message);
}

// The limits of a run, as they are entered in a form.

import { Problem } from "./api.js";

const NAMES = [
  ["max_calls", "Model calls", /^\d{1,9}$/],
  ["max_tokens", "Tokens", /^\d{1,12}$/],
  ["max_cost", "Cost", /^\d{1,9}(\.\d{1,6})?$/],
];

/** The limits that were entered; `find(name)` is the input of each. Throws `Problem` for what is no number. */
export function readLimits(find) {
  const limits = {};
  for (const [name, label, form] of NAMES) {
    const input = find(name);
    const text = input.value.trim().replaceAll(/[ ,_]/g, "");
    input.setAttribute("aria-invalid", "false");
    if (!text) continue;
    if (!form.test(text) || Number(text) <= 0) {
      input.setAttribute("aria-invalid", "true");
      input.focus();
      throw new Problem({ detail: `${label}: “${input.value}” is not a number above 0.` });
    }
    limits[name] = Number(text);
  }
  return limits;
}

// Buttons that send: `data-send` is the request, `data-body` its JSON, `data-ask` what is asked before, `data-field` the
// field for words that are asked for, at first `data-value`, and `data-then` where the page goes. A form with `data-send`
// sends its fields.

import { send, toast } from "./api.js";
import { element } from "./text.js";

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("button[data-send]");
  if (!button) return;
  const { send: request, body, ask, then } = button.dataset;
  const said = ask && (await answered(button.dataset));
  if (ask && !said) return;
  order(button, request, body ? JSON.parse(body) : said?.field, then);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-send]");
  if (!form) return;
  event.preventDefault();
  if (event.submitter) order(event.submitter, form.dataset.send, Object.fromEntries(new FormData(form, event.submitter)));
});

async function order(button, request, body, then) {
  button.disabled = true;
  try {
    await send(...request.split(" "), body);
    if (then) location.assign(then);
    else location.reload();
  } catch (problem) {
    button.disabled = false;
    toast(problem);
  }
}

/** Ask a question; resolves to what was chosen, with the words of its field if it has one, or to null. */
function answered({ ask, action = "Delete", field, value }) {
  const cancel = element("button", { class: "button", type: "button", autofocus: !field }, "Cancel");
  const act = element("button", { class: field ? "button primary" : "button danger", value: "yes" }, action);
  const words = element("input", { value, maxlength: 200, autofocus: true, "aria-labelledby": "confirm-question" });
  const dialog = element(
    "dialog",
    { class: "confirm card", "aria-labelledby": "confirm-question" },
    element("form", { method: "dialog" }, element("p", { id: "confirm-question" }, ask), ...(field ? [words] : []), element("div", { class: "row" }, cancel, act)),
  );
  cancel.addEventListener("click", () => dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? { field: field && { [field]: words.value } } : null);
    });
  });
}

// Buttons that stop or delete: `data-send` is the request, `data-ask` what is asked before, `data-then` where the page goes.
// A form with `data-send` sends its fields.

import { send, toast } from "./api.js";
import { element } from "./text.js";

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("button[data-send]");
  if (!button) return;
  const { send: request, ask, action = "Delete", then } = button.dataset;
  if (ask && !(await confirmed(ask, action))) return;
  order(button, request, undefined, then);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-send]");
  if (!form) return;
  event.preventDefault();
  order(event.submitter, form.dataset.send, Object.fromEntries(new FormData(form, event.submitter)));
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

/** Ask a question; resolves to true when the action was chosen. */
function confirmed(question, action) {
  const cancel = element("button", { class: "button", value: "", autofocus: true }, "Cancel");
  const act = element("button", { class: "button danger", value: "yes" }, action);
  const dialog = element(
    "dialog",
    { class: "confirm card", "aria-labelledby": "confirm-question" },
    element("form", { method: "dialog" }, element("p", { id: "confirm-question" }, question), element("div", { class: "row" }, cancel, act)),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

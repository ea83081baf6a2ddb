// Asks before something is deleted.

import { element } from "./text.js";

/** Ask a question; resolves to true when the action was chosen. */
export function confirmed(question, action) {
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

// Settings: a model is tested and saved without leaving the page, so that a key that was typed stays until it is kept.

import { announce, toast } from "./api.js";

const main = document.querySelector("main");

main.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (!form.matches(".model-form")) return;
  event.preventDefault();
  const [role, key] = [form.elements.role.value, form.elements.key.value];
  submitter.disabled = true;
  try {
    const response = await fetch(form.action, { method: "POST", body: new URLSearchParams([...new FormData(form), ["act", submitter.value]]) });
    const shown = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("main");
    const again = shown.querySelector(`.model-form [name="role"][value="${role}"]`).form;
    main.replaceChildren(...shown.childNodes);
    if (submitter.value === "test" || !response.ok) again.elements.key.value = key;
    again.querySelector(`[name="act"][value="${submitter.value}"]`).focus();
    announce(again.querySelector('[role="status"], [role="alert"]').textContent);
  } catch {
    submitter.disabled = false;
    toast("The server cannot be reached. Is it still running? Try again in a moment.");
  }
});

// Forms with `data-passkey` are answered by the browser's authenticator: it is told what to do, and its credential is sent.

import { send, toast } from "./api.js";

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !window.PublicKeyCredential?.parseCreationOptionsFromJSON;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { create, get } = await send("POST", form.action, {});
      const credential = create
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(create) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(get) });
      const entered = Object.fromEntries(new FormData(form));
      const { next } = await send("POST", form.action, { ...entered, credential: credential.toJSON() });
      location.assign(next);
    } catch (problem) {
      toast(problem);
    }
  });
}

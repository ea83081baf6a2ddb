// Sentence by sentence: edits one, has it checked again, keeps it beside the text, or returns to the original.

import { part, problemCard, send, toast } from "./api.js";
import { element } from "./text.js";

/** Make the sentences below `body` editable; `address()` is that of the run, `refresh` shows it again. */
export function editSentences(body, address, refresh) {
  body.addEventListener("click", (event) => {
    const row = event.target.closest(".sentence-row");
    const button = event.target.closest("[data-edit], [data-withdraw], [data-keep], [data-cancel], [data-anyway]");
    if (!row || !button) return;
    const sentence = new Sentence(row, address, refresh);
    const [act] = ["edit", "withdraw", "keep", "cancel", "anyway"].filter((name) => name in button.dataset);
    sentence[act]().catch((problem) => sentence.refused(problem));
  });
  body.addEventListener("submit", (event) => {
    const row = event.target.closest(".sentence-row");
    if (!row) return;
    event.preventDefault();
    const sentence = new Sentence(row, address, refresh);
    sentence.check().catch((problem) => sentence.refused(problem));
  });
  body.addEventListener("change", (event) => {
    if (event.target.id === "only-findings") body.querySelector(".sentences").classList.toggle("filtered", event.target.checked);
  });
}

class Sentence {
  constructor(row, address, refresh) {
    this.row = row;
    this.address = `${address()}/sentences`;
    this.refresh = refresh;
    this.position = Number(row.dataset.position);
  }

  get form() {
    return this.row.querySelector(".sentence-form");
  }

  get text() {
    return this.form.querySelector("textarea").value;
  }

  get result() {
    return this.form.querySelector(".check-result");
  }

  async edit() {
    if (!this.form) {
      const form = document.getElementById("sentence-form").content.cloneNode(true);
      const area = form.querySelector("textarea");
      area.value = this.row.dataset.text;
      area.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
        if (event.key === "Escape") this.cancel();
      });
      this.row.append(form);
      this.row.classList.add("open");
    }
    this.form.querySelector("textarea").focus();
  }

  async cancel() {
    this.form.remove();
    this.row.classList.remove("open");
    this.row.querySelector("[data-edit]").focus();
  }

  async check() {
    await this.busy("Checking", async () => {
      const sentence = { position: this.position, text: this.text };
      this.result.replaceChildren(await part(`${location.pathname}/sentence-check`, "1", sentence));
    });
  }

  async keep() {
    await this.busy("Checking and keeping", async () => {
      await send("POST", this.address, { position: this.position, text: this.text, keep: true });
      await this.kept();
    });
  }

  /** Keep it although it could not be checked. */
  async anyway() {
    await send("POST", this.address, { position: this.position, text: this.text, keep: true, check: false });
    await this.kept();
  }

  async kept() {
    await this.refresh(`#sentence-${this.position} [data-edit]`);
    toast("Kept as your version.");
  }

  async withdraw() {
    await send("DELETE", `${this.address}/${this.position}`);
    await this.refresh(`#sentence-${this.position} [data-edit]`);
    toast("The original sentence is back.");
  }

  refused(problem) {
    if (!this.form) {
      toast(problem);
      return;
    }
    const anyway = element("button", { class: "button small", type: "button", "data-anyway": true }, "Keep it unchecked");
    this.result.replaceChildren(problemCard(problem), ...(problem.status === 422 ? [] : [anyway]));
  }

  async busy(said, work) {
    const buttons = [...this.form.querySelectorAll("button")];
    for (const button of buttons) button.disabled = true;
    this.result.replaceChildren(element("p", { class: "quiet" }, `${said}…`));
    try {
      await work();
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  }
}

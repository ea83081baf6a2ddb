// Check: a text is sent, and its sentences are shown beside the passages of the papers.

import { part, problemCard, toast } from "./api.js";
import { byId, element } from "./text.js";

const form = byId("check");
const result = byId("result");

byId("file").addEventListener("change", async ({ target }) => {
  const [file] = target.files;
  const ending = file?.name.split(".").pop().toLowerCase();
  if (!target.accept.split(",").includes(`.${ending}`)) {
    if (file) toast(`${file.name} is not Markdown, LaTeX or Typst. Word and PDF files: citeloom check on the command line.`);
    return;
  }
  byId("text").value = await file.text();
  byId("format").value = ["tex", "typ"].includes(ending) ? ending : "md";
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  result.replaceChildren(element("p", { class: "quiet" }, "Checking …"));
  try {
    const body = { text: byId("text").value, format: byId("format").value, bib: byId("bib").value };
    result.replaceChildren(await part("/check", "1", body));
  } catch (problem) {
    result.replaceChildren(problemCard(problem));
  } finally {
    button.disabled = false;
  }
});

// One paper: correcting its metadata, and looking it up at metadata services.

import { problemCard, send } from "./api.js";
import { follow } from "./events.js";
import { byId, element } from "./text.js";

byId("entry").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  try {
    await send("PUT", `/api/v1/papers/${encodeURIComponent(form.dataset.key)}/entry`, { bibtex: form.elements.bibtex.value });
    location.reload();
  } catch (problem) {
    byId("entry-problem").replaceChildren(problemCard(problem));
  }
});

const enrich = byId("enrich");

enrich?.addEventListener("click", async () => {
  const shown = byId("enriched");
  const over = (...parts) => {
    enrich.disabled = false;
    shown.replaceChildren(...parts);
  };
  enrich.disabled = true;
  shown.replaceChildren(element("p", { class: "notice" }, "Asking the services …"));
  try {
    const job = await send("POST", "/api/v1/papers/enrich", { keys: [enrich.dataset.key] }, { "Idempotency-Key": crypto.randomUUID() });
    const stream = follow(`/api/v1/ingests/${job.id}/events`, {
      done: ({ result }) => {
        stream.close();
        finished(result.papers[0], over);
      },
      error: (problem) => {
        stream.close();
        over(problemCard(problem));
      },
    });
  } catch (problem) {
    over(problemCard(problem));
  }
});

function finished(found, over) {
  if (["known", "found"].includes(found.outcome)) {
    location.reload();
    return;
  }
  const said = {
    unsure: "The services have papers like this one, but it is not clear which it is; nothing was changed. Put its DOI into its .bib entry.",
    "not-found": "No service knows this paper.",
    failed: "No service answered.",
  };
  const failures = found.failures.map((text) => element("p", { class: "problem" }, text));
  over(element("p", { class: "notice" }, said[found.outcome]), ...failures);
}

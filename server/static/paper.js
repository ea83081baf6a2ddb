// One paper: removing it.

import { send, toast } from "./api.js";
import { confirmed } from "./confirm.js";

const remove = document.getElementById("remove");

remove.addEventListener("click", async () => {
  const file = remove.dataset.deletes === "yes" ? "Its file was added here and is deleted too." : "Its file stays where it is.";
  if (!(await confirmed(`Remove this paper from the library? ${file}`, "Remove"))) return;
  remove.disabled = true;
  try {
    await send("DELETE", `/api/v1/papers/${encodeURIComponent(remove.dataset.key)}`);
    location.assign("/library");
  } catch (problem) {
    remove.disabled = false;
    toast([problem.message, problem.help].filter(Boolean).join(" "));
  }
});

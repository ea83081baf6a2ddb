document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const filters = [...document.querySelectorAll(".filters input")];
  const chosen = filters[Number(event.key) - 1];
  if (chosen) { chosen.checked = true; return; }
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const shown = [...document.querySelectorAll(".pair")].filter((pair) => pair.offsetParent !== null);
  const at = shown.indexOf(document.activeElement.closest(".pair"));
  const next = shown[at < 0 ? (step > 0 ? 0 : shown.length - 1) : at + step];
  if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
});

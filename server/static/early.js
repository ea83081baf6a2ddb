// A form that is sent before the modules are there is sent again when they are: a click is not lost, nor what was typed.

let early = null;

function hold(event) {
  if (event.target.hasAttribute("action")) return;
  event.preventDefault();
  early = event;
}

addEventListener("submit", hold, true);
addEventListener("DOMContentLoaded", () => {
  removeEventListener("submit", hold, true);
  early?.target.requestSubmit(early.submitter);
});

// Words marked in a text without changing it: found by their letters alone, whatever the hyphens and spaces between them.

const LETTER = /[\p{L}\p{N}]/u;
const WINDOW = 6; // words: what is shorter is not looked for alone
const GAP = 60; // letters that are marked with the words around them
const fold = (text) => [...text.normalize("NFKD").toLowerCase()].filter((letter) => LETTER.test(letter)).join("");

/**
 * The ranges below `root` that have these words; if they do not stand there as one, as much of them as parts of six words
 * say, with what little stands between: a PDF's text lacks a ligature or has more hyphens.
 */
export function findWords(root, words) {
  const { text, places } = lettersOf(root);
  const whole = placesOf(text, fold(words));
  const parts = words.split(/\s+/).map(fold).filter(Boolean);
  const windows = whole.length ? [] : parts.slice(WINDOW - 1).map((_, start) => parts.slice(start, start + WINDOW).join(""));
  const found = join(windows.flatMap((window) => placesOf(text, window).slice(0, 1)));
  const skipped = windows.findIndex((window) => text.includes(window)); // words that the text has otherwise
  if (found.length) lengthen(found, text, parts, parts.slice(0, skipped).join("").length);
  return [...whole, ...found].map(([start, end]) => {
    const range = new Range();
    range.setStart(...places[start]);
    range.setEnd(places[end - 1][0], places[end - 1][1] + 1);
    return range;
  });
}

function join(places) {
  const joined = [];
  for (const [start, end] of places.sort((one, other) => one[0] - other[0])) {
    const last = joined.at(-1);
    if (last && start - last[1] <= GAP) last[1] = Math.max(last[1], end);
    else joined.push([start, end]);
  }
  return joined;
}

/** Have places begin and end with the first and last two words that were looked for, if these are near, or begin like the first word, `letters` before them. */
function lengthen(places, text, parts, letters) {
  const [first, last] = [places[0], places.at(-1)];
  const [opening, closing] = [parts.slice(0, 2).join(""), parts.slice(-2).join("")];
  const [start, like] = [opening, parts[0].slice(0, 2)].map((words) => text.lastIndexOf(words, first[0]));
  const end = text.indexOf(closing, last[1] - closing.length) + closing.length;
  if (start >= 0 && first[0] - start <= GAP) first[0] = start;
  else if (like >= 0 && letters <= GAP && first[0] - like <= letters) first[0] = like;
  if (end > last[1] && end - last[1] <= GAP) last[1] = end;
}

function placesOf(text, wanted) {
  const found = [];
  for (let at = wanted ? text.indexOf(wanted) : -1; at >= 0; at = text.indexOf(wanted, at + wanted.length)) found.push([at, at + wanted.length]);
  return found;
}

function lettersOf(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const places = [];
  let text = "";
  while (walker.nextNode()) {
    const { data } = walker.currentNode;
    for (let at = 0; at < data.length; at++) {
      const letters = fold(data[at]);
      text += letters;
      for (let count = 0; count < letters.length; count++) places.push([walker.currentNode, at]);
    }
  }
  return { text, places };
}

/** Show ranges as marked; `name` is a `::highlight` of the style sheet. */
export function showMarks(name, ranges) {
  if (globalThis.CSS?.highlights) CSS.highlights.set(name, new Highlight(...ranges));
  else for (const range of ranges) range.startContainer.parentElement.classList.add(`marked-${name}`);
}

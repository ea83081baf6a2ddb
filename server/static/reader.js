// A paper in the reader: its pages with the cited words marked, search, thumbnails, and the user's notes and highlights.

import { announce, problemCard, send, toast } from "./api.js";
import { findWords, showMarks } from "./marks.js";
import { element, keep, recall } from "./text.js";

const NOTED = /^> (.+?)(?: \(p\. (\d{1,5})\))?$/gm; // a highlight as it stands in the notes
const CHARACTERS = 2000; // of a selection

/** Open what the server rendered; `root` has the address of the PDF, or its text. */
export function openReader(root) {
  const reader = new Reader(root);
  reader.begin().catch((problem) => reader.part("[data-wait], .reader-pages").replaceChildren(problemCard(problem)));
}

class Reader {
  constructor(root) {
    this.root = root;
    this.part = (selector) => root.querySelector(selector);
    this.key = root.dataset.key;
    this.page = Number(root.dataset.page);
    this.notes = this.part(".reader-notes");
    this.saved = this.notes.elements.note.value;
    this.scroll = this.part(".reader-scroll");
    root.addEventListener("click", ({ target }) => this.act(target.closest("[data-act]")?.dataset.act));
    root.addEventListener("keydown", (event) => this.press(event));
    this.part(".reader-selection").addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the selection
    this.part(".reader-search").addEventListener("submit", (event) => this.search(event));
    this.notes.addEventListener("submit", (event) => this.save(event));
    this.notes.addEventListener("input", ({ target }) => (this.part("[data-saved]").textContent = target.value === this.saved ? "" : "Not saved yet."));
    this.watch = () => root.isConnected ? this.select() : document.removeEventListener("selectionchange", this.watch);
    document.addEventListener("selectionchange", this.watch);
    this.select(); // words may be selected before this script is here
    addEventListener("beforeunload", (event) => root.isConnected && this.saved !== this.notes.elements.note.value && event.preventDefault());
  }

  async begin() {
    if (this.root.dataset.file) await this.openPdf();
    else this.mark();
  }

  // The PDF

  async openPdf() {
    const address = this.root.dataset.pdfjs;
    const style = element("link", { rel: "stylesheet", href: `${address}pdf_viewer.css` });
    if (!document.querySelector(`link[href="${style.getAttribute("href")}"]`)) document.head.prepend(style);
    const pdfjs = await import(`${address}pdf.min.mjs`);
    const viewer = await import(`${address}pdf_viewer.mjs`);
    pdfjs.GlobalWorkerOptions.workerSrc = `${address}pdf.worker.min.mjs`;
    this.bus = new viewer.EventBus();
    const links = new viewer.PDFLinkService({ eventBus: this.bus, externalLinkTarget: viewer.LinkTarget.BLANK, externalLinkRel: "noopener noreferrer nofollow" });
    this.viewer = new viewer.PDFViewer({
      container: this.scroll,
      eventBus: this.bus,
      linkService: links,
      findController: new viewer.PDFFindController({ eventBus: this.bus, linkService: links }),
      annotationMode: pdfjs.AnnotationMode.ENABLE, // links and drawings, no forms
      enableAutoLinking: false,
      imageResourcesPath: `${address}images/`,
    });
    links.setViewer(this.viewer);
    this.bus.on("pagesinit", () => this.placed());
    this.bus.on("pagechanging", ({ pageNumber }) => this.turned(pageNumber));
    this.bus.on("scalechanging", ({ scale }) => (this.part("[data-zoom]").textContent = `${Math.round(100 * scale)}%`));
    this.bus.on("textlayerrendered", () => this.mark());
    this.bus.on("updatefindmatchescount", ({ matchesCount }) => this.count(matchesCount));
    this.bus.on("updatefindcontrolstate", ({ state, matchesCount }) => state !== viewer.FindState.PENDING && this.count(matchesCount));
    const opening = pdfjs.getDocument({
      url: new URL(this.root.dataset.file, location).href,
      cMapUrl: `${address}cmaps/`,
      standardFontDataUrl: `${address}standard_fonts/`,
      wasmUrl: `${address}wasm/`,
      useWasm: false, // which the page's policy forbids
      enableXfa: false,
      maxImageSize: 2 ** 26, // pixels
      verbosity: 0,
    });
    opening.onPassword = () => opening.destroy();
    this.pdf = await opening.promise.catch((error) => {
      throw Object.assign(new Error("The PDF cannot be shown here."), { help: `${error.message} Its file can be opened below.` });
    });
    this.viewer.setDocument(this.pdf);
    links.setDocument(this.pdf);
  }

  placed() {
    this.part("[data-wait]").remove();
    this.viewer.currentScaleValue = "page-width";
    this.viewer.currentPageNumber = Math.min(this.page, this.pdf.numPages);
    this.turned(this.viewer.currentPageNumber);
  }

  turned(number) {
    this.part("[data-page-number]").value = number;
    this.part('[data-act="previous"]').disabled = number <= 1;
    this.part('[data-act="next"]').disabled = number >= this.pdf.numPages;
    for (const each of this.root.querySelectorAll(".thumbnails [aria-current]")) each.removeAttribute("aria-current");
    const shown = this.part(`.thumbnails [data-go="${number}"]`);
    shown?.setAttribute("aria-current", "page");
    shown?.scrollIntoView({ block: "nearest" });
  }

  go(number) {
    if (this.viewer && number >= 1 && number <= this.pdf.numPages) this.viewer.currentPageNumber = number;
  }

  thumbnails(box) {
    const draw = async (button) => {
      const page = await this.pdf.getPage(Number(button.dataset.go));
      const canvas = button.querySelector("canvas");
      const viewport = page.getViewport({ scale: canvas.width / page.getViewport({ scale: 1 }).width });
      canvas.height = viewport.height;
      await page.render({ canvas, viewport }).promise;
    };
    const seen = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        seen.unobserve(target);
        draw(target).catch(() => {}); // a page that cannot be drawn stays blank
      }
    }, { root: box, rootMargin: "300px" });
    for (let number = 1; number <= this.pdf.numPages; number++) {
      const button = element("button", { type: "button", "data-go": number, "aria-label": `Page ${number}` }, element("canvas", { width: 120, height: 160 }), String(number));
      button.addEventListener("click", () => this.go(number));
      box.append(button);
      seen.observe(button);
    }
  }

  // Marks

  /** Mark the cited words and one's own highlights on the pages that are drawn; go to the cited words once. */
  mark() {
    const pages = [...this.scroll.querySelectorAll(this.viewer ? ".page:has(.textLayer)" : "article")];
    const near = pages.filter((page) => !this.viewer || [0, 1].includes(Number(page.dataset.pageNumber) - this.page));
    const words = this.root.dataset.quote;
    const cited = words ? near.flatMap((page) => findWords(page, words)) : [];
    showMarks("cited", cited);
    const noted = [...this.notes.elements.note.value.matchAll(NOTED)];
    showMarks("noted", noted.flatMap(([, text, number]) => pages.filter((page) => !number || page.dataset.pageNumber === number).flatMap((page) => findWords(page, text))));
    if (!cited.length || this.arrived) return;
    this.arrived = true;
    cited[0].startContainer.parentElement.scrollIntoView({ block: "center" });
    announce("The cited words are marked.");
  }

  search(event) {
    event.preventDefault();
    const query = event.target.elements.words.value.trim();
    const again = query === this.sought;
    this.sought = query;
    if (this.bus) {
      this.bus.dispatch("find", { source: this, type: again ? "again" : "", query, highlightAll: true, caseSensitive: false, entireWord: false, findPrevious: false, matchDiacritics: false });
      return;
    }
    const found = findWords(this.scroll, query);
    this.place = again ? (this.place + 1) % Math.max(1, found.length) : 0;
    showMarks("found", found);
    found[this.place]?.startContainer.parentElement.scrollIntoView({ block: "center" });
    this.count({ current: found.length && this.place + 1, total: found.length });
  }

  count({ current, total }) {
    this.part("[data-matches]").textContent = !this.sought ? "" : total ? `${current} of ${total}` : "not found";
  }

  // What is selected

  select() {
    const selection = getSelection();
    const inside = selection.rangeCount && this.scroll.contains(selection.getRangeAt(0).commonAncestorContainer);
    const words = inside ? selection.toString().replace(/-\n(?=\p{Ll})/gu, "").replace(/\s+/g, " ").trim() : "";
    this.part(".reader-selection").hidden = !words;
    this.part('[data-act="insert"]').hidden = !recall("citeloom-text"); // the text that was open last
    if (!words) return;
    const page = selection.getRangeAt(0).startContainer.parentElement.closest("[data-page-number]");
    this.selected = { words: words.slice(0, CHARACTERS), page: Number(page?.dataset.pageNumber) || null };
  }

  async highlight() {
    const { words, page } = this.selected;
    const area = this.notes.elements.note;
    area.value = `${area.value.trimEnd()}${area.value.trim() ? "\n\n" : ""}> ${words}${page ? ` (p. ${page})` : ""}\n`;
    getSelection().removeAllRanges();
    this.mark();
    await this.save();
  }

  ask() {
    const { words, page } = this.selected;
    const asked = `What follows from “${words}”${page ? ` (page ${page})` : ""}?`;
    location.assign(`/?${new URLSearchParams({ question: asked, paper: this.key })}`);
  }

  async cite() {
    const { page } = this.selected;
    const key = /^[\w:.#$%&+?<>~/-]+$/.test(this.key) ? this.key : `{${this.key}}`;
    const citation = `[@${key}${page ? `, p. ${page}` : ""}]`;
    await navigator.clipboard.writeText(citation).then(() => toast(`Copied ${citation}`), () => toast(citation));
  }

  /** Put what is selected into the text beside the reader, else into the one that was open last. */
  insert() {
    const { words, page } = this.selected;
    const text = `“${words}” (${this.key}${page ? `, p. ${page}` : ""})`;
    if (!document.querySelector(".sentence")) {
      const place = recall("citeloom-text");
      keep("citeloom-quoted", { place, text });
      location.assign(place);
      return;
    }
    const quoted = new CustomEvent("quoted", { detail: text });
    const over = this.root.closest("dialog:modal"); // on a phone: nothing below it can be written to
    over?.addEventListener("close", () => document.dispatchEvent(quoted), { once: true });
    if (over) over.close();
    else document.dispatchEvent(quoted);
  }

  // Notes

  async save(event) {
    event?.preventDefault();
    const text = this.notes.elements.note.value;
    const said = this.part("[data-saved]");
    said.textContent = "Saving …";
    try {
      await send("PUT", `/api/v1/papers/${encodeURIComponent(this.key)}/note`, { text, before: this.saved });
      this.saved = text;
      said.textContent = this.notes.elements.note.value === text ? "Saved." : "Not saved yet.";
      announce("The note is saved.");
      this.mark();
    } catch (problem) {
      said.textContent = "Not saved.";
      toast(problem);
    }
  }

  // Buttons and keys

  act(name) {
    const zoom = (steps) => this.viewer && this.viewer.updateScale({ steps });
    const acts = {
      previous: () => this.go(this.viewer?.currentPageNumber - 1),
      next: () => this.go(this.viewer?.currentPageNumber + 1),
      smaller: () => zoom(-1),
      larger: () => zoom(1),
      fit: () => (this.viewer.currentScaleValue = "page-width"),
      thumbnails: () => this.toggle("thumbnails", ".thumbnails"),
      notes: () => this.toggle("notes", ".reader-notes"),
      highlight: () => this.highlight(),
      ask: () => this.ask(),
      cite: () => this.cite(),
      insert: () => this.insert(),
    };
    if (name && (this.pdf || !this.root.dataset.file)) acts[name]?.();
  }

  toggle(name, selector) {
    const box = this.part(selector);
    box.hidden = !box.hidden;
    this.part(`[data-act="${name}"]`).setAttribute("aria-expanded", String(!box.hidden));
    if (name === "thumbnails" && !box.childElementCount) this.thumbnails(box);
    if (name === "thumbnails") this.turned(this.viewer.currentPageNumber);
    else if (!box.hidden) this.notes.elements.note.focus();
    if (this.viewer?.currentScaleValue === "page-width") this.act("fit");
  }

  press(event) {
    const typing = event.target.closest("input, textarea");
    if (event.target.matches("[data-page-number]") && event.key === "Enter") this.go(Number(event.target.value));
    else if (event.key === "f" && (event.ctrlKey || event.metaKey)) this.part('[name="words"]').focus();
    else if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "/") this.part('[name="words"]').focus();
    else if (["ArrowLeft", "ArrowRight", "+", "-"].includes(event.key)) this.act({ ArrowLeft: "previous", ArrowRight: "next", "+": "larger", "-": "smaller" }[event.key]);
    else return;
    event.preventDefault();
  }
}

// Citations by meaning in Obsidian: after `[@` the papers that fit the sentence, from `citeloom serve`; and a check of the note.

const { EditorSuggest, Notice, Plugin, PluginSettingTab, Setting, requestUrl } = require("obsidian");

/** @typedef {{ key: string, title: string, authors: string, year: number?, page: number?, section: string, quote: string }} Paper */

const DEFAULTS = { address: "http://127.0.0.1:8765", token: "" };
const OPEN = /\[(?:[^\[\]]*;\s*)?@([^\[\]@;]*)$/; // a citation that is being written, up to the cursor
const CITATION = /\[[^\[\]]*@[^\[\]]*\]/g;
const END = /[.!?]["”’)]*\s+(?=[A-Z0-9“"(])/g;

/**
 * The sentence that ends or goes on at `place` of a paragraph, and the one before it, without citations.
 * @param {string} paragraph
 * @param {number} place
 */
function sentenceAt(paragraph, place) {
  const ends = [...paragraph.matchAll(END)].map((found) => found.index + found[0].length);
  const starts = [0, ...ends.filter((end) => end <= place)];
  const stop = ends.find((end) => end > place) ?? paragraph.length;
  const plain = (/** @type {string} */ text) => text.replace(CITATION, "").replace(/\[[^\[\]]*$/, "").replace(/\s+/g, " ").trim();
  const start = starts.at(-1) ?? 0;
  const sentence = plain(paragraph.slice(start, place) + " " + paragraph.slice(place, stop).replace(/^[^\s\]]*\]?/, ""));
  return { sentence: sentence.slice(0, 2000), before: starts.length > 1 ? plain(paragraph.slice(starts.at(-2), start)).slice(0, 2000) : "" };
}

/** @extends {EditorSuggest<Paper>} */
class CitationSuggest extends EditorSuggest {
  /** @param {CiteloomPlugin} plugin */
  constructor(plugin) {
    super(plugin.app);
    this.plugin = plugin;
  }

  /**
   * @param {import("obsidian").EditorPosition} cursor
   * @param {import("obsidian").Editor} editor
   */
  onTrigger(cursor, editor) {
    const found = OPEN.exec(editor.getLine(cursor.line).slice(0, cursor.ch));
    return found && { start: { line: cursor.line, ch: cursor.ch - found[1].length }, end: cursor, query: found[1] };
  }

  /** @param {import("obsidian").EditorSuggestContext} context */
  async getSuggestions({ editor, start, query }) {
    const { sentence, before } = sentenceAt(editor.getLine(start.line), start.ch); // a paragraph is a line
    const asked = new URLSearchParams({ sentence: sentence || query || "paper", before, prefix: query, limit: "5" });
    return (await this.plugin.send(`search/citations?${asked}`))?.papers ?? [];
  }

  /**
   * @param {Paper} paper
   * @param {HTMLElement} element
   */
  renderSuggestion(paper, element) {
    element.createDiv({ text: `${paper.authors} ${paper.year ?? ""}. ${paper.title}` });
    const place = [paper.page === null ? "" : `p. ${paper.page}`, paper.section].filter(Boolean).join(", ");
    if (paper.quote) element.createEl("small", { text: `“${paper.quote}”${place ? ` (${place})` : ""}` });
  }

  /** @param {Paper} paper */
  selectSuggestion(paper) {
    if (!this.context) return;
    const { editor, start, end } = this.context;
    const closed = editor.getLine(end.line).slice(end.ch).startsWith("]");
    const key = /^[\w:.#$%&+?<>~/-]*\w$/.test(paper.key) ? paper.key : `{${paper.key}}`;
    editor.replaceRange(closed ? key : `${key}]`, start, end);
    editor.setCursor({ line: start.line, ch: start.ch + key.length + 1 });
  }
}

class CiteloomPlugin extends Plugin {
  settings = DEFAULTS;

  async onload() {
    this.settings = { ...DEFAULTS, ...(await this.loadData()) };
    this.registerEditorSuggest(new CitationSuggest(this));
    this.addSettingTab(new CiteloomSettings(this.app, this));
    this.addCommand({ id: "check", name: "Check this note without the chat model", editorCallback: (editor) => this.check(editor) });
  }

  /**
   * The server's answer, or null after a notice of what is wrong.
   * @param {string} path
   * @param {object} [body]
   */
  async send(path, body) {
    /** @type {Record<string, string>} */
    const headers = this.settings.token ? { Authorization: `Bearer ${this.settings.token}` } : {};
    const how = body ? { method: "POST", contentType: "application/json", body: JSON.stringify(body) } : {};
    try {
      const url = `${this.settings.address.replace(/\/+$/, "")}/api/v1/${path}`;
      const response = await requestUrl({ url, headers, throw: false, ...how });
      if (response.status < 400) return response.json;
      new Notice(`Citeloom: ${response.json?.detail ?? response.status} ${response.json?.help ?? ""}`);
    } catch {
      new Notice(`Citeloom: ${this.settings.address} cannot be reached. Start it with: citeloom serve`);
    }
    return null;
  }

  /**
   * Show what the check finds, a line each; the numbers of cited papers and the keys are compared, no model is asked.
   * @param {import("obsidian").Editor} editor
   */
  async check(editor) {
    const found = await this.send("checks", { text: editor.getValue(), format: "md", only: ["references", "numbers"] });
    if (!found) return;
    const items = /** @type {{ faults: { message: string }[] }[]} */ ([...found.sentences, ...found.references]);
    const faults = items.flatMap((item) => item.faults.map((fault) => fault.message));
    new Notice(faults.length ? faults.slice(0, 10).join("\n") : "Citeloom: nothing found.", 15000);
  }
}

class CiteloomSettings extends PluginSettingTab {
  /**
   * @param {import("obsidian").App} app
   * @param {CiteloomPlugin} plugin
   */
  constructor(app, plugin) {
    super(app, plugin);
    this.plugin = plugin;
  }

  display() {
    this.containerEl.empty();
    const fields = /** @type {const} */ ({ address: ["Server", "Where `citeloom serve` runs."], token: ["Token", "Only if the server asks for one."] });
    for (const name of /** @type {(keyof typeof fields)[]} */ (Object.keys(fields))) {
      const [title, about] = fields[name];
      new Setting(this.containerEl).setName(title).setDesc(about).addText((text) =>
        text.setValue(this.plugin.settings[name]).onChange((value) => {
          this.plugin.settings[name] = value.trim();
          return this.plugin.saveData(this.plugin.settings);
        }),
      );
    }
  }
}

module.exports = CiteloomPlugin;

"""Neovim and Emacs, as the system has them, and Obsidian's plugin in Node: what our extensions show."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.cli_process import CLI, ROOT, environment
from tests.support.sample_library import index_samples
from tests.support.served_app import served_app

SEEDS = "obrien2019seeds"
TEXT = f"""\\documentclass{{article}}
\\begin{{document}}
The spread across seeds was described \\cite{{{SEEDS}}}.
The seed alone spreads calibration error about twelve times as much as accuracy \\cite{{}}.
It is cited \\cite{{nobody2020}}.
\\bibliography{{library}}
\\end{{document}}
"""
LUA = """
local out = {}
require("citeloom").setup({ cmd = vim.json.decode(vim.env.CITELOOM_TEST_SERVER) })
vim.cmd("edit paper.tex")
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 50)
for _, found in ipairs(vim.diagnostic.get(0)) do out[#out + 1] = found.code or found.user_data.lsp.code end
vim.api.nvim_win_set_cursor(0, { 4, (vim.fn.getline(4):find("{}", 1, true)) })
local answers = vim.lsp.buf_request_sync(0, "textDocument/completion", vim.lsp.util.make_position_params(), 60000)
local items = {}
for _, answer in pairs(answers) do
  for _, item in ipairs(answer.result.items) do items[#items + 1] = item.label end
end
vim.api.nvim_win_set_cursor(0, { 3, (vim.fn.getline(3):find("obrien")) })
local hovers = vim.lsp.buf_request_sync(0, "textDocument/hover", vim.lsp.util.make_position_params(), 60000)
local words = ""
for _, answer in pairs(hovers) do words = answer.result.contents.value end
local place = vim.fn.getline(4):find("{}", 1, true)
vim.api.nvim_buf_set_text(0, 3, place, 3, place, { "MANY" })
vim.o.virtualedit = "onemore"
vim.api.nvim_win_set_cursor(0, { 4, place + 4 })
local start = vim.fn.eval("v:lua." .. vim.bo.omnifunc:sub(7) .. "(1, '')")
local answer = vim.fn.eval("v:lua." .. vim.bo.omnifunc:sub(7) .. "(0, 'MANY')")
local typed = vim.tbl_map(function(item) return item.word end, answer.words)
local found = { rules = out, items = items, hover = words, typed = typed, start = start }
for _, name in ipairs({ "notes.qmd", "paper.typ" }) do
  vim.cmd("edit! " .. name)
  found[name] = vim.bo.filetype .. #vim.lsp.buf_get_clients(0)
end
vim.fn.writefile({ vim.json.encode(found) }, "out.json")
vim.cmd("qall!")
"""
LISP = """
(require 'json)
(require 'citeloom)
(setq citeloom-command (append (json-parse-string (getenv "CITELOOM_TEST_SERVER") :array-type 'list) nil)
      eglot-connect-timeout 60 eglot-sync-connect 60)
(find-file "paper.tex")
(latex-mode)
(apply #'eglot (eglot--guess-contact))
(let ((tries 0))
  (while (and (< tries 600) (null (flymake-diagnostics)))
    (accept-process-output nil 0.1)
    (flymake-start)
    (setq tries (1+ tries))))
(goto-char (point-min))
(search-forward "accuracy \\\\cite{")
(let* ((found (eglot-completion-at-point))
       (items (all-completions "" (nth 2 found))))
  (goto-char (point-min))
  (search-forward "cite{obr")
  (let ((hover (jsonrpc-request (eglot--current-server-or-lose)
                                :textDocument/hover (eglot--TextDocumentPositionParams)))
        (problems (mapcar #'flymake-diagnostic-text (flymake-diagnostics))))
    (with-temp-file "out.json"
      (insert (json-serialize
        (list :items (vconcat (mapcar #'substring-no-properties items))
              :problems (vconcat problems)
              :hover (plist-get (plist-get hover :contents) :value)))))))
(eglot-shutdown (eglot--current-server-or-lose))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index_samples(tmp_path / ".citeloom", LocalEmbedding())
    shutil.copy(ROOT / "examples/library/library.bib", tmp_path)
    (tmp_path / "paper.tex").write_text(TEXT)
    return tmp_path


def _run(folder: Path, *command: str) -> dict[str, object]:
    server = json.dumps([sys.executable, str(CLI), "lsp"])
    settings = {**environment({"TEST_SERVER": server}), "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300, check=False)
    assert (folder / "out.json").exists(), done.stdout + done.stderr
    read: dict[str, object] = json.loads((folder / "out.json").read_text())
    return read


@pytest.mark.skipif(shutil.which("nvim") is None, reason="needs nvim")
def test_neovim_completes_hovers_and_shows_diagnostics(folder: Path) -> None:
    (folder / "script.lua").write_text(LUA)
    path = f"set runtimepath+={ROOT / 'editors/nvim'}"
    found = _run(
        folder, "nvim", "--headless", "--clean", "-n", "--cmd", path, "-c", "luafile script.lua", "-c", "cquit"
    )
    assert found["items"][0] == SEEDS  # type: ignore[index]
    assert "key-without-entry" in found["rules"]  # type: ignore[operator]
    assert "How Many Seeds?" in str(found["hover"])
    assert found["typed"] == [SEEDS], "by a word of its title, in any case"
    assert found["start"] == TEXT.splitlines()[3].index("{}") + 1
    assert found["notes.qmd"] == "quarto1" and found["paper.typ"] == "typst1"


def _has_eglot() -> bool:
    return (
        shutil.which("emacs") is not None
        and not subprocess.run(["emacs", "--batch", "-l", "eglot"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not _has_eglot(), reason="needs emacs with Eglot")
def test_emacs_completes_hovers_and_shows_diagnostics(folder: Path) -> None:
    (folder / "script.el").write_text(LISP)
    found = _run(folder, "emacs", "--batch", "-L", str(ROOT / "editors/emacs"), "-l", "script.el")
    assert found["items"][0] == SEEDS  # type: ignore[index]
    assert any("nobody2020" in line for line in found["problems"])  # type: ignore[attr-defined]
    assert "How Many Seeds?" in str(found["hover"])


PLUGIN = r"""
const Module = require("module");
const load = Module._load;
const said = [];
class Any { constructor(app) { this.app = app; } }
class Notice { constructor(text) { said.push(text); } }
const obsidian = {
  EditorSuggest: Any, PluginSettingTab: Any, Setting: Any, Notice,
  Plugin: class {
    loadData() { return { address: process.env.ADDRESS }; }
    registerEditorSuggest(one) { this.suggest = one; }
    addSettingTab() {}
    addCommand(one) { this.command = one; }
  },
  requestUrl: async ({ url, method, headers, contentType, body }) => {
    const all = { ...headers, ...(body && { "Content-Type": contentType }) };
    const answer = await fetch(url, { method, body, headers: all });
    return { status: answer.status, json: await answer.json() };
  } };
Module._load = (name, ...more) => (name === "obsidian" ? obsidian : load(name, ...more));
const Citeloom = require(process.env.PLUGIN);
(async () => {
  const lines = process.env.NOTE.split("\n");
  const editor = { getLine: (line) => lines[line], getValue: () => lines.join("\n"), setCursor() {},
    replaceRange: (text, { line, ch }, to) => {
      lines[line] = lines[line].slice(0, ch) + text + lines[line].slice(to.ch);
    } };
  const plugin = new Citeloom();
  await plugin.onload();
  const cursor = { line: 0, ch: lines[0].indexOf("[@") + 2 };
  plugin.suggest.context = { editor, ...plugin.suggest.onTrigger(cursor, editor) };
  const papers = await plugin.suggest.getSuggestions(plugin.suggest.context);
  plugin.suggest.selectSuggestion(papers[0]);
  await plugin.command.editorCallback(editor);
  plugin.settings.address = "http://127.0.0.1:1";
  const nothing = await plugin.suggest.getSuggestions(plugin.suggest.context);
  const keys = papers.map((one) => one.key);
  console.log(JSON.stringify({ keys, quote: papers[0].quote, note: lines[0], said, nothing }));
})();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_obsidian_offers_papers_inserts_a_key_and_checks_the_note(tmp_path: Path) -> None:
    home = index_samples(tmp_path / "home", LocalEmbedding())
    claim = "The seed alone spreads calibration error about twelve times as much as accuracy"
    note = f"Much was said before. {claim} [@] in all tests. More follows.\n\nIt is so [@nobody2020].\n"
    with served_app(home.root) as server:
        given = {"ADDRESS": server.url, "PLUGIN": str(ROOT / "editors/obsidian/main.js"), "NOTE": note}
        done = subprocess.run(
            ["node", "-e", PLUGIN], env={**environment({}), **given}, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["keys"][0] == SEEDS and found["quote"], found
    assert found["note"] == f"Much was said before. {claim} [@{SEEDS}] in all tests. More follows."
    checked, lost = found["said"]
    assert "nobody2020" in checked and "citeloom serve" in lost and found["nothing"] == []

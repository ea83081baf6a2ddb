"""Neovim and Emacs, as the system has them, with our extensions: they start the server and show what it offers."""

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
local found = { rules = out, items = items, hover = words, omnifunc = vim.bo.omnifunc }
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
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=120, check=False)
    assert (folder / "out.json").exists(), done.stdout + done.stderr
    read: dict[str, object] = json.loads((folder / "out.json").read_text())
    return read


@pytest.mark.skipif(shutil.which("nvim") is None, reason="needs nvim")
def test_neovim_completes_hovers_and_marks(folder: Path) -> None:
    (folder / "script.lua").write_text(LUA)
    path = f"set runtimepath+={ROOT / 'editors/nvim'}"
    found = _run(
        folder, "nvim", "--headless", "--clean", "-n", "--cmd", path, "-c", "luafile script.lua", "-c", "cquit"
    )
    assert found["items"][0] == SEEDS  # type: ignore[index]
    assert "key-without-entry" in found["rules"]  # type: ignore[operator]
    assert "How Many Seeds?" in str(found["hover"]) and found["omnifunc"] == "v:lua.vim.lsp.omnifunc"


def _has_eglot() -> bool:
    return (
        shutil.which("emacs") is not None
        and not subprocess.run(["emacs", "--batch", "-l", "eglot"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not _has_eglot(), reason="needs emacs with Eglot")
def test_emacs_completes_hovers_and_marks(folder: Path) -> None:
    (folder / "script.el").write_text(LISP)
    found = _run(folder, "emacs", "--batch", "-L", str(ROOT / "editors/emacs"), "-l", "script.el")
    assert found["items"][0] == SEEDS  # type: ignore[index]
    assert any("nobody2020" in line for line in found["problems"])  # type: ignore[attr-defined]
    assert "How Many Seeds?" in str(found["hover"])

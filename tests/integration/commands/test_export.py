"""export: what was edited in the markdown file is what the other formats say."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom


def _words(docx: Path) -> str:
    return re.sub(r"<[^>]+>", "", zipfile.ZipFile(docx).read("word/document.xml").decode())


@pytest.mark.parametrize("style", ["key", "pandoc", "numeric", "latex"])
def test_an_edited_section_is_exported_as_it_was_edited(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, style: str
) -> None:
    written = citeloom("discussion", exp, "--home", home, "--out", tmp_path, "--cite-style", style, "--json")
    record = written.json
    file = tmp_path / "discussion.md"
    first, kept = record["citations"][0], record["citations"][-1]
    text = file.read_text("utf-8")
    sentence = record["text"].split(". ")[1] + "."
    shown = next(item["sentence"] for item in record["citations"] if item["key"] == first["key"])
    cited = shown[shown.rindex("”") + 1 :].strip().rstrip(".")
    mine = f"In my own words, with nested lists kept {cited}."
    edited = text.replace(sentence, "I rewrote this <b>sentence</b> & left it uncited.", 1)
    edited = edited.replace("\n\n## References", f"\n\n## Aside\n\n- one\n    - two: {mine}\n\n## References", 1)
    assert edited != text
    file.write_text(edited, "utf-8")
    done = citeloom("export", file, "--format", "docx", "--format", "tex", "--format", "html", "--home", home)
    assert done.code == 0 and "edited by hand" not in _words(tmp_path / "discussion.docx"), done.err
    assert file.read_text("utf-8") == edited, "the edited file is not written"
    tex = (tmp_path / "discussion.tex").read_text("utf-8")
    page = (tmp_path / "discussion.html").read_text("utf-8")
    docx = _words(tmp_path / "discussion.docx")
    for said in (tex, page, docx):
        assert "I rewrote this" in said and "In my own words, with nested lists kept" in said
        assert sentence[:-1] not in said
        assert "not supported" not in said and "citation needed" not in said
    assert re.search(rf"nested lists kept\s\\citep(\[[^\]]*\])?\{{{first['key']}\}}", " ".join(tex.split()))
    assert {item["key"] for item in record["citations"]} == set(re.findall(r'id="ref-([^"]+)"', page))
    assert kept["quote"].split(",")[0].replace("'", "’")[:30] in docx.replace("'", "’")
    for suffix in ("md", "tex", "docx", "html"):
        checked = citeloom("verify", tmp_path / f"discussion.{suffix}", "--home", home)
        assert checked.code == 0 and "edited sentence" in checked.err, checked.out


def test_an_edited_paper_and_a_docx_that_was_edited_since(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("paper", exp, "--home", home, "--out", tmp_path).code == 0
    file = tmp_path / "paper.md"
    text = file.read_text("utf-8")
    file.write_text(text.replace("## Conclusion\n\n", "## Conclusion\n\nThis is how I would end it. ", 1), "utf-8")
    assert citeloom("export", file, "--format", "docx", "--home", home).code == 0
    assert "This is how I would end it." in _words(tmp_path / "paper.docx")
    (tmp_path / "paper.docx").write_bytes(b"mine")
    again = citeloom("export", file, "--format", "docx", "--home", home)
    assert again.code == 0 and (tmp_path / "paper.docx").read_bytes() == b"mine" and "paper.2.docx" in again.out


def test_what_has_no_record_is_refused(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nText.\n", "utf-8")
    done = citeloom("export", tmp_path / "notes.md", "--format", "docx", "--home", home)
    assert done.code == 2 and "notes.json" in done.err
    (tmp_path / "notes.json").write_text(json.dumps({"thread_id": "discussion-0000"}), "utf-8")
    assert citeloom("export", tmp_path / "notes.md", "--format", "docx", "--home", home).code == 2
    assert citeloom("export", exp, "--format", "docx", "--home", home).code == 2

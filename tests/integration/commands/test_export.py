"""export: edits in the markdown file appear in the other formats."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from citeloom import export, open_library, verify
from tests.integration.commands.conftest import Citeloom


def _words(docx: Path) -> str:
    return re.sub(r"<[^>]+>", "", zipfile.ZipFile(docx).read("word/document.xml").decode())


@pytest.mark.parametrize("style", ["key", "pandoc", "numeric", "latex"])
def test_an_edited_section_is_exported_with_its_edits(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, style: str
) -> None:
    written = citeloom("discussion", exp, "--home", home, "--out", tmp_path, "--cite-style", style, "--json")
    record = written.json
    file = tmp_path / "discussion.md"
    first, kept = record["citations"][0], record["citations"][-1]
    text = file.read_text("utf-8")
    sentence = record["text"].split(". ")[1] + "."
    shown = next(item["sentence"] for item in record["citations"] if item["key"] == first["key"])
    cited = re.split(r", in “|, [“']", shown[shown.index("” ") + 1 :])[0].strip().rstrip(".")
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


def test_a_citation_of_an_unknown_paper_in_an_edited_section_is_exported_with_a_warning(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    record = citeloom("discussion", exp, "--home", home, "--out", tmp_path, "--json").json
    file = tmp_path / "discussion.md"
    sentence = record["text"].split(". ")[1] + "."
    edited = file.read_text("utf-8").replace(sentence, "I rewrote this sentence and cite [@nosuchkey2020].", 1)
    file.write_text(edited, "utf-8")
    done = citeloom("export", file, "--format", "docx", "--home", home)
    assert done.code == 0 and "[@nosuchkey2020]" in _words(tmp_path / "discussion.docx")
    assert [line for line in done.err.splitlines() if '"[@nosuchkey2020]"' in line] == [
        'Note: Left in the text: "[@nosuchkey2020]" is a citation that was not made from evidence.'
    ]


def test_footnotes_and_comments_in_an_edited_section_lose_no_text(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    record = citeloom("discussion", exp, "--home", home, "--out", tmp_path, "--json").json
    file = tmp_path / "discussion.md"
    text, sentence = file.read_text("utf-8"), record["text"].split(". ")[1] + "."
    called = f"{sentence[:-1]}[^own].<!-- ask Ada -->"
    note = "[^own]: Two wearers were left-handed.\n\n    Their data are kept.\n\n[^7]: Never called.\n\n"
    file.write_text(f"{text.replace(sentence, called, 1).replace('## References', f'{note}## References')}", "utf-8")
    done = citeloom("export", file, "--format", "docx", "--home", home)
    words = _words(tmp_path / "discussion.docx")
    assert done.code == 0 and "(Two wearers were left-handed. Their data are kept.)" in words
    assert "Never called." in words and "[^own]" not in words and "ask Ada" not in words
    assert "[^own]" not in citeloom("verify", file, "--home", home).out
    imported = citeloom("import", file, "--home", home, "--json").json
    assert any("Two wearers were left-handed." in item["text"] for item in imported["sentences"])
    assert "ask Ada" in file.read_text("utf-8")


def test_an_edited_paper_and_a_docx_edited_later_are_exported(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("paper", exp, "--home", home, "--out", tmp_path).code == 0
    file = tmp_path / "paper.md"
    text = file.read_text("utf-8")
    file.write_text(text.replace("## Conclusion\n\n", "## Conclusion\n\nThis is how I would end it. ", 1), "utf-8")
    assert citeloom("export", file, "--format", "docx", "--home", home).code == 0
    assert "This is how I would end it." in _words(tmp_path / "paper.docx")
    with open_library(home) as library:
        exported = export(library, file, ["tex", "html"])
        checked = verify(library, exported["files"]["html"])
    assert "This is how I would end it." in Path(exported["files"]["tex"]).read_text("utf-8")
    assert checked["mismatches"] == []
    record = json.loads((tmp_path / "paper.json").read_text("utf-8"))
    assert checked["checked"]["quotes"] == checked["checked"]["keys"] == len(record["citations"]) > 0
    assert checked["checked"]["findings"] == len(record["evidence"])
    (tmp_path / "paper.docx").write_bytes(b"mine")
    again = citeloom("export", file, "--format", "docx", "--home", home)
    assert again.code == 0 and (tmp_path / "paper.docx").read_bytes() == b"mine" and "paper.2.docx" in again.out
    assert citeloom("verify", tmp_path / "paper.2.docx", "--home", home).code == 0


def test_a_text_exported_to_another_folder_can_be_verified_there(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("discussion", exp, "--home", home, "--out", tmp_path).code == 0
    out = tmp_path / "sent"
    done = citeloom("export", tmp_path / "discussion.md", "--format", "docx,html", "--out", out, "--home", home)
    assert done.code == 0 and {path.name for path in out.iterdir()} == {
        f"discussion.{x}" for x in ("docx", "html", "json")
    }
    for name in ("discussion.docx", "discussion.html"):
        checked = citeloom("verify", out / name, "--home", home)
        assert checked.code == 0, checked.err
    (out / "discussion.json").write_text("mine", "utf-8")
    again = citeloom("export", tmp_path / "discussion.md", "--format", "docx", "--out", out, "--home", home)
    assert "discussion.2.docx" in again.out and (out / "discussion.json").read_text("utf-8") == "mine"
    assert citeloom("verify", out / "discussion.2.docx", "--home", home).code == 0


def test_a_section_that_ends_with_a_list_is_not_reported_as_cut_off(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    """Without a chat model a section may end with passages listed elsewhere, or statements near to nothing."""
    assert citeloom("paper", exp, "--home", home, "--out", tmp_path).code == 0
    for kind in ("introduction", "methods", "results", "discussion", "conclusion", "abstract"):
        done = citeloom("export", tmp_path / f"{kind}.md", "--format", "html", "--home", home)
        assert done.code == 0 and "breaks off" not in done.err, done.err
    assert "recognise everyday activities" in (tmp_path / "abstract.html").read_text("utf-8")


def test_a_text_with_removed_citations_is_not_called_one_sided(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    record = citeloom("discussion", exp, "--home", home, "--out", tmp_path, "--json").json
    counts = Counter(item["key"] for item in record["citations"])
    (key, most), *_ = counts.most_common()
    assert len(counts) >= 3 and most >= 5
    file = tmp_path / "discussion.md"
    listed = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("- “") or f"({key})" in line]
    file.write_text("\n".join(listed) + "\n", "utf-8")
    done = citeloom("export", file, "--format", "html", "--home", home)
    assert done.code == 0 and "are to one paper" not in done.err, done.err


def test_a_paper_includes_the_edits_in_its_section_files(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    first = citeloom("paper", exp, "--home", home, "--out", tmp_path, "--json").json
    methods = tmp_path / "methods.md"
    opening = next(item for item in first["sections"] if item["section"] == "methods")["text"].split(". ")[0]
    edited = methods.read_text("utf-8").replace(opening, "I describe the methods in my own way", 1)
    methods.write_text(edited, "utf-8")
    again = citeloom("paper", exp, "--home", home, "--out", tmp_path, "--format", "docx", "--json")
    assert again.code == 0 and "methods.md was edited by hand: the paper has your text." in again.err, again.err
    paper = (tmp_path / "paper.md").read_text("utf-8")
    for said in (paper, _words(tmp_path / "paper.docx"), again.json["text"]):
        assert said.count("I describe the methods in my own way") == 1 and opening not in said
    assert methods.read_text("utf-8") == edited and not (tmp_path / "methods.2.md").exists()
    others = [item["text"] for item in first["sections"] if item["section"] != "methods"]
    assert all(text in again.json["text"] for text in others)
    assert citeloom("verify", tmp_path / "paper.md", "--home", home).code == 0
    forced = citeloom("paper", exp, "--home", home, "--out", tmp_path, "--force", "--json")
    assert opening in forced.json["text"] and opening in methods.read_text("utf-8")


def test_a_file_without_a_record_is_refused(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\nText.\n", "utf-8")
    done = citeloom("export", tmp_path / "notes.md", "--format", "docx", "--home", home)
    assert done.code == 2 and "notes.json" in done.err
    (tmp_path / "notes.json").write_text(json.dumps({"thread_id": "discussion-0000"}), "utf-8")
    assert citeloom("export", tmp_path / "notes.md", "--format", "docx", "--home", home).code == 2
    assert citeloom("export", exp, "--format", "docx", "--home", home).code == 2


def test_latex_in_another_folder_gets_its_bibliography_and_figures(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    experiment = json.loads(exp.read_text("utf-8"))
    Image.new("RGB", (4, 4)).save(tmp_path / "roc.png")
    (tmp_path / "exp.json").write_text(json.dumps({**experiment, "plots": "roc.png"}), "utf-8")
    assert citeloom("results", tmp_path / "exp.json", "--home", home, "--out", tmp_path / "md").code == 0
    new = tmp_path / "to" / "publisher"
    export = ("export", tmp_path / "md" / "results.md", "--format", "tex", "--out", new, "--home", home)
    assert citeloom(*export).code == 0
    names = {path.name for path in new.iterdir()}
    assert {"results.tex", "results.bib"} < names and any(name.endswith(".png") for name in names)
    (new / "results.tex").write_text("% mine", "utf-8")
    done = citeloom(*export)
    assert done.code == 0 and (new / "results.tex").read_text("utf-8") == "% mine"
    assert "results.2" in (new / "results.2.tex").read_text("utf-8") and (new / "results.2.bib").is_file()
    assert citeloom(*export[:-3], tmp_path / "md" / "results.md", "--home", home).code == 2, "a file is no folder"


def test_one_section_of_a_paper_is_exported_with_its_edits(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("paper", exp, "--home", home, "--out", tmp_path).code == 0
    file = tmp_path / "discussion.md"
    file.write_text(file.read_text("utf-8").replace("\n\n## References", "\n\nI add this.\n\n## References"), "utf-8")
    done = citeloom("export", file, "--format", "docx", "--format", "tex", "--home", home)
    words = _words(tmp_path / "discussion.docx")
    tex = (tmp_path / "discussion.tex").read_text("utf-8")
    assert done.code == 0 and "has no text" not in done.err
    assert "I add this." in words and "I add this." in tex and r"\citep" in tex
    assert "Background" not in words and "Procedure" not in words, "no other section"
    assert citeloom("verify", tmp_path / "discussion.docx", "--home", home).code == 0


def test_a_paper_without_its_headings_is_refused_instead_of_exported_empty(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("paper", exp, "--home", home, "--out", tmp_path).code == 0
    (tmp_path / "paper.md").write_text("All new words, no headings.\n", "utf-8")
    done = citeloom("export", tmp_path / "paper.md", "--format", "tex", "--home", home)
    assert done.code == 2 and "Discussion" in done.err and not (tmp_path / "paper.tex").exists()


def test_special_characters_of_an_edited_file_are_kept_and_another_encoding_is_refused(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("discussion", exp, "--home", home, "--out", tmp_path).code == 0
    file = tmp_path / "discussion.md"
    text = file.read_text("utf-8").replace("# Discussion\n", "# What it means\n\nThe set $\\{x, y\\}$ für mich.\n", 1)
    file.write_text(text, "utf-8")
    assert citeloom("export", file, "--format", "tex", "--home", home).code == 0
    tex = (tmp_path / "discussion.tex").read_text("utf-8")
    assert r"\(\{x, y\}\) für mich" in tex and "What it means" not in tex
    file.write_text("The set für mich.\n", "latin-1")
    done = citeloom("export", file, "--format", "tex", "--home", home)
    assert done.code == 2 and "discussion.md: cannot be read ('utf-8'" in done.err

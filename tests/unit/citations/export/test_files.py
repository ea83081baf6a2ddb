from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from citeloom.citations.citation_styles import render
from citeloom.citations.export.section_files import (
    SectionDocument,
    bibliography,
    markdown_document,
    write_atomically,
)
from citeloom.citations.references import Reference
from citeloom.errors import InputError
from tests.support.citation_samples import make_source
from tests.support.section_documents import write_section

SOURCES = (make_source("E1", "b2019"), make_source("E2", "a2020", page=4))


def _document() -> SectionDocument:
    rendered = render("Degree matters [E1]. It lasts [E2].", SOURCES, "key")
    papers = [replace(source.paper, bibtex=f"@misc{{{source.paper.key}, title = {{On}}}}") for source in SOURCES]
    references = [Reference(paper.key, paper.key, "Ada. 2017. “On.”", "On", ("Ada",), 2017, "", "") for paper in papers]
    return SectionDocument(
        thread_id="t1",
        section="discussion",
        text=rendered.text,
        citations=rendered.citations,
        evidence=[source.evidence for source in SOURCES],
        papers=papers,
        references=references,
        usage={"llm_calls": 0},
        warnings=("Only two --> papers fit.",),
        notice="Extractive mode.",
    )


def test_three_files_and_nothing_else(tmp_path: Path) -> None:
    files = write_section(tmp_path / "new" / "out", "discussion", _document())
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == [
        "discussion.bib",
        "discussion.json",
        "discussion.md",
    ]
    record = json.loads(Path(files["json"]).read_text(encoding="utf-8"))
    assert record["files"] == files
    assert list(record) == [
        "thread_id", "section", "text", "citations", "evidence", "references", "findings", "numbers", "left_out",
            "own_citations", "figures",
        "usage", "warnings", "files",
    ]  # fmt: skip
    assert record["citations"][1]["page"] == 4
    assert {"key", "page", "evidence_id", "chunk_id", "quote", "start", "end", "sentence", "verdict"} <= set(
        record["citations"][0]
    )


def test_the_markdown_reads_as_a_section() -> None:
    text = markdown_document(_document())
    assert text.startswith(
        "# Discussion\n\nDegree matters (b2019). It lasts (a2020).\n\n## References\n\n- **b2019**: Ada."
    )
    assert text.rstrip().endswith("-->")
    assert text.count("-->") == 1


@pytest.mark.parametrize("heading", ["# Discussion", "## discussion:", "**Discussion**"])
def test_a_heading_of_the_writers_own_is_not_doubled(heading: str) -> None:
    document = replace(_document(), text=f"{heading}\n\nDegree matters.")
    assert markdown_document(document).lower().count("discussion") == 1


def test_the_bib_holds_each_cited_entry_once() -> None:
    document = _document()
    assert bibliography([*document.papers, document.papers[0]]).count("@misc") == 2


@pytest.mark.parametrize("kind", ["../../etc/x", "a/b", "con", "what?", ""])
def test_no_name_leaves_the_folder(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "a" / "b" / "c"
    files = write_section(out, kind, _document())
    assert {Path(path).resolve().parent for path in files.values()} == {out.resolve()}


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_section(tmp_path / "file" / "out", "discussion", _document())
    assert "--out" in str(caught.value)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "discussion.md"
    path.write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["discussion.md"]


def test_half_a_character_does_not_lose_the_section(tmp_path: Path) -> None:
    files = write_section(tmp_path, "discussion", replace(_document(), text="Degree \ud800 matters."))
    assert "Degree" in Path(files["md"]).read_text(encoding="utf-8")
    json.loads(Path(files["json"]).read_text(encoding="utf-8"))

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from citeloom.citations.citation_styles import render
from citeloom.citations.export.section_files import bibliography, markdown_document, write_files, write_texts
from citeloom.citations.references import Reference
from citeloom.errors import InputError
from tests.support.citation_samples import make_source

SOURCES = (make_source("E1", "b2019"), make_source("E2", "a2020", page=4))


PAPERS = [replace(source.paper, bibtex=f"@misc{{{source.paper.key}, title = {{On}}}}") for source in SOURCES]


def _markdown(text: str = "") -> str:
    rendered = render("Degree matters [E1]. It lasts [E2].", SOURCES, "key")
    references = [Reference(paper.key, paper.key, "Ada. 2017. “On.”", "On", ("Ada",), 2017, "", "") for paper in PAPERS]
    remarks = ["Extractive mode.", "Only two --> papers fit."]
    return markdown_document("Discussion", text or rendered.text, references, remarks=remarks)


def _write(folder: Path, kind: str, text: str = "") -> dict[str, str]:
    contents = {"md": _markdown(text), "bib": bibliography(PAPERS)}
    return write_texts(folder, kind, contents, lambda files: json.dumps({"files": dict(files)}))


def test_three_files_are_written_and_nothing_else(tmp_path: Path) -> None:
    files = _write(tmp_path / "new" / "out", "discussion")
    written = sorted(path.name for path in (tmp_path / "new" / "out").iterdir())
    assert written == ["discussion.bib", "discussion.json", "discussion.md"]
    assert json.loads(Path(files["json"]).read_text(encoding="utf-8"))["files"] == files


def test_the_markdown_is_readable_as_a_section() -> None:
    text = _markdown()
    assert text.startswith(
        "# Discussion\n\nDegree matters (b2019). It lasts (a2020).\n\n## References\n\n- **b2019**: Ada."
    )
    assert text.rstrip().endswith("-->")
    assert text.count("-->") == 1


@pytest.mark.parametrize("heading", ["# Discussion", "## discussion:", "**Discussion**"])
def test_a_heading_that_the_writer_added_is_not_repeated(heading: str) -> None:
    assert _markdown(f"{heading}\n\nDegree matters.").lower().count("discussion") == 1


def test_the_bib_contains_each_cited_entry_once() -> None:
    assert bibliography([*PAPERS, PAPERS[0]]).count("@misc") == 2


@pytest.mark.parametrize("kind", ["../../etc/x", "a/b", "con", "what?", ""])
def test_no_file_name_leads_out_of_the_folder(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "a" / "b" / "c"
    files = _write(out, kind)
    assert {Path(path).resolve().parent for path in files.values()} == {out.resolve()}


def test_a_folder_that_cannot_be_created_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=str(tmp_path / "file")) as caught:
        _write(tmp_path / "file" / "out", "discussion")
    assert "--out" in caught.value.help


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "discussion.md"
    path.write_text("old")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InputError, match="No space"):
        write_files({path: "new"})
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["discussion.md"]


def test_a_lone_surrogate_does_not_lose_the_section(tmp_path: Path) -> None:
    files = _write(tmp_path, "discussion", "Degree \ud800 matters.")
    assert "Degree" in Path(files["md"]).read_text(encoding="utf-8")
    json.loads(Path(files["json"]).read_text(encoding="utf-8"))

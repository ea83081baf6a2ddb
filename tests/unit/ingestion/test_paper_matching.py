"""Renamed files keep the key of their paper, and a text that is not one BibTeX entry is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.documents.bibliography import make_entry
from citeloom.documents.markdown import parse_markdown
from citeloom.documents.types import Paper
from citeloom.ingestion.paper_matching import EntryError, match_renamed_files, parse_entry
from citeloom.ingestion.plan import metadata_hash
from citeloom.ingestion.sources import SourcePaper, Sources
from citeloom.stores.paper_catalog import PaperRecord

TEXT = parse_markdown("# Looms\n\nLooms weave cloth.")


def read(file: str, key: str, content_hash: str, bibtex: str | None = None) -> SourcePaper:
    paper = Paper(key, "Looms", source=file, content_hash=content_hash)
    whole = Paper(key, "Looms", source=file, content_hash=content_hash, bibtex=bibtex or make_entry(paper))
    return SourcePaper(Path(file), TEXT, whole)


def record(key: str, file: str, content_hash: str) -> PaperRecord:
    paper = Paper(key, "Looms", source=file, content_hash=content_hash, abstract="Known.")
    return PaperRecord(paper, metadata_hash(paper), "3:400:100", "Known.", "abstract", 1)


def matched(source: SourcePaper, known: PaperRecord) -> tuple[Paper, tuple[str, ...]]:
    sources = match_renamed_files(Sources((source,), (), (), ()), {known.paper.key: known})
    (found,) = sources.found
    return found.paper, sources.warnings


def test_a_file_with_the_text_of_a_missing_paper_is_that_paper() -> None:
    paper, warnings = matched(read("/new.md", "new", "h"), record("old", "/old.md", "h"))
    assert (paper.key, paper.source, paper.abstract) == ("old", "/new.md", "Known.")
    assert len(warnings) == 1 and "old under a new name" in warnings[0]


def test_a_file_like_an_existing_paper_is_another_paper(tmp_path: Path) -> None:
    there = tmp_path / "old.md"
    there.write_text("words", encoding="utf-8")
    paper, warnings = matched(read("/new.md", "new", "h"), record("old", str(there), "h"))
    assert (paper.key, warnings) == ("new", ())


def test_a_users_entry_sets_the_key() -> None:
    paper, _ = matched(read("/new.md", "new", "h", "@misc{new, title = {Looms}}"), record("old", "/old.md", "h"))
    assert paper.key == "new"


def test_a_file_matched_earlier_keeps_its_paper_when_edited() -> None:
    paper, warnings = matched(read("/new.md", "new", "edited"), record("old", "/new.md", "h"))
    assert (paper.key, paper.content_hash, paper.abstract, warnings) == ("old", "edited", "Known.", ())


def test_a_single_entry_is_read() -> None:
    assert parse_entry("@article{k, title = {On {Looms}}, year = 2020}").title == "On Looms"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no entry"),
        ("@misc{a, title = {A}} @misc{b, title = {B}}", "2 entries"),
        ("@misc{a, year = 2020}", "no title"),
        ("@misc{a b, title = {A}}", "usable key"),
    ],
)
def test_text_that_is_not_one_entry_is_refused(text: str, named: str) -> None:
    with pytest.raises(EntryError) as refused:
        parse_entry(text)
    assert named in refused.value.message


def test_path_and_content_of_a_file_are_not_metadata() -> None:
    paper = Paper("k", "Looms", source="/a.md", content_hash="1")
    assert metadata_hash(paper) == metadata_hash(Paper("k", "Looms", source="/b.md", content_hash="2"))
    assert metadata_hash(paper) != metadata_hash(Paper("k", "Looms II", source="/a.md", content_hash="1"))

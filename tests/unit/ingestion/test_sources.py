"""Pages of a text from the PDF of the same paper, files that leave their folder, and which of two files is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from citeloom.documents.front_matter import FrontMatter
from citeloom.documents.markdown import ParsedPaper, parse_markdown
from citeloom.documents.types import Paper
from citeloom.ingestion.sources import SourcePaper, align_pages, merge_text_with_pdf, outside_target, refuse_link, walk

FIRST = "Looms weave cloth from threads that run in two directions over the frame of the weaver."
SECOND = "Every pattern that a weaver knows is written on cards which a machine can read and repeat."
THIRD = "The last card of a pattern is tied to the first so that the cloth has neither begin nor end."


def paged(*pages: str) -> ParsedPaper:
    text = "\n\n".join(pages)
    return replace(parse_markdown(text), page_starts=tuple(text.index(page) for page in pages))


def test_a_text_gets_the_pages_of_its_pdf() -> None:
    text = parse_markdown(f"# Looms\n\n{FIRST}\n\n{SECOND}\n\n{THIRD}")
    pages = align_pages(text, paged(FIRST.upper(), SECOND.replace(" ", "\n"), THIRD))
    assert pages is not None
    assert [pages.page_at(text.text.index(words)) for words in (FIRST, SECOND, THIRD)] == [1, 2, 3]


def test_metadata_missing_in_a_text_come_from_the_first_page_of_its_pdf() -> None:
    front = FrontMatter(authors=("Ada Lovelace",), year=1843, doi="10.1000/looms")
    pdf = replace(paged(FIRST, SECOND), front_matter=front)
    text = parse_markdown(f"# Looms\n\n{FIRST}\n\n{SECOND}")
    bare = align_pages(text, pdf)
    assert bare is not None and (bare.front_matter.authors, bare.front_matter.year) == (front.authors, 1843)
    own = align_pages(replace(text, front_matter=FrontMatter(authors=("Charles Babbage",))), pdf)
    assert own is not None and own.front_matter == replace(front, authors=("Charles Babbage",))


def test_a_page_without_matching_words_starts_where_the_next_one_does() -> None:
    text = parse_markdown(f"{FIRST}\n\n{SECOND}")
    pages = align_pages(text, paged(FIRST, "axis 1 2 3", SECOND))
    assert pages is not None and pages.page_starts == (0, text.text.index(SECOND), text.text.index(SECOND))


def test_the_pdf_of_another_paper_provides_no_pages() -> None:
    assert align_pages(parse_markdown(FIRST), paged(SECOND, THIRD)) is None
    assert align_pages(parse_markdown(FIRST), paged("", "")) is None


def source(name: str, parsed: ParsedPaper) -> SourcePaper:
    return SourcePaper(Path(name), parsed, Paper("looms", "Looms", pages=len(parsed.page_starts) or None))


@pytest.mark.parametrize("text_first", [True, False])
def test_a_text_and_a_pdf_with_one_key_are_one_paper(text_first: bool) -> None:
    text, pdf = source("a.md", parse_markdown(f"{FIRST}\n\n{SECOND}")), source("b.pdf", paged(FIRST, SECOND))
    both = merge_text_with_pdf(*((text, pdf) if text_first else (pdf, text)))
    assert both is not None
    assert (both.path, both.paper.pages, len(both.parsed.page_starts)) == (Path("a.md"), 2, 2)
    assert merge_text_with_pdf(text, replace(text, path=Path("b.md"))) is None
    assert merge_text_with_pdf(text, source("b.pdf", paged(THIRD))) is None


def test_links_out_of_a_folder_are_followed_only_on_request(tmp_path: Path) -> None:
    folder, outside = tmp_path / "papers", tmp_path / "secret.md"
    folder.mkdir()
    outside.write_text("secret", encoding="utf-8")
    (folder / "inside.md").write_text("words", encoding="utf-8")
    (folder / "same.md").symlink_to(folder / "inside.md")
    (folder / "out.md").symlink_to(outside)
    (folder / ".hidden.md").write_text("words", encoding="utf-8")

    walked = walk([folder], (".md",))
    assert [file.name for file in walked.files] == ["inside.md", "same.md"]
    assert walked.refused == (refuse_link(folder / "out.md", outside),)
    assert "--follow-links" in walked.refused[0].reason
    assert [file.name for file in walk([folder], (".md",), follow_links=True).files] == [
        "inside.md",
        "out.md",
        "same.md",
    ]
    assert outside_target(folder / "out.md", [folder, outside]) is None


def test_folders_that_link_to_each_other_are_visited_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    (tmp_path / "a" / "paper.md").write_text("words", encoding="utf-8")
    assert [file.name for file in walk([tmp_path], (".md",), follow_links=True).files] == ["paper.md"]


def test_other_files_are_counted_and_bibliographies_found_only_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("a.bib", "deep/b.bib", "c.xyz", "deep/d.XYZ", "noending"):
        (tmp_path / name).write_text("", encoding="utf-8")
    walked = walk([tmp_path], (".md",))
    assert walked.bibliographies == (tmp_path / "a.bib",) and walked.files == ()
    assert walked.passed_over == {".xyz": 2, "without extension": 1}

"""LangChain documents and loaders ingested through the Python API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from citeloom import ingest, open_library, search
from citeloom.documents import Chunk
from citeloom.errors import ConfigurationError, InputError
from citeloom.graph.session import Session
from citeloom.settings.config import Settings

BIB = "@article{ada2020, title={Looms and Engines}, author={Lovelace, Ada}, year={2020}, doi={10.1234/loom}}\n"


def prose(topic: str, count: int = 30) -> str:
    return " ".join(f"The {topic} number {number} grew by {number} units in the trial." for number in range(count))


def pages(source: str, *texts: str, **metadata: str) -> list[Document]:
    return [
        Document(text, metadata={"source": source, "page": number, **metadata}) for number, text in enumerate(texts)
    ]


class TwoPages(BaseLoader):
    """A loader like those for PDF files."""

    def lazy_load(self) -> Iterator[Document]:
        yield from pages("/somewhere/ada2020.pdf", f"# Looms\n\n{prose('loom')}", f"## Methods\n\n{prose('engine')}")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_library(tmp_path / "home", settings=Settings()) as opened:
        yield opened


def chunks_of(session: Session, key: str) -> list[Chunk]:
    store = session.library.store
    ids = sorted(name for name in store.stored_ids() if name.startswith(f"{key}:"))
    return list(store.get_chunks(ids).values())


def test_pages_with_one_source_become_one_paper_with_pages(session: Session, tmp_path: Path) -> None:
    bib = tmp_path / "library.bib"
    bib.write_text(BIB, encoding="utf-8")
    report = ingest(session, [TwoPages()], bib)
    assert (report["papers_added"], report["refused"]) == (1, [])
    paper = session.library.paper("ada2020")
    assert (paper.title, paper.year, paper.pages, paper.source) == (
        "Looms and Engines",
        2020,
        2,
        "/somewhere/ada2020.pdf",
    )
    assert {chunk.page for chunk in chunks_of(session, "ada2020") if "engine number 3 " in chunk.text} == {2}
    assert ingest(session, [TwoPages()], bib)["papers_unchanged"] == 1


def test_documents_may_lack_pages_and_carry_their_own_metadata(session: Session) -> None:
    web = Document(prose("web"), metadata={"source": "https://example.org/a/page.html?x=1", "title": "A page"})
    named = Document(prose("note"), metadata={"key": "grace2021", "author": "Grace Hopper; Jean Bartik"})
    assert ingest(session, [web, named])["papers_added"] == 2
    assert session.library.paper("page").title == "A page"
    assert session.library.paper("grace2021").authors == ("Grace Hopper", "Jean Bartik")
    assert chunks_of(session, "page")[0].page is None


def test_a_document_without_a_name_or_text_is_refused(session: Session) -> None:
    good = Document(prose("good"), metadata={"source": "good.txt"})
    report = ingest(session, [good, Document(prose("lost")), Document(" \0", metadata={"source": "blank.txt"})])
    assert report["papers_added"] == 1
    assert [(item["path"], item["reason"]) for item in report["refused"]] == [
        ("document 1", "has neither 'key' nor 'source' in its metadata"),
        ("blank.txt", "is empty"),
    ]


def test_files_and_documents_can_be_ingested_together(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "one.md"
    file.write_text(f"# One\n\n{prose('file')}", encoding="utf-8")
    assert ingest(session, [file, Document(prose("two"), metadata={"source": "two.txt"})])["papers_added"] == 2


def test_any_other_input_gets_a_clear_error(session: Session) -> None:
    with pytest.raises(ConfigurationError, match="Cannot ingest a int"):
        ingest(session, [7])  # type: ignore[list-item]
    with pytest.raises(InputError, match="No path was given"):
        ingest(session, [])


def test_searching_in_python_refuses_unknown_papers_and_fields(session: Session, tmp_path: Path) -> None:
    bib = tmp_path / "library.bib"
    bib.write_text(BIB.replace("year=", "journal={Journal of Looms}, year="), encoding="utf-8")
    ingest(session, [TwoPages()], bib)
    assert {hit["key"] for hit in search(session, "engine", venue="looms", categories=["Methods"])} == {"ada2020"}
    refused: list[tuple[str, dict[str, Any]]] = [
        (" ?", {}),
        ("engine", {"venue": "Nature"}),
        ("engine", {"papers": ["bob2021"]}),
        ("engine", {"categories": ["mood"]}),
    ]
    for query, limits in refused:
        with pytest.raises(InputError):
            search(session, query, **limits)


def test_search_results_keep_the_papers_text_so_that_spans_fit(session: Session) -> None:
    ingest(
        session, Document(f"For a<b, `<script>alert(1)</script>` ran. {prose('tag')}", metadata={"source": "tag.md"})
    )
    (hit, *_) = search(session, "script alert ran tag", k=1)
    (chunk,) = session.library.chunks([hit["chunk_id"]])
    assert hit["text"] == chunk.text and "<script>alert(1)</script>" in hit["text"] and "&lt;" not in hit["text"]

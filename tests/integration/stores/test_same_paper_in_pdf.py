"""The same search finds the same paper, whether it was ingested as markdown or as PDF; with the bundled model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.documents.markdown import parse_markdown
from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.text.sentences import sentence_spans
from tests.conftest import ROOT
from tests.support.nearest import nearest
from tests.support.vector_cache import CachedEmbedding

KEYS = ("le2020treeheatr", "lee2022ten", "zietz2018network")


@pytest.fixture(scope="module")
def libraries(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Library]]:
    """Three papers as markdown, and the same as PDF; vectors are kept in `.cache/` between sessions."""
    model = CachedEmbedding(LocalEmbedding(), ROOT / ".cache" / "vectors.sqlite")
    corpus = shared_dir / "corpus"
    opened: list[Library] = []
    for folder, ending in (("papers", ".md"), ("pdfs", ".pdf")):
        library = Library.open(FolderHome(tmp_path_factory.mktemp(folder) / ".citeloom"), model)
        opened.append(library)
        files = [corpus / folder / f"{key}{ending}" for key in KEYS]
        report = asyncio.run(ingest(library, files, bib=corpus / "library.bib"))
        assert report.added == KEYS and not report.refused
    yield opened
    for library in opened:
        library.close()


def first_sentences(file: Path) -> list[str]:
    """The first sentence of each section that begins with a whole one."""
    paper = parse_markdown(file.read_text(encoding="utf-8"))
    found: list[str] = []
    for section in paper.sections:
        prose = next((block for block in paper.section_blocks(section) if block.kind == "prose"), None)
        if prose is None or not section.searchable or section.title == paper.title:
            continue
        text = paper.text[prose.start : prose.end]
        start, end = sentence_spans(text)[0]
        if len(text[start:end].split()) >= 8:
            found.append(text[start:end])
    return found


@pytest.mark.long
def test_a_search_finds_the_same_paper_in_markdown_and_in_pdf(libraries: list[Library], shared_dir: Path) -> None:
    queries = [query for key in KEYS for query in first_sentences(shared_dir / "corpus" / "papers" / f"{key}.md")]
    assert len(queries) > 20

    def best(library: Library, query: str) -> str:
        vector = asyncio.run(library.embedding.embed_query(query))
        return nearest(library, vector, 1)[0][0].key

    differ = [query for query in queries if len({best(library, query) for library in libraries}) > 1]
    assert len(differ) <= 0.05 * len(queries), differ

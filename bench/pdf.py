"""Pages per second of reading PDFs as `ingest` does, against the parser alone on the same files."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.measure import Row, alternate
from citeloom.ingestion.reading import read_pdf_apart

_MOST_PAGES = 60  # per file: a book would dominate the figure


async def measure(papers: Sequence[Path], rounds: int) -> list[Row]:
    """Two rows: against the parser's plain text, and against the parser's output that we use; no rows without PDFs."""
    files = [path for path in papers if _pages(path) <= _MOST_PAGES]
    if not files:
        return []
    pages = sum(map(_pages, files))
    what = f"PDF, {len(files)} papers, {pages} pages"
    return [
        await _row(f"{what} : the parser's text", files, pages, _text, rounds),
        await _row(f"{what} : the parser's runs and tables", files, pages, _runs, rounds),
    ]


async def _row(what: str, files: Sequence[Path], pages: int, alone: Callable[[Path], None], rounds: int) -> Row:
    def timed(read: Callable[[Path], object]) -> float:
        started = time.perf_counter()
        for path in files:
            read(path)
        return time.perf_counter() - started

    async def ours() -> float:
        return await asyncio.to_thread(timed, read_pdf_apart)

    async def reference() -> float:
        return await asyncio.to_thread(timed, alone)

    pairs = await alternate(ours, reference, rounds)
    mine, other = (sorted(times)[len(times) // 2] for times in zip(*pairs, strict=True))
    ratios = tuple(parser / whole for whole, parser in pairs)
    return Row(what, pages / mine, pages / other, ratios, other / mine, "pages/s", at_least=True)


def _pages(path: Path) -> int:
    import pdf_oxide

    pdf_oxide.disable_logging()
    return int(pdf_oxide.PdfDocument(str(path)).page_count())


def _text(path: Path) -> None:
    import pdf_oxide

    document = pdf_oxide.PdfDocument(str(path))
    for number in range(document.page_count()):
        document.extract_text(number)


def _runs(path: Path) -> None:
    import pdf_oxide

    document = pdf_oxide.PdfDocument(str(path))
    for number in range(document.page_count()):
        document.extract_spans(number)
        document.extract_tables(number)

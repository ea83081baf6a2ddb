"""How `papers show` prints a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..documents import Paper
from ..documents.paper_names import zotero_link
from ..program import command
from ..tools.paper_records import OutlinedSection, Passage
from .escaping import one_line
from .metadata_view import known_lines

if TYPE_CHECKING:
    from ..metadata.enriching import StoredMetadata


def paper_lines(
    paper: Paper,
    summary: str,
    note: str,
    sections: Sequence[OutlinedSection],
    known: StoredMetadata | None = None,
    figures: str = "",
) -> Iterator[str]:
    """Metadata, what services said of it, how many figures it has, summary, the user's note, and the section tree."""
    if known and known.status.label:
        yield f"{known.status.label.upper()}\n"
    yield one_line(f"{paper.key}: {paper.title}")
    authors = ", ".join(paper.authors) or "no authors"
    yield one_line(f"{authors} ({paper.year or 'no year'}). {paper.venue} {paper.doi}".rstrip())
    yield f"File: {one_line(paper.source)}"
    if link := zotero_link(paper.bibtex):
        yield f"Zotero: {link.select}"
    if paper.ocr_pages:
        yield f"Read by OCR: {shown_pages(paper.ocr_pages)}"
    if figures:
        yield one_line(f"It has {figures}: {command('papers figures')} {paper.key}")
    if known:
        found = [f"doi: {known.doi} (found by title)"] if known.doi and not paper.doi else []
        yield from [*found, *known_lines(known)]
    yield f"\n{' '.join(summary.split())}\n"
    if note:
        yield f"Your note:\n{note.strip()}\n"
    for item in sections:
        indent = "  " * max(0, item.section.level - 1)
        yield f"{indent}{one_line(item.section.title) or '(untitled)'} [{', '.join(_facts(item))}]"


def _facts(item: OutlinedSection) -> Iterator[str]:
    yield item.section.category.name.lower()
    if item.chunks:
        yield _range("chunk", "chunks", item.chunks)
    else:
        yield "no chunks" if item.section.searchable else "not searched"
    if item.pages:
        yield _range("p.", "pp.", item.pages)


def shown_pages(pages: Sequence[int]) -> str:
    """Page numbers in order, those in a row as a range: "pp. 1-4, 7"."""
    known = frozenset(pages)
    starts = [page for page in pages if page - 1 not in known]
    ends = [page for page in pages if page + 1 not in known]
    ranges = [str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]
    return f"{'p.' if len(pages) == 1 else 'pp.'} {', '.join(ranges)}"


def _range(one: str, several: str, ends: tuple[int, int]) -> str:
    return f"{one} {ends[0]}" if ends[0] == ends[1] else f"{several} {ends[0]}-{ends[1]}"


def text_lines(paper: Paper, passages: Sequence[Passage]) -> Iterator[str]:
    """The text that is searched, under the titles of its sections."""
    yield f"# {one_line(paper.title)}"
    title = paper.title
    for item in passages:
        if item.section != title:
            page = f" (p. {item.page})" if item.page is not None else ""
            yield f"\n## {one_line(item.section) or '(untitled)'}{page}"
            title = item.section
        yield f"\n{item.text}"

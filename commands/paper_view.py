"""How `papers show` and `papers enrich` print a paper and what services know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..api.messages import command
from .terminal_text import one_line

_MAX_VALUE: Final = 160  # characters
_FIELD_LABELS: Final = {"open_access": "open access", "type": "kind"}


def paper_lines(record: dict[str, Any]) -> Iterator[str]:
    """Metadata, what services said of it, how many figures it has, summary, the user's note, and the section tree."""
    from ..api.library_papers import counted_kinds

    known = record["metadata"]
    if known["status"]:
        yield f"{known['status'].upper()}\n"
    yield one_line(f"{record['key']}: {record['title']}")
    authors = ", ".join(record["authors"]) or "no authors"
    yield one_line(f"{authors} ({record['year'] or 'no year'}). {record['venue']} {record['doi']}".rstrip())
    yield f"File: {one_line(record['source'])}"
    if record["zotero"]:
        yield f"Zotero: {record['zotero']}"
    if record["ocr_pages"]:
        yield f"Read by OCR: {page_ranges(record['ocr_pages'])}"
    if record["figures"]:
        kinds = counted_kinds([figure["kind"] for figure in record["figures"]])
        yield one_line(f"It has {kinds}: {command('papers figures')} {record['key']}")
    if known["doi"] and not record["doi"]:
        yield f"doi: {known['doi']} (found by title)"
    yield from known_lines(known)
    yield f"\n{' '.join(record['summary'].split())}\n"
    if record["note"]:
        yield f"Your note:\n{record['note'].strip()}\n"
    yield from section_lines(record["sections"])


def section_lines(sections: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The tree of sections, each with its chunks and pages."""
    for section in sections:
        indent = "  " * max(0, section["level"] - 1)
        yield f"{indent}{one_line(section['title']) or '(untitled)'} [{', '.join(_section_facts(section))}]"


def _section_facts(section: dict[str, Any]) -> Iterator[str]:
    yield section["category"]
    if section["chunk_range"]:
        yield _range("chunk", "chunks", section["chunk_range"])
    else:
        yield "no chunks" if section["searchable"] else "not searched"
    if section["page_range"]:
        yield _range("p.", "pp.", section["page_range"])


def _range(one: str, several: str, ends: Sequence[int]) -> str:
    return f"{one} {ends[0]}" if ends[0] == ends[1] else f"{several} {ends[0]}-{ends[1]}"


def page_ranges(pages: Sequence[int]) -> str:
    """Page numbers in order, those in a row as a range: "pp. 1-4, 7"."""
    known = frozenset(pages)
    starts = [page for page in pages if page - 1 not in known]
    ends = [page for page in pages if page + 1 not in known]
    ranges = [str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]
    return f"{'p.' if len(pages) == 1 else 'pp.'} {', '.join(ranges)}"


def text_lines(record: dict[str, Any]) -> Iterator[str]:
    """The text that is searched, under the titles of its sections."""
    yield f"# {one_line(record['title'])}"
    title = record["title"]
    for passage in record["text"]:
        if passage["section"] != title:
            title = passage["section"]
            page = f" (p. {passage['page']})" if passage["page"] is not None else ""
            yield f"\n## {one_line(title) or '(untitled)'}{page}"
        yield f"\n{passage['text']}"


def enrichment_lines(record: dict[str, Any]) -> Iterator[str]:
    """The result of looking a paper up: its DOI and how it was found, or why it was not, then what is known."""
    key, doi, outcome = record["key"], record["doi"], record["outcome"]
    if outcome == "known":
        yield one_line(f"{key}: {doi}")
    elif outcome == "found":
        yield one_line(f"{key}: {doi} (found by title and authors, similarity {record['similarity']:.2f})")
    elif outcome == "unsure":
        yield one_line(f"{key}: unsure, so nothing was changed: {record['why']}.")
        yield "  If one of these is the paper, put its DOI into your .bib and ingest it again:"
        for work in record["candidates"]:
            place = f"({work['year'] or 'no year'}, {work['venue'] or 'no venue'})"
            yield one_line(f"  {work['doi']}: {_shorten(work['title'])} {place}, similarity {work['similarity']:.2f}")
    elif outcome == "not-found":
        reason = f"no service knows {doi}" if doi else "no service has a paper with this title"
        yield one_line(f"{key}: {reason}.")
    else:
        yield one_line(f"{key}: not looked up, since no service answered.")
    for line in known_lines(record):
        yield f"  {line}"


def known_lines(known: dict[str, Any]) -> Iterator[str]:
    """Notices first, then what the entry lacks and what differs, each with who says so."""
    for line in known["notices"]:
        yield one_line(line)
    for field, item in known["filled"].items():
        yield one_line(f"{_FIELD_LABELS.get(field, field)}: {_show_value(item['value'])} ({item['service']})")
    for item in known["differences"]:
        own, said = _show_value(item["own"]), _show_value(item["said"])
        yield one_line(f"{item['field']} differs: {own} in your .bib, {said} at {item['service']}")


def _show_value(value: Any) -> str:
    if isinstance(value, list):
        names = [str(item) for item in value]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{', '.join(names[:3])}{more}"
    return f"{value:,}" if isinstance(value, int) and value > 9999 else _shorten(str(value))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"

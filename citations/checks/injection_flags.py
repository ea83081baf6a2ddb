"""Flags sources that seem to contain prompt injection: location, words, and a finding for each source.

Everything that a model was shown of a source is examined: the passage, its section title, and every field of the paper,
including the bibliography entry. Nothing is removed: hiding a passage would let an attacker silence a paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ...documents import Chunk, Paper
from ...documents.figures import PaperFigure
from ...roles.protocols import Source
from .findings import Finding, shown
from .injection_patterns import Suspicion, suspicious


@dataclass(frozen=True, slots=True)
class Flag:
    """A suspicious `text` at `start:end` of the part `where` ("passage", "title" ...) of the paper `key`.

    `evidence_id` and `chunk_id` are None for a field of the paper.
    """

    key: str
    evidence_id: str | None
    chunk_id: str | None
    where: str
    start: int
    end: int
    text: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The plain form of the JSON output."""
        return asdict(self)


def flag_sources(
    sources: Sequence[Source],
    read: Iterable[tuple[Chunk, Paper]] = (),
    described: Mapping[str, Sequence[PaperFigure]] = MappingProxyType({}),
) -> list[Flag]:
    """All flags: of passages in the order of the evidence, of other chunks that an agent `read`, then of papers.

    `described` are figures with a model's description, by the chunk that they were shown with.
    """

    def descriptions(chunk_id: str) -> list[tuple[str, str]]:
        return [(f"description of {figure.name}", figure.description) for figure in described.get(chunk_id, ())]

    flags: list[Flag] = []
    papers: dict[str, Paper] = {}
    seen: set[str] = set()
    for source in sources:
        evidence = source.evidence
        papers[source.paper.key] = source.paper
        parts = (("passage", source.text), ("section title", evidence.section), ("summary", evidence.summary))
        seen.add(evidence.chunk_id)
        # One chunk may back several pieces of evidence.
        flags += _flags(source.paper.key, evidence.id, evidence.chunk_id, (*parts, *descriptions(evidence.chunk_id)))
    for chunk, paper in read:
        papers[paper.key] = paper
        if chunk.id not in seen:
            seen.add(chunk.id)
            read_parts = (("passage", chunk.text), ("section title", chunk.section), *descriptions(chunk.id))
            flags += _flags(paper.key, None, chunk.id, read_parts)
    for key, paper in papers.items():
        flags += _of_paper(key, paper)
    return flags


def flag_findings(flags: Sequence[Flag]) -> list[Finding]:
    """A note for each source, quoting the first flagged words and counting the others."""
    groups: dict[tuple[str, str | None, str], list[Flag]] = {}
    for flag in flags:
        groups.setdefault((flag.key, flag.chunk_id, flag.where), []).append(flag)
    return [Finding("orders-in-source", _message(group)) for group in groups.values()]


def _message(group: Sequence[Flag]) -> str:
    first = group[0]
    marked = f"{first.evidence_id}, " if first.evidence_id else ""
    place = f"{marked}chunk {first.chunk_id}" if first.chunk_id else "the paper's data"
    more = f" ({len(group)} places)" if len(group) > 1 else ""
    return (
        f'The {first.where} of {shown(first.key)} ({place}) {first.why}: "{_visible(first.text)}"{more}. It was '
        "read as data and not obeyed; look at this paper before you rely on it."
    )


def _visible(words: str) -> str:
    """Words on one line, with invisible characters as code points."""
    return shown(
        "".join(letter if letter.isprintable() or letter.isspace() else f"<{ord(letter):x}>" for letter in words)
    )


def _flags(key: str, evidence_id: str | None, chunk_id: str | None, parts: Iterable[tuple[str, str]]) -> Iterator[Flag]:
    for where, text in parts:
        for item in _suspicions(text):
            yield _flag(key, evidence_id, chunk_id, where, text, item)


@lru_cache(maxsize=1024)
def _suspicions(text: str) -> tuple[Suspicion, ...]:
    """Suspicious spans of a text, cached: a conversation shows its passages in every turn, at 8 ms each."""
    return tuple(suspicious(text))


def _of_paper(key: str, paper: Paper) -> list[Flag]:
    """Flags in the paper's fields, and in those parts of its entry that no field contains."""
    fields = (
        ("key", key),
        ("title", paper.title),
        ("authors", "; ".join(paper.authors)),
        ("venue", paper.venue),
        ("abstract", paper.abstract),
    )
    flags = list(_flags(key, None, None, fields))
    reported = [flag.text for flag in flags]
    entry = _flags(key, None, None, [("bibliography entry", paper.bibtex)])
    return flags + [flag for flag in entry if not any(flag.text in other for other in reported)]


def _flag(key: str, evidence_id: str | None, chunk_id: str | None, where: str, text: str, item: Suspicion) -> Flag:
    return Flag(key, evidence_id, chunk_id, where, item.start, item.end, text[item.start : item.end], item.why)

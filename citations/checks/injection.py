"""Flags sources that seem to contain prompt injection, such as "ignore all previous instructions".

Every part of a source that a model was shown is examined. Instructions in a source are never followed: its text is
fenced, citations are markers, and tools are a closed list. The flags only warn the reader; nothing is removed, since
hiding a passage would let an attacker silence a paper. Other wordings are not detected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from ...documents import Chunk, Paper
from ...documents.figures import PaperFigure
from ...roles.protocols import Source
from ...text.words import read_rules
from .findings import Finding, shorten_words
from .unicode_folding import fold

_WORDINGS: Final = read_rules(__file__, "injection_rules")
_RULES: Final = tuple(
    (why, tuple(re.compile(wording, re.IGNORECASE) for kind in kinds for wording in _WORDINGS[kind]))
    for why, kinds in (
        ("gives an order to a model", ("orders", "orders_in_other_languages")),
        ("poses as a turn of a conversation", ("turns",)),
    )
)
_MARKS: Final = {name: re.compile(rule) for name, rule in _WORDINGS["marks"].items()}


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`text[start:end]`, up to the end of a sentence, seems to be an instruction; `why` completes "a passage that"."""

    start: int
    end: int
    why: str


@lru_cache(maxsize=1024)
def find_suspicions(text: str) -> tuple[Suspicion, ...]:
    """Spans that seem to address a model, in order without overlap; cached, since every turn needs them (8 ms each)."""
    found = list(_orders(text, 0, ""))
    for comment in _MARKS["comment"].finditer(text):
        found += _orders(comment[1], comment.start(1), " in a comment")
    found += [Suspicion(*match.span(), "is styled to be invisible") for match in _MARKS["unseen_style"].finditer(text)]
    found += [
        Suspicion(*match.span(), "consists of invisible characters")
        for match in _MARKS["unseen_letters"].finditer(text)
    ]
    kept: list[Suspicion] = []
    for item in sorted(found, key=lambda item: (item.start, -item.end)):
        if kept and item.start < kept[-1].end:
            kept[-1] = Suspicion(kept[-1].start, max(kept[-1].end, item.end), kept[-1].why)
        else:
            kept.append(item)
    return tuple(kept)


def _orders(text: str, offset: int, where: str) -> Iterator[Suspicion]:
    """Find instructions in a text, ignoring markup; `offset`, where the text starts, is added to the spans."""
    view = fold(text)
    for why, rules in _RULES:
        for rule in rules:
            for match in rule.finditer(view.text):
                lead, rest = _MARKS["lead"].match(match[0]), _MARKS["rest"].match(view.text, match.end())
                first = match.start() + (lead.end() if lead and lead.end() < len(match[0]) else 0)
                start, end = view.span(first, rest.end() if rest else match.end())
                yield Suspicion(offset + start, offset + end, why + where)


@dataclass(frozen=True, slots=True)
class Flag:
    """A suspicious `text` in the part `where` of paper `key`; the ids are None for a field of the paper."""

    key: str
    evidence_id: str | None
    chunk_id: str | None
    where: str
    start: int
    end: int
    text: str
    why: str


def flag_sources(
    sources: Sequence[Source],
    read: Iterable[tuple[Chunk, Paper]] = (),
    described: Mapping[str, Sequence[PaperFigure]] = MappingProxyType({}),
) -> list[Flag]:
    """All flags: of passages in the order of the evidence, of other chunks that an agent `read`, then of papers.

    `described` are figures with a model's description, by the chunk with which they were shown.
    """

    def descriptions(chunk_id: str) -> list[tuple[str, str]]:
        return [(f"description of {figure.name}", figure.description) for figure in described.get(chunk_id, ())]

    flags: list[Flag] = []
    papers = {source.paper.key: source.paper for source in sources}
    seen = {source.evidence.chunk_id for source in sources}
    for source in sources:  # one chunk may back several pieces of evidence
        found = source.evidence
        parts = [("passage", source.text), ("section title", found.section), ("summary", found.summary)]
        flags += _flags(source.paper.key, found.id, found.chunk_id, parts + descriptions(found.chunk_id))
    for chunk, paper in read:
        papers[paper.key] = paper
        if chunk.id not in seen:
            seen.add(chunk.id)
            parts = [("passage", chunk.text), ("section title", chunk.section), *descriptions(chunk.id)]
            flags += _flags(paper.key, None, chunk.id, parts)
    for key, paper in papers.items():
        fields = {"key": key, "title": paper.title, "authors": "; ".join(paper.authors)}
        fields |= {"venue": paper.venue, "abstract": paper.abstract}
        in_fields = list(_flags(key, None, None, fields.items()))
        # Only those parts of the entry that no field contains.
        entry = _flags(key, None, None, [("bibliography entry", paper.bibtex)])
        flags += in_fields + [flag for flag in entry if not any(flag.text in other.text for other in in_fields)]
    return flags


def flag_findings(flags: Sequence[Flag]) -> list[Finding]:
    """A note for each source, quoting the first flagged words and counting the others."""
    groups: dict[tuple[str, str | None, str], list[Flag]] = {}
    for flag in flags:
        groups.setdefault((flag.key, flag.chunk_id, flag.where), []).append(flag)
    found: list[Finding] = []
    for first, *others in groups.values():
        marked = f"{first.evidence_id}, " if first.evidence_id else ""
        place = f"{marked}chunk {first.chunk_id}" if first.chunk_id else "the paper's data"
        # Invisible characters are shown as code points.
        letters = "".join(one if one.isprintable() or one.isspace() else f"<{ord(one):x}>" for one in first.text)
        more = f" ({len(others) + 1} places)" if others else ""
        message = (
            f"The {first.where} of {shorten_words(first.key)} ({place}) {first.why}: "
            f'"{shorten_words(letters)}"{more}. It was read as data and not obeyed; '
            "look at this paper before you rely on it."
        )
        found.append(Finding("orders-in-source", message))
    return found


def _flags(key: str, evidence_id: str | None, chunk_id: str | None, parts: Iterable[tuple[str, str]]) -> Iterator[Flag]:
    for where, text in parts:
        for item in find_suspicions(text):
            words = text[item.start : item.end]
            yield Flag(key, evidence_id, chunk_id, where, item.start, item.end, words, item.why)

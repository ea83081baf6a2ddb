"""The view model of the evidence report, built from a section's record: cards, searches, unused evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...documents.plain_text import format_quote
from ..checks.support_findings import DOUBTFUL
from ..marking import MARKS

_BEFORE, _AFTER = 220, 360  # characters of the passage shown initially: the quote must be visible on a phone
_LISTED_AUTHORS = 4
# A paper that was removed from the library.
_UNKNOWN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("title", "venue", "doi", "zotero", "zotero_pdf", "status"), ""),
    **dict.fromkeys(("authors", "notices", "ocr_pages"), ()),
    "year": None,
}
# A line break within a paragraph; those between lists, tables, headings and paragraphs are kept.
_WRAPPED = re.compile(r"(?<!\n)\n(?![ \t]*(?:\n|[-*+|#>]|\d+[.)]))")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quote in its passage: `before + quote + after` is the passage; the near parts are next to the quote."""

    before: str
    quote: str
    after: str

    @property
    def near_before(self) -> str:
        """The end of the text before the quote, from a word boundary."""
        if len(self.before) <= _BEFORE:
            return self.before
        return "… " + self.before[-_BEFORE:].partition(" ")[2]

    @property
    def near_after(self) -> str:
        """The beginning of the text after the quote, to a word boundary."""
        if len(self.after) <= _AFTER:
            return self.after
        return self.after[:_AFTER].rpartition(" ")[0] + " …"

    @property
    def shortened(self) -> bool:
        """Whether the passage is longer than its initially shown part."""
        return len(self.before) > _BEFORE or len(self.after) > _AFTER


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A piece of evidence: its record, its paper, and the numbers of its cards and of the searches that found it.

    `quote` is shown with an ellipsis where its sentence is cut.
    """

    record: Mapping[str, Any]
    paper: Mapping[str, Any]
    searches: tuple[int, ...]
    cards: tuple[int, ...]
    quote: str

    @property
    def authors(self) -> str:
        """The first authors."""
        names = self.paper["authors"]
        return ", ".join(names[:_LISTED_AUTHORS]) + (" et al." if len(names) > _LISTED_AUTHORS else "")


@dataclass(frozen=True, slots=True)
class Support:
    """The support of a citation: its record, its evidence, and the passage if still available.

    `decided` are the words of the passage that the judge's verdict is based on; `quote` is the citation's quote with an
    ellipsis where its sentence is cut.
    """

    citation: Mapping[str, Any]
    found: SearchHit
    excerpt: Excerpt
    whole: bool
    quote: str
    decided: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One citation at `start:end` of the text, with its support; it stands for the sentences from `since` on."""

    number: int
    start: int
    end: int
    shown: str
    supports: tuple[Support, ...]
    since: int

    @property
    def doubtful(self) -> bool:
        """Whether the judge found that one of the passages does not support the sentence."""
        return any(support.citation["verdict"] in DOUBTFUL for support in self.supports)


@dataclass(frozen=True, slots=True)
class ReportedSearch:
    """A search with its evidence, best first; `limits` is its scope in words."""

    number: int
    query: str
    origin: str
    limits: str
    found: tuple[SearchHit, ...]


@dataclass(frozen=True, slots=True)
class ReportView:
    """The whole report: `unused` is uncited evidence by paper, best paper first; findings and numbers as recorded.

    `used` are the ids of the cited evidence, `cited` the keys of its papers, `suspicious` the ids of evidence whose
    passage seems to contain prompt injection.
    """

    cards: tuple[Card, ...]
    searches: tuple[ReportedSearch, ...]
    unused: tuple[tuple[SearchHit, ...], ...]
    verdicts: Mapping[str, int]
    findings: Sequence[Mapping[str, Any]]
    numbers: Sequence[Mapping[str, Any]]
    suspicious: frozenset[str]
    left_out: Sequence[Mapping[str, Any]]
    used: frozenset[str]
    cited: frozenset[str]

    @property
    def supported(self) -> int:
        """How many citations the judge found supported."""
        return self.verdicts.get("supported", 0)

    @property
    def doubted(self) -> int:
        """How many it did not."""
        return sum(count for verdict, count in self.verdicts.items() if verdict in DOUBTFUL)

    def cards_of(self, finding: Mapping[str, Any]) -> tuple[Card, ...]:
        """The citations whose verdict a finding reports."""
        label = next((label for label, rule in DOUBTFUL.items() if rule == finding["rule"]), None)
        return tuple(
            card
            for card in self.cards
            if label
            and finding["start"] <= card.start
            and card.since < finding["end"]
            and any(support.citation["verdict"] == label for support in card.supports)
        )


def finding_place(text: str, finding: Mapping[str, Any]) -> tuple[int, int]:
    """The span that links to a finding: its mark if the text contains one, else the words concerned."""
    start, end = finding["start"], finding["end"]
    mark = MARKS.get(finding["rule"], "")
    at = text.rfind(mark, start, end) if mark else -1
    return (at, at + len(mark)) if at >= 0 else (start, end)


def report_view(record: Mapping[str, Any]) -> ReportView:
    """Build the view of a section's record, whose `report` holds places, searches, passages and papers."""
    report = record["report"]
    searches = report["searches"]
    found_by = _numbers([search["evidence_ids"] for search in searches])
    cited_by = _numbers([place["ids"] for place in report["places"]])
    found = {
        item["id"]: SearchHit(
            item,
            {**_UNKNOWN, **report["papers"].get(item["key"], {})},
            tuple(found_by.get(item["id"], ())),
            tuple(cited_by.get(item["id"], ())),
            report["quotes"].get(item["id"], item["quote"]),
        )
        for item in record["evidence"]
    }
    unused: dict[str, list[SearchHit]] = {}
    for item in sorted(found.values(), key=lambda item: -item.record["combined_score"]):
        if not item.cards:
            unused.setdefault(item.record["key"], []).append(item)
    return ReportView(
        cards=_cards(record, found),
        searches=tuple(
            ReportedSearch(
                number,
                search["query"],
                search["origin"],
                _limits(search["scope"]),
                tuple(found[identifier] for identifier in search["evidence_ids"] if identifier in found),
            )
            for number, search in enumerate(searches, 1)
        ),
        unused=tuple(map(tuple, unused.values())),
        verdicts=Counter(citation["verdict"] for citation in record["citations"]),
        findings=record["findings"],
        numbers=record["numbers"],
        left_out=record["left_out"],
        used=frozenset(citation["evidence_id"] for citation in record["citations"]),
        cited=frozenset(citation["key"] for citation in record["citations"]),
        suspicious=frozenset(flag["evidence_id"] for flag in record["suspicious"] if flag["evidence_id"]),
    )


def _cards(record: Mapping[str, Any], found: Mapping[str, SearchHit]) -> tuple[Card, ...]:
    """A card for each place in the text, with the citations of its sentences in order."""
    text, passages = record["text"], record["report"]["passages"]
    cards: list[Card] = []
    for number, place in enumerate(record["report"]["places"], 1):
        start, end = place["start"], place["end"]
        since = start - place.get("covers", 0)
        supports = tuple(
            _support(citation, found[citation["evidence_id"]], passages.get(citation["evidence_id"], ""))
            for citation in record["citations"]
            if citation["evidence_id"] in place["ids"] and citation["evidence_id"] in found
            # The sentence contains the place, or is one of those from `since` on that it stands for.
            for words in [citation["sentence"]]
            if text.find(words, since if since < start else max(0, end - len(words)), start + len(words)) != -1
        )
        cards.append(Card(number, start, end, text[start:end], supports, since))
    return tuple(cards)


def _support(citation: Mapping[str, Any], found: SearchHit, passage: str) -> Support:
    quote = citation["quote"]
    start = citation["start"] if passage[citation["start"] : citation["end"]] == quote else passage.find(quote)
    if not passage or start == -1:
        return Support(citation, found, Excerpt("", quote, ""), False, quote)
    flowing = _WRAPPED.sub(" ", passage)
    end = start + len(quote)
    shown, decided = format_quote(passage, start, end), deciding_words(citation, passage)
    return Support(citation, found, Excerpt(flowing[:start], flowing[start:end], flowing[end:]), True, shown, decided)


def deciding_words(citation: Mapping[str, Any], passage: str) -> str:
    """The deciding words of the passage, in order."""
    spans = [
        (span["start"], span["end"])
        for span in citation["decided_by_spans"]
        if span["chunk_id"] == citation["chunk_id"]
    ]
    return " \u2026 ".join(" ".join(passage[start:end].split()) for start, end in spans)


def _numbers(ids: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """The numbers, from 1, of the lists that contain each id."""
    numbers: dict[str, list[int]] = {}
    for number, listed in enumerate(ids, 1):
        for identifier in listed:
            numbers.setdefault(identifier, []).append(number)
    return numbers


def _limits(scope: Mapping[str, Any]) -> str:
    parts = []
    if scope.get("papers"):
        parts.append("in " + ", ".join(scope["papers"]))
    if scope.get("categories"):
        parts.append("sections: " + ", ".join(name.replace("_", " ") for name in scope["categories"]))
    if scope.get("years"):
        parts.append("years {}–{}".format(*scope["years"]))
    if scope.get("venue"):
        parts.append(f"venue: {scope['venue']}")
    return "; ".join(parts)

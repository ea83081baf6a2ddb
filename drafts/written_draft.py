"""A draft and what its run knows of it: the records that the state holds, and the value that texts are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict  # as in `graph/state.py`, which holds these

from ..citations.checks.support_findings import PairKey
from ..experiment import SectionKind
from ..roles.protocols import Brief, Draft, QuoteSpan, Source, Verdict


class QueryRecord(TypedDict):
    """An answered search and its evidence, best first; `section` is the section that made it.

    `origin` is `default` for the experiment's fields, from which the needs are planned, `need` for the first search of
    a need, and `custom` for a search of the agent; `needs` are the ids of the needs it was made for. `proposed`,
    `shown` and `unreadable` count passages (see `tools.found_evidence.Searched`).
    """

    section: NotRequired[SectionKind]
    needs: NotRequired[list[str]]
    query: str
    origin: Literal["default", "need", "custom"]
    scope: dict[str, Any]
    evidence_ids: list[str]
    proposed: NotRequired[int]
    shown: NotRequired[int]
    unreadable: NotRequired[int]


class RouteRecord(TypedDict):
    """Where a question is searched: in one paper or in several, the papers that it names, the kinds of section.

    `kind` is how widely the library is read for it, `start` the paper whose title has the words of its subject.
    """

    track: Literal["one_paper", "survey"]
    papers: list[str]
    categories: list[str]
    kind: Literal["paper", "focused", "survey", "inventory"]
    start: list[str]


class DraftRecord(TypedDict):
    """The latest draft: text with markers, whether it was cut off, quotes chosen by the writer, notes."""

    text: str
    truncated: bool
    quotes: list[tuple[str, int, int]]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class QuestionSearch:
    """Where an answer was looked for: `passages` of the papers of `shortlist`; `limited` to papers that were named."""

    route: RouteRecord
    shortlist: Sequence[str]
    passages: int
    limited: bool


@dataclass(frozen=True, slots=True)
class WrittenDraft:
    """A draft, its brief and sources, and what the run found: all that the finished text is made of.

    `evidence` are the records of all that was found, `queries` the searches, `unmet` the needs that were searched for
    in vain (None if none were planned), `warnings` those of the run, `lost` those about evidence that is gone, and
    `search` that of a question.
    """

    brief: Brief
    draft: Draft
    sources: Sequence[Source]
    verdicts: Mapping[PairKey, Verdict]
    evidence: Sequence[Mapping[str, Any]]
    queries: Sequence[Mapping[str, Any]]
    unmet: Sequence[str] | None = None
    warnings: Sequence[str] = ()
    lost: Sequence[str] = ()
    search: QuestionSearch | None = None


def draft_from(record: DraftRecord) -> Draft:
    """The draft of a state record."""
    return Draft(
        record["text"],
        truncated=record["truncated"],
        quotes=tuple(QuoteSpan(*span) for span in record["quotes"]),
        notes=tuple(record["notes"]),
    )


def draft_record(draft: Draft) -> DraftRecord:
    """The draft as a state record."""
    return {
        "text": draft.text,
        "truncated": draft.truncated,
        "quotes": [(span.evidence_id, span.start, span.end) for span in draft.quotes],
        "notes": list(draft.notes),
    }


def with_chosen_quotes(sources: Sequence[Source], draft: Draft) -> list[Source]:
    """The sources with the quotes that the writer chose, where they differ from the reader's."""
    spans = {span.evidence_id: span for span in draft.quotes}
    chosen = []
    for source in sources:
        span = spans.get(source.evidence.id)
        if span is not None:
            quote = source.text[span.start : span.end]
            source = replace(source, evidence=replace(source.evidence, quote=quote, start=span.start, end=span.end))
        chosen.append(source)
    return chosen

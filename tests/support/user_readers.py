"""How what users write, what planners answer and what results hold is looked at: functions of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from citeloom.citations import claimless, figures, own_citations, verifying
from citeloom.documents import field_blocks, literal_markers
from citeloom.graph import planned_needs
from citeloom.models import context_size
from citeloom.models.chat import reading_answer
from citeloom.models.needs import Need
from tests.support.reader_company import EXPERIMENT, PLAIN, experiment, paper

Reader = Callable[[str], object]


def _need(text: str) -> Need:
    """As planned: 300 characters at most."""
    return Need("N1", text[:300], (text[:300],))


def _read(text: str) -> object:
    finding = {"statement": text, "sentences": text, "need": text, "score": text}
    return reading_answer.PassageReading.model_validate({"findings": [finding]}, strict=False)


def _refusable(text: str) -> None:
    try:
        _read(text)
    except ValueError as error:
        str(error)


USERS: Final[Mapping[str, Reader]] = {
    "question_spans": claimless.question_spans,
    "figure_lines": lambda text: figures.figure_lines([{"number": 1, "caption": text, "file": "a.figure-1.png"}]),
    "citing_statements": lambda text: own_citations.citing_statements(experiment(text)),
    "own_citations": lambda text: own_citations.own_citations(PLAIN, experiment(text), [paper()]),
    "with_literal_markers": lambda text: own_citations.with_literal_markers(text, PLAIN),
    "numbers that are verified": lambda text: verifying._agree(text, "0.5", exact=False),
    "field blocks": field_blocks.blocks,
    "as_text": literal_markers.as_text,
    "as_written": literal_markers.as_written,
    "without_stand_ins": literal_markers.without_stand_ins,
    "without_own_results": lambda text: planned_needs.without_own_results([_need(text)], EXPERIMENT),
    "refused_size": context_size.refused_size,
    "reading_answer": _refusable,
}

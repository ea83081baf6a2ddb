from __future__ import annotations

from typing import Any

import pytest

from citeloom.drafts.page_record import (
    coverage_line,
    coverage_warnings,
    measure_coverage,
)
from citeloom.drafts.written_draft import searches_of
from citeloom.roles.protocols import Verdict
from tests.support.citation_samples import make_source

PLANNED: dict[str, Any] = {"origin": "default", "evidence_ids": []}
COUNTED = {"origin": "need", "evidence_ids": ["E1"], "proposed": 5, "shown": 4, "unreadable": 1}


def test_passages_are_counted_over_all_searches() -> None:
    found = measure_coverage([PLANNED, COUNTED, COUNTED], "", [], {})
    assert found["passages"] == {"proposed": 10, "read": 6, "unreadable": 2}
    assert coverage_line(found).startswith("Passages: 10 proposed, 6 read, 2 unreadable")


@pytest.mark.parametrize(("screened", "line"), [(57, "57 screened by their cards, 14 read"), (0, "14 read")])
def test_papers_of_an_answer_are_counted(screened: int, line: str) -> None:
    found = {**measure_coverage([COUNTED], "", [], {}), "papers": {"screened": screened, "read": 14, "cited": 9}}
    assert coverage_line(found).startswith(f"Papers: {line}, 9 cited. Passages: 5 proposed")


def test_sentences_compared_only_by_topic_are_not_called_judged() -> None:
    sources = [make_source("E1"), make_source("E2", "lee2022ten")]
    on_topic, supported = Verdict("on-topic"), Verdict("supported")
    verdicts = {("It holds [E1].", "E1"): on_topic, ("It lasts [E2].", "E2"): supported}
    found = measure_coverage([COUNTED], "It holds [E1]. It lasts [E2]. It is new [E1].", sources, verdicts)
    assert found["sentences"] == {"cited": 3, "judged": 1, "unjudged": 1, "by_topic": 1}
    assert coverage_line(found).endswith("cited sentences: 1 judged, 1 compared by topic only, 1 not judged.")
    assert not coverage_warnings(found)


def test_default_queries_of_a_section_do_not_count_as_searches() -> None:
    planned = {"query": "partially_supported", "origin": "default", "evidence_ids": []}
    made = {"query": "seeds", "origin": "default", "evidence_ids": [], "proposed": 3, "shown": 3, "unreadable": 0}
    need = {"query": "ensembles", "origin": "need", "evidence_ids": ["E1"], "proposed": 1, "shown": 1, "unreadable": 0}
    assert searches_of([planned, made, need]) == [made, need]

"""One sentence is one piece of evidence, in however many windows it was read and for however many needs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from citeloom.documents import Category, Chunk, Evidence, EvidenceSpan, Paper
from citeloom.drafts.written_draft import passage_of
from citeloom.graph.role_inputs import worth_showing
from citeloom.graph.state import number_evidence
from citeloom.roles.protocols import Need, PassageFinding
from citeloom.settings.config import Settings
from citeloom.tools.found_evidence import EvidenceLimits, FoundEvidence, coverage, limit_findings

FIRST = "Networks were permuted a thousand times with XSwap."
SHARED = "Degree alone predicted most of the edges of nineteen networks."
LAST = "Where screens were systematic, it predicted few of them."
TEXT = f"{FIRST} {SHARED} {LAST}"
PAPER = Paper("zietz2020probability", "Edge prior")
LIMITS = EvidenceLimits()


def chunk(index: int, text: str) -> Chunk:
    start = TEXT.index(text)
    name = f"{PAPER.key}:{index:05}"
    return Chunk(
        name, PAPER.key, index, text, "Results", "Results", Category.EVALUATION, 1, None, start, start + len(text), 40
    )


BEFORE, AFTER = chunk(1, f"{FIRST} {SHARED}"), chunk(2, f"{SHARED} {LAST}")
CUT = chunk(1, f"{FIRST} {SHARED[:-9]}")


def found(holder: Chunk, words: str, need: str, score: float, statement: str = "It is so.") -> FoundEvidence:
    start = holder.text.index(words)
    spans = ((holder, start, start + len(words)),)
    return FoundEvidence(PassageFinding(PAPER, statement, score, need, spans, 0.7), score, f"query for {need}")


def test_a_sentence_in_two_windows_is_one_finding_for_both_needs() -> None:
    weak, strong = found(BEFORE, SHARED, "N1", 0.6, "weak"), found(AFTER, SHARED, "N2", 0.9, "strong")
    (one,) = limit_findings([weak, strong], LIMITS)
    record = one.as_evidence("E1").as_dict()
    assert (record["summary"], record["llm_score"], record["need"], record["also"]) == ("strong", 0.9, "N2", ["N1"])
    needs = [Need("N1", "a", ("a",)), Need("N2", "b", ("b",))]
    assert [item.evidence for item in coverage(needs, [record], [])] == [("E1",), ("E1",)]
    assert Evidence.from_dict(record) == one.as_evidence("E1")


def test_if_a_window_cuts_a_sentence_the_complete_one_is_kept() -> None:
    (one,) = limit_findings([found(CUT, SHARED[:-9], "N1", 0.9), found(AFTER, SHARED, "N1", 0.6)], LIMITS)
    assert one.as_evidence("E1").quote == SHARED and one.as_evidence("E1").also == ()
    assert one.finding.score == 0.9


def test_findings_from_other_sentences_or_other_parts_of_a_chunk_are_kept() -> None:
    both = found(BEFORE, f"{FIRST} {SHARED}", "N1", 0.9)
    assert len(limit_findings([both, found(BEFORE, SHARED, "N1", 0.8), found(AFTER, LAST, "N1", 0.8)], LIMITS)) == 3


def test_evidence_found_again_in_the_next_chunk_gets_no_second_marker() -> None:
    first, _ = number_evidence([], [[found(BEFORE, SHARED, "N1", 0.6)]])
    again, ids = number_evidence(first, [[found(AFTER, SHARED, "N2", 0.9), found(AFTER, LAST, "N2", 0.5)]])
    assert ids == [["E1", "E2"]]
    assert [(item["id"], item["need"], item["also"], item["llm_score"]) for item in again] == [
        ("E1", "N1", ["N2"], 0.9),
        ("E2", "N2", [], 0.5),
    ]
    assert (again[0]["chunk_id"], again[0]["quote"]) == (BEFORE.id, SHARED)
    assert number_evidence([*again], [[found(AFTER, SHARED, "N2", 0.9)]]) == ([], [["E1"]])


def test_findings_that_start_alike_and_continue_differently_are_two() -> None:
    def on(*words: tuple[Chunk, str], statement: str) -> FoundEvidence:
        spans = tuple((holder, holder.text.index(text), holder.text.index(text) + len(text)) for holder, text in words)
        return FoundEvidence(PassageFinding(PAPER, statement, 0.9, "N1", spans, 0.7), 0.9, "query")

    alone = on((BEFORE, FIRST), statement="Networks were permuted.")
    other = on((BEFORE, FIRST), (AFTER, LAST), statement="Few edges of systematic screens were predicted.")
    new, ids = number_evidence([], [[alone, other]])
    assert ids == [["E1", "E2"]]
    assert [item["summary"] for item in new] == [alone.finding.statement, other.finding.statement]
    assert number_evidence(new, [[other, alone]]) == ([], [["E2", "E1"]])


def test_a_survey_shows_twice_as_many_good_findings_of_a_need() -> None:
    good = found(BEFORE, SHARED, "N1", 0.7).as_evidence("E1").as_dict()
    records = [{**good, "id": f"E{number}"} for number in range(1, 31)]
    session: Any = SimpleNamespace(settings=Settings(), extractive=frozenset())
    shown = {
        kind: len(worth_showing(records, cast(Any, {"route": {"kind": kind}, "queries": []}), session))
        for kind in ("focused", "survey")
    }
    assert shown == {"focused": 8, "survey": 16}


def test_two_searches_in_one_turn_share_the_marker() -> None:
    new, ids = number_evidence([], [[found(BEFORE, SHARED, "N1", 0.6)], [found(AFTER, SHARED, "N2", 0.6)]])
    assert ids == [["E1"], ["E1"]] and [item["also"] for item in new] == [["N2"]]


def test_the_writer_sees_a_sentence_shared_by_chunks_once() -> None:
    start = AFTER.text.index(LAST)
    item = found(BEFORE, SHARED, "N1", 0.6).as_evidence("E1")
    item = Evidence.from_dict({**item.as_dict(), "more": [vars_of(EvidenceSpan.of(AFTER, start, start + len(LAST)))]})
    shown = passage_of(item, BEFORE, {BEFORE.id: BEFORE, AFTER.id: AFTER})
    assert [(sentence.text, sentence.carries) for sentence in shown] == [(SHARED, True), (LAST, True)]


def vars_of(span: EvidenceSpan) -> dict[str, object]:
    return {name: getattr(span, name) for name in EvidenceSpan.__dataclass_fields__}

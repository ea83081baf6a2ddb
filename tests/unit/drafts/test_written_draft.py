"""The words that decide a verdict: all are listed, except those in a changed chunk."""

from __future__ import annotations

from dataclasses import asdict, replace

from citeloom.citations.citation_styles import make_citation
from citeloom.citations.export.evidence_report import deciding_words
from citeloom.documents import EvidenceSpan
from citeloom.documents.types import text_hash
from citeloom.drafts.written_draft import relocate_verdicts
from citeloom.roles.protocols import DecidingSpan, PassageSentence, Source, Verdict
from tests.support.citation_samples import make_source

OWN = make_source("E1")
NEXT = "himmelstein2017systematic:00005"
WORDS = "It held in nineteen networks."
FURTHER = EvidenceSpan(NEXT, 0, len(WORDS), WORDS, None, text_hash(WORDS))
SHOWN = (
    PassageSentence(OWN.evidence.chunk_id, 0, 39, OWN.text[:39]),
    PassageSentence(NEXT, 0, len(WORDS), WORDS),
)
SOURCE = replace(OWN, evidence=replace(OWN.evidence, more=(FURTHER,)), passage=SHOWN)
FIRST, SECOND = DecidingSpan(OWN.evidence.chunk_id, 0, 39), DecidingSpan(NEXT, 0, len(WORDS))
THIRD = DecidingSpan(OWN.evidence.chunk_id, 40, len(OWN.text))
PAIR = ("It holds [E1].", "E1")
VERDICT = Verdict("supported", "", 0, 39, "", (FIRST, THIRD, SECOND))


def placed(source: Source, verdict: Verdict = VERDICT) -> Verdict:
    return relocate_verdicts({PAIR: verdict}, [source])[PAIR]


def test_a_citation_lists_all_deciding_words_and_the_first_as_before() -> None:
    record = asdict(make_citation(SOURCE.evidence, PAIR[0], VERDICT, 1))
    assert tuple(record["decided_by"]) == (0, 39)
    assert [tuple(span.values()) for span in record["decided_by_spans"]] == [
        (FIRST.chunk_id, 0, 39),
        (FIRST.chunk_id, 40, len(OWN.text)),
        (NEXT, 0, len(WORDS)),
    ]


def test_a_report_shows_all_deciding_words_of_the_passage() -> None:
    record = asdict(make_citation(SOURCE.evidence, PAIR[0], VERDICT, 1))
    assert deciding_words(record, OWN.text) == f"{OWN.text[:39]} … {OWN.text[40:]}"
    assert deciding_words({**record, "decided_by_spans": []}, OWN.text) == ""


def test_all_spans_stay_if_nothing_has_changed() -> None:
    assert placed(SOURCE) == VERDICT


def test_if_the_first_chunk_changed_spans_in_others_are_kept() -> None:
    changed = replace(SOURCE, text=f"Now {OWN.text}")
    assert placed(changed) == replace(VERDICT, start=None, end=None, spans=(SECOND,))


def test_spans_in_a_changed_chunk_are_dropped_and_the_first_is_kept() -> None:
    gone = replace(SOURCE, passage=SHOWN[:1])
    assert placed(gone) == replace(VERDICT, spans=(FIRST, THIRD))


def test_spans_follow_a_chunk_whose_id_changed() -> None:
    name = "himmelstein2017systematic:00007"
    moved = replace(
        SOURCE,
        evidence=replace(SOURCE.evidence, chunk_id=name),
        passage=(replace(SHOWN[0], chunk_id=name), SHOWN[1]),
    )
    assert placed(moved).spans == (replace(FIRST, chunk_id=name), replace(THIRD, chunk_id=name), SECOND)


def test_shifted_ids_do_not_move_spans_to_the_wrong_chunk() -> None:
    shifted = replace(SOURCE, evidence=replace(SOURCE.evidence, chunk_id=NEXT), passage=())
    assert placed(shifted).spans == (replace(FIRST, chunk_id=NEXT), replace(THIRD, chunk_id=NEXT))


def test_a_verdict_without_its_chunk_keeps_only_its_label() -> None:
    assert relocate_verdicts({PAIR: VERDICT}, [])[PAIR] == Verdict("supported")

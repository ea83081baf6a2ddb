"""Whether a proposed work is taken for a paper: near misses must leave it unsure or look elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from citeloom.documents import Paper
from citeloom.metadata.matching import SURE, match_paper, title_similarity
from citeloom.metadata.service_works import Author, Work

PAPER = Paper(
    "ada2020",
    "Weaving Looms at Night: A Study of Thread Tension",
    ("Ada Lovelace", "Charles Babbage", "Luigi Menabrea"),
    2020,
    "Journal of Looms",
)
WORK = Work(
    "Crossref",
    "10.5555/looms",
    "Weaving looms at night: a study of thread tension",
    (Author("A. Lovelace", "Lovelace"), Author("C. Babbage", "Babbage"), Author("L. Menabrea", "Menabrea")),
    2020,
    "Journal of Looms",
    kind="journal-article",
)

SAME = {
    "as it is": WORK,
    "published in print a year later": replace(WORK, year=2021),
    "without its subtitle": replace(WORK, title="Weaving looms at night"),
    "with other punctuation": replace(WORK, title="Weaving Looms at Night – a Study of Thread Tension."),
    "with its first authors only": replace(WORK, authors=WORK.authors[:2]),
    "with its authors in another order": replace(WORK, authors=(WORK.authors[1], WORK.authors[0], WORK.authors[2])),
    "with a misspelling": replace(WORK, title=WORK.title.replace("tension", "tensin")),
    "with RETRACTED before it": replace(WORK, title=f"RETRACTED ARTICLE: {WORK.title}"),
    "without a year": replace(WORK, year=None),
}
UNSURE = {
    "of another year": replace(WORK, year=2011),
    "by others": replace(WORK, authors=(Author("G. Hopper", "Hopper"),)),
    "without authors": replace(WORK, authors=()),
    "a preprint": replace(WORK, kind="posted-content", venue="bioRxiv"),
    "on another thing": replace(WORK, title=WORK.title.replace("thread", "warp")),
    "a second part": replace(WORK, title=f"{WORK.title}, Part 2"),
    "a protocol": replace(WORK, title=f"{WORK.title}: protocol"),
}
DIFFERENT = {
    "its erratum": replace(WORK, title=f"Erratum to: {WORK.title}"),
    "its correction by the author": replace(WORK, title=f"Author Correction: {WORK.title}"),
    "its retraction notice": replace(WORK, title=f"Retraction Note: {WORK.title}"),
    "a notice by its record": replace(WORK, is_notice=True),
    "a comment": replace(WORK, title=f"Comment on “{WORK.title}”"),
    "another paper of the authors": replace(WORK, title="Steam engines and the analytical method"),
    "a paper that only shares its first words": replace(WORK, title="Weaving looms by steam in the early mills"),
}


@pytest.mark.parametrize("work", SAME.values(), ids=SAME)
def test_the_paper_is_found(work: Work) -> None:
    others = [replace(other, doi=f"10.5555/{number}") for number, other in enumerate(DIFFERENT.values())]
    found = match_paper(PAPER, [*others, work])
    assert found.verdict == "same" and found.best is not None and found.best.work.title == work.title


@pytest.mark.parametrize("work", UNSURE.values(), ids=UNSURE)
def test_a_near_miss_is_reported_as_unsure_with_the_reason(work: Work) -> None:
    found = match_paper(PAPER, [work])
    assert found.verdict == "unsure" and found.why and found.best is not None and found.best.similarity < SURE


@pytest.mark.parametrize("work", DIFFERENT.values(), ids=DIFFERENT)
def test_a_work_about_another_paper_is_not_accepted(work: Work) -> None:
    assert match_paper(PAPER, [work]).verdict == "different"


def test_the_version_in_the_papers_venue_is_preferred() -> None:
    preprint = replace(WORK, doi="10.5555/pre", kind="posted-content", venue="bioRxiv", year=2019)
    assert match_paper(PAPER, [preprint, WORK]).best.work is WORK  # type: ignore[union-attr]
    in_biorxiv = replace(PAPER, venue="bioRxiv", year=2019)
    assert match_paper(in_biorxiv, [preprint, WORK]).best.work is preprint  # type: ignore[union-attr]
    without = replace(PAPER, venue="", year=2019)
    assert match_paper(without, [preprint, WORK]).best.work is preprint  # type: ignore[union-attr]


def test_two_equally_good_works_are_reported_as_unsure() -> None:
    proceedings = replace(WORK, doi="10.5555/conference", kind="proceedings-article", venue="Proceedings on Looms")
    assert match_paper(replace(PAPER, venue=""), [WORK, proceedings]).verdict == "unsure"
    assert match_paper(PAPER, [WORK, proceedings]).best.work is WORK  # type: ignore[union-attr]


def test_a_work_from_two_services_counts_once_as_described_by_the_first() -> None:
    again = replace(WORK, service="Semantic Scholar")
    assert match_paper(PAPER, [WORK, again]).verdict == "same"
    assert match_paper(PAPER, [replace(WORK, is_notice=True), again]).verdict == "different"


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Tumor growth in mice", "Tumour Growth in Mice", SURE, 1),
        ("A survey of graph genomes", "A survey of graph genomes 2", 0, 0.8),
        ("The effect of hypertension on sleep", "The effect of hypotension on sleep", 0, 0.8),
        ("Étude de l’été", "Etude de l'ete", 1, 1),
        ("", "", 0, 0),
        ("!!!", "???", 0, 0),
        ("x" * 100_000, "y" * 100_000, 0, 0.7),
    ],
)
def test_similar_titles_score_within_their_range(one: str, other: str, least: float, most: float) -> None:
    assert least <= title_similarity(one, other) <= most


def test_title_similarity_hardly_depends_on_the_order() -> None:
    titles = [work.title for group in (SAME, UNSURE, DIFFERENT) for work in group.values()]
    for title in titles:
        forth, back = title_similarity(PAPER.title, title), title_similarity(title, PAPER.title)
        assert (forth >= SURE) == (back >= SURE), title

"""The answer without a chat model: whose words, under which heading, how much of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.roles.extractive.answerer import ExtractiveAnswerer
from citeloom.roles.extractive.planners import parts_of
from citeloom.roles.inputs import AnswerBrief, Source

BANDS = Paper("okafor2022", "Ensembles of seeds: a study", ("Ada Okafor", "Ben Lee"), 2022)
ALONE = Paper("obrien2019", "Seeds matter", ("Cai O'Brien",), 2019)


def source(
    number: int, paper: Paper, quote: str, score: float, category: Category = Category.EVALUATION, text: str = ""
) -> Source:
    text = text or quote
    chunk = Chunk(f"{paper.key}:{number:05d}", paper.key, number, text, "S", "", category, 1, None, 0, len(text), 9)
    start = text.index(quote)
    evidence = Evidence.of(
        chunk,
        id=f"E{number}",
        summary=quote,
        start=start,
        end=start + len(quote),
        vector_score=score,
        llm_score=score,
        combined_score=score,
        source_query="q",
    )
    return Source(evidence, paper, text, category)


def brief(*sources: Source, **changes: Any) -> AnswerBrief:
    return AnswerBrief(
        **{"question": "What of seeds?", "sources": sources, "queries": (), "searches_left": 5}
        | {"words": 300}
        | changes
    )


class Deaf:
    """Stands for models that know nothing of the question's script: what the reader said is all there is."""

    def can_judge(self, question: str) -> bool:
        return False


def answerer() -> ExtractiveAnswerer:
    unused: Any = None
    deaf: Any = Deaf()
    return ExtractiveAnswerer(unused, deaf)


WEAK = source(1, BANDS, "Five members give intervals that hold on new data", 0.6)
BEST = source(2, ALONE, "The seed moves the score by as much as the method does", 0.9)
MORE = source(3, BANDS, "Ten members give no more than five members do", 0.7)


async def test_the_best_paper_stands_first_and_each_has_its_heading() -> None:
    text = (await answerer().write(brief(WEAK, BEST, MORE))).text
    assert re.findall(r"## (.*)", text) == [
        "Passages that may bear on the question",
        "Seeds matter",
        "Ensembles of seeds: a study",
    ]
    assert "O'Brien reports: “The seed moves the score by as much as the method does” [E2]." in text
    assert text.index("[E3]") < text.index("[E1]")
    assert "Okafor and Lee report: “Ten members" in text


async def test_one_paper_has_no_heading() -> None:
    asked = brief(WEAK, MORE, survey=False, question="Do intervals of five members hold on new data?")
    text = (await answerer().write(asked)).text
    assert "#" not in text and text.count("“") == 2


async def test_passages_without_the_kind_of_answer_are_not_called_one() -> None:
    asked = brief(WEAK, MORE, survey=False, question="How many members of an ensemble hold on new data?")
    text = (await answerer().write(asked)).text
    assert text.startswith("## Passages that may bear on the question\n\n") and text.count("“") == 2


@pytest.mark.parametrize(
    ("authors", "said"),
    [((), "“Seeds” reports:"), (("Cai Lee",), "Lee reports:"), (("Cai Lee", "Bo Kim", "A Wu"), "Lee et al. report:")],
)
async def test_the_verb_agrees_with_the_authors(authors: tuple[str, ...], said: str) -> None:
    paper = Paper("seeds", "Seeds", authors, 2019)
    text = (await answerer().write(brief(source(1, paper, "Seeds move the score of every method", 0.9)))).text
    assert said in text


async def test_a_section_on_other_work_is_introduced_as_such() -> None:
    other = source(4, BANDS, "Lakshmi and others were the first to vary the seed", 0.8, Category.RELATED_WORK)
    assert "Of other work, Okafor and Lee write:" in (await answerer().write(brief(other))).text


async def test_words_that_are_left_out_leave_an_ellipsis() -> None:
    text = "However, seeds matter most in small runs, and many other things were seen (Fig. 2)."
    cut = source(7, ALONE, "seeds matter most in small runs", 0.9, text=text)
    assert "“… seeds matter most in small runs …” [E7]" in (await answerer().write(brief(cut))).text


async def test_the_same_words_are_quoted_once() -> None:
    again = source(5, BANDS, "Ten members give no more than five members do", 0.5)
    assert (await answerer().write(brief(MORE, again))).text.count("Ten members") == 1


@pytest.mark.parametrize(
    ("limit", "cited"), [({"words": 12}, {"E2"}), ({"most_papers": 1}, {"E2"}), ({}, {"E1", "E2", "E3"})]
)
async def test_no_more_is_quoted_than_was_asked_for(limit: dict[str, int], cited: set[str]) -> None:
    text = (await answerer().write(brief(WEAK, BEST, MORE, **limit))).text
    assert set(re.findall(r"E\d", text)) == cited


async def test_what_is_far_behind_the_best_is_left_out() -> None:
    far = source(6, BANDS, "Batches were of two sizes in these runs of ours", 0.05)
    text = (await answerer().write(brief(BEST, far))).text
    assert "[E2]" in text and "[E6]" not in text


async def test_without_evidence_there_is_no_answer() -> None:
    assert (await answerer().write(brief())).text == ""


async def test_a_failing_sentence_is_removed_with_its_heading() -> None:
    given = brief(WEAK, BEST, MORE)
    draft = await answerer().write(given)
    fault = "O'Brien reports: “The seed moves the score by as much as the method does” [E2]."
    start = draft.text.index(fault)
    repaired = (await answerer().repair(given, draft, ["It is wrong."], [(start, start + len(fault))])).text
    assert "Seeds matter" not in repaired and "Okafor and Lee report" in repaired


@pytest.mark.parametrize(
    ("question", "queries"),
    [
        ("How do graphs pass messages?", ["graphs pass messages"]),
        (
            "Which tools draft a manuscript together, and can language models revise it?",
            [
                "Which tools draft a manuscript together",
                "can language models revise it",
                "tools draft manuscript language models revise",
            ],
        ),
        ("Why?", []),
    ],
)
def test_a_question_is_searched_by_its_parts_and_its_telling_words(question: str, queries: list[str]) -> None:
    assert parts_of(question) == queries

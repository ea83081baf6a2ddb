"""Without a chat model: the author's own paragraphs with the passages near to them, and no other prose."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.experiment import SECTION_KINDS, Experiment, SectionKind
from citeloom.models.embeddings.bundled_models import Reranker
from citeloom.roles.extractive.passage_details import blank_details
from citeloom.roles.extractive.passage_lists import (
    ELSEWHERE,
    OF_SUBJECT,
    SUBJECT,
    SUBJECT_ELSEWHERE,
    ExtractiveWriter,
    NearPassage,
    place_passages,
)
from citeloom.roles.extractive.passage_scores import PassageScores
from citeloom.roles.protocols import AnswerBrief, Draft, EarlierSection, Need, NeedCoverage, SectionBrief, Source
from citeloom.text.words import shorten
from tests.support.word_embedding import WordEmbedding

EXPERIMENT = Experiment.model_validate(
    {
        "paper_concept": {
            "title": "Temperature scaling of small networks",
            "description": "Networks err; temperature scaling lowers calibration error of small networks.",
            "open_questions": ["Does temperature scaling lower calibration error of small networks on new wearers?"],
        },
        "hypothesis": {"description": "Temperature scaling lowers calibration error of small networks."},
        "experimental_plan": "1. Train small networks. 2. Fit a temperature.",
        "verdict": "supported",
        "reasoning": "Temperature scaling lowered the calibration error of small networks from 0.12 to 0.05.",
        "results": "The calibration error of small networks fell from 0.12 to 0.05 with temperature scaling.",
        "summary": "Temperature scaling lowers calibration error of small networks by more than one half.",
        "plots": [{"caption": "Calibration error with and without temperature scaling."}],
    }
)
FITTING = "Temperature scaling lowers the calibration error of small networks when wearers are unseen in training"
OFF_TOPIC = "Soil moisture probes drift by several percent over one season when they are buried in heavy clay"


class AsRead(PassageScores):
    """As near to every statement as the reader said, so that no cross-encoder is loaded.

    `aside` are near to no statement but to the subject.
    """

    def __init__(self, sources: Sequence[Source], aside: Sequence[str] = ()) -> None:
        super().__init__(WordEmbedding(), Reranker())
        self.odds = {item.evidence.quote: 10 * item.evidence.llm_score - 3 for item in sources}
        self.quotes, self.aside = [item.evidence.quote for item in sources], aside

    async def statements(self, need: Need, topic: Any, passages: Sequence[tuple[str, Category]], **given: Any) -> Any:
        return np.array([-3.0 if text in self.aside else self.odds[text] for text, _ in passages])

    async def subject(self, about: str, papers: Sequence[str], of_needs: Any) -> Any:
        return np.array([9.0 if quote in self.aside else -9.0 for quote in self.quotes])

    async def answers(self, question: str, sources: Sequence[Source]) -> list[float]:
        return [item.evidence.llm_score for item in sources]


def source(number: int, sentence: str, *, key: str, authors: tuple[str, ...] = ("Ada Varga", "Per Lind")) -> Source:
    text = f"{sentence}."
    chunk = Chunk(f"{key}:00000", key, 0, text, "Results", "", Category.EVALUATION, 1, None, 0, len(text), 20)
    evidence = Evidence.of(
        chunk, id=f"E{number}", summary="", start=0, end=len(sentence), vector_score=0.5, llm_score=0.5,
        combined_score=0.5, source_query="q",
    )  # fmt: skip
    paper = Paper(key, "A title", authors, 2021, family_names=tuple(name.split()[-1] for name in authors))
    return Source(evidence, paper, text, Category.EVALUATION)


def near(text: str, *sources: Source) -> NeedCoverage:
    return NeedCoverage(Need("N1", text, (text,)), tuple(item.evidence.id for item in sources), 1, 1, (), "open")


def write(
    kind: SectionKind,
    *needs: NeedCoverage,
    sources: tuple[Source, ...] = (),
    earlier: tuple[EarlierSection, ...] | None = None,
    aside: Sequence[str] = (),
    **fields: Any,
) -> Draft:
    writer = ExtractiveWriter(AsRead(sources, aside))
    experiment = EXPERIMENT.model_copy(update=fields)
    return asyncio.run(
        writer.write(
            SectionBrief(kind=kind, experiment=experiment, sources=sources, words=300, earlier=earlier, needs=needs)
        )
    )


def blocks(draft: Draft) -> list[str]:
    return draft.text.split("\n\n")


@pytest.mark.parametrize("kind", SECTION_KINDS)
def test_every_section_has_the_authors_own_statements(kind: SectionKind) -> None:
    assert "emperature" in write(kind).text


def test_passages_follow_the_paragraph_that_they_are_near_to() -> None:
    given = source(1, FITTING, key="varga2021")
    draft = write("discussion", near(EXPERIMENT.reasoning, given), sources=(given,))
    place = blocks(draft).index(EXPERIMENT.reasoning)
    assert "unjudged" in blocks(draft)[place + 1]
    assert blocks(draft)[place + 2] == f"- “{FITTING}” [E1], in “Results”"


def test_a_listed_passage_does_not_name_its_nearest_sentence() -> None:
    given = source(1, FITTING, key="varga2021")
    reasoning = "Soil dried in the sun. Temperature scaling lowered the calibration error."
    draft = write("discussion", near(reasoning, given), sources=(given,), reasoning=reasoning)
    assert f"“{FITTING}” [E1], in “Results”\n" in f"{draft.text}\n"


def test_statements_without_a_near_passage_are_reported_once_at_the_end() -> None:
    (question,) = EXPERIMENT.paper_concept.open_questions
    far = source(1, OFF_TOPIC, key="varga2021")
    almost = replace(far, evidence=replace(far.evidence, llm_score=0.37))
    needs = (replace(near(text, almost), need=Need(text, text, ("q",))) for text in (question, EXPERIMENT.summary))
    draft = write("discussion", *needs, sources=(almost,))
    last = f"*Nothing near in your library to “{shorten(question, 60)}”; “{shorten(EXPERIMENT.summary, 60)}”.*"
    assert blocks(draft)[-1] == last and draft.text.count("Nothing near") == 1
    assert "[E" not in draft.text


def test_a_statement_lists_at_most_three_passages_and_two_per_paper() -> None:
    given = tuple(
        source(number, f"{FITTING} {number}", key="varga2021" if number < 4 else "lind2022") for number in range(1, 7)
    )
    draft = write("discussion", near(EXPERIMENT.reasoning, *given), sources=given)
    listed = re.findall(r"\[E(\d)\]", draft.text)
    assert len(listed) == 3 and sum(int(number) < 4 for number in listed) <= 2


def test_a_passage_appears_once_under_its_nearest_statement() -> None:
    given = source(1, FITTING, key="varga2021")
    placed = place_passages([NearPassage("N1", given, 1.0), NearPassage("N2", given, 3.0)], "")
    assert [(need, item.elsewhere) for need, items in placed.items() for item in items] == [("N2", False), ("N1", True)]
    again = source(2, FITTING, key="varga2021")
    placed = place_passages([NearPassage("N1", given, 3.0), NearPassage("N2", again, -1.0)], "")
    assert list(placed) == ["N1"]


def test_passages_listed_in_an_earlier_section_are_not_repeated() -> None:
    before, fresh = source(1, FITTING, key="varga2021"), source(2, OFF_TOPIC, key="lind2022")
    near = [NearPassage("N1", before, 3.5), NearPassage("N1", fresh, 2.5)]
    assert [item.source for item in place_passages(near, "")["N1"]] == [before, fresh]
    placed = place_passages(near, "It was so [E1].")
    assert [item.source for item in placed["N1"]] == [fresh]
    placed = place_passages(near[:1], "It was so [E1].")
    assert [(item.source, item.elsewhere) for item in placed["N1"]] == [(before, True)]


def test_a_later_section_refers_to_passages_listed_earlier() -> None:
    given = source(1, FITTING, key="varga2021")
    first = write("discussion", near(EXPERIMENT.reasoning, given), sources=(given,))
    earlier = (EarlierSection("discussion", first.text),)
    second = write("conclusion", near(EXPERIMENT.summary, given), sources=(given,), earlier=earlier)
    assert f"{ELSEWHERE} [E1]" in blocks(second)
    assert FITTING not in second.text and "Nothing near" not in second.text


def test_a_general_list_whose_passages_are_all_elsewhere_says_so() -> None:
    given = source(1, FITTING, key="varga2021")
    earlier = (EarlierSection("methods", f"- “{FITTING}” [E1]"),)
    draft = write("discussion", near(EXPERIMENT.reasoning, given), sources=(given,), earlier=earlier, aside=[FITTING])
    assert f"{SUBJECT_ELSEWHERE} [E1]" in blocks(draft) and ELSEWHERE not in draft.text


def test_a_statement_refers_to_its_passages_listed_under_another() -> None:
    given = source(1, FITTING, key="varga2021")
    needs = (
        near(EXPERIMENT.reasoning, given),
        replace(near(EXPERIMENT.summary, given), need=Need("N2", EXPERIMENT.summary, ("q",))),
    )
    alone = write("discussion", *needs, sources=(given,))
    assert f"{ELSEWHERE} [E1]" in blocks(alone) and alone.text.count(FITTING) == 1 and "Nothing near" not in alone.text


def test_a_paper_named_in_a_statement_has_its_passage_listed() -> None:
    given = source(1, OFF_TOPIC, key="varga2021")
    faint = replace(given, evidence=replace(given.evidence, llm_score=0.0))
    for reasoning, listed in (
        ("As Varga et al. 2021 saw, probes drift.", True),
        ("Probes drift (varga2021).", True),
        ("As Varga et al. 2019 saw, probes drift.", False),
    ):
        draft = write("discussion", near(reasoning, faint), sources=(faint,), reasoning=reasoning)
        assert ("[E1]" in draft.text) == listed, reasoning


def test_a_section_with_few_papers_adds_the_nearest_to_the_subject() -> None:
    keys = ["varga2021", "lind2022", "okafor2022", "tanaka2023", "moreau2025"]
    given = [source(number, f"{FITTING} {number}", key=key) for number, key in enumerate(keys, 1)]
    near = [NearPassage("N1", given[0], 2.0), NearPassage("N1", given[4], -1.0)]
    near += [NearPassage(SUBJECT, item, 5 - 0.1 * place) for place, item in enumerate(given)]
    placed = place_passages(near, "")
    assert [item.source.paper.key for item in placed[SUBJECT]] == keys[1:4] and placed["N1"][0].source == given[0]
    assert list(place_passages([replace(item, odds=item.odds - 3) for item in near], "")) == []


def test_a_bare_count_is_listed_only_under_a_statement_on_methods() -> None:
    given = source(1, "The network of small wearers contains 47,031 nodes of 11 types", key="varga2021")
    found = near(EXPERIMENT.reasoning, given)
    assert "[E1]" not in write("discussion", found, sources=(given,)).text
    on_methods = replace(found, need=replace(found.need, asks="method"))
    assert "[E1]" in write("discussion", on_methods, sources=(given,)).text


def test_passages_near_to_the_subject_are_one_list_after_the_statements() -> None:
    given, other = source(1, FITTING, key="varga2021"), source(2, OFF_TOPIC, key="lind2022")
    placed = (replace(given, evidence=replace(given.evidence, llm_score=0.9)), other)
    draft = write("discussion", near(EXPERIMENT.reasoning, *placed), sources=placed, aside=(OFF_TOPIC,))
    assert blocks(draft)[-2:] == [OF_SUBJECT, f"- “{OFF_TOPIC}” [E2], in “Results”"]
    draft = write("discussion", near(EXPERIMENT.reasoning, other), sources=(other,), aside=(OFF_TOPIC,))
    assert blocks(draft)[-3] == OF_SUBJECT and blocks(draft)[-1].startswith("*Nothing near in your library to")


@pytest.mark.parametrize("verdict", ["partially_supported", "Partially supported", "refuted", "inconclusive"])
@pytest.mark.parametrize("kind", ["discussion", "conclusion", "abstract"])
def test_verdict_and_hypothesis_are_two_statements(verdict: str, kind: SectionKind) -> None:
    found = blocks(write(kind, verdict=verdict))
    said = verdict.replace("_", " ").capitalize()
    assert f"**Verdict.** {said}." in found
    assert f"**Hypothesis.** {EXPERIMENT.hypothesis.description}" in found


def test_paragraphs_stay_whole_and_this_refers_to_the_right_sentence() -> None:
    reasoning = "Error fell with temperature. This was not so on new wearers."
    summary = "Scaling helps small networks. This is cheap."
    draft = write("discussion", reasoning=reasoning, summary=summary)
    assert reasoning in blocks(draft) and f"**Summary.** {summary}" in blocks(draft)
    assert f"**Conclusion.** {summary}" in blocks(write("abstract", reasoning=reasoning, summary=summary))


def test_results_show_every_metric_in_tables_beside_the_text() -> None:
    metrics = {
        "auroc": {"gnn": "0.903 ± 0.005", "mlp": "0.871 ± 0.004"},
        "kappa": {"a": 0.5},
        "brier": {"gnn": 0.1, "mlp": 0.2},
        "by_set": {"train": {"f1": 0.9, "n": 12}, "test": {"f1": 0.8, "loss": None}},
        "rate": 3.1e-4,
        "seeds": [1, 2],
        "done": True,
    }
    draft = write("results", metrics=metrics)
    assert EXPERIMENT.results in blocks(draft)
    for row in (
        "| Metric | gnn | mlp |",
        "| auroc | 0.903 ± 0.005 | 0.871 ± 0.004 |",
        "| brier | 0.1 | 0.2 |",
        "| kappa | Value |",
        "| by set | f1 | n | loss |",
        "| train | 0.9 | 12 |  |",
        "| test | 0.8 |  | – |",
        "| rate | 0.00031 |",
        "| seeds | 1, 2 |",
        "| done | true |",
    ):
        assert row in draft.text, row
    assert draft.notes[0].startswith("The results section uses the field results, 12 metrics of your experiment")


def test_output_is_shortened_if_there_are_no_results_and_otherwise_left_out() -> None:
    lines = "\n".join(f"epoch {number}" for number in range(40))
    run = EXPERIMENT.execution_result.model_copy(update={"stdout": lines})
    alone = write("results", results="", execution_result=run)
    assert "epoch 0" in alone.text and "epoch 39" in alone.text and "20 lines left out" in alone.text
    beside = write("results", execution_result=run)
    assert "epoch" not in beside.text and "left out: stdout (40 lines)" in beside.notes[0]


def test_the_users_own_citations_and_apparent_markers_are_kept_word_for_word() -> None:
    draft = write("discussion", reasoning="Others saw it (Smith et al., 2020). Estradiol [E2] rose.")
    assert "Others saw it (Smith et al., 2020)." in draft.text
    assert "[E2]" not in draft.text  # escaped until it is rendered


def test_generated_words_beside_a_passage_are_ignored_when_tracing_numbers() -> None:
    given = source(1, f"{FITTING} by 12 percent", key="varga2021")
    draft = write("discussion", near(EXPERIMENT.reasoning, given), sources=(given,))
    plain = blank_details(draft.text)
    assert len(plain) == len(draft.text) and "in “Results”" not in plain and "12 percent" in plain and "0.12" in plain


def answer(*needs: NeedCoverage, sources: tuple[Source, ...] = ()) -> str:
    brief = AnswerBrief(
        question="Does scaling lower the error, and at what cost?", sources=sources, words=300, needs=needs
    )
    return asyncio.run(ExtractiveWriter(AsRead(sources)).write(brief)).text


def test_a_question_lists_passages_by_need_without_a_log_of_searches() -> None:
    given = source(1, FITTING, key="varga2021")
    text = answer(near("whole"), near("Does scaling lower the error", given), near("at what cost"), sources=(given,))
    assert "*Nearest to “Does scaling lower the error”, unjudged:*" in text and "[E1]" in text
    assert "*Nothing near in your library to “at what cost”.*" in text and "Searched" not in text


def test_a_question_without_parts_gets_three_passages_of_the_fitting_paper() -> None:
    given = tuple(source(number, f"{FITTING} {number}", key="varga2021") for number in range(1, 6))
    whole = answer(near("whole", *given), sources=given)
    assert len(re.findall(r"\[E\d\]", whole)) == 3
    parts = answer(near("whole"), near("a part", *given), sources=given)
    assert len(re.findall(r"\[E\d\]", parts)) == 2


def test_a_question_near_to_nothing_has_no_text() -> None:
    assert answer(near("whole")) == "" and answer() == ""


def test_a_sentence_is_nearer_if_its_paper_is_about_the_subject() -> None:
    sentence = "Penalties on coefficients select few of them"
    papers = [Paper(key, title, (), 2020) for key, title in (("a", "Football and its referees"), ("b", "Sparse genes"))]
    given = [replace(source(1, sentence, key=paper.key), paper=paper) for paper in papers]
    scores = PassageScores(WordEmbedding("test:bge-small-en-v1.5-int8"), Reranker())
    other, same = asyncio.run(scores.of_subject("Sparse models of genes", given))
    assert other < same
    another = PassageScores(WordEmbedding(), Reranker())  # whose cosines may have another scale
    assert list(asyncio.run(another.of_subject("Sparse models of genes", given))) == [0, 0]

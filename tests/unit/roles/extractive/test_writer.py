"""Without a chat model: the author's own paragraphs, the passages near to them, and nothing composed."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.experiment import SECTION_KINDS, Experiment, SectionKind
from citeloom.models.embeddings.bundled_models import Reranker
from citeloom.roles.extractive.passage_details import blank_details
from citeloom.roles.extractive.passage_lists import (
    NOTHING_NEAR,
    OF_SUBJECT,
    ExtractiveAnswerer,
    ExtractiveWriter,
    NearPassage,
    place_passages,
)
from citeloom.roles.extractive.passage_scores import PassageScores
from citeloom.roles.protocols import AnswerBrief, Draft, EarlierSection, Need, NeedCoverage, SectionBrief, Source
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
    """As near as the reader said, so that no cross-encoder is loaded."""

    async def near_statements(self, needs: Sequence[tuple[Need, Sequence[Source]]], subject: str) -> list[Any]:
        return [[10 * item.evidence.llm_score - 3 for item in sources] for _, sources in needs]

    async def answers(self, question: str, sources: Sequence[Source]) -> list[float]:
        return [item.evidence.llm_score for item in sources]


SCORES = AsRead(WordEmbedding(), Reranker())


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
    **fields: Any,
) -> Draft:
    writer = ExtractiveWriter(SCORES)
    experiment = EXPERIMENT.model_copy(update=fields)
    return asyncio.run(writer.write(SectionBrief(kind, experiment, sources, (), 0, 300, earlier=earlier, needs=needs)))


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


def test_a_passage_names_the_sentence_of_the_paragraph_that_it_is_near_to() -> None:
    given = source(1, FITTING, key="varga2021")
    reasoning = "Soil dried in the sun. Temperature scaling lowered the calibration error."
    draft = write("discussion", near(reasoning, given), sources=(given,), reasoning=reasoning)
    assert "[E1], in “Results”; near to sentence 2\n" in f"{draft.text}\n"


def test_what_no_passage_is_near_to_is_listed_at_the_end() -> None:
    draft = write("discussion", near(EXPERIMENT.reasoning))
    assert blocks(draft)[-2] == NOTHING_NEAR
    assert blocks(draft)[-1].startswith("- “Temperature scaling lowered the calibration error of small networks from")
    assert "[E" not in draft.text


def test_a_passage_that_only_adds_a_paper_is_called_less_near() -> None:
    given = source(1, FITTING, key="varga2021")
    faint = replace(given, evidence=replace(given.evidence, llm_score=0.1))
    draft = write("discussion", near(EXPERIMENT.reasoning, faint), sources=(faint,))
    assert "[E1], in “Results”; less near\n" in f"{draft.text}\n"
    assert "less near" not in blank_details(draft.text)


def test_at_most_three_passages_of_two_per_paper_are_listed_for_a_statement() -> None:
    given = tuple(
        source(number, f"{FITTING} {number}", key="varga2021" if number < 4 else "lind2022") for number in range(1, 7)
    )
    draft = write("discussion", near(EXPERIMENT.reasoning, *given), sources=given)
    listed = re.findall(r"\[E(\d)\]", draft.text)
    assert len(listed) == 3 and sum(int(number) < 4 for number in listed) <= 2


def test_a_passage_stands_once_under_the_statement_that_it_is_nearest_to() -> None:
    given = source(1, FITTING, key="varga2021")
    placed, _ = place_passages([NearPassage("N1", given, 1.0), NearPassage("N2", given, 3.0)], {"N1", "N2"}, "")
    assert list(placed) == ["N2"]
    again = source(2, FITTING, key="varga2021")
    placed, _ = place_passages([NearPassage("N1", given, 3.0), NearPassage("N2", again, 1.0)], {"N1", "N2"}, "")
    assert list(placed) == ["N1"]


def test_what_an_earlier_section_of_the_paper_says_is_not_repeated() -> None:
    before, fresh = source(1, FITTING, key="varga2021"), source(2, OFF_TOPIC, key="lind2022")
    near = [NearPassage("N1", before, 3.5), NearPassage("N1", fresh, 2.5)]
    placed, again = place_passages(near, {"N1"}, "")
    assert ([item.source for item in placed["N1"]], again) == ([before, fresh], [])
    placed, again = place_passages(near, {"N1"}, "It was so [E1].")
    assert ([item.source for item in placed["N1"]], [item.source for item in again]) == ([fresh], [before])


def test_a_later_section_names_what_is_listed_and_what_nothing_is_near_to_once() -> None:
    given = source(1, FITTING, key="varga2021")
    first = write("discussion", near(EXPERIMENT.reasoning, given), sources=(given,))
    needs = (
        near(EXPERIMENT.reasoning, given),
        replace(near(EXPERIMENT.summary), need=Need("N2", EXPERIMENT.summary, ("q",))),
    )
    second = write("conclusion", *needs, sources=(given,), earlier=(EarlierSection("discussion", first.text),))
    assert "*Listed in the Discussion, and near to the conclusion too:* [E1]" in second.text
    assert FITTING not in second.text
    both = (EarlierSection("discussion", first.text), EarlierSection("conclusion", second.text))
    third = write("abstract", *needs, sources=(given,), earlier=both)
    assert NOTHING_NEAR in second.text and NOTHING_NEAR not in third.text
    assert third.text.count("[E1]") <= 1 and "Listed in the Conclusion" not in third.text


def test_a_statement_whose_passages_stand_elsewhere_is_not_said_to_have_nothing_near() -> None:
    given = source(1, FITTING, key="varga2021")
    needs = (
        near(EXPERIMENT.reasoning, given),
        replace(near(EXPERIMENT.summary, given), need=Need("N2", EXPERIMENT.summary, ("q",))),
    )
    alone = write("discussion", *needs, sources=(given,))
    assert alone.text.count("[E1]") == 1 and NOTHING_NEAR not in alone.text
    earlier = (EarlierSection("methods", f"{FITTING} [E1]"),)
    assert NOTHING_NEAR not in write("discussion", *needs, sources=(given,), earlier=earlier).text


def test_a_paper_that_a_statement_names_has_its_passage_listed() -> None:
    given = source(1, OFF_TOPIC, key="varga2021")
    faint = replace(given, evidence=replace(given.evidence, llm_score=0.0))
    for reasoning, listed in (
        ("As Varga et al. 2021 saw, probes drift.", True),
        ("Probes drift (varga2021).", True),
        ("As Varga et al. 2019 saw, probes drift.", False),
    ):
        draft = write("discussion", near(reasoning, faint), sources=(faint,), reasoning=reasoning)
        assert ("[E1]" in draft.text) == listed, reasoning


def test_a_section_with_few_papers_lists_the_best_passages_of_others_for_whatever_need() -> None:
    keys = ["varga2021", "lind2022", "okafor2022", "tanaka2023", "moreau2025"]
    given = [source(number, f"{FITTING} {number}", key=key) for number, key in enumerate(keys, 1)]
    near = [NearPassage("N1", given[0], 2.0), NearPassage("N1", given[4], -1.0)]
    near += [NearPassage("N2", item, 0.5 - 0.1 * place) for place, item in enumerate(given)]
    placed, _ = place_passages(near, {"N1"}, "")
    assert [item.source.paper.key for item in placed["N2"]] == keys[1:4] and placed["N1"][0].source == given[0]


def test_passages_near_to_the_subject_stand_in_one_list_after_the_statements() -> None:
    given, other = source(1, FITTING, key="varga2021"), source(2, OFF_TOPIC, key="lind2022")
    subject = replace(near("Sensors drift.", other), need=Need("N2", "Sensors drift.", ("Sensors drift.",)))
    draft = write("discussion", near(EXPERIMENT.reasoning, given), subject, sources=(given, other))
    assert blocks(draft)[-2:] == [OF_SUBJECT, f"- “{OFF_TOPIC}” [E2], in “Results”"]


@pytest.mark.parametrize("verdict", ["partially_supported", "Partially supported", "refuted", "inconclusive"])
@pytest.mark.parametrize("kind", ["discussion", "conclusion", "abstract"])
def test_verdict_and_hypothesis_are_two_statements(verdict: str, kind: SectionKind) -> None:
    found = blocks(write(kind, verdict=verdict))
    said = verdict.replace("_", " ").capitalize()
    assert f"**Verdict.** {said}." in found
    assert f"**Hypothesis.** {EXPERIMENT.hypothesis.description}" in found


def test_paragraphs_stay_whole_and_where_this_points_to_what_was_meant() -> None:
    reasoning = "Error fell with temperature. This was not so on new wearers."
    summary = "Scaling helps small networks. This is cheap."
    draft = write("discussion", reasoning=reasoning, summary=summary)
    assert reasoning in blocks(draft) and f"**Summary.** {summary}" in blocks(draft)
    assert f"**Conclusion.** {summary}" in blocks(write("abstract", reasoning=reasoning, summary=summary))


def test_results_hold_every_metric_in_tables_beside_the_text() -> None:
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


def test_output_is_shown_shortened_without_results_and_named_as_left_out_beside_them() -> None:
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


def test_our_words_beside_a_passage_are_blanks_for_the_numbers_and_the_rest_stays() -> None:
    given = source(1, f"{FITTING} by 12 percent", key="varga2021")
    draft = write("discussion", near(EXPERIMENT.reasoning, given), sources=(given,))
    plain = blank_details(draft.text)
    assert len(plain) == len(draft.text) and "in “Results”" not in plain and "12 percent" in plain and "0.12" in plain


def answer(*needs: NeedCoverage, sources: tuple[Source, ...] = ()) -> str:
    brief = AnswerBrief("Does scaling lower the error, and at what cost?", sources, (), 0, 300, needs=needs)
    return asyncio.run(ExtractiveAnswerer(SCORES).write(brief)).text


def test_a_question_gets_its_passages_by_need_and_no_log_of_searches() -> None:
    given = source(1, FITTING, key="varga2021")
    text = answer(near("whole"), near("Does scaling lower the error", given), near("at what cost"), sources=(given,))
    assert "Passages near to “Does scaling lower the error”, nearest first, not judged" in text and "[E1]" in text
    assert f"{NOTHING_NEAR}\n\n- “at what cost”" in text and "Searched" not in text


def test_a_question_without_parts_gets_three_passages_of_the_paper_that_is_about_it() -> None:
    given = tuple(source(number, f"{FITTING} {number}", key="varga2021") for number in range(1, 6))
    whole = answer(near("whole", *given), sources=given)
    assert len(re.findall(r"\[E\d\]", whole)) == 3
    parts = answer(near("whole"), near("a part", *given), sources=given)
    assert len(re.findall(r"\[E\d\]", parts)) == 2


def test_a_question_that_nothing_is_near_to_has_no_text() -> None:
    assert answer(near("whole")) == ""

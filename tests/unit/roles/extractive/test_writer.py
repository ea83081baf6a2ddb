"""The extractive writer: the experiment leads, sources come in where they bear on it, and only then."""

import asyncio
import re

import pytest

from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.experiment import SECTION_KINDS, Experiment, SectionKind
from citeloom.roles.extractive.sentence_vectors import SentenceVectors
from citeloom.roles.extractive.writer import ExtractiveWriter
from citeloom.roles.inputs import SectionBrief, Source
from citeloom.roles.protocols import Draft, FailingSentence
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


def source(number: int, sentence: str, *, key: str, authors: tuple[str, ...] = ("Ada Varga", "Per Lind")) -> Source:
    text = f"{sentence}."
    chunk = Chunk(f"{key}:00000", key, 0, text, "Results", "", Category.EVALUATION, 1, None, 0, len(text), 20)
    evidence = Evidence.of(
        chunk, id=f"E{number}", summary="", start=0, end=len(sentence), vector_score=0.5, llm_score=0.5,
        combined_score=0.5, source_query="q",
    )  # fmt: skip
    paper = Paper(key, "A title", authors, 2021, family_names=tuple(name.split()[-1] for name in authors))
    return Source(evidence, paper, text, Category.EVALUATION)


def write(kind: SectionKind, *sources: Source) -> Draft:
    writer = ExtractiveWriter(SentenceVectors(WordEmbedding()))
    return asyncio.run(writer.write(SectionBrief(kind, EXPERIMENT, sources, (), 0, 300)))


@pytest.mark.parametrize("kind", SECTION_KINDS)
def test_every_section_is_written_from_the_experiment_alone(kind: SectionKind) -> None:
    draft = write(kind)
    assert "emperature" in draft.text
    assert "[E" not in draft.text


def test_the_facts_lead_and_the_source_follows_with_authors_and_quotation_marks() -> None:
    draft = write("discussion", source(1, FITTING, key="varga2021"))
    cited = re.search(r"Varga and Lind [^“]*“([^”]+)” \[E1\]\.", draft.text)
    assert cited is not None
    assert cited[1] == FITTING
    assert draft.text.index("from 0.12 to 0.05") < draft.text.index("Varga")


def test_one_author_takes_a_verb_in_the_singular() -> None:
    draft = write("discussion", source(1, FITTING, key="solo2021", authors=("Ada Varga",)))
    assert re.search(r"Varga (reports|writes|states|treats|adds)\b", draft.text)


def test_a_source_that_does_not_fit_is_left_out_with_a_note() -> None:
    draft = write("discussion", source(1, OFF_TOPIC, key="soil2017"))
    assert "Soil" not in draft.text
    assert draft.notes and "No paper fits" in draft.notes[0]


def test_the_quote_span_is_that_of_the_words_shown() -> None:
    given = source(1, FITTING, key="varga2021")
    (span,) = write("discussion", given).quotes
    assert given.text[span.start : span.end] == FITTING


def test_an_abstract_cites_nothing() -> None:
    assert "[E" not in write("abstract", source(1, FITTING, key="varga2021")).text


def test_the_users_own_citations_are_kept_word_for_word() -> None:
    cited = EXPERIMENT.model_copy(
        update={"reasoning": "It fell from 0.12 to 0.05. Others saw it (Smith et al., 2020)."}
    )
    writer = ExtractiveWriter(SentenceVectors(WordEmbedding()))
    draft = asyncio.run(writer.write(SectionBrief("discussion", cited, (), (), 0, 300)))
    assert "It fell from 0.12 to 0.05." in draft.text
    assert "Others saw it (Smith et al., 2020)." in draft.text


def test_the_same_brief_gives_the_same_draft() -> None:
    sources = (source(1, FITTING, key="a2021"), source(2, FITTING.replace("unseen", "absent"), key="b2022"))
    assert write("discussion", *sources) == write("discussion", *sources)


def test_repair_removes_the_quotation_that_fails_and_keeps_the_facts() -> None:
    draft = write("discussion", source(1, FITTING, key="varga2021"))
    sentence = next(part for part in re.split(r"(?<=\.) ", draft.text) if "[E1]" in part)
    writer = ExtractiveWriter(SentenceVectors(WordEmbedding()))
    brief = SectionBrief("discussion", EXPERIMENT, (), (), 0, 300)
    start = draft.text.index(sentence)
    fact = draft.text.index("0.12")
    failing = [(start, start + len(sentence)), (fact, fact + 4)]
    repaired = asyncio.run(writer.repair(brief, draft, ["It is not supported.", "It cites nothing."], failing))
    assert "[E1]" not in repaired.text
    assert "0.12" in repaired.text


def test_sentence_repair_removes_quotations_only() -> None:
    quotation = FailingSentence("Varga reports “that it fell” [E1].", ("It is not supported.",), as_a_whole=True)
    number = FailingSentence("Varga reports “0.7” [E1].", ("The number 0.7 is in no source.",))
    fact = FailingSentence("Others saw it fall.", ("It cites nothing.",), as_a_whole=True)
    writer = ExtractiveWriter(SentenceVectors(WordEmbedding()))
    brief = SectionBrief("discussion", EXPERIMENT, (), (), 0, 300)
    assert asyncio.run(writer.repair_sentences(brief, [quotation, number, fact])) == ["", None, None]

"""The chat answerer: what it sees and in which order, and which part of its answer is kept."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_planners import ChatPlanner
from citeloom.roles.chat.chat_writers import ChatWriter
from citeloom.roles.chat.prompt_format import FRESH_TOKENS, estimate_tokens, present_findings
from citeloom.roles.protocols import AnswerBrief, Draft, Need, NeedCoverage, PassageSentence, Source, Turn

ANSWER = "Degree explains most of it [E1]."


@pytest.fixture
def source(make_brief: Any) -> Source:
    found: Source = make_brief().sources[0]
    return found


def brief(source: Source, **changes: Any) -> AnswerBrief:
    passage = (
        PassageSentence(source.evidence.chunk_id, 48, 60, "We compared it before.", carries=False),
        PassageSentence(source.evidence.chunk_id, 0, 46, source.evidence.quote),
    )
    needs = (
        NeedCoverage(Need("N1", "how well degree does", ("degree does",)), (source.evidence.id,), 1, 1, (), "met"),
        NeedCoverage(Need("N2", "what nobody looked at", ("nobody looked",)), (), 0, 2, (), "in vain"),
        NeedCoverage(Need("N3", "what was searched once", ("once",)), (), 0, 1, (), "open"),
    )
    given: dict[str, Any] = {
        "question": "What explains edges?",
        "sources": (replace(source, passage=passage),),
        "queries": ("What explains edges?",),
        "searches_left": 3,
        "words": 200,
        "needs": needs,
    }
    return AnswerBrief(**(given | changes))


def answerer(caller: Any, prompts: PromptLibrary | None = None) -> ChatWriter:
    return ChatWriter(caller, prompts or PromptLibrary(), max_tokens=900)


async def test_the_prompt_has_findings_by_need_with_words_and_names_but_no_keys(
    scripted: Any, prompts: PromptLibrary, source: Source
) -> None:
    caller = scripted(ANSWER)
    assert await answerer(caller, prompts).write(brief(source)) == Draft(ANSWER)
    shown = caller.text()
    for part in (
        "[E1] Degree is",
        "words: Degree alone",
        "how well degree does",
        "What explains edges?",
    ):
        assert part in shown
    for part in ("zietz2024probability", "10.1093/gigascience"):
        assert part not in shown


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        ({"words": 0}, "answer_length"),
        ({"words": 0, "depth": "thorough"}, "answer_thorough"),
        ({"words": 0, "inventory": True}, "answer_inventory"),
        ({"words": 200}, "depth_standard"),
        ({"words": 0, "depth": "brief"}, "depth_brief"),
        ({"words": 0, "answerable": False}, "answer_nearest"),
    ],
)
async def test_the_length_depends_on_the_findings_unless_set(
    scripted: Any, source: Source, given: dict[str, Any], prompt: str
) -> None:
    caller, prompts = scripted(ANSWER), PromptLibrary()
    await answerer(caller).write(brief(source, **given))
    variables = {"words": given["words"] or 120, "detail": ""}
    used = {name: variables[name] for name in prompts[prompt].variables}
    assert prompts[prompt].render(**used).strip() in caller.text()
    assert ("about 200 words" in caller.text()) is (given["words"] == 200)


async def test_only_needs_searched_in_vain_are_shown_as_open(scripted: Any, source: Source) -> None:
    caller = scripted(ANSWER)
    await answerer(caller).write(brief(source))
    assert "what nobody looked at (searched: nobody looked)" in caller.text()
    assert "what was searched once" not in caller.text()


async def test_stable_parts_of_the_prompt_come_first_and_stay_the_same_between_turns(
    scripted: Any, source: Source
) -> None:
    caller = scripted(ANSWER, ANSWER)
    one = Turn(question="What of degree?", answer="It matters [E7].")
    old = replace(source, evidence=replace(source.evidence, id="E7"))
    await answerer(caller).write(brief(source, turns=(one,), recalled=(old,)))
    await answerer(caller).write(
        brief(source, turns=(one, Turn(question="And size?", answer="No.")), recalled=(old,), question="Why?")
    )
    first, second = (str(asked[-1].content) for asked in caller.asked)
    start = first.index("It matters [E7].") + len("It matters [E7].")
    assert first[:start] == second[:start] and caller.asked[0][0] == caller.asked[1][0]
    assert first.index("What of degree?") < first.index("Sources that earlier") < first.index("words: Degree alone")
    assert first.index("words: Degree alone") < first.index("What explains edges?", first.index("The question:"))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"## Answer\n\n{ANSWER}", ANSWER),
        (f"{ANSWER}\n\n## References\n\n- Zietz 2024", ANSWER),
        (f"{ANSWER}\n\n**Sources:**\nE1: a paper", ANSWER),
        (f"## On degree\n\n{ANSWER}", f"## On degree\n\n{ANSWER}"),
        ("NOT ANSWERED", ""),
        ("**Not answered.**", ""),
        (f"NOT ANSWERED\n\n{ANSWER}", ANSWER),
        (f"**NOT ANSWERED.** {ANSWER}", ANSWER),
        (f"Not answered in full. {ANSWER}", f"Not answered in full. {ANSWER}"),
    ],
)
async def test_only_the_answer_itself_is_kept(scripted: Any, source: Source, said: str, kept: str) -> None:
    assert (await answerer(scripted(said)).write(brief(source))).text == kept


async def test_the_repair_request_of_an_answer_names_its_faults(scripted: Any, source: Source) -> None:
    caller = scripted(ANSWER)
    mended = await answerer(caller).repair(brief(source), Draft("Bare."), ['"Bare." cites nothing.'])
    assert mended.text == ANSWER
    assert "Bare." in caller.text() and "cites nothing" in caller.text()


async def test_the_draft_is_kept_if_the_repair_is_empty(scripted: Any, source: Source) -> None:
    kept = await answerer(scripted("", "")).repair(brief(source), Draft(ANSWER), ["x"])
    assert kept.text == ANSWER and "twice" in kept.notes[0]


def test_many_findings_fit_into_the_prompt_with_the_weakest_as_statements(source: Source) -> None:
    words = (PassageSentence(source.evidence.chunk_id, 0, 46, "word " * 200),)
    sources = []
    for number in range(1, 91):
        evidence = replace(source.evidence, id=f"E{number}", combined_score=number / 100)
        sources.append(Source(evidence, source.paper, source.text, passage=words))
    given = brief(source, sources=tuple(sources))
    laid = present_findings(given.needs, given.sources, FRESH_TOKENS)
    assert estimate_tokens(laid.text) <= FRESH_TOKENS + 100
    assert "[E90]" in laid.text and "[E1]" in laid.text and laid.left_out == ()
    assert (
        "words:" in laid.text.partition("[E90]")[2]
        and "words:" not in laid.text.partition("[E1]")[2].partition("[E2]")[0]
    )


def test_findings_of_one_paper_stand_together_under_a_need_the_best_paper_first(source: Source) -> None:
    other = replace(source.paper, key="other2020")
    papers = {"E1": source.paper, "E2": other, "E3": source.paper, "E4": other}
    sources = tuple(
        Source(replace(source.evidence, id=name, key=paper.key), paper, source.text) for name, paper in papers.items()
    )
    needs = (NeedCoverage(Need("N1", "how well degree does", ("degree does",)), tuple(papers), 2, 1, (), "met"),)
    laid = present_findings(needs, sources).text
    assert re.findall(r"^\[(E\d)\]", laid, re.MULTILINE) == ["E1", "E3", "E2", "E4"]


async def test_the_writer_of_a_survey_is_shown_more_findings(scripted: Any, source: Source) -> None:
    sources = tuple(
        Source(replace(source.evidence, id=f"E{number}", summary="It said much. " * 20), source.paper, source.text)
        for number in range(1, 161)
    )
    shown = []
    for survey in (False, True):
        caller = scripted(ANSWER)
        await answerer(caller).write(brief(source, sources=sources, survey=survey, needs=()))
        shown.append(len(re.findall(r"^\[E\d+\]", caller.text(), re.MULTILINE)))
    assert 80 < shown[0] < shown[1] < 160


async def test_the_planner_starts_from_question_and_evidence(
    scripted: Any, prompts: PromptLibrary, source: Source
) -> None:
    planner = ChatPlanner(scripted("Enough."), prompts, (), max_tokens=9)
    system, human = planner.open(brief(source))
    assert "What explains edges?" in human.content and "zietz2024probability" in human.content
    assert (await planner.plan([system, human])).tool_calls == []

"""The chat reader: words of findings are sliced from the chunks by number, and nearly valid answers are repaired."""

from __future__ import annotations

import json
from typing import Any

import pytest

from citeloom.documents import Category
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_reader import ChatReader, PassageReading
from citeloom.roles.chat.model_answers import parse
from citeloom.roles.protocols import Findings, Need, PassageFinding, Purpose

QUESTION = "Is degree enough?"
NEEDS = (Need("N1", "how well degree predicts", ("degree predicts",)), Need("N2", "limits", ("fails",), "limit"))
STATEMENT = "Degree is a baseline."


def finding(*sentences: Any, statement: str = STATEMENT, need: str = "N1", score: Any = 0.8) -> dict[str, Any]:
    return {"statement": statement, "sentences": list(sentences), "need": need, "score": score}


def answer(*findings: dict[str, Any]) -> dict[str, Any]:
    return {"findings": list(findings)}


async def read(
    caller: Any, prompts: PromptLibrary, window: Any, notes: list[str], question: str = QUESTION
) -> list[PassageFinding]:
    reader = ChatReader(caller, prompts, statement_words=10, max_tokens=500, note=notes.append)
    return await reader.read(Purpose(question, NEEDS), [window])


def words(found: PassageFinding) -> list[str]:
    return [chunk.text[start:end] for chunk, start, end in found.spans]


@pytest.mark.parametrize(
    ("sentences", "quotes"),
    [
        ((1,), ["Degree alone predicts most edges of a network."]),
        ((3, 4), ["It was as good on 17 of them. On a separate network it failed."]),
        ((4, 1), ["Degree alone predicts most edges of a network.", "On a separate network it failed."]),
    ],
)
async def test_words_are_sliced_by_sentence_number_even_if_not_consecutive(
    scripted: Any, prompts: PromptLibrary, make_window: Any, sentences: tuple[int, ...], quotes: list[str]
) -> None:
    [found] = await read(scripted(answer(finding(*sentences))), prompts, make_window(), [])
    assert words(found) == quotes
    assert (found.statement, found.score, found.need, found.vector_score) == (STATEMENT, 0.8, "N1", 0.8)


async def test_one_reading_gives_several_findings_best_first(
    scripted: Any, prompts: PromptLibrary, make_window: Any
) -> None:
    given = answer(finding(1, score=0.6), finding(4, need="N2", statement="It fails elsewhere.", score=1))
    found = await read(scripted(given), prompts, make_window(), [])
    assert [(item.statement, item.need) for item in found] == [("It fails elsewhere.", "N2"), (STATEMENT, "N1")]


async def test_the_model_sees_purpose_needs_paper_and_numbered_sentences(
    scripted: Any, prompts: PromptLibrary, make_window: Any
) -> None:
    caller = scripted(answer(finding(1)))
    await read(caller, prompts, make_window(category=Category.RELATED_WORK), [])
    shown = caller.text()
    for line in (
        QUESTION,
        "N2 (limit): limits",
        "Title: The probability of edge existence",
        "By: Zietz et al.",
        "Section: Results > Degree as a baseline (on other papers)",
        "\n1: Degree alone predicts most edges of a network.\n2: We compared it",
        "\n5: The code is available.",
    ):
        assert line in shown


NEARLY = {
    "sentences as text": answer(finding("1")),
    "sentences in brackets": answer({**finding(), "sentences": "[1]"}),
    "a number alone": answer({**finding(), "sentences": 1}),
    "first and last": answer(
        {"summary": STATEMENT, "first_sentence": 1, "last_sentence": 1, "need": "n1", "score": 0.8}
    ),
    "one finding, no list": finding(1),
    "findings by number": {"findings": {"1": finding(1)}},
    "one finding in place of a list": {"findings": finding(1)},
    "a score of ten": answer(finding(1, score=8)),
    "a score in percent": answer(finding(1, score="80%")),
    "a number that is not there beside one that is": answer(finding(1, 99)),
    "an unknown need": answer(finding(1, need="the first one")),
    "needs in a list": answer(finding(1, need=["N1"])),
    "a broken finding beside a whole one": answer({"statement": ""}, finding(1)),
    "a score of another scale": answer(finding(1, score="8/10")),
    "a score with a comma and a word": answer(finding(1, score="0,8 (strong)")),
    "no need": answer({name: value for name, value in finding(1).items() if name != "need"}),
    "null for a need": answer(finding(1) | {"need": None}),
    "a need with its words": answer(finding(1, need="n1 (finding): how well degree predicts")),
    "a need by number": answer(finding(1, need=1)),
    "the sentence beside its number": answer(finding("1: Degree alone predicts 4 of 5 edges.")),
    "names in capitals": {"Findings": [{name.title(): value for name, value in finding(1).items()}]},
    "under another name": {"results": [finding(1)]},
    "in a wrapping": {"answer": answer(finding(1))},
    "a list alone": json.dumps([finding(1)]),
    "a fence": f"```json\n{json.dumps(answer(finding(1)), indent=1)}\n```",
    "text around it": f"Of {{1, 2}} I read:\n\n{json.dumps(answer(finding(1)))}\n\nI hope {{this}} helps.",
    "trailing commas": json.dumps(answer(finding(1))).replace("}", ",}").replace("]", ",]"),
    "Python": str(answer(finding(1) | {"need": None})),
    "cut off": json.dumps(answer(finding(1), finding(4)))[:-75],
}


@pytest.mark.parametrize("given", NEARLY.values(), ids=NEARLY)
async def test_a_nearly_valid_answer_is_repaired_without_another_request(
    scripted: Any, prompts: PromptLibrary, make_window: Any, given: Any
) -> None:
    caller, notes = scripted(given), []
    [found] = await read(caller, prompts, make_window(), notes)
    assert (found.statement, words(found), found.need) == (
        STATEMENT,
        ["Degree alone predicts most edges of a network."],
        "N1",
    )
    assert found.score == 0.8
    assert (notes, caller.rejected, len(caller.asked)) == ([], [], 1)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (answer(finding(7, 9)), "which have 1 to 5"),
        (answer(finding()), "sentences"),
        (answer(finding(1, statement=" ")), "statement"),
        ({"summary": ""}, "findings"),
    ],
)
async def test_an_answer_without_words_is_requested_again_and_rejected(
    scripted: Any, prompts: PromptLibrary, make_window: Any, bad: dict[str, Any], complaint: str
) -> None:
    caller, notes = scripted(bad, answer(finding(1))), []
    [found] = await read(caller, prompts, make_window(), notes)
    assert words(found) == ["Degree alone predicts most edges of a network."]
    assert caller.rejected == ["call-1"]
    assert complaint in caller.asked[1][-1].text
    assert notes == []


async def test_after_two_bad_answers_the_window_is_skipped_with_a_note(
    scripted: Any, prompts: PromptLibrary, make_window: Any
) -> None:
    caller, notes = scripted(answer(finding(9)), "sorry"), []
    assert await read(caller, prompts, make_window(), notes) == []
    assert notes == ["zietz2024probability:00007+1: left out, since the reader gave no valid answer in two attempts."]


ALONE = [finding(1), finding(4, need="N2", statement="It fails elsewhere.")]


@pytest.mark.parametrize("given", [json.dumps(ALONE), "\n".join(map(json.dumps, ALONE))], ids=["list", "lines"])
async def test_findings_without_the_enclosing_answer_are_all_kept(
    scripted: Any, prompts: PromptLibrary, make_window: Any, given: str
) -> None:
    found = await read(scripted(given), prompts, make_window(), [])
    assert [item.statement for item in found] == [STATEMENT, "It fails elsewhere."]


@pytest.mark.parametrize("given", [("2-4",), ("2 to 4",), ("2..4",), ("S2", "s3-S4"), (2, "3\u20134"), ([2, 3], 4)])
async def test_ranges_of_sentences_are_read(
    scripted: Any, prompts: PromptLibrary, make_window: Any, given: tuple[Any, ...]
) -> None:
    [found] = await read(scripted(answer(finding(*given))), prompts, make_window(), [])
    assert [len(text.split(". ")) for text in words(found)] == [3]


@pytest.mark.parametrize(
    "nothing",
    [
        answer(),
        answer(finding(1, score=0)),
        {"findings": None},
        {"findings": "none"},
        {"findings": {}},
        {"findings": None, "note": "The passages report other effects."},
        {"Findings": [], "note": "The passages report other effects."},
        {"result": answer()},
        {},
        "[]",
        "```json\n[]\n```",
    ],
)
async def test_an_empty_result_gives_no_finding_and_no_note(
    scripted: Any, prompts: PromptLibrary, make_window: Any, nothing: Any
) -> None:
    caller, notes = scripted(nothing), []
    assert await read(caller, prompts, make_window(), notes) == []
    assert (notes, caller.rejected) == ([], [])


@pytest.mark.parametrize("text", ['{"findings": %s%s}', '{"answer": %s{}%s}'])
def test_an_extremely_nested_answer_is_refused_in_one_line(text: str) -> None:
    for levels in range(950, 1_000):
        with pytest.raises(ValueError, match=r"field|JSON"):
            parse(text % ('{"a": [' * (levels // 2), "]}" * (levels // 2)), PassageReading)


async def test_a_chunk_without_words_is_not_read(scripted: Any, prompts: PromptLibrary, make_window: Any) -> None:
    caller = scripted()
    assert await read(caller, prompts, make_window(text=" \n![](figure.png)\n\n---\n"), []) == []
    assert caller.asked == []


async def test_an_overlong_statement_is_cut(scripted: Any, prompts: PromptLibrary, make_window: Any) -> None:
    [found] = await read(scripted(answer(finding(1, statement="word " * 50))), prompts, make_window(), [])
    assert found.statement == "word " * 20 + "..."


def test_the_shipped_prompt_asks_for_the_length_in_the_settings() -> None:
    assert "at most 37 words" in PromptLibrary()["reader_system"].render(words=37)


async def test_a_sentence_shared_by_two_windows_is_shown_once(
    scripted: Any, prompts: PromptLibrary, make_window: Any
) -> None:
    caller = scripted(answer(finding(1)))
    reader = ChatReader(caller, prompts, statement_words=10, max_tokens=500)
    await reader.read(Purpose(QUESTION, NEEDS), [make_window(), make_window()])
    assert caller.text().count("On a separate network it failed.") == 1


async def test_unreadable_passages_are_distinguished_from_irrelevant_ones(
    scripted: Any, prompts: PromptLibrary, make_window: Any
) -> None:
    window = make_window()
    nothing = await read(scripted(answer()), prompts, window, [])
    unread = await read(scripted("no", "no", "no"), prompts, window, [])
    assert list(nothing) == list(unread) == []
    assert isinstance(nothing, Findings) and nothing.unreadable == ()
    assert isinstance(unread, Findings) and unread.unreadable == tuple(chunk.id for chunk in window.chunks)


@pytest.mark.parametrize(
    ("statement", "named", "quotes"),
    [
        ("As good on 17.", (1,), ["Degree alone predicts most edges of a network.", "It was as good on 17 of them."]),
        ("As good on 17.", (3,), ["It was as good on 17 of them."]),
        ("As good on 99.", (1,), ["Degree alone predicts most edges of a network."]),
    ],
)
async def test_a_number_in_the_statement_adds_the_sentence_that_contains_it(
    scripted: Any, prompts: PromptLibrary, make_window: Any, statement: str, named: tuple[int, ...], quotes: list[str]
) -> None:
    """Otherwise a true number would be found in no source and removed from the text."""
    [found] = await read(scripted(answer(finding(*named, statement=statement))), prompts, make_window(), [])
    assert words(found) == quotes

"""The chat writer: what it is shown, what is stripped from its answer, and that no draft is ever lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from citeloom.experiment import SECTION_KINDS
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_writers import ChatWriter
from citeloom.roles.chat.prompt_format import SOURCES_TOKENS, estimate_tokens
from citeloom.roles.protocols import Draft

TEXT = "Degree explains most of it [E1].\n\nHere is where it ends: nowhere [E1]."


def writer(caller: Any, prompts: PromptLibrary) -> ChatWriter:
    return ChatWriter(caller, prompts, max_tokens=900)


async def test_the_writer_sees_markers_passages_and_names_but_no_keys(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    caller = scripted(TEXT)
    assert await writer(caller, prompts).write(make_brief()) == Draft(TEXT)
    assert [message.type for message in caller.asked[0]] == ["system", "human"]
    shown = caller.text()
    for part in (
        "[E1]",
        "Degree is a strong baseline.",
        "We compared it with embeddings",
        "0.9971",
        "400",
        "Zietz et al., ",
    ):
        assert part in shown
    for part in ("zietz2024probability", "10.1093/gigascience"):
        assert part not in shown
    assert "Only biomedical networks." in shown, "fields that the user added are shown"


@pytest.mark.parametrize("kind", SECTION_KINDS)
async def test_each_section_has_its_plan_and_its_fields(scripted: Any, make_brief: Any, kind: str) -> None:
    prompts, caller = PromptLibrary(), scripted(TEXT)
    await writer(caller, prompts).write(make_brief(kind=kind))
    assert prompts[f"writer_plan_{kind}"].body in caller.text()
    assert ("def prior()" in caller.text()) == (kind == "methods")
    assert ("AUROC max 0.9971" in caller.text()) == (kind == "results")


@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        f"```\n{TEXT}\n```",
        f"```markdown\n{TEXT}\n```\n",
        f"Here is the discussion section:\n\n{TEXT}",
        f"Sure! Here is the section you asked for:\n{TEXT}",
        f"Certainly.\n\n```text\n{TEXT}\n```",
        f"# Discussion\n\n{TEXT}",
        f"## 4. Discussion\n{TEXT}",
        f"**Discussion**\n\n{TEXT}",
        f"Discussion\n\n{TEXT}",
        f"<think>They want {{json}}? No.</think>\n{TEXT}",
    ],
)
async def test_text_that_models_put_around_a_section_is_removed(
    scripted: Any, prompts: PromptLibrary, make_brief: Any, answer: str
) -> None:
    assert (await writer(scripted(answer), prompts).write(make_brief())).text == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "Here is a finding: degree matters [E1].",
        "Surely degree matters [E1].\n\nMore follows.",
        "## Limits of the approach\n\nDegree matters [E1].",
        "Degree matters [E1].\n\n```python\nprint(1)\n```",
        "Results were mixed [E1].",
        "Below are two findings that bear on this [E1], and both concern degree: first the prior.",
    ],
)
async def test_the_sections_own_words_are_left_alone(
    scripted: Any, prompts: PromptLibrary, make_brief: Any, text: str
) -> None:
    assert (await writer(scripted(text), prompts).write(make_brief())).text == text


async def test_an_answer_at_its_limit_is_marked_truncated(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    caller = scripted(AIMessage("Degree expl", response_metadata={"finish_reason": "length"}))
    assert await writer(caller, prompts).write(make_brief()) == Draft("Degree expl", truncated=True)


async def test_an_empty_answer_is_requested_once_more(scripted: Any, prompts: PromptLibrary, make_brief: Any) -> None:
    caller = scripted("```\n```", TEXT)
    assert (await writer(caller, prompts).write(make_brief())).text == TEXT
    assert caller.rejected == ["call-1"]
    assert caller.asked[1][-1].text.startswith(caller.asked[0][-1].text)
    assert caller.asked[1] != caller.asked[0], "an equal request would be answered alike"


async def test_two_empty_answers_give_an_empty_draft_that_says_so(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    caller = scripted("", "<think>hm")
    draft = await writer(caller, prompts).write(make_brief())
    assert (draft.text, draft.notes) == ("", ("The writer answered twice without any text.",))
    assert caller.rejected == ["call-1", "call-2"]


async def test_a_repair_shows_the_draft_and_one_problem_per_line(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    caller = scripted(TEXT, "Degree explains a part [E1].")
    write = writer(caller, prompts)
    draft = await write.write(make_brief())
    problems = ["unknown marker [E9] in: It holds [E9].", "number 0.42 is in\nno source"]
    assert (await write.repair(make_brief(), draft, problems)).text == "Degree explains a part [E1]."
    shown = caller.text()
    assert f"\n{TEXT}\n" in shown
    assert "\nunknown marker [E9] in: It holds [E9].\nnumber 0.42 is in no source\n" in shown
    assert shown.startswith(caller.text(0)), "the prefix is that of the first request"
    assert len(caller.asked[1]) == 2


async def test_a_repair_without_text_keeps_the_draft(scripted: Any, prompts: PromptLibrary, make_brief: Any) -> None:
    draft = Draft(TEXT, truncated=True, notes=("first",))
    kept = await writer(scripted("", ""), prompts).repair(make_brief(), draft, ["unknown marker [E9]"])
    assert (kept.text, kept.truncated) == (draft.text, True)
    assert kept.notes == ("first", "The writer answered twice without any text.")


async def test_all_sources_of_the_longest_search_fit(
    scripted: Any, prompts: PromptLibrary, make_brief: Any, make_source: Any
) -> None:
    long = "Degree alone predicts most edges of a network. " + "It was as good on many others. " * 60
    made = [make_source(f"E{n}", long, summary="Degree counts. " * 30) for n in range(1, 65)]
    sources = tuple(replace(source, passage=()) for source in made)
    caller = scripted(TEXT)
    assert (await writer(caller, prompts).write(make_brief(sources=sources))).notes == ()
    assert caller.text().count("Degree alone predicts most edges of a network.") == 64
    assert estimate_tokens(caller.text()) < SOURCES_TOKENS + 3000


async def test_many_long_sources_fit_and_the_weakest_are_left_out_with_a_note(
    scripted: Any, prompts: PromptLibrary, make_brief: Any, make_source: Any
) -> None:
    long = "Degree alone predicts most edges of a network. " + "It was as good on many others. " * 300
    made = [make_source(f"E{n}", long, score=0.3 + n / 1000, summary="Degree counts. " * 20) for n in range(1, 301)]
    sources = tuple(replace(source, passage=()) for source in made)
    caller = scripted(TEXT)
    draft = await writer(caller, prompts).write(make_brief(sources=sources))
    assert estimate_tokens(caller.text()) < SOURCES_TOKENS + 3000
    assert "weakest sources did not fit" in draft.notes[0]
    assert "E1," in draft.notes[0]
    assert "\n[E200] " in caller.text()
    assert "\n[E1] " not in caller.text()


async def test_without_sources_the_prompt_offers_nothing_to_cite(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    caller = scripted("Degree matters.")
    assert await writer(caller, prompts).write(make_brief(sources=())) == Draft("Degree matters.")
    assert "(no sources)" in caller.text()

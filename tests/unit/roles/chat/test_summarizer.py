"""The chat summarizer, and how the roles are assembled."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from citeloom.documents import Paper
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_roles import chat_roles
from citeloom.roles.chat.chat_writers import ChatSummarizer
from citeloom.roles.protocols import CitedClaim, Purpose
from citeloom.roles.run_roles import extractive_roles


async def test_a_summary_is_one_paragraph_from_title_abstract_and_text(
    scripted: Any, prompts: PromptLibrary, paper: Paper
) -> None:
    caller, notes = scripted("Here is the summary:\nDegree is\na baseline."), list[str]()
    summarizer = ChatSummarizer(caller, prompts, words=120, max_tokens=300, note=notes.append)
    assert await summarizer.summarize(paper, "Networks are biased. " * 2000) == "Degree is a baseline."
    shown = caller.text()
    assert "Title: The probability of edge existence" in shown
    assert "Abstract: Node degree explains much of edge prediction." in shown
    assert len(shown) < 15_000
    assert notes == []


@pytest.mark.parametrize("answer", [AIMessage(""), AIMessage("Degr", response_metadata={"finish_reason": "length"})])
async def test_without_a_complete_summary_the_abstract_is_used_with_a_note(
    scripted: Any, prompts: PromptLibrary, paper: Paper, answer: AIMessage
) -> None:
    caller, notes = scripted(answer), list[str]()
    summarizer = ChatSummarizer(caller, prompts, words=120, max_tokens=300, note=notes.append)
    assert await summarizer.summarize(paper, "Networks are biased.") == paper.abstract
    assert caller.rejected == ["call-1"]
    assert "zietz2024probability" in notes[0]


async def test_each_role_has_its_own_caller(
    scripted: Any,
    prompts: PromptLibrary,
    make_brief: Any,
    make_window: Any,
    make_source: Any,
    paper: Paper,
) -> None:
    reading = {"findings": []}
    callers = {
        "reader": scripted(reading),
        "agent": scripted("Enough."),
        "writer": scripted("Degree matters."),
        "judge": scripted(
            {"P1": {"reason": "x", "E1": {"does": "supports", "sentences": [1]}, "verdict": "partly"}},
        ),
        "summarizer": scripted("A baseline."),
    }
    bare = extractive_roles(LocalEmbedding(), summary_words=40)
    roles = chat_roles(bare, callers, prompts, summary_words=40, tool_specs=(), max_output_tokens=321)
    brief = make_brief()
    await roles.reader.read(Purpose("degree", ()), [make_window()])
    assert roles.planner is not None
    await roles.planner.plan(roles.planner.open(brief))
    await roles.writer.write(brief)
    await roles.judge.judge([CitedClaim("Degree matters [E1].", (make_source(),))])
    await roles.summarize(paper, "Text.")
    assert {name: [options["max_tokens"] for options in caller.options] for name, caller in callers.items()} == {
        name: [321] for name in callers
    }

"""The judge of contradictions between two papers, on a chat model.

The judge is shown numbered sentences and answers with their numbers, so a quote is always sliced from the paper: it
cannot be misquoted, invented, or taken from the other paper.
"""

from __future__ import annotations

from typing import Final, Literal

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field, field_validator

from ...models.chat_caller import ChatCaller
from ...prompts import PromptLibrary
from ..protocols import Comparison, Statement
from .prompt_format import fenced, one_line
from .structured_output import StructuredAnswer, ask, lowercase

_LONGEST_LINE: Final = 300  # characters of the judge's own words


class PassageComparison(StructuredAnswer):
    """The judge's answer; claim and reason come first, so that the verdict follows from them."""

    claim: str = Field(description="One line: the claim on which both passages say something; empty when none.")
    reason: str = Field(description="One line: the words on either side that decide it.")
    verdict: Literal["contradict", "agree", "unrelated"] = Field(description="Whether the passages disagree.")
    first: str = Field(description="Id of the sentence of the first passage, such as A1; empty unless they contradict.")
    second: str = Field(description="Id of the sentence of the second passage, such as B1; empty unless so.")

    _lowercase = field_validator("verdict", mode="before")(lowercase)


class ChatContradictionJudge:
    """Implements `ContradictionJudge`; `max_tokens` limits one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def compare(self, first: Statement, second: Statement) -> Comparison:
        """Whether the statements contradict, and where; "unjudged" when two attempts gave no valid answer."""

        def check(answer: PassageComparison) -> None:
            if answer.verdict == "contradict":
                _place(answer.first, "first", "A", first)
                _place(answer.second, "second", "B", second)
                if not answer.claim:
                    raise ValueError("field claim: it is empty, though the passages contradict")

        task = self._prompts["contradiction_task"].render(first=_shown(first, "A"), second=_shown(second, "B"))
        messages = [SystemMessage(self._prompts["contradiction_system"].render()), HumanMessage(task)]
        answer = await ask(
            self._caller, self._prompts, messages, PassageComparison, max_tokens=self._max_tokens, check=check
        )
        if answer is None:
            return Comparison("unjudged", reason="the judge gave no valid answer, twice")
        claim, reason = (one_line(text)[:_LONGEST_LINE] for text in (answer.claim, answer.reason))
        if answer.verdict != "contradict":
            return Comparison(answer.verdict, claim, reason)
        places = _place(answer.first, "first", "A", first), _place(answer.second, "second", "B", second)
        return Comparison("contradict", claim, reason, *places)


def _shown(statement: Statement, letter: str) -> str:
    """Numbered sentences in a fence; without key and authors, so that names do not influence the verdict."""
    text = statement.chunk.text
    head = f"Section: {one_line(statement.chunk.section)}"
    lines = [
        f"{letter}{number}: {one_line(text[start:end])}" for number, (start, end) in enumerate(statement.spans, start=1)
    ]
    return fenced("\n".join([head, "", *lines]), f"passage {letter}")


def _place(identifier: str, name: str, letter: str, statement: Statement) -> int:
    """The index in `spans` of an id that was shown for this passage; ValueError for any other."""
    known = {f"{letter}{number}": number - 1 for number in range(1, len(statement.spans) + 1)}
    found = known.get(identifier.strip(" .[]").upper())
    if found is None:
        raise ValueError(f"field {name}: it must be one of {', '.join(known)}")
    return found

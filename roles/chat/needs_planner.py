"""Plans the needs of a question or a section on a chat model, in one call before anything is searched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import singledispatchmethod
from typing import Any, Final, get_args

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field, field_validator

from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, WHOLE, Room
from ...prompts import PromptLibrary
from ...text.normalize import plain_wording
from ..inputs import AnswerBrief, Brief, SectionBrief
from ..needs import Asks, Need
from ..protocols import NeedsPlanner
from .prompt_answer_sources import present_turns
from .prompt_experiment import PLANNER_FIELD_TOKENS, present_experiment
from .prompt_format import fenced, first_lines, one_line, present_lines, present_queries
from .structured_output import Note, StructuredAnswer, ask, log_note

MOST_NEEDS: Final = 7
MOST_QUERIES: Final = 2
_COUNTED: Final = re.compile(r"\(\d+ papers in all\)")
_LONGEST: Final = 300  # characters of a need or a query


class PlannedNeed(StructuredAnswer):
    """One need as the model gives it; an unknown kind becomes a finding, a single query a list of one."""

    need: str = Field(min_length=3, description="What has to be known, in one line.")
    asks: Asks = Field(description="The kind of statement that meets it.")
    queries: list[str] = Field(description="One or two searches, as statements of a paper.")

    @field_validator("asks", mode="before")
    @classmethod
    def _known_kind(cls, value: Any) -> Any:
        said = value.strip(" .").lower() if isinstance(value, str) else value
        return said if said in get_args(Asks) else "finding"

    @field_validator("queries", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        given = [value] if isinstance(value, str) else value
        return [item for item in given if isinstance(item, str)] if isinstance(given, list) else []


class NeedsPlan(StructuredAnswer):
    """The needs of a question or a section, most important first."""

    needs: list[PlannedNeed] = Field(min_length=1, description="What has to be known.")


class ChatNeedsPlanner:
    """Implements `NeedsPlanner`.

    Args:
        fallback: plans when two attempts of the model gave no valid plan.
        max_tokens: limit for one answer, in tokens of the model.
        note: receives one line when no plan was valid.
        room: the server's context size.
    """

    def __init__(
        self,
        caller: ChatCaller,
        prompts: PromptLibrary,
        fallback: NeedsPlanner,
        *,
        max_tokens: int,
        note: Note = log_note,
        room: Room = UNLIMITED,
    ) -> None:
        self._caller = caller
        self._prompts = prompts
        self._fallback = fallback
        self._max_tokens = max_tokens
        self._note = note
        self._room = room

    async def needs(self, brief: Brief, papers: Sequence[str] = ()) -> tuple[Need, ...]:
        """Three to seven needs; those of the fallback when no valid plan was given."""
        instructions = self._prompts["needs_system"].render(most=MOST_NEEDS)
        system, task = SystemMessage(instructions), self._task(brief, papers, instructions)
        plan = await ask(
            self._caller,
            self._prompts,
            [system, HumanMessage(task)],
            NeedsPlan,
            max_tokens=self._max_tokens,
            # The same question typed differently, or asked after unrelated papers were added, gets the cached plan, so
            # that nothing is read again for it.
            cache_messages=[
                system,
                HumanMessage(plain_wording(self._task(brief, _titles(papers), str(system.content)))),
            ],
            room=self._room,
        )
        planned = () if plan is None else numbered_needs(plan.needs)
        if planned:
            return planned
        self._note("The planner gave no valid plan of needs in two attempts; rules were used instead.")
        return await self._fallback.needs(brief, papers)

    def _task(self, brief: Brief, papers: Sequence[str], system: str) -> str:
        near = present_lines(first_lines(papers, self._room.left(WHOLE, system, share=0.25)), "papers")
        return self._task_of(brief, near, system)

    @singledispatchmethod
    def _task_of(self, brief: Brief, near: str, system: str) -> str:
        raise TypeError(f"no task for {type(brief).__name__}")

    @_task_of.register
    def _(self, brief: AnswerBrief, near: str, system: str) -> str:
        prompt, question = self._prompts["needs_question_task"], fenced(brief.sought, "question")
        bare = prompt.render(turns="", question=question, papers=near)
        turns = present_turns(brief.turns, self._room.left(WHOLE, system, bare))
        return prompt.render(turns=turns, question=question, papers=near)

    @_task_of.register
    def _(self, brief: SectionBrief, near: str, system: str) -> str:
        room = self._room
        prompt, wants = self._prompts["needs_section_task"], self._prompts[f"planner_needs_{brief.kind}"].render()
        queries = present_queries(first_lines(brief.queries, room.left(WHOLE, system, share=0.2)))
        bare = prompt.render(kind=brief.kind, wants=wants, experiment="", queries=queries, papers=near)
        total = room.left(WHOLE, system, bare)
        experiment = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        return prompt.render(kind=brief.kind, wants=wants, experiment=experiment, queries=queries, papers=near)


def _titles(papers: Sequence[str]) -> list[str]:
    """The titles near to the subject, without the line with the size of the library."""
    return [line for line in papers if not _COUNTED.fullmatch(line)]


def numbered_needs(planned: Sequence[PlannedNeed]) -> tuple[Need, ...]:
    """The first seven needs with ids; a need without a usable query is searched for by its own text."""
    needs: list[Need] = []
    for item in planned[:MOST_NEEDS]:
        text = one_line(item.need)[:_LONGEST]
        queries = [one_line(query)[:_LONGEST] for query in item.queries if any(map(str.isalpha, query))]
        distinct = tuple(dict.fromkeys(queries))[:MOST_QUERIES]
        needs.append(Need(f"N{len(needs) + 1}", text, distinct or (text,), item.asks))
    return tuple(needs)

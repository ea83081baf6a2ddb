"""The search planners for sections and questions, on a chat model that calls tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call
from pydantic import Field, field_validator

from ...models.context_size import WHOLE
from ...text.words import plain_wording
from ..extractive.follow_ups import condense_question
from ..protocols import AnswerBrief, Asks, Brief, Need, NeedsPlan, NeedsPlanner, QuestionKind, Turn
from .model_answers import ChatRole, StructuredAnswer, lowercase, repair_json
from .prompt_format import (
    PLANNER_FIELD_TOKENS,
    estimate_tokens,
    fence,
    first_lines,
    one_line,
    present_evidence,
    present_experiment,
    present_lines,
    present_turns,
    shorten,
)

# Shares of the context left after the instructions; the rest is for later turns.
EVIDENCE_SHARE: Final = 0.6
_EXPERIMENT_SHARE: Final = 0.25
_LEAST_ANSWER_TOKENS: Final = 40


@dataclass(frozen=True)
class ChatPlanner(ChatRole):
    """Decides what to search for next if the evidence is thin; `tool_specs` are in OpenAI's format."""

    tool_specs: Sequence[Mapping[str, Any]]

    async def plan(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the next turn; each of its tool calls has a unique id and a dict of arguments.

        The tools stay available when the budget is spent, since removing them would change the prefix; `guard` refuses
        further calls. If the conversation exceeds the context size, its oldest tool answers are shortened; if that is
        not enough, the planner gets no further turn.
        """
        total = self.room.left(WHOLE, json.dumps(self.tool_specs))
        shown = _shorten_answers(messages, total)
        if sum(map(_tokens, shown)) > total:
            return AIMessage("The conversation fills the server's context.")
        answer = await self.caller.call(shown, tools=self.tool_specs, max_tokens=self.max_tokens)
        return _make_answerable(answer.message, messages)

    def open(self, brief: Brief) -> list[BaseMessage]:
        """Make the opening messages; later turns only append, so that a local server can reuse the prefix."""
        names = ("planner_system", "planner_task")
        if isinstance(brief, AnswerBrief):
            names = ("question_planner_system", "question_planner_task")
        system, prompt = self.prompts[names[0]].render(), self.prompts[names[1]]
        given: dict[str, Any] = {"library": brief.library, "searches_left": brief.searches_left, "evidence": ""}
        beside = [system, json.dumps(self.tool_specs), self.preamble(brief)]
        if isinstance(brief, AnswerBrief):
            given["question"] = fence(brief.sought, "question")
        else:
            wants = self.prompts[f"planner_needs_{brief.kind}"].render()
            given |= {"kind": brief.kind, "needs": wants, "experiment": ""}
            total = self.room.left(WHOLE, *beside, prompt.render(**given), share=_EXPERIMENT_SHARE)
            given["experiment"] = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        total = self.room.left(WHOLE, *beside, prompt.render(**given), share=EVIDENCE_SHARE)
        given["evidence"] = present_evidence(brief.needs, brief.citable, total)
        return [SystemMessage(system), HumanMessage(self.preamble(brief) + prompt.render(**given))]


def _shorten_answers(messages: Sequence[BaseMessage], total: int) -> list[BaseMessage]:
    """Shorten tool answers, oldest first, until the messages fit into `total` tokens, if possible."""
    shown = list(messages)
    for place, message in enumerate(shown):
        over = sum(map(_tokens, shown)) - total
        if over <= 0:
            break
        if isinstance(message, ToolMessage):
            text = str(message.content)
            kept = max(_LEAST_ANSWER_TOKENS, estimate_tokens(text) - over - _LEAST_ANSWER_TOKENS)
            if kept < estimate_tokens(text):
                # A new fence, since the cut may have removed the end of the original one.
                content = fence(shorten(text, kept), "answer, shortened")
                shown[place] = message.model_copy(update={"content": content})
    return shown


def _tokens(message: BaseMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return estimate_tokens(str(message.content)) + (estimate_tokens(json.dumps(calls)) if calls else 0)


def _make_answerable(message: AIMessage, earlier: Sequence[BaseMessage]) -> AIMessage:
    """Repair the message so that every tool call can be answered.

    Servers refuse a conversation with a call whose arguments are not JSON, so these are repaired, or left empty for the
    tool to reject. Some servers omit or reuse ids.
    """
    used = {call["id"] for turn in earlier if isinstance(turn, AIMessage) for call in turn.tool_calls}
    asked = [(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    for call in message.invalid_tool_calls:
        data = repair_json(call["args"] or "")
        arguments = {str(name): value for name, value in data.items()} if isinstance(data, dict) else {}
        asked.append((call["name"] or "", arguments, call["id"]))
    calls: list[ToolCall] = []
    for index, (name, arguments, given) in enumerate(asked):
        identifier = given if given and given not in used else f"call_{len(earlier)}_{index}"
        used.add(identifier)
        calls.append(tool_call(name=name, args=arguments, id=identifier))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})


MOST_NEEDS: Final = 7
MOST_QUERIES: Final = 2
_COUNTED: Final = re.compile(r"\(\d+ papers in all\)")
_LONGEST: Final = 300  # characters of a need or a query


class PlannedNeed(StructuredAnswer):
    """One need as the model returns it; an unknown kind becomes a finding, a single query a list of one."""

    need: str = Field(min_length=3, description="What has to be known, in one line.")
    asks: Asks = Field(description="The kind of statement that meets it.")
    queries: list[str] = Field(description="One or two searches, as statements of a paper.")

    @field_validator("asks", mode="before")
    @classmethod
    def _known_kind(cls, value: Any) -> Any:
        return said if (said := lowercase(value)) in get_args(Asks) else "finding"

    @field_validator("queries", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        given = [value] if isinstance(value, str) else value
        return [item for item in given if isinstance(item, str)] if isinstance(given, list) else []


class SectionPlan(StructuredAnswer):
    """The needs of a section, most important first."""

    needs: list[PlannedNeed] = Field(min_length=1, description="What has to be known.")


_KINDS: Final[Mapping[str, QuestionKind]] = {"focused": "focused", "survey": "survey", "inventory": "inventory"}


class QuestionPlan(SectionPlan):
    """The needs of a question, and its kind: how widely to read the library; unknown kinds are ignored."""

    kind: str = Field("", description="The kind of question.", json_schema_extra={"enum": [*_KINDS]})


@dataclass(frozen=True)
class ChatNeedsPlanner(ChatRole):
    """Implements `NeedsPlanner`; `fallback` is used if two attempts give no valid plan."""

    fallback: NeedsPlanner

    async def needs(self, brief: Brief, papers: Sequence[str]) -> NeedsPlan:
        """Plan two to seven needs, by the fallback if the model gives no valid plan."""
        instructions = self.prompts["needs_system"].render(most=MOST_NEEDS)
        preamble = self.preamble(brief)
        system, task = SystemMessage(instructions), preamble + self._task(brief, papers, instructions)
        titles = [line for line in papers if not _COUNTED.fullmatch(line)]  # without the library's size
        plan = await self.ask(
            [system, HumanMessage(task)],
            QuestionPlan if isinstance(brief, AnswerBrief) else SectionPlan,
            # The same question, typed differently or asked after unrelated papers were added, gets the cached plan.
            cache_messages=[system, HumanMessage(plain_wording(preamble + self._task(brief, titles, instructions)))],
        )
        if plan is not None and (planned := number_needs(plan.needs)):
            return NeedsPlan(planned, _KINDS.get(plan.kind.lower()) if isinstance(plan, QuestionPlan) else None)
        self.note("The planner gave no valid plan of needs in two attempts; rules were used instead.")
        return await self.fallback(brief, papers)

    def _task(self, brief: Brief, papers: Sequence[str], system: str) -> str:
        room = self.room
        near = present_lines(first_lines(papers, room.left(WHOLE, system, share=0.25)), "papers")
        if isinstance(brief, AnswerBrief):
            prompt, question = self.prompts["needs_question_task"], fence(brief.sought, "question")
            bare = prompt.render(turns="", question=question, papers=near)
            turns = present_turns(brief.turns, room.left(WHOLE, system, bare))
            return prompt.render(turns=turns, question=question, papers=near)
        prompt, wants = self.prompts["needs_section_task"], self.prompts[f"planner_needs_{brief.kind}"].render()
        queries = present_lines(first_lines(brief.queries, room.left(WHOLE, system, share=0.2)), "queries")
        bare = prompt.render(kind=brief.kind, wants=wants, experiment="", queries=queries, papers=near)
        total = room.left(WHOLE, system, bare)
        experiment = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        return prompt.render(kind=brief.kind, wants=wants, experiment=experiment, queries=queries, papers=near)


def number_needs(planned: Sequence[PlannedNeed]) -> tuple[Need, ...]:
    """Number the first seven needs; a need without a usable query uses its own text as query."""
    needs: list[Need] = []
    for number, item in enumerate(planned[:MOST_NEEDS], 1):
        text = one_line(item.need)[:_LONGEST]
        queries = [one_line(query)[:_LONGEST] for query in item.queries if any(map(str.isalpha, query))]
        needs.append(Need(f"N{number}", text, tuple(dict.fromkeys(queries))[:MOST_QUERIES] or (text,), item.asks))
    return tuple(needs)


_TURNS = 4  # a follow-up question refers to recent turns
_ANSWER_TOKENS = 250
_LONGEST_QUESTION = 1000  # characters


class Rewritten(StructuredAnswer):
    """The model's answer."""

    question: str = Field(min_length=3, max_length=_LONGEST_QUESTION, description="The question as it stands alone.")


class ChatRewriter(ChatRole):
    """Implements `QuestionRewriter`; falls back to rules when two attempts give nothing usable."""

    async def rewrite(self, question: str, earlier: Sequence[Turn]) -> str:
        """See `QuestionRewriter`; the first question of a conversation needs no model."""
        if not earlier:
            return question
        # A follow-up question may refer to the last questions and the latest answer.
        lines = [f"Question: {one_line(turn['question'])}" for turn in earlier[-_TURNS:]]
        turns = [*lines, f"Answer to the last:\n{shorten(earlier[-1]['answer'], _ANSWER_TOKENS)}"]
        task = self.prompts["rewriter_task"].render(
            turns=fence("\n".join(turns), "turns"), question=fence(question, "question")
        )
        messages = [SystemMessage(self.prompts["rewriter_system"].render()), HumanMessage(task)]
        answer = await self.ask(messages, Rewritten)
        return one_line(answer.question) if answer is not None else condense_question(question, earlier)

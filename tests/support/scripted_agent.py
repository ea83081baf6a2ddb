"""A planner that follows a script; every other request is answered by the protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.openai_server import Json
from tests.support.protocol_answers import completion, envelope, planned, readings

Call = tuple[str, Mapping[str, Any]]

PLANS = ("SectionPlan", "QuestionPlan")  # the schemas of plans of needs


class ScriptedAgent:
    """A behaviour for `FakeOpenAI`: turn n of the planner makes the n-th list of calls, and then no more.

    With `planned`, it plans these needs and finds something in the first sentences of all it reads; otherwise the
    protocol answers these requests too, with random words and scores. Counts the tokens that it reported, and
    separates the requests for needs, readings, plans and text.
    """

    def __init__(self, *turns: Sequence[Call], endless: bool = False, planned: Sequence[str] = ()) -> None:
        self._turns = turns
        self._planned = planned
        self._endless = endless
        self.planning: list[Json] = []
        self.needs: list[Json] = []
        self.reading: list[Json] = []
        self.writing: list[Json] = []
        self.input_tokens = self.output_tokens = 0

    def __call__(self, body: Json) -> Json:
        if body.get("tools"):
            self.planning.append(body)
            answer = self._turn(body)
        else:
            self._others(body).append(body)
            answer = self._planned_answer(body) or completion(body, tool_turns=0)
            if form_of(body) == "QuestionPlan":  # the agent is asked in a survey
                plan = json.loads(answer["choices"][0]["message"]["content"])
                answer["choices"][0]["message"]["content"] = json.dumps(plan | {"kind": "survey"})
        self.input_tokens += answer["usage"]["prompt_tokens"]
        self.output_tokens += answer["usage"]["completion_tokens"]
        return answer

    def _others(self, body: Json) -> list[Json]:
        form = form_of(body)
        return self.needs if form in PLANS else self.reading if form else self.writing

    def _planned_answer(self, body: Json) -> Json | None:
        return plans_and_reads(body, self._planned) if self._planned else None

    def answers(self) -> list[str]:
        """The answers of the tools, as in the planner's last request."""
        return [message["content"] for message in self.planning[-1]["messages"] if message["role"] == "tool"]

    def _turn(self, body: Json) -> Json:
        number = sum(message["role"] == "assistant" for message in body["messages"])
        if self._endless:
            calls = [
                (name, {**arguments, "query": f"{arguments['query']} {'again ' * number}{number}"})
                for name, arguments in self._turns[0]
            ]
        else:
            calls = list(self._turns[number]) if number < len(self._turns) else []
        made = [
            {
                "id": f"call_{number}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for place, (name, arguments) in enumerate(calls)
        ]
        return envelope(body, content=None if made else "Enough.", tool_calls=made)


def plans_and_reads(body: Json, needs: Sequence[str]) -> Json | None:
    """The answer of a model that plans these needs and finds something in all it reads; None for other requests."""
    form = form_of(body)
    if form in PLANS:
        return envelope(body, content=json.dumps(planned(needs)))
    if form == "PassageReading":
        return envelope(body, content=json.dumps(readings("It says so.", 0.9, 1)))
    return None


def form_of(body: Json) -> str | None:
    """The name of the requested schema."""
    return (body.get("response_format") or {}).get("json_schema", {}).get("name")

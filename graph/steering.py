"""Waits for people inside of nodes: `interrupt()` until an answer is valid, also before a budget is passed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from langgraph.types import interrupt

from ..drafts.person_questions import (
    AnswerError,
    PersonAnswer,
    SteeringChange,
    SteeringRecord,
    budget_question,
    expand_asks,
    read_answer,
    read_limit,
)
from ..errors import PausedError
from ..models.journal.budget import BudgetReachedError
from ..settings.config import Ask

if TYPE_CHECKING:
    from .session import Session

Resolved = tuple[dict[str, Any], list[SteeringChange]]  # the update of the state, and what changes


def asks_of(state: Mapping[str, Any], session: Session) -> list[Ask]:
    """What a run asks a person: as its input says, otherwise its settings."""
    return expand_asks(state.get("interrupts") or session.settings.interrupts)


async def ask_person(
    question: dict[str, Any], resolve: Callable[[PersonAnswer], Awaitable[Resolved]]
) -> tuple[dict[str, Any], SteeringRecord]:
    """Wait for a valid answer; the update that it makes, and its record. An invalid one is asked again, saying why."""
    detail, shown = question["citeloom"], question
    while True:
        given = interrupt(shown)
        try:
            answer = read_answer(detail, given)
            update, changes = await resolve(answer)
        except AnswerError as error:
            described = f"{error.message}\n\n{question['description']}"
            requests = [{**question["action_requests"][0], "description": described}]
            shown = {**question, "description": described, "action_requests": requests}
            continue
        by, at = answer.by, answer.at
        return update, {"ask": detail["ask"], "section": detail["section"], "by": by, "at": at, "changes": changes}


async def ask_budget(error: BudgetReachedError) -> tuple[dict[str, float], SteeringRecord]:
    """The limit that a person raises, and the record of it; raises `PausedError` if they do not."""
    question = budget_question(error.flag, error.message, error.enough)

    async def resolve(answer: PersonAnswer) -> Resolved:
        limit = read_limit(question["citeloom"], answer)
        if answer.type == "ignore":
            raise PausedError(error.message, help=error.help)
        return dict(limit), [
            {"what": name, "before": error.message, "after": f"{new:.10g}"} for name, new in limit.items()
        ]

    return await ask_person(question, resolve)

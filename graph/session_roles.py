"""Builds the roles of a run, each on a chat model or extractive, as the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models.chat_caller import ChatCaller
from ..models.journal.budget import Budget
from ..models.journal.records import RunScope
from ..models.journaled_chat import caller_for, chat_caller
from ..roles.chat.chat_roles import chat_roles
from ..roles.extractive.extractive_roles import extractive_roles
from ..roles.protocols import AnswerRoles, Roles
from ..settings.config import RoleName
from ..tools.tool_schemas import TOOL_SPECS
from .session import ROLE_NAMES, Session


def make_roles(session: Session, scope: RunScope, sizes: Mapping[RoleName, int | None]) -> Roles:
    """The roles of a run: chat models where the settings name one, else extractive; `sizes` are in tokens."""
    bare = extractive_roles(session.library.embedding, summary_words=session.settings.summary_words)
    missing = session.extractive
    if len(missing) == len(ROLE_NAMES):
        return bare
    budget = session.budget(scope.run_id)
    callers = {name: _caller(session, name, scope, budget) for name in ROLE_NAMES if name not in missing}
    some = next(iter(callers.values()))
    chat = chat_roles(
        {name: callers.get(name, some) for name in ROLE_NAMES},
        session.prompts,
        bare.needs,
        summary_words=session.settings.summary_words,
        tool_specs=TOOL_SPECS,
        max_output_tokens=session.settings.max_output_tokens,
        sizes=sizes,
    )

    def pick(name: RoleName, attribute: str) -> Any:
        return getattr(bare if name in missing else chat, attribute)

    return Roles(
        needs=pick("agent", "needs"),
        reader=pick("reader", "reader"),
        planner=pick("agent", "planner"),
        writer=pick("writer", "writer"),
        judge=pick("judge", "judge"),
        summarizer=pick("summarizer", "summarizer"),
        answering=AnswerRoles(
            reader=(bare if "reader" in missing else chat).answering.reader,
            planner=(bare if "agent" in missing else chat).answering.planner,
            writer=(bare if "writer" in missing else chat).answering.writer,
            rewriter=(bare if "agent" in missing else chat).answering.rewriter,
        ),
        notice=session.notice,
        comparer=pick("judge", "comparer"),
    )


def _caller(session: Session, role: RoleName, scope: RunScope, budget: Budget) -> ChatCaller:
    context = session.contexts.of(scope.run_id, role)
    if session.chat_model is not None:
        given = session.chat_model
        return caller_for(given, session.settings, journal=session.journal, scope=scope, budget=budget, context=context)
    return chat_caller(session.settings, role, journal=session.journal, scope=scope, budget=budget, context=context)

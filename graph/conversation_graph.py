"""The conversation graph: each turn rewrites its question, runs the research graph on it, and stores the result.

    START -> rewrite -> answer (the research graph) -> remember -> END

One thread is one conversation: its state persists from turn to turn, and a killed turn resumes at its step inside the
research graph. A caller that gives `messages`, as agents and chat programs do, asks the last message and gets the
answer as a message; the messages before it start the conversation of a new thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from ..errors import InputError
from ..tools.scope import plain_question
from .conversation_state import (
    ConversationInput,
    ConversationOutput,
    ConversationState,
    PastTurn,
    answer_with_sources,
    chat_question,
    last_answered,
    recent_evidence,
    truncate_history,
)
from .graphs import ResearchGraph, build_research_graph, wire
from .input_check import CheckedStateGraph, GraphInputError, require_given
from .nodes.route_question import condense_follow_up
from .session import Session
from .shared_sessions import SectionContext, SessionProvider, shared_session
from .state import Update
from .state_conversion import evidence_key

ConversationGraph = CompiledStateGraph[ConversationState, Any, ConversationInput, ConversationOutput]

_SHORTER = re.compile(r"\b(?:short\w*|brief\w*|concise\w*|cut|trim|less)\b", re.IGNORECASE)
_LONGER = re.compile(r"\b(?:long\w*|more|expand|extend|elaborate|detail\w*|add)\b", re.IGNORECASE)


class NothingToImproveError(InputError):
    """Feedback was given before there was an answer to improve."""

    default_help = "Ask a question first."


def build_conversation_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[ConversationState, Any, ConversationInput, ConversationOutput]:
    """The uncompiled graph; `session_of` provides each node with library, roles and journal."""
    research = build_research_graph(session_of).compile(name="research")

    async def answer(state: ConversationState, runtime: Runtime[Any], session: Session) -> Update:
        """Run the research graph on the question, with the conversation's memory."""
        return await _answered(state, runtime, session, research)

    graph = CheckedStateGraph(
        ConversationState,
        context_schema=SectionContext,
        input_schema=ConversationInput,
        output_schema=ConversationOutput,
    )
    edges = {START: "rewrite", "rewrite": "answer", "answer": "remember", "remember": END}
    return wire(graph, session_of, (rewrite, answer, remember), edges)


async def rewrite(state: ConversationState, runtime: Runtime[Any], session: Session) -> Update:
    """Rewrite the question so that it stands alone; feedback applies to the previous question.

    Raises `QuestionError` for a question that cannot be asked, `NothingToImproveError` when there is no answer yet, and
    `EmptyLibraryError`.
    """
    asked = plain_question(_asked(state))
    await session.require_papers()
    past = _past(state)
    kind = state.get("turn_kind", "follow-up")
    if kind == "improve":
        improved = last_answered(past)
        if improved is None:
            raise NothingToImproveError("There is no answer yet.")
        return {"asked": asked, "question": improved["question"], "result": {}, "queries": []}
    question = asked
    if past and kind == "follow-up":
        question = await condense_follow_up(asked, past, runtime, session)
    return {"asked": asked, "question": question, "result": {}, "queries": []}


async def remember(state: ConversationState, runtime: Runtime[Any], session: Session) -> Update:
    """Append the turn: its answer and what it cites, the ids of its evidence, and the numbers of its papers."""
    result = state["result"]
    by_id = {record["id"]: record for record in result["evidence"]}
    cited = dict.fromkeys(citation["evidence_id"] for citation in result["citations"])
    turn: PastTurn = {
        "asked": state["asked"],
        "question": state["question"],
        "answer": result["with_markers"],
        "cited": [by_id[identifier] for identifier in cited if identifier in by_id],
    }
    ids = {evidence_key(record): record["id"] for record in result["evidence"]}
    before = [] if state.get("past") else _past(state)
    return {
        "past": [*before, turn],
        "evidence_ids": {**state.get("evidence_ids", {}), **ids},
        "numbering": result["numbering"],
        "messages": _with_answer(state),
    }


def _asked(state: ConversationState) -> str:
    """The user's words: the last message, or the field `asked`; raises `GraphInputError` when neither is given."""
    if (chat := chat_question(state.get("messages", []))) is not None:
        return chat.asked
    if state.get("messages") and "asked" not in state:
        raise GraphInputError("input: field messages: the last message is not the user's.", help="Add the question.")
    require_given(state, "asked", ConversationInput)
    return state["asked"]


def _past(state: ConversationState) -> Sequence[PastTurn]:
    """The turns of the thread; for a new thread, the turns in the messages."""
    if past := state.get("past"):
        return past
    chat = chat_question(state.get("messages", []))
    return chat.past if chat is not None else ()


def _with_answer(state: ConversationState) -> list[AnyMessage]:
    """The answer as a message, for a caller that gives messages; also the question if it did not come as one."""
    messages = state.get("messages", [])
    if not messages:
        return []
    asked = [] if isinstance(messages[-1], HumanMessage) else [HumanMessage(state["asked"])]
    return [*asked, AIMessage(answer_with_sources(state["result"]), name="citeloom")]


async def _answered(
    state: ConversationState, runtime: Runtime[Any], session: Session, research: ResearchGraph
) -> Update:
    past = _past(state)
    given: dict[str, Any] = {
        "question": state["question"],
        "turns": truncate_history(past, session.settings.conversation_tokens),
        "recalled": recent_evidence(past),
        "evidence_ids": state.get("evidence_ids", {}),
        "numbering": state.get("numbering", []),
    }
    improved = last_answered(past)
    if state.get("turn_kind") == "improve" and improved is not None:
        words = _words(state["asked"], session.settings.answer_words or max(120, len(improved["answer"].split())))
        given |= {"feedback": state["asked"], "words": words, "recalled": improved["cited"]}
    answered = await research.ainvoke(given, context=runtime.context)  # type: ignore[call-overload]
    return {"result": answered["result"], "queries": answered["queries"]}


def _words(feedback: str, usual: int) -> int:
    """The answer length that the feedback asks for."""
    if _SHORTER.search(feedback):
        return max(60, usual // 2)
    return usual * 3 // 2 if _LONGER.search(feedback) else usual


@lru_cache(maxsize=1)
def conversation_graph() -> ConversationGraph:
    """The graph compiled without a checkpointer."""
    return build_conversation_graph().compile(name="conversation")

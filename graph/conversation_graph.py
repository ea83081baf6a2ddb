"""The conversation graph: each turn rewrites its question, runs the research graph on it, and stores the result.

One thread is one conversation; a killed turn resumes at its step inside the research graph. A caller that gives
`messages`, as agents and chat programs do, asks the last message and gets the answer as a message; the messages before
it start the conversation of a new thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START
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
from .graphs import Builder, Graph, GraphShape, build_research_graph
from .input_check import GraphInputError, require_given
from .nodes.route_question import condense_follow_up
from .session import Session
from .shared_sessions import SessionProvider, shared_session
from .state import Update
from .state_conversion import evidence_key

_SHORTER = re.compile(r"\b(?:short\w*|brief\w*|concise\w*|cut|trim|less)\b", re.IGNORECASE)
_LONGER = re.compile(r"\b(?:long\w*|more|expand|extend|elaborate|detail\w*|add)\b", re.IGNORECASE)


class NothingToImproveError(InputError):
    """Feedback was given before there was an answer to improve."""

    default_help = "Ask a question first."


def build_conversation_graph(session_of: SessionProvider = shared_session) -> Builder:
    """The uncompiled graph; `session_of` provides each node with library, roles and journal."""
    research = build_research_graph(session_of).compile(name="research")

    async def answer(state: ConversationState, runtime: Runtime[Any], session: Session) -> Update:
        """Run the research graph on the question, with the conversation's memory."""
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
            feedback = state["asked"]
            words = session.settings.answer_words or max(120, len(improved["answer"].split()))
            if _SHORTER.search(feedback):
                words = max(60, words // 2)
            elif _LONGER.search(feedback):
                words = words * 3 // 2
            given |= {"feedback": feedback, "words": words, "recalled": improved["cited"]}
        answered = await research.ainvoke(given, context=runtime.context)
        return {"result": answered["result"], "queries": answered["queries"]}

    types = (ConversationState, ConversationInput, ConversationOutput)
    edges = {START: "rewrite", "rewrite": "answer", "answer": "remember", "remember": END}
    return GraphShape("conversation", types, (rewrite, answer, remember), edges).build(session_of)


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
    # For a caller that gives messages, the answer is one, and so is a question that did not come as one.
    messages: list[AnyMessage] = []
    if given := state.get("messages", []):
        messages = [] if isinstance(given[-1], HumanMessage) else [HumanMessage(state["asked"])]
        messages.append(AIMessage(answer_with_sources(result), name="citeloom"))
    return {
        "past": [*before, turn],
        "evidence_ids": {**state.get("evidence_ids", {}), **ids},
        "numbering": result["numbering"],
        "messages": messages,
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


@lru_cache(maxsize=1)
def conversation_graph() -> Graph:
    """The graph compiled without a checkpointer."""
    return build_conversation_graph().compile(name="conversation")

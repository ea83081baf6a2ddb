"""The conversation graph: each turn rewrites its question, runs the research graph on it, and stores the result.

One thread is one conversation; a killed turn resumes at its step inside the research graph. If `messages` are given,
the last is the question, and those before it start a new thread. All state but the current turn is append-only, so that
prompts keep their prefix from turn to turn and a local server can reuse its cache.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from pydantic import Field
from typing_extensions import TypedDict

from ..citations.html_escaping import inert
from ..citations.markers import MARKER, normalise_markers
from ..citations.references import numbered_list
from ..drafts.written_draft import QueryRecord
from ..errors import InputError
from ..roles.chat.prompt_format import estimate_tokens, present_turn
from ..roles.extractive.follow_ups import condense_question
from ..roles.protocols import Turn
from ..tools.scope import plain_question
from .graphs import GraphShape, research_graph
from .input_check import GraphInputError, require_given
from .nodes.route_question import condense_follow_up
from .session import Session
from .state import Interrupts, Update, evidence_key

RECALLED: Final = 15  # pieces of evidence that earlier answers cited
# Share of an exceeded budget to keep when dropping turns, so that the prompt's prefix stays the same for some turns.
_LEFT_BY_DROPPING: Final = 0.6

TurnKind = Literal["question", "follow-up", "improve"]


class PastTurn(Turn):
    """A finished turn: the question as asked and as rewritten, the answer with markers, and the evidence it cites."""

    cited: list[dict[str, Any]]


class ConversationInput(TypedDict):
    """The input of the conversation graph: the next question, or the messages of a chat that end with the question.

    Earlier messages count as turns while the thread has none yet.
    """

    messages: NotRequired[
        Annotated[list[AnyMessage], add_messages, Field(description="A chat; its last message is the question.")]
    ]
    asked: NotRequired[Annotated[str, Field(description="The next question, or feedback on the last answer.")]]
    turn_kind: NotRequired[
        Annotated[TurnKind, Field(description="A standalone question, one that may depend on the last, or feedback.")]
    ]
    interrupts: NotRequired[Interrupts]
    papers: NotRequired[Annotated[list[str], Field(description="Keys of the papers to search within for this turn.")]]


class ConversationOutput(TypedDict):
    """The output of the conversation graph; `result` is the answer's JSON without files and usage.

    If messages were given, the answer is added to them.
    """

    question: str
    result: dict[str, Any]
    messages: NotRequired[Annotated[list[AnyMessage], add_messages]]


class ConversationState(TypedDict, total=False):
    """The state of a conversation, and the question and result of its current turn.

    `messages` are those that a caller gave, with the answers added; empty for a caller that gives questions.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    past: Annotated[list[PastTurn], operator.add]
    evidence_ids: dict[str, str]
    numbering: list[str]
    asked: str
    turn_kind: TurnKind
    interrupts: Interrupts
    papers: list[str]
    question: str
    result: dict[str, Any]
    queries: list[QueryRecord]


def last_answered(past: Sequence[PastTurn]) -> PastTurn | None:
    """Return the latest turn with citations, which every answer has; feedback applies to it."""
    return next((turn for turn in reversed(past) if turn["cited"]), None)


def truncate_history(past: Sequence[PastTurn], tokens: int) -> list[Turn]:
    """Return the latest turns within `tokens`; drops more than necessary, so that next prompts keep their prefix."""
    costs = [estimate_tokens(present_turn(turn)) for turn in past]
    first = spent = 0
    for place, cost in enumerate(costs):
        spent += cost
        if spent <= tokens:
            continue
        while first < place and spent > tokens * _LEFT_BY_DROPPING:
            spent -= costs[first]
            first += 1
    kept = past[first:] if spent <= tokens else []
    return [{"question": turn["question"], "answer": turn["answer"]} for turn in kept]


SOURCES_HEADING: Final = "**Sources**"

_MOST_TURNS: Final = 20
_LONGEST_ANSWER: Final = 8000  # characters
_LONGEST_QUESTION: Final = 2000
_CITATION: Final = re.compile(rf" ?(?:{MARKER.pattern}|\[\d{{1,4}}(?:[,;] ?(?:pp?\. )?\d{{1,4}})*\])")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """The last message of the user, and the answered questions before it."""

    asked: str
    past: tuple[PastTurn, ...]


def chat_question(messages: Sequence[AnyMessage]) -> ChatQuestion | None:
    """Return the question of a chat; None if the last message is not the user's.

    Skips the chat's instructions, tool messages and unanswered questions. Only the latest turns and the beginnings of
    their answers are kept, since a prompt has no room for more.
    """
    if not messages or not isinstance(messages[-1], HumanMessage):
        return None
    pairs: list[tuple[str, str]] = []
    asked = ""
    for message in messages[:-1]:
        text = str(message.text)
        if isinstance(message, HumanMessage):
            asked = text
        elif isinstance(message, AIMessage) and asked.strip() and text.strip():
            pairs.append((asked, text))
            asked = ""
    past: list[PastTurn] = []
    for earlier, text in pairs[-_MOST_TURNS:]:
        question = " ".join(earlier[:_LONGEST_QUESTION].split())
        alone = condense_question(question, past)  # by rules, without a model call
        # Citations and sources are removed, since their numbers mean nothing in a new answer.
        body = (text.rpartition(f"\n{SOURCES_HEADING}")[0] or text)[:_LONGEST_ANSWER]
        answer = _CITATION.sub("", normalise_markers(body)).strip()
        past.append({"asked": question, "question": alone, "answer": answer, "cited": []})
    return ChatQuestion(str(messages[-1].text), tuple(past))


def answer_with_sources(record: Mapping[str, Any]) -> str:
    """Format an answer's text and its numbered sources, for programs that show no other part of the record."""
    text = str(record["text"]).strip()
    if references := record["references"]:
        text = f"{text}\n\n{SOURCES_HEADING}\n\n{numbered_list(references)}"
    return inert(text)


_SHORTER = re.compile(r"\b(?:short\w*|brief\w*|concise\w*|cut|trim|less)\b", re.IGNORECASE)
_LONGER = re.compile(r"\b(?:long\w*|more|expand|extend|elaborate|detail\w*|add)\b", re.IGNORECASE)


class NothingToImproveError(InputError):
    """Feedback was given before there was an answer to improve."""

    default_help = "Ask a question first."


async def answer(state: ConversationState, runtime: Runtime[Any], session: Session) -> Update:
    """Run the research graph on the question, with the conversation's memory."""
    past = _past(state)
    by_id = {record["id"]: record for turn in past for record in turn["cited"]}  # the latest version of each
    latest_first = dict.fromkeys(record["id"] for turn in reversed(past) for record in turn["cited"])
    papers = state.get("papers") or []
    recalled = [by_id[name] for name in latest_first if not papers or by_id[name]["key"] in papers]
    given: dict[str, Any] = {
        "papers": papers,
        "question": state["question"],
        "turns": truncate_history(past, session.settings.conversation_tokens),
        "recalled": recalled[:RECALLED],
        "evidence_ids": state.get("evidence_ids", {}),
        "numbering": state.get("numbering", []),
        "interrupts": state.get("interrupts", []),
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
    answered = await research_graph().ainvoke(given, context=runtime.context)
    return {"result": answered["result"], "queries": answered["queries"]}


async def rewrite(state: ConversationState, runtime: Runtime[Any], session: Session) -> Update:
    """Rewrite the question so that it stands alone; feedback applies to the previous question.

    Raises `QuestionError` for a question that cannot be asked, `NothingToImproveError` when there is no answer yet, and
    `EmptyLibraryError`.
    """
    chat = chat_question(state.get("messages", []))
    if chat is None and state.get("messages") and "asked" not in state:
        raise GraphInputError("input: field messages: the last message is not the user's.", help="Add the question.")
    if chat is None:
        require_given(state, "asked", ConversationInput)
    asked = plain_question(state["asked"] if chat is None else chat.asked)
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
    """Append the turn to the state: its answer, cited evidence and ids, and the numbers of its papers."""
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
    # For a caller that gives messages, add the answer as a message, and the question unless it was one.
    messages: list[AnyMessage] = []
    if given := state.get("messages", []):
        messages = [] if isinstance(given[-1], HumanMessage) else [HumanMessage(state["asked"])]
        messages.append(AIMessage(answer_with_sources(result), name="citeloom"))
    return {
        "past": [*before, turn],
        "evidence_ids": {**state.get("evidence_ids", {}), **ids},
        "numbering": result["numbering"],
        "messages": messages,
        "papers": [],
    }


def _past(state: ConversationState) -> Sequence[PastTurn]:
    """Return the turns of the thread; for a new thread, those in the messages."""
    if past := state.get("past"):
        return past
    chat = chat_question(state.get("messages", []))
    return chat.past if chat is not None else ()


_CONVERSATION: Final = GraphShape(
    "conversation",
    (ConversationState, ConversationInput, ConversationOutput),
    {START: "rewrite", "rewrite": "answer", "answer": "remember", "remember": END},
    {"rewrite": rewrite, "answer": answer, "remember": remember},
)
build_conversation_graph, conversation_graph = _CONVERSATION.build, _CONVERSATION.compile

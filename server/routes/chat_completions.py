"""The library as a model of OpenAI's API, for chat programs: `/v1/models` and `/v1/chat/completions`.

Request fields without effect here are ignored. An answer is sent whole, or streamed in chunks that end with `[DONE]`.
Only checked text is streamed: chat programs cannot take words back, and checks and repairs change a draft. Before
that, the run's steps are sent as `reasoning_content`, which chat programs show as thinking.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field
from sse_starlette import ServerSentEvent

from ...api import run_options, running
from ...api.conversation import answer_with_sources, chat_question, short_answer, truncate_history
from ..job import Job
from ..job_requests import EventResponse
from ..problems import ProblemResponse, ServerError, openai_error
from ..server_state import ServerState, StateOf

router = APIRouter(prefix="/v1", include_in_schema=False)  # documented by OpenAI
MODEL: Final = "citeloom"
DONE: Final = "[DONE]"
_NO_USAGE: Final = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ContentPart(_Sent):
    """A part of a message; only text can be read."""

    type: str
    text: str | None = None


class ChatMessage(_Sent):
    """One message of a chat."""

    role: Role
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or () if part.text)

    @property
    def others(self) -> list[str]:
        return [] if isinstance(self.content, str) else [part.type for part in self.content or () if part.text is None]


class StreamOptions(_Sent):
    """Options of a stream."""

    include_usage: bool | None = None


class TextFormat(_Sent):
    """The format of the answer: only text."""

    type: Literal["text"]


class ChatRequest(_Sent):
    """A request for an answer: the last message is the question, the earlier ones are the conversation."""

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    response_format: TextFormat | None = None
    tool_choice: Literal["none", "auto"] | None = None
    logprobs: Literal[False] | None = None

    def conversation(self) -> list[AnyMessage]:
        """The messages up to the question; raises `ServerError` when the last one is not a question in text."""
        last = self.messages[-1]
        if last.role != "user":
            raise ServerError(422, f"messages: the last one has the role {last.role}; the question must be the user's.")
        if others := last.others:
            raise ServerError(422, f"messages: a part of the type {others[0]} cannot be read; send text.")
        kinds: dict[str, type[HumanMessage | AIMessage | SystemMessage]] = {
            "user": HumanMessage,
            "assistant": AIMessage,
            "system": SystemMessage,
            "developer": SystemMessage,
        }
        return [kinds[message.role](message.text) for message in self.messages if message.role in kinds]


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The text for a chat program, its sources, and the request's token usage."""

    text: str
    library: Mapping[str, Any] | None = None
    usage: Mapping[str, int] = field(default_factory=lambda: _NO_USAGE)

    @classmethod
    def of_record(cls, record: Mapping[str, Any], before: Mapping[str, Any]) -> ChatAnswer:
        given, written = (record["usage"][name] - before[name] for name in ("input_tokens", "output_tokens"))
        usage = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
        return cls(answer_with_sources(record), short_answer(record), usage)

    def completion(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "refusal": None}
        if self.library is not None:
            message[MODEL] = self.library
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**_head("chat.completion"), "choices": [choice], "usage": dict(self.usage)}


class ModelNotFoundError(ServerError):
    """A request names a model that is not the library."""

    def __init__(self, name: str) -> None:
        super().__init__(404, f"model: there is no {name[:80]!r}.", help=f"The library answers as {MODEL!r}.")


@router.get("/models")
async def list_models(state: StateOf) -> dict[str, Any]:
    return {"object": "list", "data": [await _model(state)]}


@router.get("/models/{name}")
async def show_model(name: str, state: StateOf) -> dict[str, Any]:
    _require_model(name)
    return await _model(state)


@router.post("/chat/completions")
async def complete_chat(body: ChatRequest, state: StateOf) -> Response:
    """Answer the last message from the library, or join or resume the run that already does."""
    _require_model(body.model)
    messages = body.conversation()
    if body.stream:
        state.streams.require_free()
    text = await asyncio.to_thread(task_answer, messages)
    source: ChatAnswer | Job = ChatAnswer(text or "")
    before: Mapping[str, Any] = {}
    if text is None:
        chat = await asyncio.to_thread(chat_question, messages)
        assert chat is not None
        turns = tuple(truncate_history(chat.past, state.session.settings.conversation_tokens))
        request = running.ResearchRequest(chat.asked, turns=turns, follow_up=bool(turns))
        source = await state.runs.start_run(request, run_options.RunLimits())
        before = await state.session.usage(source.id)
    if body.stream:
        with_usage = bool(body.stream_options and body.stream_options.include_usage)
        lines = _chunks(source, before, with_usage=with_usage)

        async def events() -> AsyncGenerator[ServerSentEvent, None]:
            with state.streams.open():
                async for line in lines:
                    yield ServerSentEvent(line, sep="\n")

        return EventResponse(events())
    if isinstance(source, Job):
        await source.ended()
        if source.result is None:
            return ProblemResponse(source.why_no_result())
        source = ChatAnswer.of_record(source.result, before)
    return JSONResponse(source.completion())


def _require_model(name: str) -> None:
    if name != MODEL:
        raise ModelNotFoundError(name)


async def _model(state: ServerState) -> dict[str, Any]:
    created = int(await asyncio.to_thread(state.session.home.created_at))
    return {"id": MODEL, "object": "model", "created": created, "owned_by": "you"}


async def _chunks(
    source: ChatAnswer | Job, before: Mapping[str, Any], *, with_usage: bool
) -> AsyncGenerator[str, None]:
    """Stream an answer by paragraph; for a run, stream its steps first, as they come."""
    head = _head("chat.completion.chunk")

    def line(rest: Mapping[str, Any]) -> str:
        return json.dumps({**head, **rest}, ensure_ascii=False)

    def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return line({"choices": [choice]})

    def whole(answer: ChatAnswer) -> list[str]:
        lines = [chunk({"content": part}) for part in answer.text.splitlines(keepends=True)]
        lines.append(chunk({} if answer.library is None else {MODEL: answer.library}, "stop"))
        if with_usage:
            lines.append(line({"choices": [], "usage": dict(answer.usage)}))
        return [*lines, DONE]

    yield chunk({"role": "assistant", "content": ""})
    if isinstance(source, ChatAnswer):
        for part in whole(source):
            yield part
        return
    async for event in source.log.read():
        data = json.loads(event.data)
        if event.name in ("stage", "notice"):
            yield chunk({"reasoning_content": f"{data['text']}\n"})
        elif event.name == "done":
            for part in whole(ChatAnswer.of_record(data["result"], before)):
                yield part
        elif event.name in ("error", "stopped"):
            yield json.dumps(openai_error(source.why_no_result()))
            yield DONE


def _head(kind: str) -> dict[str, Any]:
    identifier = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": identifier, "object": kind, "created": int(time.time()), "model": MODEL}


_HEAD: Final = 800  # characters to search for an instruction
_WORDS: Final = 8  # of a title
_ORDER = re.compile(  # bounded: 800 characters
    r"^[ \t#*>-]*(?:task\s*:\s*)?(?:please\s+|based on[^,\n]{0,60},\s*|you (?:are|will|should|must)\b[^.\n]{0,80}?\b)?"
    r"(?:generat|creat|writ|provid|suggest|summari[sz]|giv|analy[sz]|return|determin|mak|com)\w*\b",
    re.IGNORECASE | re.MULTILINE,
)
_CHAT = r"(?:(?:chat|conversation|dialog(?:ue)?)s?\b|(?:user's|first) (?:messages?|query)\b)"
_TITLE_OF_CHAT = re.compile(
    r"\btitle\b[^.\n]{0,80}?\b(?:for|of|summari[sz]ing|based on)\s+"
    rf"(?:(?:this|the|our|a|an|following|current|whole)\s+){{0,3}}{_CHAT}|{_CHAT} a (?:short )?(?:title|name)\b",
    re.IGNORECASE,
)
_TRANSCRIPT = re.compile(r"<(?:chat_history|conversation)>|^[^\w\n]*(?:user|human)\W*:", re.IGNORECASE | re.MULTILINE)
_TASK = re.compile(r"\s*#+\s*task\b.*<chat_history>", re.IGNORECASE | re.DOTALL)
_TRANSCRIPT_LINE = re.compile(r"^[^\w\n]*(?:user|human|question)[^\w:]*+:\s*+(\S.*)$", re.IGNORECASE | re.MULTILINE)
_JSON = re.compile(r"\{\s*\"(\w+)\"\s*:\s*(\[?)")


def task_answer(messages: Sequence[AnyMessage]) -> str | None:
    """Answer a request that is about the chat, not the library; None for any other."""
    asked = str(messages[-1].text)
    system = "\n".join(str(message.text) for message in messages if isinstance(message, SystemMessage))
    by_system = _is_task(system)
    if not by_system and not _is_task(asked):
        return None
    instruction = system if by_system else asked
    form = _JSON.search(instruction)
    question = _first_question(messages, by_system=by_system)[:_HEAD]
    question = question.encode(errors="replace").decode()  # without lone surrogates
    words = " ".join((running.find_subject(question).phrase or question).split()[:_WORDS]).strip(" .?!:;,\"'")
    title = f"{words[:1].upper()}{words[1:]}" or "Questions to the library"
    if form is None:
        return title
    return json.dumps({form[1]: [] if form[2] else title if "title" in form[1].lower() else ""}, ensure_ascii=False)


def _is_task(text: str) -> bool:
    """True for a request to title a chat, or for another task on its transcript."""
    if _TASK.match(text):
        return True
    head = text[:_HEAD]
    names = _TITLE_OF_CHAT.search(head) or (re.search(r"\btitle\b", head) and _TRANSCRIPT.search(text))
    return bool(names and _ORDER.search(head))


def _first_question(messages: Sequence[AnyMessage], *, by_system: bool) -> str:
    """The question that opened the chat: from the request's transcript, else the user's first message."""
    asked = str(messages[-1].text)
    history = asked.rpartition("<chat_history>")[2]
    if line := _TRANSCRIPT_LINE.search(history):
        return line[1]
    users = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
    if len(users) > 1 or by_system:
        return users[0]
    return asked.strip().rpartition("\n")[2]

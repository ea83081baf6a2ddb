"""Calls chat models for the roles, with journal, budget, limiter and dialect detection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config

from ..settings.config import RoleName, Settings
from ..settings.key_trust import endpoint_name
from .concurrency import thread_safe_cache
from .context_size import ContextSize, infer_context_size
from .http.dialect import Dialect, DialectMemory
from .http.endpoints import ModelIdentity, canonical_json, check_url
from .http.failures import BrokenAnswerError, CallFailedError, ServerRefusalError
from .http.limiter import limiter_for
from .journal.budget import Budget, BudgetLimits
from .journal.journal import Journal
from .journal.records import CallRecord, CallResult, Reservation, RunScope
from .journal.serialization import UnreadableAnswerError, count_usage, from_payload, printable, request_key, to_payload
from .journal.streaming import StreamSubscription, TextListener
from .paid_call import PaidRequest, get_or_request

if TYPE_CHECKING:
    from .http.client import Endpoint


# Raised when an answer that violates the protocol is parsed.
_PARSING = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
# Tokens reserved for an answer whose caller sets no limit.
_UNLIMITED_ANSWER: Final = 8_000
# Tokens that a server may add to a conversation: its template, its own system prompt.
_TEMPLATE: Final = 200
_BYTES: Final = 4  # per token, roughly
# The most that any known server counts for a large image; most count 300 to 3,000.
_IMAGE_TOKENS: Final = 40_000


class _RetryInOtherDialect(Exception):  # noqa: N818  # not a failure: the server needs another dialect
    """The server rejected the request's dialect, and there is another one to try."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer and its journal key."""

    message: AIMessage
    key: str


class ChatCaller:
    """Calls one chat model; answers are journaled before they are returned. Raises `ConfigurationError`."""

    def __init__(
        self,
        settings: Settings,
        model: RoleName | BaseChatModel,  # of the settings, or a custom model, which keeps its own temperature
        *,
        journal: Journal,
        scope: RunScope,
        budget: Budget | None = None,  # from which each request is reserved in advance
        context: ContextSize | None = None,  # learns from prompts that are too long; shared by callers of the model
    ) -> None:
        self._model: BaseChatModel | Endpoint
        if isinstance(model, BaseChatModel):
            self._model, self._identity = model, identify_model(model)
            self._temperature, self._dialect = None, DialectMemory()
        else:
            self._model, self._identity = chat_endpoint(settings, model), chat_identity(settings, model)
            self._temperature = settings.temperature
            self._dialect = _dialect(self._identity.endpoint, self._identity.model)
        self._journal = journal
        self._scope = scope
        self._limiter = limiter_for(settings, self._identity)
        self._budget = budget or Budget(BudgetLimits(), {}, journal)
        self._budget.require_price(self._identity.model)
        self._context = context or ContextSize()
        self._made_for = self._context.size
        names = {base.__name__ for base in type(self._model).__mro__}
        self._speaks_openai = not names.isdisjoint({"Endpoint", "BaseChatOpenAI"})

    async def call(
        self,
        messages: Sequence[BaseMessage],  # only role, content and tool calls enter the journal key
        *,
        tools: Sequence[Mapping[str, Any]] = (),  # OpenAI function specifications that the model may call
        schema: Mapping[str, Any] | None = None,  # JSON schema with a title; the answer is text for the caller to check
        max_tokens: int | None = None,  # limit of the answer, in tokens of the model
        cache_messages: Sequence[BaseMessage] | None = None,  # for the key, if other wordings are equivalent
        listener: TextListener | None = None,
    ) -> Answer:
        """The answer to `messages`.

        `listener` receives its text as it streams, before it is committed; a journaled answer arrives at once. It does
        not enter the key: streamed and whole answers replay each other.

        Raises `EndpointRefusedError`, `EndpointLostError`, `EndpointBusyError`, `BudgetReachedError` and
        `JournalPausedError`.
        """
        identity = self._identity
        keyed = messages if cache_messages is None else cache_messages
        key = request_key(identity, keyed, tools=tools, schema=schema, max_tokens=max_tokens)
        record = CallRecord(key, "chat", identity.endpoint, identity.model)
        asked = _Request(messages, tools, schema, max_tokens)
        if listener is None:
            return await self._get_or_ask(record, asked, None)
        with self._journal.streams.subscribe(key, listener) as reader:
            answer = await self._get_or_ask(record, asked, reader)
            reader.finish(str(answer.message.text))
        return answer

    async def _get_or_ask(self, record: CallRecord, asked: _Request, reader: StreamSubscription | None) -> Answer:
        """The answer from the journal, an identical call in flight, or a new call, which streams to `reader`."""
        made: list[AIMessage] = []

        async def ask(request: PaidRequest, _: Sequence[int]) -> list[CallResult]:
            most = Reservation(self._scope.run_id, record, 1, 0, asked.max_tokens or _UNLIMITED_ANSWER)
            admission = await request.admission(most, asked.to_text, _TEMPLATE + asked.images() * _IMAGE_TOKENS)
            try:
                while not made:
                    with suppress(_RetryInOtherDialect):
                        send = partial(self._send_as, self._dialect.current, asked, record.key, reader)
                        message, payload, tokens = await self._limiter.run(send, admission)
                        made.append(message)
            except CallFailedError as failed:
                if failed.failure.kind == "context":
                    size = asked.size() // _BYTES + (asked.max_tokens or 0)
                    self._context.learn_refusal(failed.failure.reason, size, self._made_for)
                raise
            return [request.result(payload, tokens)]

        (replay,) = await get_or_request([record], ask, self._journal, self._scope, self._budget, self._identity)
        if replay.paid:
            return Answer(made[-1], record.key)
        try:
            return Answer(from_payload(replay.payload), record.key)
        except UnreadableAnswerError:
            await self._journal.discard([record.key], self._scope)
            return await self._get_or_ask(record, asked, reader)

    async def reject(self, answer: Answer) -> None:
        """Mark an answer that failed validation, so that later runs never replay it."""
        await self._journal.reject(answer.key, self._scope)

    async def _send_as(
        self, tried: Dialect, asked: _Request, key: str, reader: StreamSubscription | None
    ) -> tuple[AIMessage, str, tuple[int, int]]:
        """Send the request in a dialect; returns the journaled answer, its payload, and its tokens.

        Raises `_RetryInOtherDialect` after setting another dialect that the server needs.
        """
        streamed = reader is not None and tried.streams
        body = tried.arguments(
            schema=asked.schema,
            max_tokens=asked.max_tokens,
            temperature=self._temperature,
            streamed=streamed and self._speaks_openai,
        )
        try:
            message = await self._send(asked, body, reader if streamed else None)
        except Exception as error:
            if reader is not None:
                reader.begin()  # now, since the next try may have to wait
            better = tried.after(error, with_schema=asked.schema is not None, streamed=streamed)
            if better is None:
                raise
            if self._dialect.current == tried:
                self._dialect.current = better
            raise _RetryInOtherDialect from None
        try:
            payload = to_payload(message, key)
            kept = from_payload(payload)
            tokens = count_usage(message, asked.messages)
        except (UnreadableAnswerError, *_PARSING) as error:
            raise BrokenAnswerError(f"it cannot be kept: {error}") from error
        if kept.usage_metadata is not None:  # the server may have truncated prompt or answer
            read, written = kept.usage_metadata["input_tokens"], kept.usage_metadata["output_tokens"]
            cut = kept.response_metadata.get("finish_reason") == "length"
            size = infer_context_size(read, written, sent=asked.size(), most=asked.max_tokens, cut=cut)
            if size is not None and (self._made_for is None or size < self._made_for):
                raise ServerRefusalError(400, f"it filled the context size of {size} tokens")
        return kept, payload, tokens

    async def _send(self, asked: _Request, body: dict[str, Any], reader: StreamSubscription | None) -> AIMessage:
        if reader is not None:
            reader.begin()
        model, tools = self._model, [dict(tool) for tool in asked.tools]
        if isinstance(model, BaseChatModel) and not self._speaks_openai:
            return await _request_answer(model.bind_tools(tools) if tools else model, asked.messages, body, reader)
        named: dict[str, Any] = {"tools": tools} if tools else {}
        try:
            if not isinstance(model, BaseChatModel):
                return await _trace_call(model, self._identity.model, asked.messages, {**named, **body}, reader)
            # By name, ChatOpenAI would send a token limit that many local servers do not know, and a response_format
            # would select another method, which discards an answer cut off at its limit.
            named["extra_body"] = {**(getattr(model, "extra_body", None) or {}), **body}
            return await _request_answer(model, asked.messages, named, reader)
        except _PARSING as error:
            raise BrokenAnswerError(f"it cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class _Request:
    """The content of one call."""

    messages: Sequence[BaseMessage]
    tools: Sequence[Mapping[str, Any]]
    schema: Mapping[str, Any] | None
    max_tokens: int | None

    def to_text(self) -> str:
        """The request without its images, as text at least as long as the prompt that a server builds from it."""
        dumped = [message.model_dump(include={"type", "content", "tool_calls", "name"}) for message in self.messages]
        for message in dumped:
            if isinstance(message["content"], list):
                message["content"] = [block for block in message["content"] if not _is_image(block)]
        return canonical_json([dumped, list(self.tools), self.schema])

    def images(self) -> int:
        contents = (message.content for message in self.messages if isinstance(message.content, list))
        return sum(map(_is_image, (block for content in contents for block in content)))

    def size(self) -> int:
        """Bytes of the request and the server's template: an upper bound on its tokens in any tokenizer."""
        return _TEMPLATE + len(self.to_text().encode("utf-8", "replace"))


def _is_image(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in ("image", "image_url")


async def _trace_call(
    endpoint: Endpoint,
    model: str,
    messages: Sequence[BaseMessage],
    parameters: Mapping[str, Any],
    reader: StreamSubscription | None,
) -> AIMessage:
    """Request an answer from an endpoint, reporting it to LangChain's callbacks as a call of a chat model."""
    sent = convert_to_openai_messages(list(messages))
    for message in sent:
        if message.get("tool_calls"):  # some servers refuse an empty text
            message["content"] = message["content"] or None
    given = ensure_config()
    manager = AsyncCallbackManager.configure(
        given["callbacks"], inheritable_tags=given["tags"], inheritable_metadata=given["metadata"]
    )
    (run,) = await manager.on_chat_model_start(
        {"name": model}, [list(messages)], invocation_params={"model": model, **parameters}, name=model
    )
    try:
        answer = await endpoint.chat({"model": model, "messages": sent, **parameters}, reader)
    except BaseException as error:
        await run.on_llm_error(error)
        raise
    await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=answer)]]))
    return answer


async def _request_answer(
    model: Runnable[LanguageModelInput, AIMessage],
    messages: Sequence[BaseMessage],
    named: Mapping[str, Any],
    reader: StreamSubscription | None,
) -> AIMessage:
    """Request an answer from a model, streamed if there is a reader; without streaming it is one piece."""
    if reader is None:
        return _require_answer(await model.ainvoke(list(messages), **named))
    pieces: list[AIMessage] = []
    async for piece in model.astream(list(messages), **named):
        pieces.append(_require_answer(piece))
        reader.say(printable(str(piece.text)))
        await asyncio.sleep(0)  # lets listeners run even if the whole answer arrived at once
    chunks = [piece for piece in pieces if isinstance(piece, AIMessageChunk)]
    if not pieces:
        raise BrokenAnswerError("an empty answer")
    return add_ai_message_chunks(*chunks) if len(chunks) == len(pieces) else pieces[-1]


def _require_answer(message: BaseMessage) -> AIMessage:
    if not isinstance(message, AIMessage):
        raise BrokenAnswerError(f"a {message.type} message instead of an answer")
    return message


def identify_model(model: BaseChatModel) -> ModelIdentity:
    """The identity of a custom model: its class, its name and its identifying parameters."""
    base = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    name = next((found for found in names if isinstance(found, str) and found), model._llm_type)
    identity = ModelIdentity(kind, name, dict(model._identifying_params))
    return replace(identity, endpoint=f"{kind} at {base}") if isinstance(base, str) else identity


def chat_endpoint(settings: Settings, role: RoleName) -> Endpoint:
    """The endpoint of a role's model; raises `ConfigurationError`."""
    from .http.client import Endpoint

    _, url, key = settings.role_endpoint(role)
    check_url(url, chat_identity(settings, role).url_setting)
    return Endpoint(url, key, settings.request_timeout)


def chat_identity(settings: Settings, role: RoleName) -> ModelIdentity:
    """The identity of a role's model in the journal and in error messages."""
    model, url, key = settings.role_endpoint(role)
    own_model, own_url, own_key = (
        getattr(settings, f"{role}_{part}") is not None for part in ("model", "base_url", "api_key")
    )
    prefix = f"CITELOOM_{role.upper()}"
    # The remedy for a missing key names the variable at the level where the address or the key was set.
    return ModelIdentity(
        endpoint=endpoint_name(url),
        model=model,
        parameters={"temperature": settings.temperature},
        url_setting=f"{prefix if own_url else 'CITELOOM_CHAT'}_BASE_URL",
        model_setting=f"{prefix if own_model else 'CITELOOM_CHAT'}_MODEL",
        key_setting=f"{prefix if own_url or own_key else 'CITELOOM_CHAT'}_API_KEY",
        secret=key,
    )


@thread_safe_cache
def _dialect(_endpoint: str, _model: str) -> DialectMemory:
    return DialectMemory()

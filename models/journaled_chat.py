"""A chat model behind the journal, the limiter and the dialects: the `ChatCaller` of all roles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from citeloom.models.budget import Budget, Limits
from citeloom.models.calls import Answer
from citeloom.models.conversation import message_of, payload_of, request_key, tokens_of
from citeloom.models.dialect import Dialect
from citeloom.models.errors import BrokenAnswerError
from citeloom.models.identity import ModelIdentity, canonical_json
from citeloom.models.journal import Journal
from citeloom.models.records import CallRecord, Hold, Outcome, RunScope
from citeloom.models.refusals import given_up
from citeloom.models.retry import Admission, CallFailedError, Limiter

# What the parsing of an answer raises when a server takes liberties with the protocol.
_PARSING = (LookupError, TypeError, ValueError, AttributeError)
# Tokens reserved for an answer whose caller sets no limit.
_UNLIMITED_ANSWER: Final = 8_000
# Tokens that a server may put around a conversation: its template, a system prompt of its own.
_TEMPLATE: Final = 200


class _PutOtherwise(Exception):  # noqa: N818  # not a failure: the server wants the question in another form
    """The server does not understand how it was asked, and there is another way."""


class DialectMemory:
    """What was learned about one model at one endpoint; shared by all callers of it."""

    def __init__(self) -> None:
        self.current = Dialect()


class JournaledChat:
    """Implements `ChatCaller` on any LangChain chat model.

    Args:
        model: without retries and cache of its own, where it is ours.
        identity: what goes into the journal's keys, and what errors name.
        temperature: sent with each call; None leaves it to the model.
        dialect: shared with other callers of the same model.
        budget: asked before each request; None sets no limit.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        identity: ModelIdentity,
        journal: Journal,
        scope: RunScope,
        limiter: Limiter,
        temperature: float | None = None,
        dialect: DialectMemory | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._model = model
        self._identity = identity
        self._journal = journal
        self._scope = scope
        self._limiter = limiter
        self._temperature = temperature
        self._dialect = dialect or DialectMemory()
        self._budget = budget or Budget(Limits(), {}, journal)
        self._speaks_openai = any(base.__name__ == "BaseChatOpenAI" for base in type(model).__mro__)

    async def call(
        self,
        messages: Sequence[BaseMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        known_as: Sequence[BaseMessage] | None = None,
    ) -> Answer:
        """See `ChatCaller`.

        Raises `EndpointRefusedError`, `EndpointLostError`, `EndpointBusyError`, `BudgetReachedError` and
        `JournalPausedError`.
        """
        identity = self._identity
        key = request_key(
            identity, messages if known_as is None else known_as, tools=tools, schema=schema, max_tokens=max_tokens
        )
        record = CallRecord(key, "chat", identity.endpoint, identity.model)

        granted: list[Hold] = []

        async def ask() -> Outcome:
            size = _size(messages, tools, schema) if self._budget.limited else 0
            most = Hold(self._scope.run_id, record, 1, size, max_tokens or _UNLIMITED_ANSWER)

            @asynccontextmanager
            async def admission() -> AsyncIterator[None]:
                async with self._budget.reserved(most) as hold:
                    yield
                granted.extend([hold] if hold else [])

            message = await self._ask(messages, tools, schema, max_tokens, admission)
            return Outcome(payload_of(message, key), *tokens_of(message, messages), next(iter(granted), None))

        try:
            replay = await self._journal.once(record, self._scope, ask)
        except CallFailedError as failed:
            used = await self._journal.usage(self._scope)
            answered = used.llm_calls + used.journal_hits + used.embedded_texts > 0
            raise given_up(failed, identity, answered=answered) from failed
        finally:
            for _ in granted:
                self._budget.settle()
        return Answer(message_of(replay.payload), key)

    async def reject(self, answer: Answer) -> None:
        """See `ChatCaller`."""
        await self._journal.reject(answer.key, self._scope)

    async def _ask(
        self,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
        admission: Admission,
    ) -> AIMessage:
        while True:
            tried = self._dialect.current
            send = partial(self._send_as, tried, messages, tools, schema, max_tokens)
            try:
                return await self._limiter.run(send, admission)
            except _PutOtherwise:
                continue

    async def _send_as(
        self,
        tried: Dialect,
        messages: Sequence[BaseMessage],
        tools: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> AIMessage:
        """The answer; raises `_PutOtherwise` when the question has to be put in another form, now known."""
        body = tried.arguments(schema=schema, max_tokens=max_tokens, temperature=self._temperature)
        try:
            return await self._send(messages, tools, body)
        except Exception as error:
            better = tried.after(error, with_schema=schema is not None)
            if better is None:
                raise
            if self._dialect.current == tried:
                self._dialect.current = better
            raise _PutOtherwise from None

    async def _send(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], body: dict[str, Any]
    ) -> AIMessage:
        if not self._speaks_openai:
            model = self._model.bind_tools([dict(tool) for tool in tools]) if tools else self._model
            return _as_answer(await model.ainvoke(list(messages), **body))
        # As extra_body, these go out as they stand: given by name, ChatOpenAI sends a limit that many local
        # servers do not know, and a response_format sends it to another method, slower by half, that throws
        # away an answer cut off at its limit.
        extra = {**(getattr(self._model, "extra_body", None) or {}), **body}
        named: dict[str, Any] = {"extra_body": extra} if extra else {}
        if tools:
            named["tools"] = [dict(tool) for tool in tools]
        try:
            return _as_answer(await self._model.ainvoke(list(messages), **named))
        except _PARSING as error:
            raise BrokenAnswerError(f"it cannot be read: {error}") from error


def _size(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], schema: Mapping[str, Any] | None) -> int:
    """Bytes of what is asked and of the server's template: more than any tokenizer makes tokens of it."""
    said = [message.model_dump(include={"type", "content", "tool_calls", "name"}) for message in messages]
    return _TEMPLATE + len(canonical_json([said, list(tools), schema]).encode("utf-8", "replace"))


def _as_answer(message: BaseMessage) -> AIMessage:
    if not isinstance(message, AIMessage):
        raise BrokenAnswerError(f"a {message.type} message instead of an answer")
    return message


def identity_of(model: BaseChatModel) -> ModelIdentity:
    """The identity of a model that was handed in: its class, its name, its identifying parameters."""
    base = getattr(model, "openai_api_base", None) or getattr(model, "base_url", None)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    name = next((found for found in names if isinstance(found, str) and found), model._llm_type)
    identity = ModelIdentity(kind, name, dict(model._identifying_params))
    return replace(identity, endpoint=f"{kind} at {base}") if isinstance(base, str) else identity

"""A chat model behind the journal, the limiter and the dialects: the `ChatCaller` of all roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from citeloom.models.calls import Answer
from citeloom.models.conversation import message_of, payload_of, request_key
from citeloom.models.dialect import Dialect
from citeloom.models.errors import BrokenAnswerError
from citeloom.models.identity import ModelIdentity
from citeloom.models.journal import Journal
from citeloom.models.records import CallRecord, Outcome, RunScope
from citeloom.models.refusals import given_up
from citeloom.models.retry import CallFailedError, Limiter

# What the parsing of an answer raises when a server takes liberties with the protocol.
_PARSING = (LookupError, TypeError, ValueError, AttributeError)


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
    ) -> None:
        self._model = model
        self._identity = identity
        self._journal = journal
        self._scope = scope
        self._limiter = limiter
        self._temperature = temperature
        self._dialect = dialect or DialectMemory()
        self._speaks_openai = any(base.__name__ == "BaseChatOpenAI" for base in type(model).__mro__)

    async def call(
        self,
        messages: Sequence[BaseMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Answer:
        """See `ChatCaller`.

        Raises `EndpointRefusedError`, `EndpointLostError`, `EndpointBusyError` and `JournalPausedError`.
        """
        identity = self._identity
        key = request_key(identity, messages, tools=tools, schema=schema, max_tokens=max_tokens)
        record = CallRecord(key, "chat", identity.endpoint, identity.model)

        async def ask() -> Outcome:
            message = await self._limiter.run(lambda: self._ask(messages, tools, schema, max_tokens))
            usage = message.usage_metadata
            payload = payload_of(message, key)
            if usage is None:
                return Outcome(payload)
            return Outcome(payload, usage["input_tokens"], usage["output_tokens"])

        try:
            replay = await self._journal.once(record, self._scope, ask)
        except CallFailedError as failed:
            used = await self._journal.usage(self._scope)
            answered = used.llm_calls + used.journal_hits + used.embedded_texts > 0
            raise given_up(failed, identity, answered=answered) from failed
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
    ) -> AIMessage:
        while True:
            tried = self._dialect.current
            body = tried.arguments(schema=schema, max_tokens=max_tokens, temperature=self._temperature)
            try:
                return await self._send(messages, tools, body)
            except Exception as error:
                better = tried.after(error, with_schema=schema is not None)
                if better is None:
                    raise
                if self._dialect.current == tried:
                    self._dialect.current = better

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

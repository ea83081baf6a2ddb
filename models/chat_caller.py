"""The interface through which roles call a chat model; it hides journal, retries and provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage

from .journal.streaming import TextListener


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer and its journal key."""

    message: AIMessage
    key: str


class ChatCaller(Protocol):
    """Calls one chat model; every answer is committed to the journal before it is returned."""

    async def call(
        self,
        messages: Sequence[BaseMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        cache_messages: Sequence[BaseMessage] | None = None,
        listener: TextListener | None = None,
    ) -> Answer:
        """The answer to `messages`.

        Args:
            messages: the conversation; only role, content and tool calls enter the journal key.
            tools: OpenAI function specifications that the model may call.
            schema: a JSON schema (with a title) requested via `response_format`; the answer is text that the
                caller validates.
            max_tokens: limit of the answer, in tokens of the model.
            cache_messages: the conversation used for the journal key, if other wordings of it are equivalent;
                defaults to `messages`.
            listener: receives the text of the answer as it streams, before it is committed; a journaled answer
                arrives at once. It does not enter the key: streamed and whole answers replay each other.
        """

    async def reject(self, answer: Answer) -> None:
        """Mark an answer that failed validation, so that later runs never replay it."""

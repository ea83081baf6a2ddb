"""What a role may ask of a chat model; the journal, the retries and the provider lie behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage

from .journal.streaming import TextListener


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer and the journal key it is kept under."""

    message: AIMessage
    key: str


class ChatCaller(Protocol):
    """Calls one chat model; every answer is committed to the journal before it is handed out."""

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
            messages: the conversation; only role, content and tool calls count for the journal key.
            tools: OpenAI function specifications that the model may call.
            schema: a JSON schema (with a title) asked for by `response_format`; the answer is text that the
                caller validates.
            max_tokens: limit of the answer, in tokens of the model.
            cache_messages: the conversation by which the journal knows the call, where another wording of it would be
                answered alike; `messages` when left out.
            listener: hears the text of the answer as it comes, before it is committed; from the journal it comes at
                once. It counts not for the key: a streamed answer and a whole one replay each other.
        """
        ...

    async def reject(self, answer: Answer) -> None:
        """Keep the answer for the record, but never replay it in a later run: it failed validation."""
        ...

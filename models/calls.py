"""What a role may ask of a chat model; the journal, the retries and the provider lie behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import AIMessage, BaseMessage


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
        known_as: Sequence[BaseMessage] | None = None,
    ) -> Answer:
        """The answer to `messages`.

        Args:
            messages: the conversation; only role, content and tool calls count for the journal key.
            tools: OpenAI function specifications that the model may call.
            schema: a JSON schema (with a title) asked for by `response_format`; the answer is text that the
                caller validates.
            max_tokens: limit of the answer, in tokens of the model.
            known_as: the conversation by which the journal knows the call, where another wording of it would be
                answered alike; `messages` when left out.
        """
        ...

    async def reject(self, answer: Answer) -> None:
        """Keep the answer for the record, but never replay it in a later run: it failed validation."""
        ...

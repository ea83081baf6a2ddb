"""The request of a chat program, as OpenAI's API defines it; fields that change nothing here are ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ConfigDict, Field

from .problems import ServerError

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
        """The text of all parts."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or () if part.text)

    @property
    def others(self) -> list[str]:
        """The kinds of parts that are no text."""
        return [] if isinstance(self.content, str) else [part.type for part in self.content or () if part.text is None]


class StreamOptions(_Sent):
    """What a stream has besides the answer."""

    include_usage: bool | None = None


class TextFormat(_Sent):
    """The only form of an answer."""

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

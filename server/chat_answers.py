"""Answers as OpenAI's API gives them: whole, or as chunks of a stream that ends with `[DONE]`.

The text of a stream is the checked one: a chat program cannot take words back, and checks and repairs change a draft.
Until it is there the steps of the run are sent as `reasoning_content`, which chat programs show as thinking.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..graph.conversation_state import answer_with_sources
from .job import Job
from .openai_errors import openai_error
from .problems import problem

MODEL: Final = "citeloom"
DONE: Final = "[DONE]"
_STOPPED: Final = problem(503, "The run was stopped. Completed calls are saved.", help="Ask again to resume it.")
_OF_SOURCE: Final = ("label", "key", "title", "authors", "year", "doi", "url", "places")
_OF_CITATION: Final = ("number", "key", "page", "section", "quote", "sentence", "verdict", "chunk_id")
_NO_USAGE: Final = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """The text that a chat program shows, the sources behind it, and what the request has cost."""

    text: str
    library: Mapping[str, Any] | None
    usage: Mapping[str, int]

    @classmethod
    def of_record(cls, record: Mapping[str, Any], before: Mapping[str, Any]) -> ChatAnswer:
        """The answer that a run has given; `before` is what the run had cost when it was asked for."""
        given, written = (record["usage"][name] - before[name] for name in ("input_tokens", "output_tokens"))
        library = {
            "run_id": record["thread_id"],
            "question": record["question"],
            "outcome": record["outcome"],
            "sources": [_picked(entry, _OF_SOURCE) for entry in record["references"]],
            "citations": [_picked(citation, _OF_CITATION) for citation in record["citations"]],
            "warnings": record["warnings"],
        }
        usage = {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}
        return cls(answer_with_sources(record), library, usage)

    @classmethod
    def of_task(cls, text: str) -> ChatAnswer:
        """An answer that needed no run."""
        return cls(text, None, _NO_USAGE)

    def completion(self, identifier: str) -> dict[str, Any]:
        """The answer as one object."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "refusal": None}
        if self.library is not None:
            message[MODEL] = self.library
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**_head(identifier, "chat.completion"), "choices": [choice], "usage": dict(self.usage)}


def stopped_problem(job: Job) -> Mapping[str, Any]:
    """Why a job ended without a result."""
    return job.problem or _STOPPED


async def task_chunks(identifier: str, text: str, *, with_usage: bool) -> AsyncGenerator[str, None]:
    """The stream of an answer that needed no run."""
    stream = _Chunks(identifier, with_usage)
    yield stream.chunk({"role": "assistant", "content": ""})
    for chunk in stream.answer(ChatAnswer.of_task(text)):
        yield chunk


async def job_chunks(
    identifier: str, job: Job, before: Mapping[str, Any], *, with_usage: bool
) -> AsyncGenerator[str, None]:
    """The stream of a run: its steps as they come, then the checked text by paragraphs."""
    stream = _Chunks(identifier, with_usage)
    yield stream.chunk({"role": "assistant", "content": ""})
    async for event in job.log.read():
        data = json.loads(event.data)
        if event.name in ("stage", "notice"):
            yield stream.chunk({"reasoning_content": f"{data['text']}\n"})
        elif event.name == "done":
            for chunk in stream.answer(ChatAnswer.of_record(data["result"], before)):
                yield chunk
        elif event.name in ("error", "stopped"):
            yield json.dumps(openai_error(stopped_problem(job)))
            yield DONE


class _Chunks:
    """Makes the chunks of one stream."""

    def __init__(self, identifier: str, with_usage: bool) -> None:
        self._head = _head(identifier, "chat.completion.chunk")
        self._with_usage = with_usage

    def chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return self._line({"choices": [choice]})

    def answer(self, answer: ChatAnswer) -> list[str]:
        lines = [self.chunk({"content": part}) for part in answer.text.splitlines(keepends=True)]
        lines.append(self.chunk({} if answer.library is None else {MODEL: answer.library}, "stop"))
        if self._with_usage:
            lines.append(self._line({"choices": [], "usage": dict(answer.usage)}))
        return [*lines, DONE]

    def _line(self, rest: Mapping[str, Any]) -> str:
        return json.dumps({**self._head, **rest}, ensure_ascii=False)


def _head(identifier: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{identifier}", "object": kind, "created": int(time.time()), "model": MODEL}


def _picked(entry: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: entry.get(name) for name in names}

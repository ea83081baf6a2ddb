"""The library as a model of OpenAI's API, for chat programs: `/v1/models` and `/v1/chat/completions`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from langchain_core.messages import AnyMessage
from sse_starlette import ServerSentEvent

from ...graph.conversation_state import chat_question, truncate_history
from ...runs.research import ResearchRequest
from ...stores.backends import backend_of
from ..chat_answers import MODEL, ChatAnswer, job_chunks, stopped_problem, task_chunks
from ..chat_models import ChatRequest
from ..chat_tasks import task_answer
from ..job import Job
from ..job_responses import EventResponse
from ..problems import ServerError, problem_response
from ..server_state import ServerState, StateOf

router = APIRouter(prefix="/v1", include_in_schema=False)  # OpenAI documents it


class ModelNotFoundError(ServerError):
    """A request names a model that is not the library."""

    def __init__(self, name: str) -> None:
        super().__init__(404, f"model: there is no {name[:80]!r}.", help=f"The library answers as {MODEL!r}.")


@router.get("/models")
async def list_models(state: StateOf) -> dict[str, Any]:
    """The library as the only model."""
    return {"object": "list", "data": [await _model(state)]}


@router.get("/models/{name}")
async def show_model(name: str, state: StateOf) -> dict[str, Any]:
    """The library as a model."""
    _require_model(name)
    return await _model(state)


@router.post("/chat/completions")
async def complete_chat(body: ChatRequest, state: StateOf) -> Response:
    """Answer the last message from the library, or join or resume the run that already does."""
    _require_model(body.model)
    messages = body.conversation()
    if body.stream:
        state.streams.require_free()
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    identifier = secrets.token_hex(12)
    if (text := await asyncio.to_thread(task_answer, messages)) is not None:
        if body.stream:
            return _streamed(state, task_chunks(identifier, text, with_usage=with_usage))
        return JSONResponse(ChatAnswer.of_task(text).completion(identifier))
    job = await _start(messages, state)
    before = await state.session.usage(job.id)
    if body.stream:
        return _streamed(state, job_chunks(identifier, job, before, with_usage=with_usage))
    await job.ended()
    if job.result is None:
        return problem_response(stopped_problem(job))
    return JSONResponse(ChatAnswer.of_record(job.result, before).completion(identifier))


async def _start(messages: list[AnyMessage], state: ServerState) -> Job:
    chat = await asyncio.to_thread(chat_question, messages)
    assert chat is not None
    turns = truncate_history(chat.past, state.session.settings.conversation_tokens)
    return await state.runs.start_run(ResearchRequest(chat.asked, turns=tuple(turns), follow_up=bool(turns)), {})


def _streamed(state: ServerState, lines: AsyncGenerator[str, None]) -> Response:
    async def events() -> AsyncGenerator[ServerSentEvent, None]:
        with state.streams.open():
            async for line in lines:
                yield ServerSentEvent(line, sep="\n")

    return EventResponse(events())


def _require_model(name: str) -> None:
    if name != MODEL:
        raise ModelNotFoundError(name)


async def _model(state: ServerState) -> dict[str, Any]:
    created = int(await asyncio.to_thread(backend_of(state.session.home).created_at))
    return {"id": MODEL, "object": "model", "created": created, "owned_by": "you"}

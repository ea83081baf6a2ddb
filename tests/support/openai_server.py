"""A fake OpenAI-compatible server on real sockets, in a thread or in a process of its own.

In a test: `with FakeOpenAI(delay=0.1) as server: ... server.base_url, server.calls()`.

For kills: `python tests/support/openai_server.py --port 0 --log FILE` prints its base URL on one line and appends two
JSON lines for every request to the log, when it arrives and when it is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

if __package__:
    from tests.support.event_streams import STREAM_FAULTS, EventStream, Gate, StreamFault
    from tests.support.protocol_answers import Json, completion, embedding
else:  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from event_streams import STREAM_FAULTS, EventStream, Gate, StreamFault
    from protocol_answers import Json, completion, embedding


@dataclass(frozen=True)
class Raw:
    """A response sent byte for byte."""

    body: str
    status: int = 200
    content_type: str = "application/json"


Fault = (
    Literal["hang", "html", "not-json", "list", "no-choices", "empty-choices", "empty", "huge", "truncated", "drop"]
    | StreamFault
)
Behaviour = Callable[[Json], "Json | Raw | Status | Fault | None"]
Answer = Callable[[Json], Json]

_BODIES: dict[str, Raw] = {
    "html": Raw("<html><body><h1>Welcome to nginx!</h1></body></html>", content_type="text/html"),
    "not-json": Raw('{"choices": [{"message":'),
    "list": Raw("[1, 2]"),
    "no-choices": Raw('{"object": "chat.completion"}'),
    "empty": Raw(""),
    "huge": Raw(json.dumps({"choices": [{"message": {"role": "assistant", "content": "so much " * 1_250_000}}]})),
    "empty-choices": Raw('{"object": "chat.completion", "choices": []}'),
}


@dataclass(frozen=True)
class Status:
    """An error status with which a request is answered."""

    status: int
    message: str = "try again"
    retry_after: str | None = None
    code: str | None = None


class _Server(uvicorn.Server):
    """Stops on request, instead of polling ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._serving = threading.Event()

    async def main_loop(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._serving.set()
        await self._end.wait()

    def stop(self) -> None:
        self._serving.wait()
        self.force_exit = True
        with suppress(RuntimeError):  # it has stopped already
            self._loop.call_soon_threadsafe(self._end.set)


class FakeOpenAI:
    """A fake server.

    Args:
        delay: seconds before each answer.
        api_key: the only accepted key; None accepts all.
        model: the only known model; None accepts all.
        tool_turns: turns in which tools are called, if there are tools.
        failures: the responses to the first requests, in order of arrival.
        behaviour: called first; None leaves the answer to the protocol, a fault is applied to the request.
        log: file to which requests are appended.
        streams: False answers in one piece when a stream is requested.
        pace: seconds between the chunks of a stream.
        gate: where streams wait.
        host: the address to listen at.
    """

    def __init__(
        self,
        *,
        delay: float = 0.0,
        api_key: str | None = None,
        model: str | None = None,
        tool_turns: int = 2,
        failures: Iterable[Status | Fault] = (),
        behaviour: Behaviour | None = None,
        log: Path | None = None,
        port: int = 0,
        streams: bool = True,
        pace: float = 0.0,
        gate: Gate | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.delay = delay
        self.streams = streams
        self.pace = pace
        self.gate = gate
        self.api_key = api_key
        self.model = model
        self.tool_turns = tool_turns
        self.failures = list(failures)
        self.behaviour = behaviour
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.answered = 0
        self.listed: Json = {}  # further fields of the model in the list of models
        self.others: list[str] = []  # further models in that list
        self.models_asked = 0
        self.models_answer: Status | Fault | None = None
        self._log = log
        self._socket = socket.create_server((host, port))
        self.base_url = f"http://{host}:{self._socket.getsockname()[1]}/v1"
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/embeddings", self._embeddings, methods=["POST"]),
            Route("/v1/models", self._models),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), log_level="critical", ws="none", lifespan="off", access_log=False
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._serve, name="fake-openai", daemon=True)

    def calls(self) -> int:
        """The number of requests received, whatever the responses."""
        return len(self.requests)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.gate is not None:
            self.gate.open()  # or a stream waiting there would keep the server from stopping
        self._server.stop()
        self._thread.join()
        self._socket.close()

    def go_away(self) -> None:
        """Stop now, in the middle of all requests."""
        self._server.stop()

    def serve_here(self) -> None:
        """Serve in this thread until the process is terminated."""
        self._serve()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    async def _chat(self, request: Request) -> Response:
        return await self._handle(request, lambda body: completion(body, self.tool_turns))

    async def _embeddings(self, request: Request) -> Response:
        def embed(body: Json) -> Json:
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data = [
                {"object": "embedding", "index": place, "embedding": embedding(text)}
                for place, text in enumerate(texts)
            ]
            tokens = sum(len(text.split()) for text in texts)
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            return {"object": "list", "data": data, "model": body["model"], "usage": usage}

        return await self._handle(request, embed)

    async def _models(self, _: Request) -> Response:
        self.models_asked += 1
        entries = [{"id": name, "object": "model", **self.listed} for name in [self.model or "any", *self.others]]
        return await self._fault(self.models_answer) or JSONResponse({"object": "list", "data": entries})

    async def _handle(self, request: Request, answer: Answer) -> Response:
        body = await request.json()
        number = len(self.requests)
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self._note({"event": "asked", "number": number, "path": request.url.path, "body": body})
        fault = self.failures.pop(0) if self.failures else None
        if self.delay:
            await asyncio.sleep(self.delay)
        made = self.behaviour(body) if self.behaviour and fault is None else None
        if isinstance(made, Status | str):
            fault, made = made, None
        response = self._refusal(request, body) or await self._fault(fault)
        if response is None:
            made = answer(body) if made is None else made
            response = _as_response(made) if isinstance(made, Raw) else self._as_asked(made, body, fault)
            self.answered += 1
            self._note({"event": "answered", "number": number})
        return response

    def _as_asked(self, answer: Json, body: Json, fault: Any) -> Response:
        if not (body.get("stream") and self.streams):
            return JSONResponse(answer, headers={"set-cookie": "balancer=1; path=/"})
        return EventStream(answer, body, pace=self.pace, gate=self.gate, fault=fault)

    def _refusal(self, request: Request, body: Json) -> Response | None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key is not None and key != self.api_key:
            # Like some careless servers: the key is repeated in the message.
            return _error(Status(401, f"Incorrect API key provided: {key}.", code="invalid_api_key"))
        if self.model is not None and body.get("model") not in (self.model, *self.others):
            message = f"The model '{body.get('model')}' does not exist"
            return _error(Status(404, message, code="model_not_found"))
        return None

    async def _fault(self, fault: Status | Fault | None) -> Response | None:
        if fault is None or fault in STREAM_FAULTS:
            return None
        if isinstance(fault, Status):
            return _error(fault)
        if fault == "hang":
            await asyncio.Event().wait()  # until the server stops
        if fault in ("truncated", "drop"):
            return _BrokenOff(whole=fault == "drop")
        return _as_response(_BODIES[fault])

    def _note(self, record: Json) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


class _BrokenOff(Response):
    """Closes the connection without an answer, or in the middle of one."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._whole:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"500")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"choices": [', "more_body": True})
        # uvicorn's request cycle, which holds the socket.
        cycle: Any = receive.__self__  # type: ignore[attr-defined]
        cycle.transport.close()


def _error(refusal: Status) -> Response:
    headers = {"retry-after": refusal.retry_after} if refusal.retry_after is not None else None
    error = {"message": refusal.message, "type": "error", "code": refusal.code}
    return JSONResponse({"error": error}, status_code=refusal.status, headers=headers)


def _as_response(raw: Raw) -> Response:
    return Response(raw.body, status_code=raw.status, media_type=raw.content_type)


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake OpenAI-compatible server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--api-key")
    parser.add_argument("--model")
    parser.add_argument("--tool-turns", type=int, default=2)
    parser.add_argument("--pace", type=float, default=0.0)
    given = parser.parse_args()
    server = FakeOpenAI(
        delay=given.delay,
        api_key=given.api_key,
        model=given.model,
        tool_turns=given.tool_turns,
        log=given.log,
        port=given.port,
        pace=given.pace,
    )
    print(server.base_url, flush=True)  # noqa: T201 - read by the parent process
    server.serve_here()


if __name__ == "__main__":
    main()

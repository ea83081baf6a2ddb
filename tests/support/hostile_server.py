"""A server that sends invalid responses byte by byte on its own socket.

A response is a list of parts that are sent unchanged: bytes, `HOLD` to keep the connection open until the server stops
or the client disconnects, `RESET` to break it off. Every request gets the next script, the last one repeatedly.
"""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final, Literal, Self

Part = bytes | Literal["hold", "reset"]
HOLD: Final = "hold"
RESET: Final = "reset"
Script = Callable[[], Iterable[Part]]


def response(
    body: bytes, *headers: str, status: str = "200 OK", content_type: str = "application/json", length: bool = True
) -> bytes:
    """A complete HTTP response as bytes."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", *headers]
    lines += [f"Content-Length: {len(body)}"] if length else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def said(
    content: Any = "quiet ponds", *, usage: Any = None, message: Any = None, choice: Any = None, **rest: Any
) -> bytes:
    """The body of a chat completion; JSON such as NaN and numbers of any length is sent unchanged."""
    given = {"role": "assistant", "content": content} | (message or {})
    body: dict[str, Any] = {"choices": [{"index": 0, "message": given, "finish_reason": "stop"} | (choice or {})]}
    text = json.dumps(body | rest)
    return (text if usage is None else f'{text[:-1]}, "usage": {usage}}}').encode()


def asks_tool(arguments: Any, count: int = 1, name: Any = "search_evidence") -> dict[str, Any]:
    """A message that calls a tool."""
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call] * count}


def events(*chunks: str, done: bool = True, finish: bool = True, usage: str | None = None) -> bytes:
    """The events of a stream, from raw JSON; those of "quiet ponds" by default."""
    told = list(chunks) or [
        '{"choices": [{"delta": {"content": "quiet "}}]}',
        '{"choices": [{"delta": {"content": "ponds"}}]}',
    ]
    told += ['{"choices": [{"delta": {}, "finish_reason": "stop"}]}'] if finish else []
    told += [f'{{"choices": [], "usage": {usage}}}'] if usage is not None else []
    told += ["[DONE]"] if done else []
    return "".join(f"data: {chunk}\n\n" for chunk in told).encode()


def stream(body: bytes, length: bool = False) -> bytes:
    """Events as a response, by default without a length, so that it ends with the connection."""
    return response(body, content_type="text/event-stream", length=length)


@cache
def packed(megabytes: int, times: int = 1) -> bytes:
    """Zeros compressed with gzip, this many times over."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join(packer.compress(bytes(1_000_000)) for _ in range(megabytes)) + packer.flush()
    for _ in range(times - 1):
        again = zlib.compressobj(9, zlib.DEFLATED, 31)
        body = again.compress(body) + again.flush()
    return body


def without_end(part: bytes, pause: float = 0.0) -> Iterator[Part]:
    """The same part endlessly."""
    ticking = threading.Event()
    while True:
        yield part
        if pause:
            ticking.wait(pause)


class HostileServer:
    """Answers with `scripts`, one for each request, the last one repeatedly."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requests: list[bytes] = []
        self._ended = threading.Event()
        self._guard = threading.Lock()
        hostile = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    while not hostile._ended.is_set() and hostile._serve(self.rfile, self.connection):
                        pass

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def calls(self) -> int:
        """The number of requests received."""
        return len(self.requests)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, file: Any, connection: socket.socket) -> bool:
        """Answer one request; returns whether the connection is still usable."""
        head, length = [], 0
        while (line := file.readline()) not in (b"\r\n", b""):
            head.append(line)
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not head:
            return False
        body = file.read(length)
        with self._guard:
            self.requests.append(b"".join(head) + b"\r\n" + body)
            script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        whole = False
        for part in script():
            if part == HOLD:
                self._hold(connection)
                return False
            if part == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
                return False
            assert isinstance(part, bytes)
            connection.sendall(part)
            whole = whole or b"Content-Length:" in part
            if self._ended.is_set():
                return False
        return whole

    def _hold(self, connection: socket.socket) -> None:
        connection.settimeout(0.05)
        while not self._ended.is_set():
            with suppress(TimeoutError):
                if not connection.recv(1):
                    return

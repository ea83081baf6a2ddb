"""The HTTP client under all endpoints: connections for each event loop, answers checked as they come.

Importing this imports the OpenAI SDK; whoever wants a cheap start imports it late.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from typing import Any, Final
from weakref import WeakKeyDictionary

import openai
from pydantic import SecretStr

from citeloom.models.errors import (
    BrokenAnswerError,
    ServerRefusalError,
    one_line,
    raise_hidden,
    retry_after,
    server_message,
)
from citeloom.models.event_stream import is_event_stream
from citeloom.models.shared import made_once

CONNECT_TIMEOUT: Final = 10.0  # seconds
# No answer of 100,000 tokens, the most that can be asked for, is as long; 64 vectors of 4,096 numbers are not either.
MOST_BYTES: Final = 4_000_000
MOST_BYTES_OF_VECTORS: Final = 32_000_000
_OF_THE_WIRE: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
NO_KEY: Final = "none"  # what servers without keys are sent
_AMBIENT_HEADERS: Final = ("OpenAI-Organization", "OpenAI-Project")


class LoopClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client that may be used from any event loop; connections belong to the loop that made them."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        super().__init__(verify=verify)
        self._context = verify
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, openai.DefaultAsyncHttpxClient] = (
            WeakKeyDictionary()
        )

    async def send(self, request: Any, **options: Any) -> Any:
        """As the client of this loop; raises `ServerRefusalError`, `BrokenAnswerError`, httpx errors.

        Events that were asked for as a stream are left unread; everything else is read and checked here.
        """
        path = str(request.url.path)
        response = await self._client().send(request, **{**options, "stream": True})
        if options.get("stream") and response.status_code < 400 and is_event_stream(response):
            return response
        try:
            whole = await _read(response, MOST_BYTES_OF_VECTORS if path.endswith("/embeddings") else MOST_BYTES)
        finally:
            await response.aclose()
        check_answer(path, whole)
        return whole

    async def close_loop(self) -> None:
        """Close the connections of the running loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
            # A transport closes its socket on the next turn of the loop, which must come before the loop ends.
            for _ in range(3):
                await asyncio.sleep(0)

    def _client(self) -> openai.DefaultAsyncHttpxClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = openai.DefaultAsyncHttpxClient(verify=self._context)
            self._clients[loop] = client
        return client


async def _read(response: Any, most: int) -> Any:
    """The response with its whole body; raises `BrokenAnswerError` as soon as it is longer than `most` bytes."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > most:
            raise BrokenAnswerError(f"an answer of more than {most // 1_000_000} MB")
        parts.append(part)
    # Decoded above, so what the headers say of an encoding and a length holds no longer.
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WIRE]
    return type(response)(
        response.status_code,
        headers=headers,
        content=b"".join(parts),
        request=response.request,
        extensions={"http_version": response.extensions.get("http_version", b"HTTP/1.1")},
    )


def check_answer(path: str, response: Any) -> None:
    """Raise `ServerRefusalError` for an error status, `BrokenAnswerError` for what is no answer."""
    if response.status_code >= 400:
        message = server_message(response.text)
        raise ServerRefusalError(response.status_code, message, retry_after(response.headers))
    try:
        data = json.loads(response.content)
    except ValueError as error:
        start = server_message(response.text[:2000])
        raise BrokenAnswerError(f"not JSON but {start!r}" if response.content else "an empty answer") from error
    if not isinstance(data, dict):
        raise BrokenAnswerError(f"not a JSON object but {one_line(str(data))!r}")
    if data.get("error"):
        # Some gateways send a refusal under status 200.
        raise_hidden(data["error"])
    wanted = "data" if path.endswith("/embeddings") else "choices"
    items = data.get(wanted)
    if not isinstance(items, list) or not items:
        raise BrokenAnswerError(f"no {wanted} in it")
    if wanted == "choices":
        _check_choice(items[0])


def _check_choice(choice: object) -> None:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BrokenAnswerError("no message in it")
    if not isinstance(message.get("content"), str | list | None):
        raise BrokenAnswerError("its content is neither text nor blocks")
    for call in message.get("tool_calls") or ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BrokenAnswerError("a tool call without a name")


@made_once
def shared_client() -> LoopClient:
    """The client of this process. Its TLS context takes 20 ms or more, so it is made once."""
    from httpx import create_ssl_context

    return LoopClient(create_ssl_context())


async def close_connections() -> None:
    """Close what the running loop holds open; to be called before a loop ends."""
    await shared_client().close_loop()


@made_once
def openai_client(base_url: str, key: SecretStr | None, timeout: float) -> openai.AsyncOpenAI:
    """The SDK's client for an endpoint: no retries, nothing taken from the environment but a proxy."""
    secret = key.get_secret_value() if key is not None else NO_KEY
    custom = os.environ.get("OPENAI_CUSTOM_HEADERS", "")
    ambient = {line.partition(":")[0].strip() for line in custom.splitlines() if ":" in line}
    headers: dict[str, Any] = dict.fromkeys([*_AMBIENT_HEADERS, *sorted(ambient)], openai.omit)
    headers["Authorization"] = f"Bearer {secret}"
    return openai.AsyncOpenAI(
        api_key=secret,
        base_url=base_url,
        timeout=openai.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout)),
        max_retries=0,
        default_headers=headers,
        http_client=shared_client(),
    )

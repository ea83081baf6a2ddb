"""The HTTP client for all endpoints, with connections per event loop; imports the OpenAI SDK: import lazily."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any, Final
from urllib.parse import urljoin

import openai
from pydantic import SecretStr

from ...settings.key_trust import endpoint_name
from ..concurrency import LoopLocal, thread_safe_cache
from .failures import BrokenAnswerError, RedirectedError
from .response_body import ACCEPTED_ENCODING, is_event_stream, parse_object, read_body, read_refusal

CONNECT_TIMEOUT: Final = 10.0  # seconds
# Longer than any answer of 100,000 tokens, the maximum that can be requested, and than 64 vectors of 4,096 numbers.
MOST_BYTES: Final = 4_000_000
MOST_BYTES_OF_VECTORS: Final = 32_000_000
_OF_THE_WIRE: Final = frozenset({"content-encoding", "content-length", "content-type", "transfer-encoding"})
_LONGEST_ADDRESS: Final = 300
NO_KEY: Final = "none"  # sent to servers without keys
_AMBIENT_HEADERS: Final = ("OpenAI-Organization", "OpenAI-Project")


class LoopClient(openai.DefaultAsyncHttpxClient):
    """An HTTP client that may be used from any event loop; connections belong to the loop that opened them."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        super().__init__(verify=verify, follow_redirects=False)
        self._clients = LoopLocal(lambda: openai.DefaultAsyncHttpxClient(verify=verify, follow_redirects=False))

    async def send(self, request: Any, **options: Any) -> Any:
        """Send from this loop; raises `ServerRefusalError`, `RedirectedError`, `BrokenAnswerError` and httpx errors.

        A requested event stream is left unread; every other response is read and validated here.
        """
        path = str(request.url.path)
        response = await self._clients.get().send(request, **{**options, "stream": True, "follow_redirects": False})
        if options.get("stream") and response.status_code < 300 and is_event_stream(response):
            return response
        try:
            if 300 <= response.status_code < 400:
                location = str(response.headers.get("location", ""))[:_LONGEST_ADDRESS]
                try:
                    target = endpoint_name(urljoin(str(request.url), location)) if location else "nowhere"
                except ValueError:
                    target = "an invalid address"
                raise RedirectedError(f"{response.status_code} to {target}")
            if response.status_code >= 400:
                raise await read_refusal(response)
            body = await read_body(response, MOST_BYTES_OF_VECTORS if path.endswith("/embeddings") else MOST_BYTES)
        finally:
            await response.aclose()
        data = parse_object(body, "an answer")
        wanted = "data" if path.endswith(("/embeddings", "/models")) else "choices"
        if not isinstance(data.get(wanted), list) or not data[wanted]:
            raise BrokenAnswerError(f"no {wanted} in it")
        # For the SDK, which would otherwise parse the JSON again, without our checks.
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WIRE]
        whole: Any = type(response)(
            response.status_code,
            headers=[*headers, ("content-type", "application/json")],
            content=body,
            request=response.request,
            extensions={"http_version": response.extensions.get("http_version", b"HTTP/1.1")},
        )
        whole.json = lambda: data
        return whole

    async def close_loop(self) -> None:
        client = self._clients.pop()
        if client is not None:
            await client.aclose()
            # A transport closes its socket on the next iteration of the loop, which must run before the loop ends.
            for _ in range(3):
                await asyncio.sleep(0)


@thread_safe_cache
def shared_client() -> LoopClient:
    """The client of this process, created once, since its TLS context takes 20 ms or more."""
    from httpx import create_ssl_context

    return LoopClient(create_ssl_context())


async def close_connections() -> None:
    """Close the connections of the running loop; to be called before it ends."""
    await shared_client().close_loop()


@thread_safe_cache
def openai_client(base_url: str, key: SecretStr | None, timeout: float) -> openai.AsyncOpenAI:
    """The SDK's client for an endpoint, without retries; reads nothing from the environment except a proxy."""
    secret = key.get_secret_value() if key is not None else NO_KEY
    custom = os.environ.get("OPENAI_CUSTOM_HEADERS", "")
    ambient = {line.partition(":")[0].strip() for line in custom.splitlines() if ":" in line}
    headers: dict[str, Any] = dict.fromkeys([*_AMBIENT_HEADERS, *sorted(ambient)], openai.omit)
    headers["Authorization"] = f"Bearer {secret}"
    headers["Accept-Encoding"] = ACCEPTED_ENCODING
    return openai.AsyncOpenAI(
        api_key=secret,
        base_url=base_url,
        timeout=openai.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout)),
        max_retries=0,
        default_headers=headers,
        http_client=shared_client(),
    )

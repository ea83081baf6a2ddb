"""The HTTP client for all endpoints; its connections belong to event loops. Import lazily, since it loads httpx."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.parse import urljoin

import httpx
from langchain_core.messages import AIMessage
from pydantic import SecretStr

from ...settings.key_trust import endpoint_name
from ..concurrency import LoopLocal, thread_safe_cache
from ..journal.serialization import printable
from ..journal.streaming import StreamSubscription
from .failures import BrokenAnswerError, RedirectedError
from .response_body import ACCEPTED_ENCODING, is_event_stream, parse_object, read_body, read_refusal
from .responses import read_answer, read_stream

CONNECT_TIMEOUT: Final = 10.0  # seconds
# Longer than any answer of 100,000 tokens, the maximum that can be requested, and than 64 vectors of 4,096 numbers.
MOST_BYTES: Final = 4_000_000
MOST_BYTES_OF_VECTORS: Final = 32_000_000
_LONGEST_ADDRESS: Final = 300
_CHAT: Final = "/chat/completions"


@thread_safe_cache
def _tls() -> Any:
    return httpx.create_ssl_context()  # once: it takes 20 ms or more


def _client() -> httpx.AsyncClient:
    # One client serves all keys, so no cookie is kept. The limiter of each model bounds its connections.
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    return httpx.AsyncClient(verify=_tls(), follow_redirects=False, cookies=cookies, limits=limits)


_clients: Final = LoopLocal(_client)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks OpenAI's protocol, and its key; may be used from any event loop."""

    base_url: str
    key: SecretStr | None
    timeout: float  # seconds

    async def chat(self, body: Mapping[str, Any], reader: StreamSubscription | None = None) -> AIMessage:
        """The answer to a chat request, streamed to `reader`; raises as `ask` does, and ConnectionError."""
        async with self._response(_CHAT, {**body, "stream": reader is not None}) as response:
            if reader is not None and is_event_stream(response):
                return read_answer(await read_stream(response, lambda piece: reader.say(printable(piece))))
            return read_answer(await _read_whole(response, _CHAT))

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a POST of `body`, or to a GET if there is none.

        Raises `ServerRefusalError`, `RedirectedError`, `BrokenAnswerError` and httpx errors.
        """
        async with self._response(path, body) as response:
            return await _read_whole(response, path)

    @asynccontextmanager
    async def _response(self, path: str, body: Mapping[str, Any] | None) -> AsyncIterator[httpx.Response]:
        secret = self.key.get_secret_value() if self.key is not None else "none"  # for servers without keys
        headers = {"Authorization": f"Bearer {secret}", "Accept-Encoding": ACCEPTED_ENCODING}
        if body is not None:
            headers["Content-Type"] = "application/json"
        client = _clients.get()
        request = client.build_request(
            "GET" if body is None else "POST",
            f"{self.base_url.rstrip('/')}{path}",
            content=None if body is None else json.dumps(body),
            headers=headers,
            timeout=httpx.Timeout(self.timeout, connect=min(CONNECT_TIMEOUT, self.timeout)),
        )
        response = await client.send(request, stream=True)
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
            yield response
        finally:
            await response.aclose()


async def _read_whole(response: httpx.Response, path: str) -> dict[str, Any]:
    most = MOST_BYTES_OF_VECTORS if path == "/embeddings" else MOST_BYTES
    data, wanted = parse_object(await read_body(response, most), "an answer"), "choices" if path == _CHAT else "data"
    if not isinstance(data.get(wanted), list) or not data[wanted]:
        raise BrokenAnswerError(f"no {wanted} in it")
    return data


async def close_connections() -> None:
    """Close the connections of the running loop; to be called before it ends."""
    client = _clients.pop()
    if client is not None:
        await client.aclose()
        # A transport closes its socket on the next iteration of the loop, which must run before the loop ends.
        for _ in range(3):
            await asyncio.sleep(0)

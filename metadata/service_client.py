"""Requests to a metadata service: cached, paced, retried in bounded time, and never sent to another host.

An answer is committed to the store before it is used, so that a killed command does not repeat requests. API keys and
the user's address are not part of the cache key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

from ..errors import CiteloomError
from ..models.http.failures import BrokenAnswerError, CallFailedError, FailureKind, RedirectedError, ServerRefusalError
from ..models.http.limiter import Clock, Limiter
from ..models.http.response_body import ACCEPTED_ENCODING, parse_json, read_body, read_refusal
from ..settings.key_trust import host_of
from ..stores.metadata_store import MetadataStore, ServiceAnswer

if TYPE_CHECKING:
    import httpx

MOST_BYTES: Final = 8_000_000  # per answer; a list of eight works with thousands of authors takes 2 MB
_MOST_REDIRECTS: Final = 3
_MAX_RETRIES: Final = 4
_NOT_FOUND: Final = frozenset({404, 410})
# Failures after which a service is not asked again by the same command.
_LASTING: Final[frozenset[FailureKind]] = frozenset({"busy", "unreachable", "redirect", "key", "quota", "timeout"})
_SAID: Final[Mapping[FailureKind, str]] = {
    "busy": "is busy",
    "dropped": "broke off the connection",
    "timeout": "did not answer in time",
    "broken": "sent an answer that cannot be read",
    "unreachable": "cannot be reached",
    "redirect": "redirects to another host, which is not followed",
    "key": "refuses the request",
    "quota": "refuses the request, since a quota is used up",
}


class ServiceError(CiteloomError):
    """A metadata service gave no usable answer; other services' answers and stored data are kept."""

    retryable = True
    default_help = "Run the same command again later; answers that came are in the cache."


class NotCachedError(ServiceError):
    """`--offline` was given, and the cache has no answer."""

    default_help = "Run the same command without --offline."


@dataclass
class ServiceClient:
    """Sends requests to one service; use it in a single event loop."""

    name: str
    base_url: str
    store: MetadataStore  # the cache of answers
    http: httpx.AsyncClient  # redirects must be off
    max_age: float  # seconds for which a cached answer is used
    offline: bool = False  # use only the cache, whatever its age
    timeout: float = 30.0  # seconds for one try
    clock: Clock = field(default_factory=Clock)
    traffic: Counter[str] = field(default_factory=Counter)  # answers, by "requests" and "cached"
    interval: float = 0.0  # minimum number of seconds between two requests
    private: Mapping[str, str] = field(default_factory=dict)  # parameters that are not part of the cache key
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # also not part of the cache key

    def __post_init__(self) -> None:
        self._limiter = Limiter(max_concurrency=1, max_retries=_MAX_RETRIES, timeout=self.timeout, clock=self.clock)
        self._next_at = 0.0
        self._turn = asyncio.Lock()
        self._given_up = ""

    async def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """The JSON of an answer; None if the service does not know the item. Raises `ServiceError`."""
        request = f"{path}?{urlencode(sorted(parameters.items()))}" if parameters else path
        name = self.name
        stored = await asyncio.to_thread(self.store.answer, name, request)
        if stored is not None and (self.offline or self.clock.time() - stored.answered_at <= self.max_age):
            self.traffic["cached"] += 1
            return stored.body
        if self.offline:
            raise NotCachedError(f"{name}: no request was sent, since --offline was given; the cache has no answer.")
        if self._given_up:
            raise ServiceError(self._given_up)
        try:
            status, body = await self._limiter.run(lambda: self._send(request))
        except CallFailedError as error:
            failure = error.failure
            said = _SAID.get(failure.kind, "refuses the request")
            message = f"{name} ({host_of(self.base_url)}) {said}: {failure.reason}."
            if failure.kind in _LASTING:
                self._given_up = message
            raise ServiceError(message) from error
        self.traffic["requests"] += 1
        answer = ServiceAnswer(status, body, self.clock.time())
        await asyncio.to_thread(self.store.keep_answer, name, request, answer)
        return answer.body

    async def _send(self, request: str) -> tuple[int, Any]:
        private = urlencode(self.private)
        headers = {"Accept": "application/json", **self.headers}
        async with self._turn:
            wait = self._next_at - self.clock.monotonic()
            if wait > 0:
                await self.clock.sleep(wait)
            self._next_at = self.clock.monotonic() + self.interval
            try:
                url = f"{self.base_url.rstrip('/')}{request}"
                return 200, parse_json(await fetch(self.http, url, headers, MOST_BYTES, query=private))
            except ServerRefusalError as error:
                if error.status_code not in _NOT_FOUND:
                    raise
                return error.status_code, None
            except ValueError as error:
                raise BrokenAnswerError("it is not JSON") from error


async def fetch(http: httpx.AsyncClient, url: str, headers: Mapping[str, str], most: int, *, query: str = "") -> bytes:
    """The body of a response; follows redirects, adding `query` to requests on the same host only.

    Raises `ServerRefusalError`, `RedirectedError`, and `BrokenAnswerError` for more than `most` bytes.
    """
    for _ in range(_MOST_REDIRECTS + 1):
        parts = urlsplit(url)
        sent = parts._replace(query="&".join(filter(None, (parts.query, query)))).geturl()
        asked = {"Accept-Encoding": ACCEPTED_ENCODING, **headers}
        async with http.stream("GET", sent, headers=asked, follow_redirects=False) as response:
            if response.status_code >= 400:
                raise await read_refusal(response)
            if response.status_code < 300:
                return await read_body(response, most)
        location = str(response.headers.get("location", ""))
        try:
            target = urljoin(url, location) if location else ""
            there = urlsplit(target)
            same = (parts.scheme, parts.hostname, parts.port) == (there.scheme, there.hostname, there.port)
        except ValueError:
            target, same = "", False
        if not same:
            raise RedirectedError(f"to {host_of(target)}" if target else "to nowhere")
        url = target
    raise RedirectedError("too many times")

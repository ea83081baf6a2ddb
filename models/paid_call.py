"""Makes a paid model call, for chat and embeddings alike: journal, single flight, budget, and user-facing errors."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .http.endpoints import ModelIdentity
from .http.failures import CallFailedError, to_user_error
from .http.limiter import Admission
from .journal.budget import Budget
from .journal.journal import Journal
from .journal.records import CachedAnswer, CallRecord, CallResult, Reservation, RunScope, Usage

if TYPE_CHECKING:
    from tiktoken import Encoding


class PaidRequest:
    """One request inside a budget: reserved before each try, finished when its cost is on disk."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._reservation: Reservation | None = None
        self._tokens: tuple[int, int] | None = None

    async def admission(self, most: Reservation, text: Callable[[], str], around: int) -> Admission:
        """Reserve `most` for each try, whose prompt consists of `text` plus `around` tokens."""
        if self._budget.limited:
            most = await asyncio.to_thread(size_reservation, most, text(), around)

        @asynccontextmanager
        async def reserve() -> AsyncIterator[None]:
            async with self._budget.reserve(most) as reservation:
                yield
            self._reservation = reservation

        return reserve

    def result(self, payload: str, tokens: tuple[int, int]) -> CallResult:
        """The answer for the journal to commit, together with its reservation."""
        self._tokens = tokens
        return CallResult(payload, *tokens, self._reservation)

    def finish(self) -> None:
        """Let requests that wait for room in the budget check whether they fit now."""
        if self._reservation is not None:
            self._budget.finish(self._reservation, self._tokens)


async def get_or_request(
    records: Sequence[CallRecord],
    ask: Callable[[PaidRequest, Sequence[int]], Awaitable[Sequence[CallResult]]],
    journal: Journal,
    scope: RunScope,
    budget: Budget,
    identity: ModelIdentity,
    *also: str,
) -> list[CachedAnswer]:
    """The answers to `records`: from the journal, from an identical call in flight, or by one request.

    `ask` receives the positions of the records without an answer and returns their results in that order. Raises a
    user-facing error, which depends on whether the run, or a run in `also`, had answers before.
    """
    request = PaidRequest(budget)
    try:
        return await journal.get_or_call(records, scope, partial(ask, request))
    except CallFailedError as failed:
        used = Usage.of(await journal.spending([scope.run_id, *also]))
        answered = used.llm_calls + used.journal_hits + used.embedded_texts > 0
        raise to_user_error(failed, identity, answered=answered) from failed
    finally:
        request.finish()


# The URL of each encoding's data, whose sha1 names the file in tiktoken's cache, and the sha256 of the data.
DATA: Final = {
    "cl100k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
_LARGEST: Final = 10_000_000  # maximum bytes of such a file; the two have about 2 and 4 million
_MARGIN: Final = 1.1  # since servers format tools and schemas differently
_WIDE_MARGIN: Final = 1.5  # for servers that may use another tokenizer under the same model name
_PIECE: Final = 2_000  # characters encoded at once: a run without whitespace takes quadratic time
_OWN_HOSTS: Final = ("api.openai.com", ".openai.azure.com")


def size_reservation(reservation: Reservation, text: str, around: int) -> Reservation:
    """The reservation for `text` plus `around` tokens that the server may add; the first call for a model blocks."""
    size = around + len(text.encode("utf-8", "replace"))
    counted = count_tokens(reservation.record.model, text)
    if counted is None:
        return replace(reservation, input_tokens=size)
    trusted = counts_as_openai(reservation.record.endpoint)
    most = around + int(counted * (_MARGIN if trusted else _WIDE_MARGIN)) + 1
    return replace(reservation, input_tokens=size, counted=min(size, most), trusted=trusted)


def count_tokens(model: str, text: str) -> int | None:
    """The number of tokens of `text` for `model`; None if its tokenizer is not available."""
    encoding = _encoding_of(model)
    if encoding is None:
        return None
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    return sum(map(len, encoding.encode_ordinary_batch(pieces, num_threads=1)))


def counts_as_openai(endpoint: str) -> bool:
    """Whether a model's name determines its tokenizer: only at OpenAI's own hosts."""
    host = urlsplit(endpoint).hostname or ""
    return host == _OWN_HOSTS[0] or host.endswith(_OWN_HOSTS[1])


@lru_cache(maxsize=16)
def _encoding_of(model: str) -> Encoding | None:
    """The tokenizer of a model if tiktoken's cache has its data; downloads nothing."""
    try:
        import tiktoken

        name = tiktoken.encoding_name_for_model(model)
    except (ImportError, KeyError):
        return None
    address, sha256 = DATA.get("o200k_base" if name == "o200k_harmony" else name, ("", ""))
    default = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    if not address or not folder:  # an empty path turns the cache off
        return None
    path = Path(folder) / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    try:
        usable = path.is_file() and path.stat().st_size <= _LARGEST
        whole = usable and hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return None
    return tiktoken.get_encoding(name) if whole else None

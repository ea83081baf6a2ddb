"""The bytes of a server's answer: bounded while they come, unpacked a little at a time, read as JSON without traps.

A few kilobytes of a packed body can stand for gigabytes, and so can one network packet. So only gzip is asked for, and
never more of it is unpacked than an answer may have.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncGenerator
from typing import Any, Final

from .failures import BrokenAnswerError

ACCEPTED_ENCODING: Final = "gzip"
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_DIGITS: Final = 400  # of an integer; Python refuses those of more than 4,300, and with them the whole answer


async def body_parts(response: Any, most: int) -> AsyncGenerator[bytes, None]:
    """The body as it comes, unpacked; raises `BrokenAnswerError` once it is longer than `most` bytes."""
    encoding = str(response.headers.get("content-encoding", "")).strip().lower()
    if encoding not in _PACKED | {"", "identity"}:
        raise BrokenAnswerError(f"an answer in an encoding that was not asked for, {encoding[:40]!r}")
    unpack = zlib.decompressobj(_GZIP_OR_ZLIB) if encoding in _PACKED else None
    came = size = 0
    async for packed in response.aiter_raw():
        came += len(packed)
        try:
            part = packed if unpack is None else unpack.decompress(packed, most - size + 1)
        except zlib.error as error:
            raise BrokenAnswerError(f"an answer that cannot be unpacked: {error}") from error
        size += len(part)
        if max(came, size) > most:
            raise BrokenAnswerError(f"an answer of more than {most // 1_000_000} MB")
        if part:
            yield part


def json_of(body: bytes) -> Any:
    """`body` as JSON; raises ValueError, and `BrokenAnswerError` where it is nested too deep to be read."""
    text = body.decode(json.detect_encoding(body), "replace")
    try:
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise BrokenAnswerError("JSON that is nested too deep") from None


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


_DECODER: Final = json.JSONDecoder(parse_int=_whole_number)

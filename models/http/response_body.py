"""Reads response bodies with size limits, incremental decompression and safe JSON parsing.

Kilobytes can expand to gigabytes: only gzip is requested, and decompressed no further than an answer's limit. Event
lines are limited in length, which no library for server-sent events offers.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from .failures import BrokenAnswerError, ServerRefusalError, one_line, raise_embedded_error, retry_after, server_message

ACCEPTED_ENCODING: Final = "gzip"
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_DIGITS: Final = 400  # per integer; Python refuses more than 4,300, and with them the whole answer
MOST_BYTES_OF_REFUSAL: Final = 1_000_000
# Room for 100,000 tokens, each in a chunk of about 300 bytes.
MOST_BYTES_OF_STREAM: Final = 32_000_000
MOST_BYTES_OF_LINE: Final = 4_000_000
_DATA: Final = re.compile(rb"^data:([^\n]*)", re.M)


async def body_parts(response: Any, most: int) -> AsyncGenerator[bytes, None]:
    """Yield the decompressed body as it arrives; raises `BrokenAnswerError` once it exceeds `most` bytes."""
    encoding = str(response.headers.get("content-encoding", "")).strip().lower()
    if encoding not in _PACKED | {"", "identity"}:
        raise BrokenAnswerError(f"an answer in an encoding that was not requested, {encoding[:40]!r}")
    too_long = BrokenAnswerError(f"an answer of more than {most // 1_000_000} MB")
    length = str(response.headers.get("content-length", ""))
    if length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise too_long
    unpack = zlib.decompressobj(_GZIP_OR_ZLIB) if encoding in _PACKED else None
    came = size = 0
    async for packed in response.aiter_raw():
        came += len(packed)
        try:
            part = packed if unpack is None else unpack.decompress(packed, most - size + 1)
        except zlib.error as error:
            raise BrokenAnswerError(f"an answer that cannot be decompressed: {error}") from error
        size += len(part)
        if max(came, size) > most:
            raise too_long
        if part:
            yield part


async def read_body(response: Any, most: int) -> bytes:
    """The whole body; raises `BrokenAnswerError` as soon as it exceeds `most` bytes."""
    async with aclosing(body_parts(response, most)) as parts:
        return b"".join([part async for part in parts])


async def read_refusal(response: Any) -> ServerRefusalError:
    """The error for a response with a status of 400 or above, whatever its body is."""
    try:
        message = server_message((await read_body(response, MOST_BYTES_OF_REFUSAL)).decode("utf-8", "replace"))
    except BrokenAnswerError as error:
        message = str(error)
    return ServerRefusalError(response.status_code, message, retry_after(response.headers))


def parse_json(body: bytes) -> Any:
    """Parse `body` as JSON; raises ValueError, and `BrokenAnswerError` if it is nested too deeply."""
    text = body.decode(json.detect_encoding(body), "replace")
    try:
        return _DECODER.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise BrokenAnswerError("JSON that is nested too deeply") from None


_DECODER: Final = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= _DIGITS else float(digits))


def parse_object(body: bytes, what: str) -> dict[str, Any]:
    """The JSON object in a body that messages call `what`.

    Raises `BrokenAnswerError`, and `ServerRefusalError` for an error in it, which some gateways send with status 200.
    """
    try:
        data = parse_json(body)
    except ValueError as error:
        start = server_message(body[:2000].decode("utf-8", "replace"))
        raise BrokenAnswerError(f"{what} that is not JSON but {start!r}" if body else "an empty answer") from error
    if not isinstance(data, dict):
        raise BrokenAnswerError(f"{what} that is not a JSON object but {one_line(str(data)[:1000])!r}")
    if data.get("error"):
        raise_embedded_error(data["error"])
    return data


def is_event_stream(response: Any) -> bool:
    """Whether a response is an event stream; some servers never stream."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower() == "text/event-stream"


async def data_lines(response: Any) -> AsyncGenerator[bytes, None]:
    """Yield the data lines of an event stream; others are keep-alive comments or unused fields."""
    left: list[bytes] = []
    size = 0
    async with aclosing(body_parts(response, MOST_BYTES_OF_STREAM)) as parts:
        async for part in parts:
            left.append(part)
            size += len(part)
            if b"\n" in part:
                block, _, rest = b"".join(left).rpartition(b"\n")
                left, size = [rest], len(rest)
                for line in _DATA.findall(block):
                    yield line
            elif size > MOST_BYTES_OF_LINE:
                raise BrokenAnswerError(f"a line of more than {MOST_BYTES_OF_LINE // 1_000_000} MB")
    for line in _DATA.findall(b"".join(left)):
        yield line

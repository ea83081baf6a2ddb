"""The size of a prompt in tokens of its model, where the tokenizer's data lies on this machine already.

tiktoken downloads what it does not have. So it is only asked once the file is in its cache and has the hash that
tiktoken expects; otherwise prompts are counted in bytes, of which no tokenizer makes more tokens.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .journal.records import Hold

if TYPE_CHECKING:
    from tiktoken import Encoding

# Where tiktoken downloads the data of an encoding from, whose sha1 names it in the cache, and the sha256 of the data.
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
_LARGEST: Final = 10_000_000  # bytes of such a file; they have some 2 and 4 million
_MARGIN: Final = 1.1  # servers lay tools and forms out in ways of their own
_WIDE_MARGIN: Final = 1.5  # what a server of that name makes of one text need not hold for the next
_PIECE: Final = 2_000  # characters encoded at once: a run without blanks takes the square of its length
_OWN_HOSTS: Final = ("api.openai.com", ".openai.azure.com")


def sized(hold: Hold, text: str, around: int) -> Hold:
    """The reservation of a request that sends `text`, and `around` tokens that the server may put about it.

    Blocks for the first of a model.
    """
    size = around + len(text.encode("utf-8", "replace"))
    counted = count_tokens(hold.record.model, text)
    if counted is None:
        return replace(hold, input_tokens=size)
    trusted = counts_as_openai(hold.record.endpoint)
    most = around + int(counted * (_MARGIN if trusted else _WIDE_MARGIN)) + 1
    return replace(hold, input_tokens=size, counted=min(size, most), trusted=trusted)


def count_tokens(model: str, text: str) -> int | None:
    """The tokens that `model` makes of `text`; None where its tokenizer is not at hand."""
    encoding = _encoding_of(model)
    if encoding is None:
        return None
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    return sum(map(len, encoding.encode_ordinary_batch(pieces, num_threads=1)))


def counts_as_openai(endpoint: str) -> bool:
    """Whether a model's name says which tokenizer counts there: at OpenAI's own hosts; others may call any model so."""
    host = urlsplit(endpoint).hostname or ""
    return host == _OWN_HOSTS[0] or host.endswith(_OWN_HOSTS[1])


@lru_cache(maxsize=16)
def _encoding_of(model: str) -> Encoding | None:
    try:
        import tiktoken

        name = tiktoken.encoding_name_for_model(model)
    except (ImportError, KeyError):
        return None
    data = "o200k_base" if name == "o200k_harmony" else name
    return tiktoken.get_encoding(name) if data in DATA and _at_hand(*DATA[data]) else None


def _at_hand(address: str, sha256: str) -> bool:
    """Whether tiktoken has the data in its cache, whole."""
    default = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    if not folder:
        return False  # this turns the cache off
    path = Path(folder) / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False

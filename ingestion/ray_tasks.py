"""What a Ray worker does: the stages of an ingest on what it is sent, without store, settings or keys."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..documents import Chunk
from ..documents.bibliography import Refusal
from ..documents.chunking import CHUNKING_VERSION
from ..documents.markdown import ParsedPaper
from ..models.embeddings.bundled_models import LocalEmbedding, count_tokens_each
from ..models.embeddings.protocol import Vectors
from .reading import READING_VERSION, ConvertedFiles, PdfReading, parse_file
from .stages import Chunking, split_paper

# They decide what is read from a paper and what its vectors are.
_PACKAGES: Final = ("citeloom", "pdf-oxide", "pypandoc_binary", "onnxruntime", "tokenizers", "numpy")


class _Recorder(ConvertedFiles):
    """A cache without entries, which records what is put into it."""

    def __init__(self) -> None:
        self.conversion: dict[str, Any] | None = None

    def get(self, file: Path) -> None:
        return None

    def put(self, file: Path, read: dict[str, Any], digest: str = "") -> None:
        self.conversion = read


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """The versions on which the result of a stage depends; empty for a package that is not installed."""
    found = {"reading": READING_VERSION, "chunking": str(CHUNKING_VERSION)}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = ""
    return found


def parse(data: bytes, file: str, pdf: PdfReading) -> tuple[ParsedPaper | Refusal, dict[str, Any] | None]:
    """Parse the bytes of a file; also returns what the file was converted to, if its format needs that.

    Raises OSError if there is no space for the file.
    """
    recorder = _Recorder()
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        copy = Path(folder, f"paper{Path(file).suffix}")
        copy.write_bytes(data)
        parsed = parse_file(copy, recorder, pdf)
        if isinstance(parsed, Refusal):
            reason = parsed.reason.replace(str(copy.resolve()), file).replace(str(copy), file)
            return Refusal(file, reason), None
    return parsed, recorder.conversion


def split(key: str, parsed: ParsedPaper, chunking: Chunking) -> tuple[Chunk, ...]:
    """Split a paper into chunks."""
    return split_paper(key, parsed, count_tokens_each, chunking)


def embed(texts: list[str]) -> Vectors:
    """The vectors of texts from the bundled model, [n, d]."""
    model = LocalEmbedding()
    return np.stack([model.embed_text(text) for text in texts])

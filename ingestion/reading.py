"""The stages of an ingest that need no store (reading, splitting, embedding), run here or on Ray (`ray_executor.py`).

The content of files is cached, so that unchanged files are not read again.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..documents import Chunk
from ..documents.bibliography import Refusal
from ..documents.chunking import CountTokens, chunk_paper
from ..documents.markdown import ParsedPaper, parse_markdown
from ..documents.pandoc import FORMATS, as_markdown, most_bytes
from ..documents.pdf.ocr import PAGE_READINGS, PAGE_SECONDS, Ocr, pages_at_once
from ..documents.pdf.reader import PdfRefusedError, PdfText, pdf_record, to_parsed_paper
from ..documents.safe_files import FileRefusedError, read_regular, replace_file, require_regular
from ..documents.sandbox import CallLimits, SandboxError, raise_if_stopped, run_sandboxed
from ..models.embeddings.protocol import EmbeddingModel, Vector

MARKDOWN = frozenset({".md", ".markdown"})
PDF = ".pdf"
ENDINGS = (*sorted(MARKDOWN, reverse=True), *FORMATS, PDF)  # of a paper in several formats, the first is preferred
_MOST_PDF = 500_000_000
MOST_CHARACTERS = 20_000_000  # per paper, about 8,000 pages; beyond that, chunking alone would take minutes
_TOO_MUCH = f"more than the limit of {MOST_CHARACTERS / 1e6:.0f} MB; are pictures embedded in it?"
UNPARSABLE = (RecursionError, MemoryError, ValueError)

# Entries of another version are ignored; increase it with every change to what is read from a file.
READING_VERSION = "8"


class ConvertedFiles:
    """The cached content of converted files; the folder is created with the first entry."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, file: Path) -> dict[str, Any] | None:
        """The cached content of the file; raises OSError if the file is unreadable."""
        stamp = _make_stamp(file)
        try:
            entry = json.loads(self.entry(file).read_bytes())
        except (OSError, ValueError):
            return None
        content = entry.get("read") if isinstance(entry, dict) and entry.get("stamp") == stamp else None
        return content if isinstance(content, dict) else None

    def put(self, file: Path, read: dict[str, Any], digest: str = "") -> None:
        """Cache what was read from the file, atomically; does nothing if the folder is not writable.

        `digest` is the sha256 of the bytes that were read; by default that of the current file.
        """
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self.entry(file), json.dumps({"stamp": _make_stamp(file, digest), "read": read}).encode())

    def forget(self, file: Path) -> None:
        """Delete the entry of a file, which may itself no longer exist."""
        with contextlib.suppress(OSError):
            self.entry(file).unlink()

    def entry(self, file: Path) -> Path:
        """The file in which the content of a file is stored."""
        path = str(file.resolve()).encode("utf-8", "surrogateescape")
        return self._folder / f"{hashlib.sha256(path).hexdigest()[:32]}.json"


def _make_stamp(file: Path, digest: str = "") -> str:
    if not digest:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return f"{READING_VERSION}:{digest}"


# Real papers take some hundredths of a second per page.
SECONDS: Final = 120.0
_MEMORY: Final = 4 << 30  # bytes of address space


def read_pdf_apart(
    path: Path, kept: ConvertedFiles | None = None, *, ocr: Ocr | None = None, seconds: float = SECONDS
) -> ParsedPaper:
    """Read the paper in a PDF; raises `PdfRefusedError` with the reason, also if the reader crashes or times out.

    A refused PDF is read again the next time; one that was read is cached until it changes.
    """
    from pydantic import TypeAdapter

    read = kept.get(path) if kept is not None else None
    # OCR adds to the cached text if pages were not yet read by it, or not in these languages.
    adds = read and ocr and (read["unread"] or (read["ocr_pages"] and read["ocr"] != ocr.languages))
    if read is None or adds:
        read = _read_record(path, None, seconds)
        if ocr is not None and read["unread"]:
            batches = math.ceil(len(read["unread"]) / pages_at_once())
            read = _read_record(path, ocr, seconds + batches * PAGE_READINGS * PAGE_SECONDS)
        if "refused" in read:
            raise PdfRefusedError(read["refused"], read["unread"])
        if kept is not None:
            kept.put(path, read)
    return to_parsed_paper(TypeAdapter(PdfText).validate_python(read))


def _read_record(path: Path, ocr: Ocr | None, seconds: float) -> dict[str, Any]:
    """Read the PDF reader's result for a file, which may be a refusal."""
    try:
        return dict(run_sandboxed(pdf_record, CallLimits(seconds, _MEMORY), path.resolve(), ocr))
    except SandboxError as error:
        raise PdfRefusedError(f"was not read: the PDF reader {error}; it may be damaged") from None


# Parses files, in order.
ParseFiles = Callable[[Sequence[Path], ConvertedFiles | None, Ocr | None], Iterable[ParsedPaper | Refusal]]


def parse_files(files: Sequence[Path], kept: ConvertedFiles | None, ocr: Ocr | None) -> Iterator[ParsedPaper | Refusal]:
    for file in files:
        raise_if_stopped()
        yield parse_file(file, kept, ocr)


def parse_file(file: Path, kept: ConvertedFiles | None, ocr: Ocr | None) -> ParsedPaper | Refusal:
    """The parsed paper or its refusal, so that one paper cannot abort the others."""
    if printable(str(file)) != str(file):
        return Refusal(printable(str(file)), "has a name that is not valid text; rename it")
    try:
        return _parse(file, kept, ocr)
    except FileRefusedError as error:
        return Refusal(str(file), str(error))
    except UNPARSABLE as error:
        return refuse_unparsable(str(file), error)


def _parse(file: Path, kept: ConvertedFiles | None, ocr: Ocr | None) -> ParsedPaper:
    """Parse the file by its extension; raises `FileRefusedError`."""
    ending = file.suffix.lower()
    try:
        if ending in MARKDOWN:
            return parse_markdown(read_text(file))
        # Checked before anything is read, even to compare it with the cache.
        require_regular(file, most_bytes(file) if ending in FORMATS else _MOST_PDF)
        if ending == PDF:
            return read_pdf_apart(file, kept, ocr=ocr)
        if ending in FORMATS:
            read = kept.get(file) if kept is not None else None
            if read is None:
                read = {"markdown": as_markdown(file)}
                if kept is not None:
                    kept.put(file, read)
            text = str(read["markdown"])
            if len(text) > MOST_CHARACTERS:
                raise FileRefusedError(f"holds {len(text) / 1e6:.0f} MB of text, {_TOO_MUCH}")
            return parse_markdown(text)
    except OSError as error:
        raise FileRefusedError(f"cannot be read ({error.strerror or type(error).__name__})") from error
    hint = "; give it with --bib" if ending == ".bib" else ""
    raise FileRefusedError(f"is not a file type that can be read ({', '.join(ENDINGS)}){hint}")


def read_text(file: Path, *, blank: bool = False) -> str:
    """The text of a UTF-8 file, which must not be blank unless `blank`; raises `FileRefusedError`."""
    try:
        data = read_regular(file, MOST_CHARACTERS)
    except FileRefusedError as error:
        raise FileRefusedError(f"{error}; are pictures embedded in it?" if file.is_file() else str(error)) from error
    except OSError as error:
        raise FileRefusedError(f"cannot be read ({error.strerror or type(error).__name__})") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileRefusedError("is UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise FileRefusedError("is binary, not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileRefusedError(f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    if not text.strip() and not blank:
        raise FileRefusedError("is empty")
    return text if text.strip() else ""


def refuse_unparsable(name: str, error: Exception) -> Refusal:
    kind = "is nested too deeply" if isinstance(error, RecursionError) else "has an unknown format"
    return Refusal(printable(name), f"cannot be read: it {kind} ({type(error).__name__})")


def printable(name: str) -> str:
    """A file name that can be stored and shown, with bytes that are not UTF-8 escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


Chunking = tuple[int, int]  # target size and overlap of chunks, in tokens
Texts = Mapping[str, str]  # by their hashes
# Splits papers, given with their keys, in order; a refused paper yields the reason instead of chunks.
SplitPapers = Callable[[Sequence[tuple[str, ParsedPaper]], Chunking], Iterable[tuple[Chunk, ...] | str]]
# Embeds texts and reports how many more are done; the result lacks texts that could not be embedded.
EmbedTexts = Callable[[Texts, Callable[[int], None]], Awaitable[Mapping[str, Vector]]]


@dataclass(frozen=True, slots=True)
class IngestExecutor:
    """How an ingest parses, splits and embeds; `texts_at_once` is the number of texts worth embedding per call."""

    parse: ParseFiles
    split: SplitPapers
    embed: EmbedTexts
    texts_at_once: int


def local_executor(embedding: EmbeddingModel) -> IngestExecutor:
    split, embed = partial(split_papers, embedding.count_tokens_each), partial(embed_texts, embedding)
    return IngestExecutor(parse_files, split, embed, embedding.at_once)


def split_papers(
    count_tokens: CountTokens, papers: Sequence[tuple[str, ParsedPaper]], chunking: Chunking
) -> Iterator[tuple[Chunk, ...]]:
    """Split papers in order; a paper without searchable text has no chunks."""
    target, overlap = chunking
    for key, parsed in papers:
        raise_if_stopped()
        yield tuple(chunk_paper(key, parsed, count_tokens, target=target, overlap=overlap))


async def embed_texts(embedding: EmbeddingModel, texts: Texts, on_done: Callable[[int], None]) -> Mapping[str, Vector]:
    """The vectors of texts, by their hashes; raises any error of the embedding model."""
    rows = await embedding.embed_documents(list(texts.values()), on_done)
    return dict(zip(texts, rows, strict=True))

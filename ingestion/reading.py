"""Reads papers from PDF files, and caches what was read from files so that unchanged ones are not read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..documents.markdown import ParsedPaper
from ..documents.pdf import PdfRefusedError, PdfText
from ..documents.pdf.ocr import PAGE_READINGS, PAGE_SECONDS, Ocr, ocr_of, pages_at_once
from ..documents.pdf.structure import parsed_pdf
from ..documents.sandbox import OutOfTimeError, run
from ..settings.config import Settings

# Entries of another version are ignored; increase it with every change to what is read from a file.
READING_VERSION = "4"


class ConvertedFiles:
    """A folder of cache entries, created with the first entry."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, file: Path) -> dict[str, Any] | None:
        """The cached content of the file; raises OSError if the file is unreadable."""
        stamp = _stamp(file)
        try:
            entry = json.loads(self.entry(file).read_bytes())
        except (OSError, ValueError):
            return None
        content = entry.get("read") if isinstance(entry, dict) and entry.get("stamp") == stamp else None
        return content if isinstance(content, dict) else None

    def put(self, file: Path, read: dict[str, Any], digest: str = "") -> None:
        """Cache what was read from the file, atomically; does nothing if the folder is not writable.

        `digest` is the sha256 of the bytes that were read; that of the file as it is now if omitted.
        """
        entry = self.entry(file)
        temporary = entry.with_suffix(f".{secrets.token_hex(4)}.tmp")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps({"stamp": _stamp(file, digest), "read": read}), encoding="utf-8")
            temporary.replace(entry)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def forget(self, file: Path) -> None:
        """Delete the entry of a file, which may itself no longer exist."""
        with contextlib.suppress(OSError):
            self.entry(file).unlink()

    def entry(self, file: Path) -> Path:
        """The file in which the content of a file is stored."""
        path = str(file.resolve()).encode("utf-8", "surrogateescape")
        return self._folder / f"{hashlib.sha256(path).hexdigest()[:32]}.json"


def _stamp(file: Path, digest: str = "") -> str:
    if digest:
        return f"{READING_VERSION}:{digest}"
    with file.open("rb") as opened:
        return f"{READING_VERSION}:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


# Real papers take some hundredths of a second per page.
SECONDS = 120.0
_READER = "citeloom.documents.pdf"


@dataclass(frozen=True, slots=True)
class PdfReading:
    """How PDFs are read: pages without text by which OCR (none if it is off)."""

    ocr: Ocr | None = None

    @classmethod
    def of(cls, settings: Settings, *, ocr: bool = False) -> PdfReading:
        """As the settings say, but with OCR in any case if `ocr`; raises `InputError` if what they name is missing."""
        return cls(ocr_of(settings, required=ocr))


BUILT_IN = PdfReading()


def read_pdf_apart(
    path: Path, kept: ConvertedFiles | None = None, *, how: PdfReading = BUILT_IN, seconds: float = SECONDS
) -> ParsedPaper:
    """Read the paper in a PDF; raises `PdfRefusedError` with the reason, also if the reader crashes or times out.

    A refused PDF is read again the next time; one that was read is cached until it changes.
    """
    read = kept.get(path) if kept is not None else None
    if read is None or _wants_ocr(read, how.ocr):
        read = _read(path, how.ocr, seconds)
        if kept is not None:
            kept.put(path, read)
    return parsed_pdf(PdfText.from_dict(read))


def _wants_ocr(read: Mapping[str, Any], ocr: Ocr | None) -> bool:
    """Whether OCR would add to what is cached: pages that it has not read yet, or not in these languages."""
    return ocr is not None and bool(read["unread"] or (read["ocr_pages"] and read["ocr"] != ocr.languages))


def _read(path: Path, ocr: Ocr | None, seconds: float) -> dict[str, Any]:
    read = _printed(path, (), seconds)
    if ocr is not None and read["unread"]:
        batches = math.ceil(len(read["unread"]) / pages_at_once())
        read = _printed(
            path, (ocr.program, ocr.languages, ocr.layout), seconds + batches * PAGE_READINGS * PAGE_SECONDS
        )
    if "refused" in read:
        raise PdfRefusedError(read["refused"], read["unread"])
    return read


def _printed(path: Path, options: tuple[str, ...], seconds: float) -> dict[str, Any]:
    """What the reader prints of a file, which may be that it refuses the file."""
    # -P: a json.py in the current folder must not be imported.
    command = [sys.executable, "-P", "-m", _READER, str(path.resolve()), *options]
    try:
        done = run(command, seconds=seconds)
    except OutOfTimeError:
        raise PdfRefusedError(f"was not read within {seconds:g} seconds; it may be damaged") from None
    try:
        return dict(json.loads(done.output))
    except ValueError:
        raise PdfRefusedError(f"made the PDF reader fail (exit code {done.code}); it may be damaged") from None

"""Caches what was read from PDF and other files in the home, so that unchanged files are not read again.

There is one entry per file, named after its path; an entry from different bytes or another version of the reader is
ignored. It is deleted with its paper.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

# Entries of another version are ignored; increase it with every change to what is read from a file.
READING_VERSION = "3"


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

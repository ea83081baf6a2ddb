"""What was read from PDF and other files, kept in the home so that an unchanged file is not read again.

One entry for each file, named after its path; an entry made of other bytes, or by another version of the reader,
counts as none. It leaves with its paper.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

# Entries by another version are made anew; to be raised with every change to what is read from a file.
READING_VERSION = "2"


class ConvertedFiles:
    """The entries in one folder, which is made when the first one is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, file: Path, reader: str = "") -> dict[str, Any] | None:
        """What `reader` (our own when empty) read from the file as it is now; raises OSError when it cannot be read."""
        stamp = _stamp(file, reader)
        try:
            entry = json.loads(self._entry(file).read_bytes())
        except (OSError, ValueError):
            return None
        kept = entry.get("read") if isinstance(entry, dict) and entry.get("stamp") == stamp else None
        return kept if isinstance(kept, dict) else None

    def put(self, file: Path, read: dict[str, Any], reader: str = "") -> None:
        """Keep what `reader` read from the file, whole or not at all; a folder that cannot be written keeps nothing."""
        entry = self._entry(file)
        beside = entry.with_suffix(f".{secrets.token_hex(4)}.tmp")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"stamp": _stamp(file, reader), "read": read}), encoding="utf-8")
            beside.replace(entry)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()

    def forget(self, file: Path) -> None:
        """Drop the entry of a file, which may be gone itself."""
        with contextlib.suppress(OSError):
            self._entry(file).unlink()

    def _entry(self, file: Path) -> Path:
        path = str(file.resolve()).encode("utf-8", "surrogateescape")
        return self._folder / f"{hashlib.sha256(path).hexdigest()[:32]}.json"


def _stamp(file: Path, reader: str) -> str:
    version = f"{READING_VERSION}:{reader}" if reader else READING_VERSION
    with file.open("rb") as opened:
        return f"{version}:{hashlib.file_digest(opened, 'sha256').hexdigest()}"

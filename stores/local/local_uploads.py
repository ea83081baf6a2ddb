"""Uploaded files in a folder: each upload has a folder of its own inside the home."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..home import Home

UPLOAD: Final = re.compile(r"ingest-[0-9a-f]{12}")


class LocalUploads:
    """The uploads below the folder of papers."""

    def __init__(self, home: Home) -> None:
        self._papers = home.papers

    def folder(self, upload: str) -> Path:
        """The folder of an upload."""
        return self._papers / upload

    def publish(self, upload: str) -> None:
        """Do nothing: no other server needs them."""

    def fetch(self, upload: str) -> None:
        """Do nothing: they are here."""

    def place_of(self, source: str) -> tuple[str, str] | None:
        """Upload and name of a file in a folder of an upload; None for any other."""
        path = Path(source)
        inside = bool(source) and path.is_relative_to(self._papers.resolve())
        return (path.parent.name, path.name) if inside else None

    def file(self, source: str) -> Path:
        """The file."""
        return Path(source)

    def names(self, upload: str) -> list[str]:
        """The names of the files of an upload."""
        with suppress(FileNotFoundError):
            return sorted(file.name for file in self.folder(upload).iterdir())
        return []

    def remove(self, upload: str, names: Collection[str]) -> None:
        """Delete files of an upload, and its folder when nothing is left in it."""
        folder = self.folder(upload)
        with suppress(FileNotFoundError):
            for name in names:
                (folder / name).unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()

    def idle(self) -> list[str]:
        """All uploads."""
        with suppress(FileNotFoundError):
            return sorted(
                folder.name for folder in self._papers.iterdir() if folder.is_dir() and UPLOAD.fullmatch(folder.name)
            )
        return []

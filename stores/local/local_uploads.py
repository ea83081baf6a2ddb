"""Uploaded files in a folder: each upload has a folder of its own inside the home."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

UPLOAD: Final = re.compile(r"ingest-[0-9a-f]{12}")


class LocalUploads:
    """The uploads below `root` whose names match `ids`.

    Those not stored again for `idle_after` seconds are idle, but not the `unfinished` ones.
    """

    def __init__(
        self,
        root: Path,
        ids: re.Pattern[str],
        idle_after: float = 0,
        unfinished: Callable[[], set[str]] = set,
    ) -> None:
        self._root = root
        self._ids = ids
        self._idle_after = idle_after
        self.unfinished = unfinished

    def folder(self, upload: str) -> Path:
        return self._root / upload

    def publish(self, upload: str) -> None:
        """Note the time: no other server needs them."""
        with suppress(FileNotFoundError):
            os.utime(self.folder(upload))

    def fetch(self, upload: str) -> None:
        """Do nothing: they are here."""

    def place_of(self, source: str) -> tuple[str, str] | None:
        path = Path(source)
        inside = bool(source) and path.is_relative_to(self._root.resolve())
        return (path.parent.name, path.name) if inside else None

    def reference(self, file: Path) -> str:
        return str(file)

    def file(self, source: str) -> Path:
        return Path(source)

    def names(self, upload: str) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(file.name for file in self.folder(upload).iterdir())
        return []

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for upload in self._uploads() if among is None else among:
            with suppress(FileNotFoundError, NotADirectoryError):
                sizes = {file.name: file.stat().st_size for file in os.scandir(self.folder(upload))}
                found |= {upload: sizes} if sizes else {}
        return found

    def remove(self, upload: str, names: Collection[str]) -> None:
        folder = self.folder(upload)
        for name in names:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # it is not empty, or gone
            folder.rmdir()

    def idle(self) -> list[str]:
        before = time.time() - self._idle_after
        busy = self.unfinished()
        return sorted(
            upload for upload, changed_at in self._uploads().items() if changed_at <= before and upload not in busy
        )

    def _uploads(self) -> dict[str, float]:
        """When each upload was last stored, in seconds since 1970."""
        with suppress(FileNotFoundError):
            folders = [each for each in os.scandir(self._root) if self._ids.fullmatch(each.name)]
            return {each.name: each.stat().st_mtime for each in folders if each.is_dir(follow_symlinks=False)}
        return {}

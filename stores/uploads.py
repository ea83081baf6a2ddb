"""Uploaded files, one folder per upload; PostgreSQL shares them with other computers.

In the database they are stored in parts of a mebibyte; the folder on each computer then holds copies of them.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final

from ..table_columns import BLOB, TEXT, Column, TypedTable, WrongValueError, integer

UPLOAD: Final = re.compile(r"ingest-[0-9a-f]{12}")


class LocalUploads:
    """The uploads below `root` whose names match `ids`.

    Uploads not stored again for `idle_after` seconds are idle, except the `unfinished` ones.
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
        """Only update the time: no other server needs the files."""
        with suppress(FileNotFoundError):
            os.utime(self.folder(upload))

    def fetch(self, upload: str) -> None:
        """Do nothing: the files are already here."""

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
        with suppress(OSError):  # not empty, or already gone
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


_PART: Final = 2**20
_HOUR: Final = 3600.0
_LONGEST_NAME: Final = 255  # maximum bytes of a file name
_IDLE: Final = """
SELECT u.upload, (max(u.stored_at) < now() - %s * interval '1 s' OR bool_or(j.ended_at IS NOT NULL))
    AND NOT bool_or(j.id IS NOT NULL AND j.ended_at IS NULL)
FROM uploads u LEFT JOIN server_jobs j ON j.id = u.upload GROUP BY u.upload
"""


def _file_name(value: Any) -> str:
    if type(value) is not str or value in ("", ".", "..") or "/" in value or "\\" in value:
        raise ValueError
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError
    return value


UPLOADS: Final = TypedTable(
    "uploads",
    ("upload", "name", "part"),
    {"upload": TEXT, "name": Column("the name of a file", _file_name), "part": integer(), "content": BLOB},
)


class PostgresUploads:
    """The uploads of a library whose names match `ids`, with copies below `root`.

    Uploads not stored again for `idle_after` seconds are idle.
    """

    def __init__(
        self,
        connection: Callable[[], AbstractContextManager[Any]],
        root: Path,
        ids: re.Pattern[str],
        idle_after: float = _HOUR,
    ) -> None:
        self._connection = connection
        self._root = root
        self._ids = ids
        self._idle_after = idle_after

    def folder(self, upload: str) -> Path:
        return self._root / upload

    def publish(self, upload: str) -> None:
        stored = set(self.names(upload))
        with self._connection() as connection, connection.transaction():
            connection.execute("UPDATE uploads SET stored_at = now() WHERE upload = %s", (upload,))
            for file in sorted(file for file in self.folder(upload).iterdir() if file.name not in stored):
                with file.open("rb") as content:
                    for number, part in enumerate(iter(partial(content.read, _PART), b"")):
                        connection.execute(
                            "INSERT INTO uploads (upload, name, part, content) VALUES (%s, %s, %s, %s)"
                            " ON CONFLICT (upload, name, part) DO NOTHING",
                            (upload, file.name, number, part),
                        )

    def fetch(self, upload: str) -> None:
        """Write the files that are missing in the folder of an upload."""
        for name in self.names(upload):
            self._fetch(upload, name)

    def place_of(self, source: str) -> tuple[str, str] | None:
        path = PurePath(source)
        uploaded = self._ids.fullmatch(path.parent.name) and path.parent.parent.name == self._root.name
        return (path.parent.name, path.name) if uploaded else None

    def reference(self, file: Path) -> str:
        """Its path relative to the root, which differs between computers."""
        return str(PurePosixPath(*file.parts[-3:]))

    def file(self, source: str) -> Path:
        place = self.place_of(source)
        return Path(source) if place is None or Path(source).is_file() else self._fetch(*place)

    def names(self, upload: str) -> list[str]:
        with self._connection() as connection:
            query = "SELECT DISTINCT upload, name FROM uploads WHERE upload = %s ORDER BY 2"
            return [name for _, name in UPLOADS.read(connection.execute(query, (upload,)))]

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT upload, name, coalesce(sum(octet_length(content)), 0) FROM uploads"
                " WHERE %s::text[] IS NULL OR upload = ANY(%s) GROUP BY upload, name",
                (given := None if among is None else list(among), given),
            )
            for upload, name, size in rows.fetchall():
                if self._ids.fullmatch(upload):
                    found.setdefault(upload, {})[name] = int(size)
        return found

    def remove(self, upload: str, names: Collection[str]) -> None:
        with self._connection() as connection:
            connection.execute("DELETE FROM uploads WHERE upload = %s AND name = ANY(%s)", (upload, list(names)))
        stored = self.names(upload)
        with suppress(OSError):
            for file in self.folder(upload).iterdir():
                if file.name not in stored:
                    file.unlink()
            self.folder(upload).rmdir()

    def unfinished(self) -> set[str]:
        with self._connection() as connection:
            rows = connection.execute("SELECT id FROM server_jobs WHERE kind = 'ingest' AND ended_at IS NULL")
            return {row[0] for row in rows.fetchall()}

    def idle(self) -> list[str]:
        with self._connection() as connection:
            rows = connection.execute(_IDLE, (self._idle_after,)).fetchall()
        before = time.time() - self._idle_after
        found = {upload for upload, idle in rows if idle}
        if self._root.is_dir():
            copies = [folder for folder in self._root.iterdir() if folder.stat().st_mtime < before]
            found |= {folder.name for folder in copies} - {upload for upload, _ in rows}
        return sorted(upload for upload in found if self._ids.fullmatch(upload))

    def _fetch(self, upload: str, name: str) -> Path:
        target = self.folder(upload) / name
        if target.is_file():
            return target
        with self._connection() as connection, connection.transaction():
            (parts,) = connection.execute(
                "SELECT count(*) FROM uploads WHERE upload = %s AND name = %s", (upload, name)
            ).fetchone()
            if parts:
                self._write(connection, upload, name, parts, target)
        return target

    def _write(self, connection: Any, upload: str, name: str, parts: int, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            for cut_off in self._root.glob(".fetched-*"):
                if cut_off.stat().st_mtime < time.time() - _HOUR:
                    cut_off.unlink()
        descriptor, written = tempfile.mkstemp(dir=self._root, prefix=".fetched-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                for number in range(parts):
                    found = UPLOADS.read(
                        connection.execute(
                            "SELECT upload, name, part, content FROM uploads"
                            " WHERE upload = %s AND name = %s AND part = %s",
                            (upload, name, number),
                        )
                    )
                    if not found:
                        row = f"upload={upload!r} name={name!r}"
                        raise WrongValueError(f"table uploads, column part, row {row}: part {number} is missing.")
                    file.write(found[0][3])
            shutil.move(written, target)
        finally:
            Path(written).unlink(missing_ok=True)

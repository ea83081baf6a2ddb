"""Uploaded files, one folder per upload; PostgreSQL stores them in parts of a mebibyte, and computers hold copies."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ..table_columns import BLOB, TEXT, Column, TypedTable, WrongValueError, integer

if TYPE_CHECKING:
    from .postgres.database import Database

UPLOAD: Final = re.compile(r"ingest-[0-9a-f]{12}")


class Uploads:
    """The papers or plots that were uploaded to a server of a folder; blocking and thread-safe.

    Each upload is a folder below `root` whose name matches `ids`. Uploads not stored again for `idle_after` seconds are
    idle, except the `unfinished` ones, which a job is working on or will resume.
    """

    def __init__(
        self, root: Path, ids: re.Pattern[str], idle_after: float = 0, unfinished: Callable[[], set[str]] = set
    ) -> None:
        self._root = root
        self._ids = ids
        self._idle_after = idle_after
        self.unfinished = unfinished

    def folder(self, upload: str) -> Path:
        """The folder on this computer from which an upload's files are read."""
        return self._root / upload

    def publish(self, upload: str) -> None:
        """Make the files in the folder of an upload available to all servers; publishing again resets their age."""
        with suppress(FileNotFoundError):
            os.utime(self.folder(upload))

    def fetch(self, upload: str) -> None:
        """Copy the files of an upload that another server received into the local folder."""

    def place_of(self, source: str) -> tuple[str, str] | None:
        """The upload id and name of a file; None if it was not uploaded."""
        path = Path(source)
        inside = bool(source) and path.is_relative_to(self._root.resolve())
        return (path.parent.name, path.name) if inside else None

    def reference(self, file: Path) -> str:
        """A machine-independent reference to a file of an upload, to be stored in records; resolved by `file`."""
        return str(file)

    def file(self, source: str) -> Path:
        """The local path of a paper or plot, fetched if another server received it; may not exist."""
        return Path(source)

    def names(self, upload: str) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(file.name for file in self.folder(upload).iterdir())
        return []

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """The size of each stored file in bytes, by upload and name; for all uploads or only those in `among`."""
        found: dict[str, dict[str, int]] = {}
        for upload in self._folders() if among is None else among:
            with suppress(FileNotFoundError, NotADirectoryError):
                sizes = {file.name: file.stat().st_size for file in os.scandir(self.folder(upload))}
                found |= {upload: sizes} if sizes else {}
        return found

    def remove(self, upload: str, names: Collection[str]) -> None:
        """Delete files of an upload, and its folder when it is empty."""
        folder = self.folder(upload)
        for name in names:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or already gone
            folder.rmdir()

    def idle(self) -> list[str]:
        """The uploads that no job is working on or will resume, so that they may be abandoned."""
        before, busy = time.time() - self._idle_after, self.unfinished()
        return sorted(name for name, changed_at in self._folders().items() if changed_at <= before and name not in busy)

    def _folders(self) -> dict[str, float]:
        """When each upload was last stored in its folder, in seconds since 1970."""
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
    plain = type(value) is str and value not in ("", ".", "..") and "/" not in value and "\\" not in value
    if not plain or len(value.encode()) > _LONGEST_NAME:
        raise ValueError
    return str(value)


UPLOADS: Final = TypedTable(
    "uploads",
    ("upload", "name", "part"),
    {"upload": TEXT, "name": Column("the name of a file", _file_name), "part": integer(), "content": BLOB},
)


class SharedUploads(Uploads):
    """The uploads of a library in a database, with copies below `root`; an upload counts as idle after an hour."""

    def __init__(self, database: Database, root: Path, ids: re.Pattern[str], idle_after: float = _HOUR) -> None:
        busy = "SELECT id FROM server_jobs WHERE kind = 'ingest' AND ended_at IS NULL"
        super().__init__(root, ids, idle_after, lambda: {name for (name,) in self._rows(busy)})
        self._database = database

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._database.connection() as connection:
            return list(connection.execute(query, values).fetchall())

    def publish(self, upload: str) -> None:
        insert = UPLOADS.insert("ignore").replace("?", "%s")
        stored = set(self.names(upload))
        with self._database.transaction() as connection:
            connection.execute("UPDATE uploads SET stored_at = now() WHERE upload = %s", (upload,))
            for file in sorted(file for file in self.folder(upload).iterdir() if file.name not in stored):
                with file.open("rb") as content:
                    for number, part in enumerate(iter(partial(content.read, _PART), b"")):
                        connection.execute(insert, (upload, file.name, number, part))

    def fetch(self, upload: str) -> None:
        for name in self.names(upload):
            self._fetch(upload, name)

    def place_of(self, source: str) -> tuple[str, str] | None:
        path = PurePath(source)
        uploaded = self._ids.fullmatch(path.parent.name) and path.parent.parent.name == self._root.name
        return (path.parent.name, path.name) if uploaded else None

    def reference(self, file: Path) -> str:
        return str(PurePosixPath(*file.parts[-3:]))  # relative to the root, which differs between computers

    def file(self, source: str) -> Path:
        place = self.place_of(source)
        return Path(source) if place is None or Path(source).is_file() else self._fetch(*place)

    def names(self, upload: str) -> list[str]:
        with self._database.connection() as connection:
            query = "SELECT DISTINCT upload, name FROM uploads WHERE upload = %s ORDER BY 2"
            return [name for _, name in UPLOADS.read(connection.execute(query, (upload,)))]

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        given = None if among is None else list(among)
        query = (
            "SELECT upload, name, coalesce(sum(octet_length(content)), 0) FROM uploads"
            " WHERE %s::text[] IS NULL OR upload = ANY(%s) GROUP BY upload, name"
        )
        found: dict[str, dict[str, int]] = {}
        for upload, name, size in self._rows(query, given, given):
            if self._ids.fullmatch(upload):
                found.setdefault(upload, {})[name] = int(size)
        return found

    def remove(self, upload: str, names: Collection[str]) -> None:
        with self._database.connection() as connection:
            connection.execute("DELETE FROM uploads WHERE upload = %s AND name = ANY(%s)", (upload, list(names)))
        stored = self.names(upload)
        with suppress(OSError):
            super().remove(upload, [file.name for file in self.folder(upload).iterdir() if file.name not in stored])

    def idle(self) -> list[str]:
        rows = self._rows(_IDLE, self._idle_after)
        before = time.time() - self._idle_after
        copies = {name for name, changed_at in self._folders().items() if changed_at < before}
        found = {upload for upload, idle in rows if idle} | (copies - {upload for upload, _ in rows})
        return sorted(upload for upload in found if self._ids.fullmatch(upload))

    def _fetch(self, upload: str, name: str) -> Path:
        """Write the local copy of a file atomically, if it is missing."""
        target = self.folder(upload) / name
        if target.is_file():
            return target
        with self._database.transaction() as connection:
            where = "FROM uploads WHERE upload = %s AND name = %s"
            (parts,) = connection.execute(f"SELECT count(*) {where}", (upload, name)).fetchone()
            if not parts:
                return target
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                for cut_off in self._root.glob(".fetched-*"):
                    if cut_off.stat().st_mtime < time.time() - _HOUR:
                        cut_off.unlink()
            query = f"SELECT {', '.join(UPLOADS.columns)} {where} AND part = %s"
            descriptor, written = tempfile.mkstemp(dir=self._root, prefix=".fetched-")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    for number in range(parts):
                        found = UPLOADS.read(connection.execute(query, (upload, name, number)))
                        if not found:
                            row = f"upload={upload!r} name={name!r}"
                            raise WrongValueError(f"table uploads, column part, row {row}: part {number} is missing.")
                        file.write(found[0][3])
                shutil.move(written, target)
            finally:
                Path(written).unlink(missing_ok=True)
        return target

"""Uploaded files in PostgreSQL, in parts of a mebibyte; the folder on each computer holds copies of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final

from ..local.local_uploads import UPLOAD
from .database import Database

_PART: Final = 2**20


class PostgresUploads:
    """The uploads of a library, with copies below `papers`."""

    def __init__(self, database: Database, pool: Any, papers: Path) -> None:
        self._database = database
        self._pool = pool
        self._papers = papers

    def folder(self, upload: str) -> Path:
        """The folder of the copies of an upload."""
        return self._papers / upload

    def publish(self, upload: str) -> None:
        """Store the files in the folder of an upload, in one transaction."""
        with self._connection() as connection, connection.transaction():
            for file in sorted(self.folder(upload).iterdir()):
                for number, part in enumerate(_parts(file)):
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
        """Upload and name of a paper's file, whichever server has taken it; None if it was not uploaded."""
        path = PurePath(source)
        uploaded = UPLOAD.fullmatch(path.parent.name) and path.parent.parent.name == self._papers.name
        return (path.parent.name, path.name) if uploaded else None

    def file(self, source: str) -> Path:
        """A paper's file on this computer, fetched if another server has taken it; it may be missing."""
        place = self.place_of(source)
        return Path(source) if place is None or Path(source).is_file() else self._fetch(*place)

    def names(self, upload: str) -> list[str]:
        """The names of the files of an upload."""
        with self._connection() as connection:
            rows = connection.execute("SELECT DISTINCT name FROM uploads WHERE upload = %s ORDER BY 1", (upload,))
            return [row[0] for row in rows.fetchall()]

    def remove(self, upload: str, names: Collection[str]) -> None:
        """Delete files of an upload, and the copies of all of them here."""
        with self._connection() as connection:
            connection.execute("DELETE FROM uploads WHERE upload = %s AND name = ANY(%s)", (upload, list(names)))
        for name in names:
            (self.folder(upload) / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.folder(upload).rmdir()

    def idle(self) -> list[str]:
        """The uploads of more than an hour ago."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT upload FROM uploads GROUP BY upload HAVING max(stored_at) < now() - interval '1 hour'"
            )
            return [row[0] for row in rows.fetchall()]

    def _connection(self) -> Any:
        return self._database.leased(self._pool)

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
        descriptor, written = tempfile.mkstemp(dir=self._papers, prefix=".fetched-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                for number in range(parts):
                    (content,) = connection.execute(
                        "SELECT content FROM uploads WHERE upload = %s AND name = %s AND part = %s",
                        (upload, name, number),
                    ).fetchone()
                    file.write(content)
            shutil.move(written, target)
        finally:
            Path(written).unlink(missing_ok=True)


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while part := content.read(_PART):
            yield part

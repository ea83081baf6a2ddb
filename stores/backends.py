"""Chooses the backend of a home: files in a folder, or a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .home import Home

if TYPE_CHECKING:
    from .home_protocols import Backend, WrittenHashes  # with all records of a home, of which most commands need few


def backend_of(home: Home) -> Backend:
    """What holds library, journal, runs and conversations of a home."""
    from .postgres.database_home import DatabaseHome

    if isinstance(home, DatabaseHome):
        from .postgres.postgres_backend import PostgresBackend

        return PostgresBackend(home)
    from .local.local_backend import LocalBackend

    return LocalBackend(home)


def written_files(home: Home | None) -> WrittenHashes:
    """The hashes of the files that a home has written; without a home none are known."""
    from .local.written_files import WrittenFiles

    return WrittenFiles() if home is None else backend_of(home).written_files()

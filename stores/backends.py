"""Chooses the backend of a home: files in a folder, or a PostgreSQL database."""

from __future__ import annotations

from .home import Home
from .home_protocols import Backend
from .written_files import WrittenFiles


def backend_of(home: Home) -> Backend:
    """What holds library, journal, runs and conversations of a home."""
    from .postgres.database_home import DatabaseHome

    if isinstance(home, DatabaseHome):
        from .postgres.postgres_backend import PostgresBackend

        return PostgresBackend(home)
    from .local.folder_home import FolderHome
    from .local.local_backend import LocalBackend

    if not isinstance(home, FolderHome):
        raise TypeError(f"{type(home).__name__} is not a known kind of home")
    return LocalBackend(home)


def written_files(home: Home | None) -> WrittenFiles:
    """The hashes of the files that a home has written; without a home none are known."""
    return WrittenFiles() if home is None else backend_of(home).written_files()

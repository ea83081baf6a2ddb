"""Copies a read-only library to a private folder for one command or one opened library.

SQLite, Chroma and tantivy all write even when reading: a log next to the database, a lock in the index. In a shared
folder or a read-only mount they cannot, so readers work on a temporary copy.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...errors import InputError
from ..folder_home import FolderHome
from ..home import Home

_FOLDERS: Final = ("chroma", "fulltext")
_LIBRARY_FILES: Final = ("catalog.sqlite", "metadata.sqlite")
_FILES: Final = (*_LIBRARY_FILES, "memory.sqlite", "runs.sqlite", "checkpoints.sqlite", "journal.sqlite")
_LOGS: Final = ("", "-wal", "-journal")  # files that SQLite may create next to a database
_TRIES: Final = 3  # another process may be writing during the copy


def readable_home(home: Home, on_notice: Callable[[str], None], *, library: bool, records: bool = False) -> Home:
    """The home itself, or a private copy if it is not writable; `on_notice` is then called with a message.

    Copies papers, passages and indexes of a `library`, and `records`: runs, conversations and the journal. Raises
    `InputError` if it is unreadable, or keeps changing during the copy.
    """
    if not isinstance(home, FolderHome) or not home.exists() or is_writable(home):
        return home
    root = Path(tempfile.mkdtemp(prefix="citeloom-read-only-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    files = [name for name in _FILES if records or name in _LIBRARY_FILES]
    folders = _FOLDERS if library else ()
    for _ in range(_TRIES):
        before = _state(home.root, files, folders)
        try:
            for name in (f"{file}{log}" for file in files for log in _LOGS):
                (root / name).unlink(missing_ok=True)
                if (home.root / name).is_file():
                    shutil.copyfile(home.root / name, root / name)
            for folder in folders:
                shutil.rmtree(root / folder, ignore_errors=True)
                if (home.root / folder).is_dir():
                    shutil.copytree(home.root / folder, root / folder, copy_function=shutil.copyfile)
                    for made in (root / folder, *(root / folder).rglob("*")):
                        made.chmod(0o700 if made.is_dir() else 0o600)  # copytree also copies the read-only mode
        except OSError as error:
            raise InputError(
                f"{error.filename or home.root}: cannot be read ({error.strerror}).",
                help="Ask its owner to make the library readable for you.",
            ) from error
        if _state(home.root, files, folders) == before:
            on_notice(f"{home.root} is read-only: working on a private copy that is deleted at the end.")
            return FolderHome(root, copy_of=home.root)
    raise InputError(f"{home.root}: is being written by another process.", help="Run the same command again.")


def discard_copy(home: Home) -> None:
    """Delete a private copy; does nothing for any other home."""
    if home.copy_of is not None:
        shutil.rmtree(home.root, ignore_errors=True)


def is_writable(home: FolderHome) -> bool:
    """Whether this process can write the home and the databases in it."""
    places = (home.root, home.catalog, home.metadata, home.chroma, home.chroma / "chroma.sqlite3", home.fulltext)
    return all(os.access(place, os.W_OK) for place in places if place.exists())


def _state(root: Path, files: list[str], folders: tuple[str, ...]) -> list[tuple[str, int, int]]:
    paths = [root / f"{file}{log}" for file in files for log in _LOGS]
    paths += [path for folder in folders for path in sorted((root / folder).rglob("*"))]
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.is_file()]

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
    names = [f"{file}{log}" for file in _FILES if records or file in _LIBRARY_FILES for log in _LOGS]
    names += _FOLDERS if library else ()
    for _ in range(_TRIES):
        before = _state(home.root, names)
        try:
            shutil.rmtree(root)
            root.mkdir(0o700)
            for path in before:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(home.root / path, root / path)
        except OSError as error:
            message = f"{error.filename or home.root}: cannot be read ({error.strerror})."
            raise InputError(message, help="Ask its owner to make the library readable for you.") from error
        if _state(home.root, names) == before:
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


def _state(root: Path, names: list[str]) -> dict[Path, tuple[int, int]]:
    """Size and time of the files with these names, or in folders with these names."""
    paths = [path for name in names for path in (root / name, *sorted((root / name).rglob("*"))) if path.is_file()]
    return {path.relative_to(root): ((status := path.stat()).st_size, status.st_mtime_ns) for path in paths}

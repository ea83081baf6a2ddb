"""Checks that a home holds only the user's own plain files, since it may come with somebody else's folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from ...errors import InputError

REMOVE_IT: Final = "Remove it, or choose another home with --home or CITELOOM_HOME."
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")  # https://sqlite.org/fileformat2.html#rollbackjournal


class UnsafeHomeError(InputError):
    """A home was not opened, since it belongs to another user or could redirect writes elsewhere."""


def require_own(root: Path) -> None:
    """Raise `UnsafeHomeError` for a home that nobody named and that is a link or belongs to another user."""
    try:
        status = root.lstat()
    except OSError:
        return  # it does not exist yet
    named = f"If you trust it, name it: --home {root}, or CITELOOM_HOME in the environment."
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeHomeError(f"{root}: is a link to {root.readlink()}.", help=named)
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise UnsafeHomeError(f"{root}: belongs to {_user(status.st_uid)}, not to you.", help=named)


def require_plain_files(root: Path) -> None:
    """Raise `UnsafeHomeError` for a link, pipe or device in a home: writes would go elsewhere, reads might block."""
    folders = [os.fspath(root)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_symlink():
                        raise UnsafeHomeError(
                            f"{entry.path}: is a link to {Path(entry.path).readlink()}.", help=REMOVE_IT
                        )
                    elif not entry.is_file(follow_symlinks=False) and os.path.lexists(entry.path):
                        raise UnsafeHomeError(f"{entry.path}: is neither a file nor a folder.", help=REMOVE_IT)
                    elif entry.name.endswith("-journal") and _names_another_file(Path(entry.path)):
                        raise UnsafeHomeError(f"{entry.path}: would make SQLite delete another file.", help=REMOVE_IT)
        except OSError:
            continue  # deleted since it was listed, or unreadable: whoever needs it reports that


def _names_another_file(journal: Path) -> bool:
    """Whether a SQLite rollback journal ends with the name of a super-journal, which SQLite deletes on opening the
    database, whatever file it is. Super-journals are only written for several attached databases, which no home has."""
    with journal.open("rb") as file:
        if file.seek(0, os.SEEK_END) < len(_JOURNAL_MAGIC):
            return False
        file.seek(-len(_JOURNAL_MAGIC), os.SEEK_END)
        return file.read() == _JOURNAL_MAGIC


def _user(uid: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"

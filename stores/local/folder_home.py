"""A home in a folder, possibly from somebody else, so it may only contain plain files that belong to the user."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...errors import InputError
from ..home import Home, PathBelow

HOME_NAME: Final = ".citeloom"
REMOVE_IT: Final = "Remove it, or choose another home with --home or CITELOOM_HOME."
_REMEDY: Final = "Choose a writable folder with --home or CITELOOM_HOME."
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")  # https://sqlite.org/fileformat2.html#rollbackjournal


class UnsafeHomeError(InputError):
    """A home was not opened, because it belongs to another user or could redirect writes elsewhere."""


@dataclass(frozen=True)
class FolderHome(Home):
    """The paths in a folder; nothing is created before `prepare`. A private copy names its original in `copy_of`."""

    chroma = PathBelow("chroma")  # the vector store
    fulltext = PathBelow("fulltext")  # the full-text index
    catalog = PathBelow("catalog.sqlite")  # papers, sections and the state of indexing
    metadata = PathBelow("metadata.sqlite")  # what services know of the papers, retractions and corrections
    journal = PathBelow("journal.sqlite")  # every completed model call
    checkpoints = PathBelow("checkpoints.sqlite")  # the checkpoints of the graphs
    runs = PathBelow("runs.sqlite")  # the registers of runs, conversations and written files
    memory = PathBelow("memory.sqlite")  # what the author wants of every text
    accounts = PathBelow("accounts.sqlite")  # the people of a group's server, and what they did
    server = PathBelow("server.sqlite")  # the server's unfinished jobs, keys and sessions

    @property
    def name(self) -> Path:
        return self.copy_of or self.root

    @property
    def address(self) -> Path:
        return self.root

    def place_of(self, file: str) -> Path:
        return self.root / file

    @property
    def figures(self) -> Path:
        """Folder with the images of the papers' figures; a private copy reads those of its original."""
        return (self.copy_of or self.root) / "figures"

    def exists(self) -> bool:
        return self.catalog.is_file()

    def require_place(self) -> None:
        there = next((folder for folder in (self.root, *self.root.parents) if folder.exists()), self.root)
        if there.is_file():
            raise InputError(f"{self.root}: cannot be a home, since {there} is a file.", help=_REMEDY)

    def prepare(self) -> FolderHome:
        require_plain_files(self.root)
        make_folders(self)
        return self


def make_folders(home: Home) -> None:
    """Create a home's folders and check that they are writable, else remove them and raise `InputError`."""
    made: list[Path] = []
    try:
        for folder in (home.root, home.locks):
            for missing in reversed([each for each in (folder, *folder.parents) if not each.is_dir()]):
                try:
                    missing.mkdir()
                    made.append(missing)
                except FileExistsError:
                    if not missing.is_dir():  # else another process has just created it
                        raise NotADirectoryError(20, f"{missing} is a file", str(missing)) from None
        with tempfile.NamedTemporaryFile(dir=home.root, prefix=".write-test-"):
            pass
    except OSError as error:
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        reason = error.strerror or type(error).__name__
        raise InputError(f"{home.root}: cannot be written ({reason}).", help=_REMEDY) from error


def nearest_folder() -> Path:
    """The nearest `.citeloom` in this folder or its parents, else a new one here."""
    here = Path.cwd()
    return next((each / HOME_NAME for each in (here, *here.parents) if (each / HOME_NAME).is_dir()), here / HOME_NAME)


def require_own(root: Path) -> None:
    """Raise `UnsafeHomeError` if a home not named by the user is a link or belongs to someone else."""
    try:
        status = root.lstat()
    except OSError:
        return  # it does not exist yet
    named = f"If you trust it, name it: --home {root}, or CITELOOM_HOME in the environment."
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeHomeError(f"{root}: is a link to {root.readlink()}.", help=named)
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        import pwd

        try:
            owner = pwd.getpwuid(status.st_uid).pw_name
        except KeyError:
            owner = str(status.st_uid)
        raise UnsafeHomeError(f"{root}: belongs to user {owner}, not to you.", help=named)


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
                    elif entry.name.endswith("-journal"):
                        # SQLite would delete whatever file a rollback journal ends with the name of: a super-journal,
                        # which is only written for several attached databases, as no home has.
                        with Path(entry.path).open("rb") as file:
                            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_JOURNAL_MAGIC)))
                            if file.read() == _JOURNAL_MAGIC:
                                message = f"{entry.path}: would make SQLite delete another file."
                                raise UnsafeHomeError(message, help=REMOVE_IT)
        except OSError:
            continue  # deleted since it was listed, or unreadable: whoever needs it reports that

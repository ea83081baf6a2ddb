"""The home folder, which holds library, journal, checkpoints and runs."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..database_url import DatabaseUrl, HomeAddress
from ..errors import InputError
from .local.home_safety import UnsafeHomeError, require_own, require_plain_files

HOME_NAME = ".citeloom"
_REMEDY = "Choose a writable folder with --home or CITELOOM_HOME."


@dataclass(frozen=True, slots=True)
class Home:
    """The paths in a home; nothing is created before `prepare`. A private copy names its original in `copy_of`."""

    root: Path
    copy_of: Path | None = None

    @property
    def name(self) -> HomeAddress:
        """The folder as the user knows it, or a database's address without what is secret in it."""
        return self.copy_of or self.root

    @property
    def address(self) -> HomeAddress:
        """The folder that is read and written, or a database's address."""
        return self.root

    @property
    def register_name(self) -> HomeAddress:
        """The register of runs, as messages name it."""
        return self.runs

    @property
    def journal_name(self) -> HomeAddress:
        """The journal, as messages name it."""
        return self.journal

    @property
    def chroma(self) -> Path:
        """Folder of the vector store."""
        return self.root / "chroma"

    @property
    def fulltext(self) -> Path:
        """Folder of the full-text index."""
        return self.root / "fulltext"

    @property
    def catalog(self) -> Path:
        """SQLite file with papers, sections and the state of indexing."""
        return self.root / "catalog.sqlite"

    @property
    def journal(self) -> Path:
        """SQLite file with every completed model call."""
        return self.root / "journal.sqlite"

    @property
    def checkpoints(self) -> Path:
        """SQLite file with the checkpoints of the graphs."""
        return self.root / "checkpoints.sqlite"

    @property
    def runs(self) -> Path:
        """SQLite file with the registry of runs."""
        return self.root / "runs.sqlite"

    @property
    def server(self) -> Path:
        """SQLite file with the server's unfinished jobs."""
        return self.root / "server.sqlite"

    @property
    def metadata(self) -> Path:
        """SQLite file with what metadata services said of the papers, and with retractions and corrections."""
        return self.root / "metadata.sqlite"

    @property
    def added(self) -> Path:
        """Folder with the papers that were added by identifier, and their `.bib`."""
        return self.root / "added"

    @property
    def zotero(self) -> Path:
        """Folder with what syncs with Zotero brought, and the abstracts of items without a file."""
        return self.root / "zotero"

    @property
    def papers(self) -> Path:
        """Folder with the papers that were added through the server."""
        return self.root / "papers"

    @property
    def plots(self) -> Path:
        """Folder with the images of plots that were uploaded to the server."""
        return self.root / "plots"

    @property
    def converted(self) -> Path:
        """Folder with the cached text of PDF and other converted files."""
        return self.root / "converted"

    @property
    def figures(self) -> Path:
        """Folder with the images of the papers' figures; a private copy reads those of its original."""
        return (self.copy_of or self.root) / "figures"

    @property
    def locks(self) -> Path:
        """Folder with the lock files."""
        return self.root / "locks"

    def exists(self) -> bool:
        """Whether a library exists here."""
        return self.catalog.is_file()

    def require_library(self) -> None:
        """Raise `InputError` if there is no library here, or none could be; creates nothing."""
        self.require_place()
        if not self.exists():
            raise InputError(f"{self.root}: holds no library.", help="Create one: {citeloom} ingest PAPERS --bib FILE.")

    def require_place(self) -> None:
        """Raise `InputError` if a file is in the place of this folder or one above it."""
        there = next((folder for folder in (self.root, *self.root.parents) if folder.exists()), self.root)
        if there.is_file():
            raise InputError(f"{self.root}: cannot be written ({there} is a file).", help=_REMEDY)

    def require_folder(self, what: str) -> None:
        """Do nothing: in a folder everything is available. Other homes raise `ConfigurationError` for `what`."""

    def prepare(self) -> Home:
        """Create the folders and check that they are writable.

        Raises `InputError` naming the folder; folders created on the way are removed again.
        """
        require_plain_files(self.root)
        made: list[Path] = []
        try:
            for folder in (self.root, self.locks):
                _make(folder, made)
            with tempfile.NamedTemporaryFile(dir=self.root, prefix=".write-test-"):
                pass
        except OSError as error:
            for folder in reversed(made):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            reason = error.strerror or type(error).__name__
            raise InputError(f"{self.root}: cannot be written ({reason}).", help=_REMEDY) from error
        return self


def _make(folder: Path, made: list[Path]) -> None:
    """Create a folder and its parents, recording each that was missing in `made`."""
    missing = [folder]
    while not missing[-1].exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        if each.is_dir():
            continue
        try:
            each.mkdir()
        except FileExistsError:
            if not each.is_dir():
                raise NotADirectoryError(20, f"{each} is a file", str(each)) from None
        else:
            made.append(each)


def find_home(explicit: HomeAddress | None = None, *, by_user: bool = True) -> Home:
    """The given home, else the nearest `.citeloom` in this folder or its parents, else a new one here.

    A home that was not named, or was named by a file in the folder instead of `by_user`, must belong to the user.
    Raises `UnsafeHomeError` for any other, for a home that contains links, and for a database that a file names.
    """
    if isinstance(explicit, DatabaseUrl):
        from .postgres.database_home import DatabaseHome

        if not by_user:
            message = f"{explicit}: a file in the folder names this database as the home; it was not opened."
            raise UnsafeHomeError(message, help="If you trust it, set CITELOOM_HOME in the environment.")
        return DatabaseHome.at(explicit)
    root = explicit.expanduser().absolute() if explicit is not None else _nearest()
    if explicit is None or not by_user:
        require_own(root)
    require_plain_files(root)
    return Home(root)


def _nearest() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / HOME_NAME).is_dir():
            return folder / HOME_NAME
    return here / HOME_NAME

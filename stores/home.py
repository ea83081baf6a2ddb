"""The home folder, which holds library, journal, checkpoints and runs."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError, InputError
from ..settings.addresses import DatabaseUrl, HomeAddress, VectorsUrl
from ..settings.key_trust import FLAG, is_own
from .local.home_safety import UnsafeHomeError, require_own, require_plain_files

if TYPE_CHECKING:
    from ..settings.config import Settings

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


def configured_home(settings: Settings, explicit: HomeAddress | None = None, *, to_copy: bool = False) -> Home:
    """The home that the settings name, or an `explicit` one, with their Milvus; raises like `find_home`.

    A folder `to_copy` may have CITELOOM_VECTORS beside it, which then is the Milvus of the copy.
    """
    origin = settings.origin("home") if explicit is None else FLAG
    address = settings.home if explicit is None else explicit
    in_database = isinstance(address, DatabaseUrl)
    if settings.vectors is not None and (in_database or to_copy) and not is_own(settings.origin("vectors")):
        message = f"{settings.vectors}: a file in the folder names this as the place of vectors; it was not opened."
        raise UnsafeHomeError(message, help="If you trust it, set CITELOOM_VECTORS in the environment.")
    vectors = settings.vectors if in_database or not to_copy else None
    return find_home(address, by_user=is_own(origin), vectors=vectors)


def find_home(explicit: HomeAddress | None = None, *, by_user: bool = True, vectors: VectorsUrl | None = None) -> Home:
    """The given home, else the nearest `.citeloom` in this folder or its parents, else a new one here.

    A home that was not named, or was named by a file in the folder instead of `by_user`, must belong to the user.
    `vectors` is the Milvus that searches a library in PostgreSQL. Raises `UnsafeHomeError` for any other home, for one
    that contains links, and for a database that a file names; `ConfigurationError` for `vectors` of a folder.
    """
    if isinstance(explicit, DatabaseUrl):
        from .postgres.database_home import DatabaseHome

        if not by_user:
            message = f"{explicit}: a file in the folder names this database as the home; it was not opened."
            raise UnsafeHomeError(message, help="If you trust it, set CITELOOM_HOME in the environment.")
        return DatabaseHome.at(explicit, vectors)
    root = explicit.expanduser().absolute() if explicit is not None else _nearest()
    if vectors is not None:
        raise ConfigurationError(
            f"CITELOOM_VECTORS ({vectors}) works with a library in PostgreSQL only, but the home is a folder ({root}).",
            help="Name a database as the home (postgresql://...), or unset CITELOOM_VECTORS.",
        )
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

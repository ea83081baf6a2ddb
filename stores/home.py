"""Defines what every home provides, and finds the home of a command: a folder or a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from ..errors import ConfigurationError
from ..settings.addresses import DatabaseUrl, HomeAddress, VectorsUrl, absolute_path
from ..settings.key_trust import FLAG, is_own

if TYPE_CHECKING:
    from ..settings.config import Settings


class Home(Protocol):
    """Where library, journal, checkpoints and runs are stored, with a folder for machine-local files."""

    @property
    def root(self) -> Path:
        """The local folder: the home itself, or the machine-local files of a database home."""

    @property
    def copy_of(self) -> Path | None:
        """The home of which this is a private copy."""

    @property
    def name(self) -> HomeAddress:
        """The folder as the user knows it, or a database's address without secrets."""

    @property
    def address(self) -> HomeAddress:
        """The folder that is read and written, or a database's address."""

    @property
    def register_name(self) -> HomeAddress:
        """The register of runs, as messages name it."""

    @property
    def journal_name(self) -> HomeAddress:
        """The journal, as messages name it."""

    @property
    def added(self) -> Path:
        """Folder with the papers that were added by identifier, and their `.bib`."""

    @property
    def zotero(self) -> Path:
        """Folder with files synced from Zotero, and abstracts of items without a file."""

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
    def locks(self) -> Path:
        """Folder with the lock files."""
        return self.root / "locks"

    def exists(self) -> bool:
        """Whether a library exists here."""

    def require_library(self) -> None:
        """Raise `InputError` if no library exists or can exist here; creates nothing."""

    def require_place(self) -> None:
        """Raise `InputError` if no home can be here, as far as can be told without connecting."""

    def prepare(self) -> Self:
        """Create what is missing; raises `InputError` if that is not possible."""


def configured_home(settings: Settings, explicit: HomeAddress | None = None, *, to_copy: bool = False) -> Home:
    """The `explicit` home or the one in the settings, with the configured Milvus; raises like `find_home`.

    A folder `to_copy` may be combined with CITELOOM_VECTORS, which then is the Milvus of the copy.
    """
    from .local.folder_home import UnsafeHomeError

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

    A home found here or named by a file in the folder (not `by_user`) must belong to the user. `vectors` is the Milvus
    that searches a library in PostgreSQL. Raises `UnsafeHomeError` for any other home, for one that contains links, and
    for a database named by a file; `ConfigurationError` for `vectors` of a folder.
    """
    from .local.folder_home import FolderHome, UnsafeHomeError, nearest_folder, require_own, require_plain_files

    if isinstance(explicit, DatabaseUrl):
        from .postgres.database_home import DatabaseHome

        if not by_user:
            message = f"{explicit}: a file in the folder names this database as the home; it was not opened."
            raise UnsafeHomeError(message, help="If you trust it, set CITELOOM_HOME in the environment.")
        return DatabaseHome.at(explicit, vectors)
    root = absolute_path(explicit.expanduser()) if explicit is not None else nearest_folder()
    if vectors is not None:
        raise ConfigurationError(
            f"CITELOOM_VECTORS ({vectors}) works with a library in PostgreSQL only, but the home is a folder ({root}).",
            help="Name a database as the home (postgresql://...), or unset CITELOOM_VECTORS.",
        )
    if explicit is None or not by_user:
        require_own(root)
    require_plain_files(root)
    return FolderHome(root)

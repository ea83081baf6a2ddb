"""Where a home is: in a folder (`local/folder_home.py`) or in a PostgreSQL database; finds the home of a command."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ..errors import ConfigurationError, InputError
from ..settings.addresses import DatabaseUrl, HomeAddress, VectorsUrl, absolute_path
from ..settings.key_trust import FLAG, is_own

if TYPE_CHECKING:
    from ..settings.config import Settings


class PathBelow:
    """A path below the root of a home, or below its folder of machine-local files."""

    def __init__(self, name: str, *, own: bool = False) -> None:
        self._name = name
        self._own = own

    def __get__(self, home: Home, owner: object = None) -> Path:
        return (home.data if self._own else home.root) / self._name


@dataclass(frozen=True)
class Home(ABC):
    """Where library, journal, checkpoints and runs are; `root` is the folder, or a database's machine-local files.

    `copy_of` is the home of which this is a private copy.
    """

    root: Path
    copy_of: Path | None = field(default=None, kw_only=True)

    papers = PathBelow("papers")  # those that were added through the server
    plots = PathBelow("plots")  # images that were uploaded to the server
    converted = PathBelow("converted")  # the cached text of PDF and other converted files
    locks = PathBelow("locks")
    added = PathBelow("added", own=True)  # papers that were added by identifier, and their `.bib`
    zotero = PathBelow("zotero", own=True)  # files synced from Zotero, and abstracts of items without a file

    @property
    @abstractmethod
    def name(self) -> HomeAddress:
        """The folder as the user knows it, or a database's address without secrets."""

    @property
    def address(self) -> HomeAddress:
        """The folder that is read and written, or a database's address."""
        return self.name

    def place_of(self, file: str) -> HomeAddress:
        """The file with this name, or the database that holds its tables instead, as messages name it."""
        return self.name

    @property
    def data(self) -> Path:
        """The folder of machine-local files."""
        return self.root

    @abstractmethod
    def exists(self) -> bool:
        """Whether a library exists here."""

    def require_library(self) -> None:
        """Raise `InputError` if no library exists or can exist here; creates nothing."""
        self.require_place()
        if not self.exists():
            help_ = "Create one: {citeloom} ingest PAPERS --bib FILE."
            raise InputError(f"{self.address}: holds no library.", help=help_)

    @abstractmethod
    def require_place(self) -> None:
        """Raise `InputError` if no home can be here; checks only what needs no connection."""

    @abstractmethod
    def prepare(self) -> Self:
        """Create what is missing; raises `InputError` if that is not possible."""


@dataclass(frozen=True)
class DatabaseHome(Home):
    """The database at `url`, searched in the Milvus at `vectors` if there is one.

    `root` holds the text of converted files and the input history. Files of papers are not in the database.
    """

    url: DatabaseUrl
    vectors: VectorsUrl | None = None

    @classmethod
    def at(cls, url: DatabaseUrl, vectors: VectorsUrl | None = None) -> DatabaseHome:
        """The home in the database, with its folder among the user's caches."""
        return cls(_user_folder("XDG_CACHE_HOME", "~/.cache") / "citeloom" / url.mark, url, vectors)

    @property
    def name(self) -> DatabaseUrl:
        return self.url

    @property
    def data(self) -> Path:
        return _user_folder("XDG_DATA_HOME", "~/.local/share") / "citeloom" / self.url.mark

    def exists(self) -> bool:
        from .postgres.database import Database, has_table

        database = Database(self.url)
        with database.reachable(), database.transaction() as connection:
            return has_table(connection, "schema_versions")

    def require_place(self) -> None:
        """Do nothing: `prepare` checks the database."""

    def prepare(self) -> DatabaseHome:
        from .local.folder_home import make_folders
        from .postgres.migrations import prepare

        make_folders(self)
        prepare(self.url)
        return self


def _user_folder(variable: str, default: str) -> Path:
    """The user's folder of this kind, by the XDG base directory specification."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path(default).expanduser()


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

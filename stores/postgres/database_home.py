"""A home in a PostgreSQL database; only caches of this machine are in a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import InputError
from ...settings.addresses import DatabaseUrl, VectorsUrl
from ..home import Home
from ..local.folder_home import make_folders


@dataclass(frozen=True, slots=True)
class DatabaseHome(Home):
    """The database at `url`, searched in the Milvus at `vectors` if there is one.

    `root` holds the text of converted files and the input history.
    """

    root: Path = field()  # otherwise the protocol's property would become the default
    url: DatabaseUrl = field()
    vectors: VectorsUrl | None = None
    copy_of: None = None

    @classmethod
    def at(cls, url: DatabaseUrl, vectors: VectorsUrl | None = None) -> DatabaseHome:
        """The home in the database, with its folder among the user's caches."""
        return cls(_under("XDG_CACHE_HOME", "~/.cache") / "citeloom" / url.mark, url, vectors)

    @property
    def name(self) -> DatabaseUrl:
        return self.url

    @property
    def address(self) -> DatabaseUrl:
        return self.url

    @property
    def register_name(self) -> DatabaseUrl:
        return self.url

    @property
    def journal_name(self) -> DatabaseUrl:
        return self.url

    @property
    def added(self) -> Path:
        """On this computer: files of papers are not in the database."""
        return self._data / "added"

    @property
    def zotero(self) -> Path:
        """On this computer: each computer has its own Zotero."""
        return self._data / "zotero"

    @property
    def _data(self) -> Path:
        return _under("XDG_DATA_HOME", "~/.local/share") / "citeloom" / self.url.mark

    def as_server(self, server: str) -> DatabaseHome:
        """The same home, with connections marked as a server's."""
        return replace(self, url=DatabaseUrl(self.url.secret, server))

    def exists(self) -> bool:
        from .database import Database

        return Database(self.url).holds_library()

    def require_library(self) -> None:
        if not self.exists():
            raise InputError(f"{self.url}: holds no library.", help="Create one: {citeloom} ingest PAPERS --bib FILE.")

    def require_place(self) -> None:
        """Do nothing: `prepare` checks the database."""

    def prepare(self) -> DatabaseHome:
        from .migrations import prepare

        make_folders(self)
        prepare(self.url)
        return self


def _under(variable: str, default: str) -> Path:
    """The user's folder of this kind, by the XDG base directory specification."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path(default).expanduser()

"""A home in a PostgreSQL database; only caches of this machine are in a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import ConfigurationError, InputError
from ...settings.addresses import DatabaseUrl, VectorsUrl
from ..home import Home


class NotAFolderError(ConfigurationError):
    """What was requested needs a home in a folder."""

    default_help = "Use a home in a folder for it: --home FOLDER."


@dataclass(frozen=True, slots=True)
class DatabaseHome(Home):
    """The database at `url`, searched in the Milvus at `vectors` if there is one.

    `root` holds what was converted from files, and the history of typed lines.
    """

    url: DatabaseUrl = field(kw_only=True)
    vectors: VectorsUrl | None = field(default=None, kw_only=True)

    @classmethod
    def at(cls, url: DatabaseUrl, vectors: VectorsUrl | None = None) -> DatabaseHome:
        """The home in the database, with its folder among the user's caches."""
        return cls(_under("XDG_CACHE_HOME", "~/.cache") / "citeloom" / url.mark, url=url, vectors=vectors)

    @property
    def name(self) -> DatabaseUrl:
        """The address, without what is secret in it."""
        return self.url

    @property
    def address(self) -> DatabaseUrl:
        """The address."""
        return self.url

    @property
    def register_name(self) -> DatabaseUrl:
        """The address: the register is a table."""
        return self.url

    @property
    def journal_name(self) -> DatabaseUrl:
        """The address: the journal is in tables."""
        return self.url

    @property
    def chroma(self) -> Path:
        """None: vectors are in the database."""
        raise self._not_a_folder("a folder of vectors")

    @property
    def fulltext(self) -> Path:
        """None: words are in the database."""
        raise self._not_a_folder("a folder of words")

    @property
    def catalog(self) -> Path:
        """None: the catalog is in the database."""
        raise self._not_a_folder("a file of the catalog")

    @property
    def figures(self) -> Path:
        """None: images are in the database."""
        raise self._not_a_folder("a folder of figures")

    @property
    def journal(self) -> Path:
        """None: the journal is in the database."""
        raise self._not_a_folder("a file of the journal")

    @property
    def checkpoints(self) -> Path:
        """None: checkpoints are in the database."""
        raise self._not_a_folder("a file of checkpoints")

    @property
    def runs(self) -> Path:
        """None: runs and conversations are in the database."""
        raise self._not_a_folder("a file of runs")

    @property
    def server(self) -> Path:
        """None: the jobs of servers are in the database."""
        raise self._not_a_folder("a file of the server's jobs")

    @property
    def metadata(self) -> Path:
        """None: what services said of papers is in the database."""
        raise self._not_a_folder("a file of metadata")

    @property
    def added(self) -> Path:
        """Papers that were added by identifier on this computer: files of papers are not in the database."""
        return self._data / "added"

    @property
    def zotero(self) -> Path:
        """What syncs with the Zotero of this computer brought: another computer's is another one."""
        return self._data / "zotero"

    @property
    def _data(self) -> Path:
        return _under("XDG_DATA_HOME", "~/.local/share") / "citeloom" / self.url.mark

    def as_server(self, server: str) -> DatabaseHome:
        """The same home for the connections of a server."""
        return replace(self, url=DatabaseUrl(self.url.secret, server))

    def exists(self) -> bool:
        """Whether a library exists in the database."""
        from .database import Database

        return Database(self.url).holds_library()

    def require_library(self) -> None:
        """Raise `InputError` if there is no library in the database."""
        if not self.exists():
            raise InputError(f"{self.url}: holds no library.", help="Create one: {citeloom} ingest PAPERS --bib FILE.")

    def require_place(self) -> None:
        """Do nothing: `prepare` checks the database."""

    def require_folder(self, what: str) -> None:
        """Raise `NotAFolderError`: `what` is not available here yet."""
        raise NotAFolderError(f"{self.url}: {what} is not available with a library in PostgreSQL yet.")

    def prepare(self) -> DatabaseHome:
        """Create the folder and the tables, or bring them up to date; raises `InputError`."""
        from .migrations import prepare

        Home.prepare(self)
        prepare(self.url)
        return self

    def _not_a_folder(self, what: str) -> NotAFolderError:
        return NotAFolderError(f"{self.url}: a library in PostgreSQL has no {what.removeprefix('a ')}.")


def _under(variable: str, default: str) -> Path:
    """The user's folder of this kind, by the XDG base directory specification."""
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path(default).expanduser()

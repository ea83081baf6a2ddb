"""A home in a PostgreSQL database; only caches of this machine are in a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ...database_url import DatabaseUrl
from ...errors import ConfigurationError, InputError
from ..home import Home


class NotAFolderError(ConfigurationError):
    """What was requested needs a home in a folder."""

    default_help = "Use a home in a folder for it: --home FOLDER."


@dataclass(frozen=True, slots=True)
class DatabaseHome(Home):
    """The database at `url`; `root` holds what was converted from files, and the history of typed lines."""

    url: DatabaseUrl = field(kw_only=True)

    @classmethod
    def at(cls, url: DatabaseUrl) -> DatabaseHome:
        """The home in the database, with its folder among the user's caches."""
        return cls(_caches() / "citeloom" / url.mark, url=url)

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
        """None: the server does not work on a database yet."""
        raise self._not_a_folder("a file of the server's jobs")

    @property
    def metadata(self) -> Path:
        """A file that is never written: nothing that services say of papers is stored in a database yet."""
        return self.root / "metadata.sqlite"

    @property
    def added(self) -> Path:
        """None: papers are added by identifier to a folder only."""
        raise self._not_a_folder("a folder of added papers")

    @property
    def papers(self) -> Path:
        """None: the server does not work on a database yet."""
        raise self._not_a_folder("a folder of the server's papers")

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


def _caches() -> Path:
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path("~/.cache").expanduser()

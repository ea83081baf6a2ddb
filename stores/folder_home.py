"""A home in a folder with its locks, the choice of a command's home, and private copies of read-only homes.

A folder may come from somebody else, so a home may only contain plain files that belong to the user.

Two processes that write the same Chroma folder lose vectors without an error; hence a lock, which the operating system
releases when its process ends for any reason. The holder's process id next to the lock is only for messages.

SQLite, Chroma and tantivy write even when reading: a log next to the database, a lock in the index. In a read-only
folder they cannot, so readers work on a temporary copy for one command or one opened library.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import os
import secrets
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock, Timeout
from pathvalidate import sanitize_filename

from ..errors import ConfigurationError, InputError
from ..models.journal.journal_database import JOURNAL_TABLES, JournalFile
from ..settings.addresses import DatabaseUrl, HomeAddress, VectorsUrl, absolute_path
from ..settings.key_trust import FLAG, is_own
from ..sqlite import CHECKPOINTS_REMEDY, MEMORY_REMEDY, naming_damage, require_plain_schema, write_ahead
from ..table_columns import TypedTable
from .accounts import ACCOUNT_TABLES, ACCOUNTS_REMEDY
from .home import RUN_TABLES, Home, Listener, PathBelow, ServerRegistry, UnsafeHomeError, make_folders
from .metadata_store import METADATA_REMEDY, METADATA_TABLES
from .run_register import PLOT_SET, PLOTS_KEPT
from .server_jobs import FOLDER_SERVER_TABLES, JOBS, SERVER_REMEDY, SERVERS, ServerJobs
from .tables import FileTables, select_all
from .uploads import UPLOAD, Uploads

if TYPE_CHECKING:  # each command loads only what it needs
    from langgraph.store.base import BaseStore

    from ..settings.config import Settings
    from .local.checkpoints import PlainSaver
    from .paper_catalog import PaperCatalog
    from .store_protocols import LibraryStores

HOME_NAME: Final = ".citeloom"
_HOUR: Final = 3600.0
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")  # https://sqlite.org/fileformat2.html#rollbackjournal


_POLL_SECONDS: Final = 0.1
_LONGEST_PID: Final = 20
# Windows has neither flag, and does not let ordinary users create links.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class FolderLock:
    """A lock in a home: the library's, or that of a run; instances exclude each other even within a process."""

    def __init__(self, home: Home, name: str = "library") -> None:
        stem = home.locks / sanitize_filename(name)
        self._path = stem.with_name(f"{stem.name}.lock")
        self._pid = stem.with_name(f"{stem.name}.pid")

    def is_held(self) -> bool:
        lock = self._lock()
        if not try_acquire(lock):
            return True
        lock.release()
        return False

    def holder(self) -> int | None:
        return self._read_pid() if self.is_held() else None

    @contextlib.contextmanager
    def try_held(self) -> Iterator[bool]:
        lock = self._lock()
        if not try_acquire(lock):
            yield False
            return
        with self._naming_holder(lock):
            yield True

    @contextlib.asynccontextmanager
    async def held(self, on_wait: Callable[[int | None], object] | None = None) -> AsyncIterator[None]:
        lock, notified = self._lock(), on_wait is None
        while not try_acquire(lock):
            if on_wait is not None and not notified:
                on_wait(self._read_pid())
            notified = True
            await asyncio.sleep(_POLL_SECONDS)
        with self._naming_holder(lock):
            yield

    def _lock(self) -> FileLock:
        # Not thread-local: a coroutine may finish on another thread than the one it started on.
        return FileLock(self._path, thread_local=False)

    @contextlib.contextmanager
    def _naming_holder(self, lock: FileLock) -> Iterator[None]:
        """Release an acquired lock after the block; meanwhile the file next to it names this process."""
        try:
            try:
                descriptor = os.open(self._pid, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o644)
            except OSError as error:
                raise _open_error(self._pid, error) from error
            with os.fdopen(descriptor, "wb") as file:
                file.write(str(os.getpid()).encode())
            yield
        finally:
            self._pid.unlink(missing_ok=True)
            lock.release()

    def _read_pid(self) -> int | None:
        try:
            with os.fdopen(os.open(self._pid, os.O_RDONLY | _NO_LINK), "rb") as file:
                return int(file.read(_LONGEST_PID))
        except (OSError, ValueError):
            return None  # the holder has not yet written its id


def try_acquire(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)  # does not follow links
    except Timeout:
        return False
    except OSError as error:
        raise _open_error(Path(lock.lock_file), error) from error
    return True


def _open_error(path: Path, error: OSError) -> Exception:
    """The error for a lock file that cannot be opened: `UnsafeHomeError` for a link, else the OS error."""
    if error.errno not in (errno.ELOOP, errno.ENXIO):
        return error
    return UnsafeHomeError(f"{path} is a link or not a plain file.")


@dataclass(frozen=True)
class FolderHome(Home):
    """The paths in a folder; nothing is created before `prepare`. For a private copy, `copy_of` is the original."""

    chroma = PathBelow("chroma")  # the vector store
    fulltext = PathBelow("fulltext")  # the full-text index
    catalog = PathBelow("catalog.sqlite")  # papers, sections and the state of indexing
    metadata = PathBelow("metadata.sqlite")  # what services know of the papers, retractions and corrections
    journal = PathBelow("journal.sqlite")  # every completed model call
    checkpoints = PathBelow("checkpoints.sqlite")  # the checkpoints of the graphs
    runs_file = PathBelow("runs.sqlite")  # the registers of runs, conversations and written files
    memory = PathBelow("memory.sqlite")  # what the author wants of every text
    accounts_file = PathBelow("accounts.sqlite")  # the people of a group's server, and what they did
    server = PathBelow("server.sqlite")  # the server's unfinished jobs and keys

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
            message = f"{self.root}: cannot be a home, since {there} is a file."
            raise InputError(message, help="Choose a writable folder with --home or CITELOOM_HOME.")

    def prepare(self) -> FolderHome:
        require_plain_files(self.root)
        make_folders(self)
        return self

    def open_library(self) -> LibraryStores:
        from .local.chroma import LocalStores

        return LocalStores(self)

    def open_catalog(self) -> PaperCatalog:
        from .local.catalog import Catalog

        return Catalog(self)

    def journal_database(self) -> JournalFile:
        return JournalFile(self.journal)

    def tables_with(self, table: TypedTable) -> FileTables:
        if table in ACCOUNT_TABLES:
            with contextlib.suppress(OSError):
                self.accounts_file.chmod(0o600)
            return FileTables(self.accounts_file, ACCOUNT_TABLES, ACCOUNTS_REMEDY)
        if table in FOLDER_SERVER_TABLES:
            return FileTables(self.server, FOLDER_SERVER_TABLES, SERVER_REMEDY)
        if table in METADATA_TABLES:
            return FileTables(self.metadata, METADATA_TABLES, METADATA_REMEDY)
        if table in JOURNAL_TABLES:
            return FileTables(self.journal, ())
        if table in RUN_TABLES:
            return FileTables(self.runs_file, RUN_TABLES)
        return FileTables(self.checkpoints, (), CHECKPOINTS_REMEDY)

    def plots(self) -> Uploads:
        return Uploads(self.plots_folder, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> Uploads:
        """The uploads in the folder of papers; while a server runs, an upload counts as idle after an hour."""
        server = FileLock(self.locks / "server.lock", thread_local=False)
        alone = self.copy_of is None and try_acquire(server)
        server.release()
        root = (self.copy_of or self.root) / self.papers.name
        return Uploads(root, UPLOAD, 0 if alone else _HOUR, ServerJobs(self.tables_with(JOBS)).unfinished)

    def has_memory(self) -> bool:
        return self.memory.is_file()

    @contextlib.contextmanager
    def open_memory(self) -> Iterator[BaseStore]:
        from langgraph.store.sqlite import SqliteStore

        file = self.memory
        with (
            naming_damage(file, MEMORY_REMEDY),
            contextlib.closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection,
        ):
            write_ahead(connection)
            require_plain_schema(connection, file, MEMORY_REMEDY)
            store = SqliteStore(connection)
            store.setup()
            yield store

    def open_checkpoints(self) -> contextlib.AbstractAsyncContextManager[PlainSaver]:
        from .local.checkpoints import open_checkpoints

        return open_checkpoints(self.checkpoints)

    def rows(self, table: TypedTable) -> Generator[tuple[Any, ...]]:
        file = self.tables_with(table)
        if file.exist():
            with file.transaction() as connection:
                yield from map(tuple, connection.execute(select_all(_in_file(table))))

    def put(self, table: TypedTable, rows: Sequence[tuple[Any, ...]]) -> None:
        if table in JOURNAL_TABLES:
            self.journal_database().connect().close()  # which creates the tables
        with self.tables_with(table).transaction() as connection:
            connection.executemany(_in_file(table).insert("update"), rows)

    def writer_lock(self) -> FolderLock:
        return FolderLock(self)

    def lock_of_run(self, thread_id: str) -> FolderLock:
        return FolderLock(self, thread_id)

    def created_at(self) -> float:
        return self.catalog.stat().st_ctime

    def join_servers(self, address: str = "") -> LocalServerRegistry:
        return LocalServerRegistry(self, address)


def _in_file(table: TypedTable) -> TypedTable:
    """The table under the name that LangGraph uses in SQLite files."""
    if table.name != "checkpoint_writes":
        return table
    columns = {"value" if name == "blob" else name: column for name, column in table.columns.items()}
    return replace(table, name="writes", columns=columns)


class SecondServerError(ConfigurationError):
    """Another server is using the same folder."""

    default_help = "Use its address; several servers need a home in PostgreSQL (docs/scaling.md)."


class LocalServerRegistry(ServerRegistry):
    """Holds the server lock of a folder, released when the process ends."""

    def __init__(self, home: FolderHome, address: str) -> None:
        home.prepare()
        self._lock, known = FileLock(home.locks / "server.lock", thread_local=False), home.locks / "server.address"
        if not try_acquire(self._lock):
            first = known.read_text("utf-8") if known.is_file() else ""
            where = f", at {first}" if first else ""
            raise SecondServerError(f"{home.name}: another server already uses this folder{where}.")
        known.write_text(address, "utf-8")
        server = secrets.token_hex(6)
        tables = home.tables_with(SERVERS)
        with tables.transaction() as connection:
            connection.execute("DELETE FROM servers")
            connection.execute(SERVERS.insert(), (server,))
        super().__init__(home, tables, server)
        self.uploads = Uploads(home.papers, UPLOAD, unfinished=self.jobs.unfinished)

    def watch(self, listener: Listener) -> None:
        """Do nothing: there are no other servers."""

    def leave(self) -> None:
        self._lock.release()


def configured_home(settings: Settings, explicit: HomeAddress | None = None, *, to_copy: bool = False) -> Home:
    """The `explicit` home or the one in the settings, with the configured Milvus; raises like `find_home`.

    A folder `to_copy` may be combined with CITELOOM_VECTORS, which then is the Milvus of the copy.
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

    A home found here or named by a file in the folder (not `by_user`) must belong to the user. `vectors` is the Milvus
    that searches a library in PostgreSQL. Raises `UnsafeHomeError` for a home that belongs to somebody else or contains
    links, and for a database named by a file; raises `ConfigurationError` for `vectors` with a folder.
    """
    if isinstance(explicit, DatabaseUrl):
        if not by_user:
            message = f"{explicit}: a file in the folder names this database as the home; it was not opened."
            raise UnsafeHomeError(message, help="If you trust it, set CITELOOM_HOME in the environment.")
        from .database_home import DatabaseHome

        return DatabaseHome.at(explicit, vectors)
    if explicit is None:
        here = Path.cwd()
        homes = (folder / HOME_NAME for folder in (here, *here.parents))
        root = next((home for home in homes if home.is_dir()), here / HOME_NAME)
    else:
        root = absolute_path(explicit.expanduser())
    if vectors is not None:
        raise ConfigurationError(
            f"CITELOOM_VECTORS ({vectors}) works with a library in PostgreSQL only, but the home is a folder ({root}).",
            help="Name a database as the home (postgresql://...), or unset CITELOOM_VECTORS.",
        )
    if explicit is None or not by_user:
        require_own(root)
    require_plain_files(root)
    return FolderHome(root)


def require_own(root: Path) -> None:
    """Raise `UnsafeHomeError` if a home not named by the user is a link or belongs to someone else."""
    try:
        status = root.lstat()
    except OSError:
        return  # it does not exist yet
    named = f"If you trust it, name it: --home {root}, or CITELOOM_HOME in the environment."
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeHomeError(f"{root} is a link to {root.readlink()}.", help=named)
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        try:
            owner = root.owner()
        except KeyError:
            owner = str(status.st_uid)
        raise UnsafeHomeError(f"{root} belongs to user {owner}, not to you.", help=named)


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
                        raise UnsafeHomeError(f"{entry.path} is a link to {Path(entry.path).readlink()}.")
                    elif not entry.is_file(follow_symlinks=False) and os.path.lexists(entry.path):
                        raise UnsafeHomeError(f"{entry.path} is neither a file nor a folder.")
                    elif entry.name.endswith("-journal"):
                        # A rollback journal may end with the name of a super-journal, a file that SQLite then
                        # deletes. One is written only for several attached databases, which no home has.
                        with Path(entry.path).open("rb") as file:
                            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_JOURNAL_MAGIC)))
                            if file.read() == _JOURNAL_MAGIC:
                                raise UnsafeHomeError(f"{entry.path} would make SQLite delete another file.")
        except OSError:
            continue  # deleted meanwhile, or unreadable, which the code that needs it reports


_FOLDERS: Final = ("chroma", "fulltext")
_LIBRARY_FILES: Final = ("catalog.sqlite", "metadata.sqlite")
_FILES: Final = (*_LIBRARY_FILES, "memory.sqlite", "runs.sqlite", "checkpoints.sqlite", "journal.sqlite")
_LOGS: Final = ("", "-wal", "-journal")  # files that SQLite may create next to a database
_COPY_TRIES: Final = 3  # another process may be writing during the copy


def readable_home(home: Home, on_notice: Callable[[str], None], *, library: bool, records: bool = False) -> Home:
    """The home, or a private copy if it is not writable; `on_notice` is then called with a message.

    `library` copies papers, passages and indexes; `records` copies runs, conversations and the journal. Raises
    `InputError` if the home is unreadable, or keeps changing during the copy.
    """
    if not isinstance(home, FolderHome) or not home.exists() or is_writable(home):
        return home
    root = Path(tempfile.mkdtemp(prefix="citeloom-read-only-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    names = [f"{file}{log}" for file in _FILES if records or file in _LIBRARY_FILES for log in _LOGS]
    names += _FOLDERS if library else ()
    for _ in range(_COPY_TRIES):
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
    raise InputError(f"{home.root} is being written by another process.", help="Run the same command again.")


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

"""Any wrong value in any column of any table: every reader of a home returns, or names table, column and row.

The tables are read from the schema of the database, so that new ones are attacked as well.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from citeloom.errors import WRONG_INPUT, CiteloomError
from citeloom.evidence_tables.extraction import Decision
from citeloom.ingestion.ingest import ingest
from citeloom.models.journal.journal import survey
from citeloom.models.journal.records import RunScope
from citeloom.roles.protocols import TableColumn
from citeloom.settings.addresses import DatabaseUrl
from citeloom.stores.home import Home, ServerRegistry
from citeloom.stores.library import Library
from citeloom.stores.server_jobs import EventBatch, JobOrder
from citeloom.tools.scope import Scope
from tests.integration.stores.conformance.test_home_copies import PAPER, fill, pay, record
from tests.support.journal_calls import once
from tests.support.library_fixtures import papers
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
pytestmark = pytest.mark.attack
# As SQL; the blob is an integer in msgpack.
VALUES: Final = {
    "bracket": "'['",
    "empty": "''",
    "NULL": "NULL",
    "number": "-3",
    "object": "'{}'",
    "text": "'\"text\"'",
    "nested": '\'{"citations": [3], "id": {}, "text": [[]], "settings": 1}\'',
    "huge": "4611686018427387905",
    "infinite": "'Infinity'",
    "long": "'" + "[" * 3_000 + "'",
    "blob": {"sqlite": "x'2a'", "postgres": r"'\x2a'"},
    "not UTF-8": {"sqlite": "CAST(x'61eda080' AS TEXT)", "postgres": "'{1}'"},
}
JOB: Final = JobOrder("ingest-000000000000", "ingest", {"files": []})
THREAD: Final[Any] = {"configurable": {"thread_id": "research-1", "checkpoint_ns": ""}}


async def read_registers(home: Home) -> None:
    backend = home
    runs, conversations = backend.runs(), backend.conversations()
    for head in runs.heads():
        runs.get(head.thread_id)
    runs.all(), runs.latest("f"), runs.latest_about("Why?"), runs.citing("ada2020"), runs.plot_sets()
    for entry in conversations.all():
        conversations.turns(entry.thread_id), conversations.last_turn(entry.thread_id, answered=True)
    conversations.citing("ada2020")
    backend.runs().edits("research-2")
    read_tables(home)


def read_tables(home: Home) -> None:
    register = home.evidence_tables()
    for table in register.all():
        [TableColumn.from_dict(column) for column in table.plan["columns"]], Scope(tuple(table.plan["papers"]))
        for paper in register.papers(table.table_id).values():
            Decision(**paper.decision)
        register.cells(table.table_id)


async def read_journal(home: Home) -> None:
    backend = home
    survey(backend.journal_database())
    with backend.open_journal() as journal:
        await journal.spending(), await journal.spending_by_day()
        await once(journal, record("k0"), RunScope("research-3"), pay)


async def read_checkpoints(home: Home) -> None:
    async with home.open_checkpoints() as saver:
        await saver.aget_tuple(THREAD)  # type: ignore[attr-defined]


async def read_library(home: Home) -> None:
    with closing(Library.open(home, WordEmbedding())) as library:
        for key in library.records():
            library.figures(key), library.sections(key), library.paper_chunks(key), library.note(key)
        library.matching("looms", 3)
        library.metadata.answer("Crossref", "/works/x"), library.metadata.statements("10.5555/x")
        library.metadata.statuses([PAPER]), library.metadata.file_stamp("Retraction Watch")


async def read_server(home: Home) -> None:
    joined = home.join_servers()
    try:
        joined.jobs.entries(), joined.jobs.entry(JOB.id), joined.jobs.events(JOB.id, "", 0)
        joined.keys.claim("key", "request")
        joined.endings.ended_by_another("run", "other")
        for upload in joined.uploads.files():
            joined.uploads.fetch(upload)
        joined.uploads.idle(), joined.uploads.unfinished()
        joined.jobs.claim_orphaned(9, ())
    finally:
        joined.leave()


READERS: Final = (read_registers, read_journal, read_checkpoints, read_library, read_server)


@pytest.fixture
async def full(home: Home, papers: Path) -> Home:
    """A home with rows of every kind, left by a server that was killed."""
    with closing(Library.open(home, WordEmbedding())) as library:
        await ingest(library, [papers])
        await fill(home, library)
    joined = home.join_servers()
    joined.keys.claim("key", "request")
    joined.jobs.begin(JOB, "epoch", "key")
    joined.jobs.append([EventBatch(JOB.id, "epoch", 0, [("began", "{}")])])
    joined.endings.add("run", "connection")
    leave_upload(joined)
    joined.leave()
    return home


def leave_upload(joined: ServerRegistry) -> None:
    folder = joined.uploads.folder(JOB.id)
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("# A title")
    joined.uploads.publish(JOB.id)
    (folder / "a.md").unlink()


class Tables:
    """All columns of all tables of a home, for raw SQL past its constraints; every change is undone."""

    def __init__(self, home: Home) -> None:
        self._address = home.url if isinstance(url := getattr(home, "url", None), DatabaseUrl) else home.root
        self.dialect = "sqlite" if url is None else "postgres"

    def columns(self) -> Iterator[tuple[str, str, str]]:
        """File, table and column."""
        if isinstance(self._address, Path):
            for file in sorted(self._address.glob("*.sqlite")):
                with closing(sqlite3.connect(file)) as db:
                    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall()
                    for (table,) in tables:
                        for row in db.execute(f"PRAGMA table_info({table})").fetchall():
                            yield file.name, table, row[1]
            return
        with self._connection() as db:
            found = db.execute(
                "SELECT c.table_name, c.column_name FROM information_schema.columns c"
                " JOIN information_schema.tables t USING (table_schema, table_name)"
                " WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'"
                " ORDER BY 1, c.ordinal_position"
            ).fetchall()
        for table, column in found:
            yield "", table, column

    @contextmanager
    def wrong(self, file: str, table: str, column: str, value: str) -> Iterator[bool]:
        """Have a value in one row; yields false if the column cannot hold it, or has no row."""
        if isinstance(self._address, Path):
            path = self._address / file
            with closing(sqlite3.connect(path)) as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sound = path.read_bytes()
            try:
                yield _write_in_file(path, table, column, value)
            finally:
                for log in self._address.glob(f"{file}-*"):
                    log.unlink()
                path.write_bytes(sound)
            return
        with self._connection() as db:
            db.execute(f"CREATE TABLE sound AS SELECT * FROM {table}")
        try:
            yield self._write_in_database(table, column, value)
        finally:
            self._restore(table, column)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        import psycopg

        assert isinstance(self._address, DatabaseUrl)
        with psycopg.connect(self._address.secret, autocommit=True) as db:
            db.execute("SET session_replication_role = replica")  # without foreign keys
            yield db

    def _write_in_database(self, table: str, column: str, value: str) -> bool:
        import psycopg

        with self._connection() as db:
            one = f"UPDATE {table} SET {column} = {value} WHERE ctid = (SELECT min(ctid) FROM {table})"
            try:
                db.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
            except psycopg.Error:  # of the primary key, or an identity
                if value == "NULL":
                    return False
            try:
                return bool(db.execute(one).rowcount)
            except psycopg.Error:
                return False

    def _restore(self, table: str, column: str) -> None:
        with self._connection() as db:
            db.execute(f"DELETE FROM {table}")
            db.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM sound")
            db.execute("DROP TABLE sound")


def _write_in_file(path: Path, table: str, column: str, value: str) -> bool:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '');"
            "PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = ON"
        )
        try:
            one = f"{column} IS (SELECT min({column}) FROM {table})"
            return db.execute(f"UPDATE {table} SET {column} = {value} WHERE {one}").rowcount > 0
        except sqlite3.Error:
            return False


async def flaw(read: Callable[[Home], Any], home: Home, place: str) -> str:
    """What is wrong with the end of a reader; empty if it returned, or named the value."""
    try:
        await read(home)
    except CiteloomError as error:
        if error.exit_code == WRONG_INPUT and ("row " in error.message or place.startswith("schema_versions")):
            return ""
        return f"{type(error).__name__}: {error.message[:200]}"
    except Exception as error:  # noqa: BLE001  # each is a flaw
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


@pytest.mark.parametrize("home", ["folder", "postgres"], indirect=True)
@pytest.mark.parametrize(
    "values", [("bracket",), pytest.param(tuple(VALUES), marks=pytest.mark.long)], ids=["one", "all"]
)
async def test_a_wrong_value_is_reported(full: Home, values: tuple[str, ...]) -> None:
    tables = Tables(full)
    for read in READERS:
        assert not await flaw(read, full, ""), "a sound home is read"
    flaws, written = [], 0
    for file, table, column in list(tables.columns()):
        for name in values:
            known = VALUES[name]
            value = known[tables.dialect] if isinstance(known, dict) else known
            with tables.wrong(file, table, column, value) as there:
                written += there
                for read in READERS if there else ():
                    if found := await flaw(read, full, f"{table}.{column}"):
                        flaws.append(f"{table}.{column} = {name}: {read.__name__}: {found}")
    assert written > 20, "columns were reached"
    assert not flaws, "\n".join([f"{len(flaws)} flaws of {written} values", *flaws])

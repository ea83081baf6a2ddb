"""`doctor` on a database: versions, indexes and counts, and no error of any kind shows a password."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.errors import CiteloomError
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import DatabaseUrl, parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.postgres.database import Database
from tests.support.library_fixtures import papers
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
SECRET = "s3cr3t"


@pytest.fixture
async def library(url: str, papers: Path) -> Library:
    library = Library.open(find_home(parse_home(url)), WordEmbedding())
    await ingest(library, [papers])
    return library


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def found(library: Library) -> dict[str, tuple[str, str]]:
    return {finding.topic: (finding.level, finding.message) for finding in examine(library)}


def test_a_healthy_database_is_described(library: Library) -> None:
    state = found(library)
    assert {level for level, _ in state.values()} == {"fine"}
    assert state["database"][1].startswith("PostgreSQL 1") and "pgvector 0." in state["database"][1]
    assert state["tables"][1].startswith("all agree on 2 papers and ")
    assert state["indexes"][1].endswith("indexes are there and valid")
    library.close()


@pytest.mark.parametrize(
    ("damage", "topic", "message"),
    [
        ("DROP INDEX answers_by_key", "indexes", "missing: answers_by_key"),
        ("ALTER TABLE turns DROP CONSTRAINT turns_pkey", "indexes", "missing: the key of turns"),
        ("DELETE FROM chunks WHERE key = 'ada2020' AND idx = 0", "tables", "stored"),
        ("DELETE FROM word_totals WHERE key = 'ada2020'", "tables", "2 papers, 1 with words"),
        ("UPDATE papers SET summary_vector = NULL WHERE key = 'ada2020'", "tables", "1 with summaries"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'runs_by_fingerprint'::regclass",
            "indexes",
            "runs_by_fingerprint is not valid: REINDEX INDEX runs_by_fingerprint",
        ),
    ],
)
def test_damage_is_reported(url: str, library: Library, damage: str, topic: str, message: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(damage)
    level, said = found(library)[topic]
    assert level == "problem" and message in said
    library.close()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://weaver:{secret}@127.0.0.1:9/library",
        "postgresql://weaver:{secret}@no-such-host.invalid/library",
        "postgresql://weaver:{secret}@127.0.0.1:{silent}/library?connect_timeout=2",
        "postgresql://weaver:{secret}@/library?host=/nowhere",
        "postgresql://weaver@127.0.0.1:9/library?password={secret}",
        "postgresql://weaver:{secret}@127.0.0.1:9/library?sslmode={secret}",
        "postgresql://weaver:{secret}@127.0.0.1:9,127.0.0.1:9/library",
    ],
)
def test_no_connection_error_shows_the_password(silent: int, address: str) -> None:
    url = parse_home(address.format(secret=SECRET, silent=silent))
    assert isinstance(url, DatabaseUrl)
    with pytest.raises(CiteloomError) as failed:
        Database(url).connect()
    shown = f"{failed.value!r} {failed.value.message} {failed.value.help} {url} {url!r} {url.mark}"
    assert SECRET not in shown and "weaver" not in shown


@pytest.mark.parametrize("statement", ["SELECT '{secret}'::int", "SELECT * FROM {secret}", "SELECT pg_sleep(5)"])
def test_no_statement_error_shows_the_password(url: str, statement: str) -> None:
    address = url.replace("postgresql://postgres:", f"postgresql://postgres:{SECRET}", 1)
    assert SECRET in address
    database = Database(DatabaseUrl(address))
    with pytest.raises(CiteloomError) as failed, database.transaction() as connection:
        connection.execute("SET statement_timeout = 50")
        connection.execute(statement.format(secret=SECRET).encode())
    assert SECRET not in f"{failed.value!r} {failed.value.message} {failed.value.help}"

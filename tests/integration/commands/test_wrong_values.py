"""Any wrong value in any column of a home's files: the commands that read it name table, column and row, or ignore it.

Every column of every table gets each of these values by raw SQL, as in a file that is damaged or comes from elsewhere.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from citeloom import Conversation, open_library, research
from citeloom.documents.publication_status import Notice, Version
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.metadata_store import ServiceAnswer
from citeloom.stores.run_register import EditedSentence
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import EXPERIMENT, THREE

VALUES: dict[str, str] = {
    "NULL": "NULL",
    "empty": "''",
    "bracket": "'['",
    "object": "'{}'",
    "list": "'[]'",
    "null": "'null'",
    "digits": "'12'",
    "number": "-3.5",
    "blob": "x'00ff'",
    "long": "printf('%.*c', 100000, 'x')",
    "surrogate": "CAST(x'61eda080' AS TEXT)",
}
KEY = THREE[0]
QUESTION = "How do ensembles help?"
DOI = "10.5555/seeds.2019"
READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "catalog.sqlite": (
        ("papers", "list"),
        ("papers", "show", KEY),
        ("papers", "figures", KEY),
        ("search", "seeds"),
        ("doctor",),
        ("research", "Why do seeds matter?"),
    ),
    "runs.sqlite": (
        ("runs", "list"),
        ("runs", "show", "RUN"),
        ("runs", "resume", "RUN"),
        ("conversations", "list"),
        ("conversations", "show", "CHAT"),
        ("papers", "show", KEY),
    ),
    "metadata.sqlite": (("papers", "list"), ("papers", "show", KEY)),
    "journal.sqlite": (("usage",), ("journal", "stats"), ("research", "Asked", "MODEL")),
    "checkpoints.sqlite": (("runs", "show", "RUN"), ("runs", "resume", "PAUSED")),
}
# Text is valid in these columns: another key is another row, and another fingerprint another run.
# A higher catalog version counts as newer, and an unreadable checkpoint is reported by its thread.
LEGAL = (
    *("There is no conversation", "There is no run", "no paper", "was started with another library"),
    *("was made by another version of Citeloom", "tables checkpoints and writes, row thread_id="),
)
SKIPPED = {"migrations"}


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture(scope="module")
def full(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with at least one row in every table but the journal's; to be copied."""
    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("full") / "home"))
    with open_library(home) as library:
        finished = research(library, QUESTION)
        Conversation(library).ask(QUESTION)
    fill(home, finished["thread_id"])
    return home


def fill(home: Path, run: str) -> None:
    """Rows in the tables that a question leaves empty."""
    backend = FolderHome(home)
    backend.runs().edit(run, EditedSentence(0, "Ducks swim.", {}, 1.0))
    backend.written_files().note([b"written"])
    with closing(backend.open_library()) as stores:
        (paper,) = [record.paper for key, record in stores.catalog.records().items() if key == KEY]
        metadata = stores.metadata
        metadata.keep_answer("crossref", "seeds", ServiceAnswer(200, {"a": 1}, 1.0))
        metadata.keep_identity(paper, DOI, 0.9, "crossref", 1.0)
        notice = Notice("retraction", "crossref", "10.5555/notice", "2020-01-01", "an error")
        version = Version("preprint", "10.5555/preprint", "crossref")
        metadata.keep_work(paper.doi or DOI, "crossref", {"title": "Seeds"}, [notice], [version], 1.0)
        metadata.replace_notices("Retraction Watch", [], "stamp")


def columns_of(file: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            (table, row[1])
            for table in sorted(set(tables) - SKIPPED)
            for row in db.execute(f"PRAGMA table_info({table})").fetchall()
        ]


def write_wrong(file: Path, table: str, column: str, value: str) -> bool:
    """Write a value past all constraints of its column; false if the file cannot hold it, or no row has another."""
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.executescript(
            "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '');"
            "PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = ON"
        )
        db.execute("PRAGMA journal_mode = WAL")
        keys = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]]
        only = f"SELECT min({column}) FROM {table}" if column in keys else column
        try:
            return db.execute(f"UPDATE {table} SET {column} = {value} WHERE {column} IS ({only})").rowcount > 0
        except sqlite3.IntegrityError:
            return False


def restore(sound: bytes, home: Path, file: str) -> None:
    """The file as it was before a wrong value."""
    for log in home.glob(f"{file}-*"):
        log.unlink()
    (home / file).write_bytes(sound)


def flaw(done: Any, table: str, column: str) -> str:
    """What is wrong with how a command ended; empty if it ignored or reported the value."""
    if done.code in (0, 4) or (done.code == 1 and "Unexpected" not in done.err):  # `doctor`
        return ""
    if done.code == 2 and any(line in done.err for line in LEGAL):
        return ""
    (error, *more) = done.errors or [done.err[-200:]]
    if done.code == 2 and not more and f"table {table}, column {column}, row " in error:
        return ""
    return f"exit {done.code}: {error[-300:]}"


@pytest.mark.parametrize("file", READERS)
@pytest.mark.parametrize(
    "values", [("bracket",), pytest.param(tuple(VALUES), marks=pytest.mark.long)], ids=["one", "all"]
)
def test_a_wrong_value_is_reported(
    values: tuple[str, ...],
    file: str,
    full: Path,
    tmp_path: Path,
    citeloom: Citeloom,
    monkeypatch: pytest.MonkeyPatch,
    model: FakeOpenAI,
) -> None:
    home = Path(shutil.copytree(full, tmp_path / "home"))
    exp = shutil.copy(EXPERIMENT, tmp_path / "exp.json")
    asked = ("--model", "m", "--base-url", model.base_url, "--home", home)
    citeloom("research", "Asked", "--fresh", *asked)
    paused = citeloom("discussion", exp, "--max-calls", "1", *asked)
    assert paused.code == 3, paused.err
    runs = {run["status"]: run["thread_id"] for run in citeloom("runs", "list", "--json", "--home", home).json}
    (chat,) = citeloom("conversations", "list", "--json", "--home", home).json
    names = {"RUN": runs["finished"], "PAUSED": runs["paused"], "CHAT": chat["thread_id"]}
    with closing(sqlite3.connect(home / file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sound = (home / file).read_bytes()
    flaws, silent = [], set()
    for table, column in columns_of(home / file):
        for name, value in [(name, VALUES[name]) for name in values]:
            restore(sound, home, file)
            if write_wrong(home / file, table, column, value):
                codes = set()
                for command in READERS[file]:
                    words = [names.get(word, word) for word in command if word != "MODEL"]
                    done = citeloom(*words, *(asked if "MODEL" in command else ("--home", home)))
                    codes.add(done.code)
                    if found := flaw(done, table, column):
                        flaws.append(f"{table}.{column} = {name}: {' '.join(words[:2])}: {found}")
                if codes == {0}:
                    silent.add(f"{table}.{column} = {name}")
    assert not flaws, "\n".join([f"{len(flaws)} flaws", *flaws])

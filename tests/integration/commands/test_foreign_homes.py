"""Commands in a home that came from somebody else, or is damaged: one line, exit code 2, nothing called or sent."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from citeloom import open_library, research
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI

KEY = "sk-of-the-user-4711"
QUESTION = "How do ensembles help?"


@pytest.fixture(scope="module")
def begun(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a finished run and a conversation, without a chat model; to be copied."""
    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("begun") / "home"))
    with open_library(home) as library:
        research(library, QUESTION)
    return home


@pytest.fixture
def theirs(begun: Path, tmp_path: Path) -> Path:
    """The home of a cloned folder in which the command is given."""
    return Path(shutil.copytree(begun, tmp_path / ".citeloom"))


def run_of(home: Path) -> str:
    with closing(sqlite3.connect(home / "runs.sqlite")) as db:
        return str(db.execute("SELECT thread_id FROM runs").fetchone()[0])


def one_error(done: Any) -> str:
    assert done.code == 2, done.err
    (error,) = done.errors
    assert "Unexpected" not in done.err and "Traceback" not in done.err
    return str(error)


@pytest.mark.parametrize("verb", ["show", "resume"])
def test_a_run_in_a_cloned_folder_makes_no_call(verb: str, theirs: Path, tmp_path: Path, citeloom: Citeloom) -> None:
    call = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", f"touch '{tmp_path / 'mark'}'"))))
    with closing(sqlite3.connect(theirs / "checkpoints.sqlite")) as db, db:
        db.execute("UPDATE checkpoints SET type = 'msgpack', checkpoint = ?", (call,))
        db.execute("UPDATE writes SET type = 'msgpack', value = ?", (call,))
    with closing(sqlite3.connect(theirs / "runs.sqlite")) as db, db:
        db.execute("UPDATE runs SET status = 'paused', result = NULL")
    error = one_error(citeloom("runs", verb, run_of(theirs)))
    assert str(theirs / "checkpoints.sqlite") in error and "'os.system'" in error and "Move it away" in error
    assert not (tmp_path / "mark").exists()


def garbage(path: Path) -> None:
    path.write_bytes(b"no database at all, but long enough to be looked at " * 100)


def torn(path: Path) -> None:
    """As after a disk lost its middle pages."""
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 4096 * 4096] = b"\xaa" * (len(content) // 4096 * 4096 - 4096)
    path.write_bytes(content)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def statement(sql: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.executescript(sql)

    return change


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
REGISTER_DAMAGE: dict[str, Callable[[Path], None]] = {
    "garbage": garbage,
    "torn": torn,
    "folder": folder,
    "other-columns": statement("DROP TABLE runs; CREATE TABLE runs (thread_id TEXT)"),
    "started-at-text": statement("UPDATE runs SET updated_at = 'never'"),
    "started-at-endless": statement("UPDATE runs SET started_at = 9e999"),
    "title-a-blob": statement("UPDATE runs SET title = x'00ff'"),
    "not-utf8": statement("UPDATE runs SET title = CAST(x'ff' AS TEXT)"),
    "endless-view": statement(f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS}"),
    "trigger": statement("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END"),
}


# A list does not read these, so that it still shows the other runs.
RUN_DAMAGE: dict[str, Callable[[Path], None]] = {
    "request-no-json": statement("UPDATE runs SET request = '{'"),
    "request-a-list": statement("UPDATE runs SET request = '[]'"),
    "request-deep": statement(f"UPDATE runs SET request = '{'[' * 200_000}'"),
    "result-no-json": statement("UPDATE runs SET result = 'x'"),
}


@pytest.mark.parametrize("damage", RUN_DAMAGE.values(), ids=RUN_DAMAGE)
def test_a_damaged_run_is_listed_and_showing_it_reports_the_damage(
    damage: Callable[[Path], None], theirs: Path, citeloom: Citeloom
) -> None:
    run = run_of(theirs)
    damage(theirs / "runs.sqlite")
    assert [entry["thread_id"] for entry in citeloom("runs", "list", "--json").json] == [run]
    error = one_error(citeloom("runs", "show", run))
    assert str(theirs / "runs.sqlite") in error and "Move it away" in error


@pytest.mark.parametrize("damage", REGISTER_DAMAGE.values(), ids=REGISTER_DAMAGE)
def test_a_damaged_register_is_reported_with_a_remedy(
    damage: Callable[[Path], None], theirs: Path, citeloom: Citeloom
) -> None:
    damage(theirs / "runs.sqlite")
    error = one_error(citeloom("runs", "list"))
    assert str(theirs / "runs.sqlite") in error and "Move it away" in error
    # Its advice works.
    (theirs / "runs.sqlite").rename(theirs.parent / "moved")
    assert citeloom("runs", "list", "--json").json == []


@pytest.mark.parametrize("damage", [garbage, torn, folder, REGISTER_DAMAGE["endless-view"]])
def test_damaged_checkpoints_are_reported_with_a_remedy(
    damage: Callable[[Path], None], theirs: Path, citeloom: Citeloom
) -> None:
    with closing(sqlite3.connect(theirs / "checkpoints.sqlite")) as db:
        db.execute("CREATE TABLE runs (x)")
    damage(theirs / "checkpoints.sqlite")
    error = one_error(citeloom("runs", "show", run_of(theirs)))
    assert str(theirs / "checkpoints.sqlite") in error and "Move it away" in error
    (theirs / "checkpoints.sqlite").rename(theirs.parent / "moved")
    assert citeloom("runs", "show", run_of(theirs)).code == 0


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE turns SET record = '{'",
        "UPDATE turns SET record = '7'",
        "UPDATE turns SET answered_at = 'x'",
        "UPDATE conversations SET updated_at = x'00'",
        "DROP TABLE turns; CREATE TABLE turns (thread_id, number, asked)",
    ],
)
def test_a_damaged_conversation_is_reported(sql: str, theirs: Path, citeloom: Citeloom) -> None:
    assert citeloom("conversations", "list").code == 0  # which makes the tables
    begun = "INSERT INTO conversations VALUES ('chat-1', 1, 1)"
    turn = "INSERT INTO turns VALUES ('chat-1', 1, 'a', 'q', 1, 1, '{}')"
    statement(f"{begun}; {turn}; {sql}")(theirs / "runs.sqlite")
    error = one_error(citeloom("conversations", "show", "chat-1"))
    assert str(theirs / "runs.sqlite") in error and "Move it away" in error


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE meta SET value = 'x' WHERE name = 'schema'",
        "UPDATE papers SET record = '{'",
        "UPDATE papers SET record = '[]'",
        "UPDATE papers SET record = '{\"key\": 1}'",
        f"CREATE VIEW v AS {ENDLESS}",
        "DROP TABLE papers; CREATE TABLE papers (key)",
    ],
)
def test_a_damaged_catalog_is_reported(sql: str, theirs: Path, citeloom: Citeloom) -> None:
    statement(sql)(theirs / "catalog.sqlite")
    error = one_error(citeloom("papers", "list"))
    assert str(theirs / "catalog.sqlite") in error and "Move it away" in error


def begin_at(server: FakeOpenAI, home: Path, citeloom: Citeloom, **settings: str) -> str:
    """A run started with a server given by flags, and paused at once."""
    done = citeloom(
        *("research", QUESTION, "--home", home, "--model", "m", "--base-url", server.base_url, "--max-calls", "1"),
        **settings,
    )
    assert done.code == 3, done.err
    (listed,) = [each for each in citeloom("runs", "list", "--json", "--home", home).json if each["status"] == "paused"]
    return str(listed["thread_id"])


def forge(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with closing(sqlite3.connect(home / "runs.sqlite")) as db, db:
        for thread, text in db.execute("SELECT thread_id, request FROM runs").fetchall():
            request = json.loads(text)
            change(request)
            db.execute("UPDATE runs SET request = ? WHERE thread_id = ?", (json.dumps(request), thread))


def test_a_run_resumed_by_id_uses_the_key_that_it_started_with(home: Path, citeloom: Citeloom) -> None:
    with FakeOpenAI(api_key=KEY) as server:
        thread = begin_at(server, home, citeloom, CHAT_API_KEY=KEY)
        assert KEY.encode() not in b"".join(path.read_bytes() for path in home.glob("runs.sqlite*"))
        before = server.calls()
        resumed = citeloom("runs", "resume", thread, "--home", home, CHAT_API_KEY=KEY)
        assert resumed.code == 0, resumed.err
        assert server.calls() > before


def test_a_run_started_elsewhere_gets_no_key_of_the_user(home: Path, citeloom: Citeloom) -> None:
    with FakeOpenAI() as server:
        thread = begin_at(server, home, citeloom, CHAT_API_KEY="their-own")
        before = server.calls()
        error = one_error(citeloom("runs", "resume", thread, "--home", home, CHAT_API_KEY=KEY))
        assert "127.0.0.1" in error and "CITELOOM_CHAT_BASE_URL" in error and KEY not in error
        assert server.calls() == before
        named = citeloom("runs", "resume", thread, "--home", home, CHAT_API_KEY=KEY, CHAT_BASE_URL=server.base_url)
        assert named.code == 0, named.err


FORGED_MARKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "none": lambda request: request.pop("key_marks", None),
    "empty": lambda request: request.update(key_marks=[""]),
    "odd": lambda request: request.update(key_marks=[None, 1, ["x"]]),
    "everything": lambda request: request.update(key_marks=["*", "true", "0" * 64]),
    "key-among-the-settings": lambda request: request["settings"].update(chat_api_key="x", embedding_api_key="x"),
}


@pytest.mark.parametrize("change", FORGED_MARKS.values(), ids=FORGED_MARKS)
def test_a_home_cannot_declare_itself_trusted(
    change: Callable[[dict[str, Any]], Any], home: Path, citeloom: Citeloom
) -> None:
    with FakeOpenAI() as server:
        thread = begin_at(server, home, citeloom, CHAT_API_KEY="their-own")
        forge(home, change)
        before = server.calls()
        one_error(citeloom("runs", "resume", thread, "--home", home, CHAT_API_KEY=KEY))
        assert server.calls() == before


def test_resuming_compares_endpoints_even_without_a_key(home: Path, citeloom: Citeloom) -> None:
    with FakeOpenAI() as theirs, FakeOpenAI() as ours:
        thread = begin_at(theirs, home, citeloom)
        before = theirs.calls()
        error = one_error(citeloom("runs", "resume", thread, "--home", home, CHAT_BASE_URL=ours.base_url))
        assert theirs.base_url in error and ours.base_url in error and str(home / "runs.sqlite") in error
        assert (theirs.calls(), ours.calls()) == (before, 0)


def test_a_stored_run_sets_only_settings_that_affect_its_text(home: Path, citeloom: Citeloom) -> None:
    with FakeOpenAI() as chat, FakeOpenAI() as embedding:
        thread = begin_at(chat, home, citeloom)
        theirs = {"embedding_model": "e", "embedding_base_url": embedding.base_url, "max_calls": 10_000, "home": "/tmp"}
        forge(home, lambda request: request["settings"].update(theirs))
        done = citeloom("runs", "resume", thread, "--home", home)
        assert done.code == 0, done.err
        assert embedding.calls() == 0


@pytest.mark.parametrize("settings", ["[]", '"x"', "7", "null"])
def test_a_run_without_settings_is_reported(settings: str, theirs: Path, citeloom: Citeloom) -> None:
    forge(theirs, lambda request: request.update(settings=json.loads(settings)))
    assert "runs delete" in one_error(citeloom("runs", "resume", run_of(theirs)))


@pytest.mark.parametrize("name", ["chroma", "locks", "runs.sqlite", "checkpoints.sqlite", "journal.sqlite"])
@pytest.mark.parametrize("command", [("search", "seeds"), ("runs", "list"), ("doctor",), ("usage",)], ids=" ".join)
def test_every_command_refuses_a_home_that_contains_a_link(
    command: tuple[str, ...], name: str, theirs: Path, tmp_path: Path, citeloom: Citeloom
) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    place = theirs / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target if name in ("chroma", "locks") else target / "file")
    error = one_error(citeloom(*command))
    assert str(place) in error and "is a link" in error
    assert list(target.iterdir()) == []

"""A home that came with somebody else's folder: it cannot redirect writes, and no other home is used unasked."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import pytest

from citeloom.errors import WRONG_INPUT
from citeloom.stores.folder_home import FolderHome, FolderLock, UnsafeHomeError, find_home
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local.chroma import LocalStores
from citeloom.stores.store_protocols import VectorStoreError
from tests.support.word_embedding import WordEmbedding

pytestmark = pytest.mark.attack

PRECIOUS = b"the user's own file"
FILES = (
    "catalog.sqlite",
    "catalog.sqlite-wal",
    "journal.sqlite",
    "checkpoints.sqlite",
    "checkpoints.sqlite-wal",
    "checkpoints.sqlite-shm",
    "runs.sqlite",
    "locks/library.lock",
    "locks/library.pid",
    "locks/discussion-0000.lock",
    "chroma/chroma.sqlite3",
    "chroma/a/b/data_level0.bin",
    "fulltext/meta.json",
    "converted/0123.json",
    "something-else",
)
FOLDERS = ("chroma", "fulltext", "converted", "locks", "chroma/a")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of the user's outside the home, in a folder that nothing may be added to."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "file").write_bytes(PRECIOUS)
    return folder / "file"


def untouched(precious: Path) -> bool:
    return precious.read_bytes() == PRECIOUS and [path.name for path in precious.parent.iterdir()] == ["file"]


def link(home: Home, name: str, target: Path) -> Path:
    place = home.root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return place


@pytest.mark.parametrize("dangling", [False, True], ids=["", "dangling"])
@pytest.mark.parametrize("name", FILES)
def test_a_link_to_a_file_is_refused_and_nothing_is_written_there(
    name: str, dangling: bool, home: Home, precious: Path
) -> None:
    place = link(home, name, precious.with_name("new") if dangling else precious)
    for use in (lambda: find_home(home.root), lambda: Library.open(home, WordEmbedding()), home.prepare):
        with pytest.raises(UnsafeHomeError, match="is a link to") as refused:
            use()
        assert str(place) in refused.value.message and "--home" in refused.value.help
        assert refused.value.exit_code == WRONG_INPUT
    assert untouched(precious)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_to_a_folder_is_refused_and_nothing_is_written_there(name: str, home: Home, precious: Path) -> None:
    link(home, name, precious.parent)
    with pytest.raises(UnsafeHomeError, match="is a link to"):
        Library.open(home, WordEmbedding())
    assert untouched(precious)


@pytest.mark.parametrize("name", ["runs.sqlite", "locks/library.pid", "chroma/chroma.sqlite3"])
def test_a_named_pipe_is_refused_without_waiting_for_it(name: str, home: Home) -> None:
    place = home.root / name
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    with pytest.raises(UnsafeHomeError, match="neither a file nor a folder"):
        find_home(home.root)


class Named:
    """An embedding function that a home names, as Chroma would build it: with the user's key, over the network."""

    built: ClassVar[list[object]] = []

    @classmethod
    def build_from_config(cls, config: object) -> NoReturn:
        cls.built.append(config)
        raise RuntimeError("built")


NAMED = {"type": "known", "name": "named", "config": {"api_key_env_var": "OPENAI_API_KEY"}}
OF_WORDS = {"config": {"source_key": "#document", "embedding_function": NAMED}, "enabled": True}
SCHEMAS: dict[str, Callable[[Any], Any]] = {
    "of its vectors": lambda schema: schema["keys"]["#embedding"]["float_list"].update(vector_index=OF_WORDS),
    "of vectors by default": lambda schema: schema["defaults"]["float_list"].update(vector_index=OF_WORDS),
    "of words": lambda schema: schema["keys"].update(own={"sparse_vector": {"sparse_vector_index": OF_WORDS}}),
}


def with_schema(db: sqlite3.Connection, name: str) -> None:
    for id, written in db.execute("SELECT id, schema_str FROM collections").fetchall():
        SCHEMAS[name](schema := json.loads(written))
        db.execute("UPDATE collections SET schema_str = ? WHERE id = ?", (json.dumps(schema), id))


def with_configuration(db: sqlite3.Connection) -> None:
    said = json.dumps({"hnsw": {"space": "cosine"}, "embedding_function": NAMED})
    db.execute("UPDATE collections SET config_json_str = ?, schema_str = NULL", (said,))


@pytest.mark.parametrize("name", [*SCHEMAS, "of an old configuration"])
def test_an_embedding_function_named_by_a_home_is_never_built(
    name: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chromadb.utils import embedding_functions

    monkeypatch.setitem(embedding_functions.known_embedding_functions, "named", Named)  # type: ignore[arg-type]
    monkeypatch.setitem(embedding_functions.sparse_known_embedding_functions, "named", Named)  # type: ignore[arg-type]
    Named.built.clear()
    LocalStores(home.prepare()).vectors.put({"n:1": np.ones(4, np.float32)}, "notes")
    with closing(sqlite3.connect(home.chroma / "chroma.sqlite3")) as db, db:
        with_schema(db, name) if name in SCHEMAS else with_configuration(db)

    with pytest.raises(VectorStoreError, match="names an embedding function") as refused:
        LocalStores(home).vectors.put({"n:2": np.ones(4, np.float32)}, "notes")
    assert Named.built == []
    assert "doctor --repair" in refused.value.help


def leave_hot_journal(database: Path, victim: Path | None) -> None:
    """A database as a killed writer leaves it; a `victim` is named as the super-journal, which SQLite deletes."""
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = 2")
        db.execute("CREATE TABLE rows (text)")
        db.executemany("INSERT INTO rows VALUES (?)", [("x" * 500,)] * 50)
        db.execute("BEGIN")
        db.execute("UPDATE rows SET text = 'y' || text")
        kept = {path: path.read_bytes() for path in database.parent.glob(f"{database.name}*")}
    for path, content in kept.items():
        path.write_bytes(content)
    if victim is not None:
        name = str(victim).encode()
        page = 0x40000000 // 4096 + 1
        end = struct.pack(">I", page) + name + struct.pack(">II", len(name), sum(name))
        with database.with_name(f"{database.name}-journal").open("ab") as file:
            file.write(end + bytes.fromhex("d9d505f920a163d7"))


@pytest.mark.parametrize("name", ["runs.sqlite", "catalog.sqlite", "chroma/chroma.sqlite3"])
def test_a_journal_file_cannot_make_sqlite_delete_another_file(name: str, home: Home, precious: Path) -> None:
    (home.root / name).parent.mkdir(parents=True)
    leave_hot_journal(home.root / name, precious)
    for use in (lambda: find_home(home.root), home.prepare):
        with pytest.raises(UnsafeHomeError, match=f"{name}-journal would make SQLite delete another file"):
            use()
    assert untouched(precious)
    with closing(sqlite3.connect(home.root / name)) as db:  # this is what it would have done
        db.execute("SELECT * FROM rows")
    assert not precious.exists()


def test_leftovers_of_a_killed_writer_are_not_mistaken_for_an_attack(home: Home) -> None:
    leave_hot_journal(home.prepare().root / "runs.sqlite", None)
    assert (home.root / "runs.sqlite-journal").exists()
    assert find_home(home.root).prepare() == home


@pytest.mark.parametrize("name", ["library.pid", "library.lock"])
def test_a_lock_does_not_follow_a_link_created_later(name: str, home: Home, precious: Path) -> None:
    lock = FolderLock(home.prepare())
    link(home, f"locks/{name}", precious)
    with pytest.raises(UnsafeHomeError, match=name), lock.try_held():
        pytest.fail("held by a link")
    assert untouched(precious)


async def test_the_lock_of_a_run_does_not_follow_links(home: Home, precious: Path) -> None:
    home.prepare()
    link(home, "locks/discussion-0000.lock", precious)
    with pytest.raises(UnsafeHomeError):
        FolderLock(home, "discussion-0000").is_held()
    with pytest.raises(UnsafeHomeError):
        async with FolderLock(home, "discussion-0000").held():
            pytest.fail("held by a link")
    assert untouched(precious)


def test_any_content_of_a_pid_file_is_tolerated(home: Home) -> None:
    lock = FolderLock(home.prepare())
    for written in (b"9" * 10_000_000, b"\xff", b"", b"-1e9"):
        with lock.try_held() as held:
            assert held
            (home.locks / "library.pid").write_bytes(written)
            assert lock.holder() is None or lock.holder() == int(b"9" * 20)


@pytest.fixture
def of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all files belong to somebody else."""
    user = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: user)


@pytest.mark.usefixtures("of_another")
@pytest.mark.parametrize("deep", [".", "a/b"])
def test_another_users_home_is_used_only_if_it_is_named(
    deep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / ".citeloom"
    theirs.mkdir()
    (tmp_path / deep).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / deep)
    with pytest.raises(UnsafeHomeError, match="belongs to") as refused:
        find_home()
    assert str(theirs) in refused.value.message and f"--home {theirs}" in refused.value.help
    assert find_home(theirs).root == theirs  # the user names it
    with pytest.raises(UnsafeHomeError, match="belongs to"):
        find_home(theirs, by_user=False)  # a file of the folder names it


def test_a_home_that_is_a_link_is_used_only_if_it_is_named(tmp_path: Path) -> None:
    library = FolderHome(tmp_path / "my library").prepare()
    found = tmp_path / ".citeloom"
    found.symlink_to(library.root)
    with pytest.raises(UnsafeHomeError, match="is a link to"):
        find_home()
    assert find_home(found).root == found


def test_the_users_own_home_is_found(home: Home, tmp_path: Path) -> None:
    Library.open(FolderHome(tmp_path / ".citeloom"), WordEmbedding()).close()
    assert find_home().exists()


def test_a_home_is_named_by_its_shortest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "there" / "deep")
    monkeypatch.chdir(tmp_path)
    assert find_home(Path("./missing/../.citeloom")).name == tmp_path / ".citeloom"
    assert find_home(Path("link/../.citeloom")).name == tmp_path / "there" / ".citeloom", "as the system reads it"
    assert find_home(Path("link/home")).name == tmp_path / "link" / "home", "a link is no detour"

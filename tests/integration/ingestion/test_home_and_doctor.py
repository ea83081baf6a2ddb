"""Where the library is, and what doctor finds and repairs there."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from citeloom.errors import WRONG_INPUT, InputError, OtherFormatError
from citeloom.ingestion.doctor import examine, repair
from citeloom.ingestion.ingest import ingest
from citeloom.stores.folder_home import FolderHome, find_home
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.nearest import nearest
from tests.support.word_embedding import WordEmbedding


def problems(library: Library) -> list[str]:
    return [f"{finding.topic}: {finding.message}" for finding in examine(library) if finding.level == "problem"]


def test_the_nearest_home_in_the_parent_folders_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_home().root == deep / ".citeloom"
    (tmp_path / "project" / ".citeloom").mkdir()
    assert find_home().root == tmp_path / "project" / ".citeloom"
    assert find_home(Path("mine")).root == deep / "mine"
    assert not (deep / "mine").exists()


@pytest.mark.parametrize("place", ["home", "home/inside", "home/deep/inside"])
def test_a_home_without_write_permission_is_reported(tmp_path: Path, place: str) -> None:
    (tmp_path / "home").write_text("a file in the way", encoding="utf-8")
    home = FolderHome(tmp_path / place)
    with pytest.raises(InputError, match="cannot be written") as raised:
        Library.open(home, WordEmbedding())
    assert str(home.root) in raised.value.message
    assert "--home" in raised.value.help
    assert raised.value.exit_code == WRONG_INPUT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_a_file_in_place_of_a_folder_is_reported(home: Home) -> None:
    locks = home.root / "locks"
    home.root.mkdir(exist_ok=True)
    locks.write_text("a file in the way", encoding="utf-8")
    with pytest.raises(InputError, match=f"cannot be written \\({re.escape(str(locks))} is a file\\)"):
        home.prepare()
    assert locks.is_file()


def test_a_home_that_could_not_be_completed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    with pytest.raises(InputError, match="No space left"):
        FolderHome(tmp_path / "a" / "b").prepare()
    assert list(tmp_path.iterdir()) == []


def test_reading_requires_a_library(home: Home) -> None:
    with pytest.raises(InputError, match="holds no library") as raised:
        Library.open(home, WordEmbedding(), create=False)
    assert "ingest" in raised.value.help
    assert not home.root.exists()


def test_a_file_that_is_not_a_catalog_is_reported(home: Home) -> None:
    home.prepare().catalog.write_bytes(b"not a database, but long enough to be looked at as one" * 30)
    with pytest.raises(InputError, match=r"catalog\.sqlite is not a library catalog"):
        Library.open(home, WordEmbedding())


def test_a_catalog_from_a_newer_citeloom_is_left_alone(home: Home, open_library: Callable[..., Library]) -> None:
    open_library().catalog.set_meta("schema", "999")
    with pytest.raises(OtherFormatError):
        open_library()


async def test_doctor_finds_no_fault_in_a_sound_library(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    findings = {finding.topic: finding for finding in examine(library)}
    assert {finding.level for finding in findings.values()} == {"fine"}
    assert findings["home"].message == str(library.home.root)
    assert "test:words" in findings["embedding"].message
    assert "2 papers" in findings["library"].message


async def test_missing_vectors_are_found_and_recomputed(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    library.store.delete(["ada2020:00001", "ada2020:00002"])
    library.store.delete(["grace2021"], "summaries")
    assert "ada2020, grace2021" in problems(library)[0]
    await repair(library)
    await ingest(library, [papers])
    assert problems(library) == []
    assert len(library.store.stored_ids()) == library.chunk_count()


async def test_orphans_are_found_and_deleted(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    with sqlite3.connect(library.home.catalog) as db:
        db.execute("DELETE FROM papers WHERE key = 'ada2020'")
        db.execute("DELETE FROM chunks WHERE key = 'ada2020'")
    db.close()
    assert "records without a paper" in problems(library)[0]
    query = await library.embedding.embed_query("loom outcome")
    assert {chunk.key for chunk, _ in nearest(library, query, 5)} == {"grace2021"}
    await repair(library)
    assert problems(library) == []
    assert library.store.stored_ids("summaries") == {"grace2021"}


async def test_a_missing_file_is_noticed(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    (papers / "ada2020.md").unlink()
    assert [finding.topic for finding in examine(library) if finding.level == "notice"] == ["files"]

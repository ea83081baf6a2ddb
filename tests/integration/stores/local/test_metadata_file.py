"""The file with what services said of papers: made with the first entry, and checked when it is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from citeloom.documents import Paper
from citeloom.sqlite import DamagedFileError
from citeloom.stores.metadata_store import MetadataStore, ServiceAnswer
from tests.support.home_tables import metadata_tables

PAPER = Paper("ada2020", "Looms: A Study", ("Ada Lovelace",), 2020)


@pytest.fixture
def store(tmp_path: Path) -> MetadataStore:
    return MetadataStore(metadata_tables(tmp_path / "metadata.sqlite"))


def test_reading_creates_no_file(store: MetadataStore, tmp_path: Path) -> None:
    assert store.answer("Crossref", "/works/x") is None and store.statuses([PAPER]) == {}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE metadata_answers SET body = '{half'",
        "UPDATE metadata_answers SET body = x'00ff'",
        "UPDATE metadata_answers SET answered_at = 'yesterday'",
        "CREATE TRIGGER evil AFTER INSERT ON metadata_answers BEGIN SELECT 1; END",
    ],
)
def test_damage_is_reported_with_its_remedy(store: MetadataStore, tmp_path: Path, damage: str) -> None:
    store.keep_answer("Crossref", "/x", ServiceAnswer(200, {}, 1.0))
    with sqlite3.connect(tmp_path / "metadata.sqlite") as db:
        db.execute(damage)
    with pytest.raises(DamagedFileError) as raised:
        store.answer("Crossref", "/x")
    assert "metadata.sqlite" in raised.value.message and "papers enrich" in raised.value.help

"""Commands that look papers up, add them and count answers work on a database as in a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_process import Finished, run
from tests.support.made_zotero import MadeZotero
from tests.support.metadata_server import MetadataServer, ServedWork
from tests.support.sample_library import SAMPLES

pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
KEY = "obrien2019seeds"
SEEDS = ServedWork(
    "10.5555/seeds.2019",
    "How many seeds? Run-to-run variance of small sensor classifiers",
    (("Niamh", "O'Brien"), ("Ramón", "Díaz"), ("Zofia", "Kowalska")),
    2019,
    "Citeloom Sample Journal",
    volume="12",
)
QUAILS = replace(
    SEEDS,
    doi="10.5555/quails.2021",
    title="The Migration of Quails",
    authors=(("Ada", "Lovelace"),),
    year=2021,
    abstract="Quails migrate at night. We followed forty quails over three summers.",
)
COLUMNS = "RetractionDate,RetractionNature,RetractionDOI,OriginalPaperDOI,Reason"
Command = Callable[..., Finished]


@pytest.fixture
def command(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A command on a database with two papers."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def call(*arguments: object, **settings: str) -> Finished:
        return run(*arguments, cwd=tmp_path, settings={"HOME": url, **settings})

    inputs = [SAMPLES / f"{key}.md" for key in (KEY, "tanaka2023position")]
    done = call("ingest", *inputs, "--bib", SAMPLES / "library.bib")
    assert done.code == 0, done.err
    return call


def services(server: MetadataServer) -> dict[str, str]:
    return {name: str(value) for name, value in server.settings().items()}


def test_a_retraction_is_found_and_shown(command: Command, tmp_path: Path) -> None:
    with MetadataServer(SEEDS) as server:
        server.found["seeds"] = [SEEDS]
        found = command("papers", "enrich", KEY, "--json", **services(server))
        assert (found.code, found.json["papers"][0]["doi"]) == (0, SEEDS.doi), found.err
        asked = len(server.requests)
        again = command("papers", "enrich", KEY, "--json", "--offline", **services(server))
        assert again.json["papers"][0]["filled"]["volume"]["value"] == "12" and len(server.requests) == asked
    file = tmp_path / "retraction_watch.csv"
    file.write_text(f"{COLUMNS}\n6/4/2024 0:00,Retraction,10.5555/notice,{SEEDS.doi},+Error;\n", encoding="utf-8")
    assert "retracted" in str(status(command("papers", "list", "--json", RETRACTION_WATCH=str(file)).json))
    assert "Retracted on 2024-06-04 (Retraction Watch)" in command("doctor").out


def status(papers: list[dict[str, Any]]) -> str:
    return next(paper["status"] for paper in papers if paper["key"] == KEY)


def test_a_paper_is_added_by_its_doi_and_its_file_stays_on_this_computer(command: Command, tmp_path: Path) -> None:
    with MetadataServer(QUAILS) as server:
        done = command("add", QUAILS.doi, "--json", **services(server))
        assert (done.code, done.json["papers"][0]["outcome"]) == (0, "abstract"), done.err
        assert command("add", QUAILS.doi, "--json", **services(server)).json["papers"][0]["outcome"] == "duplicate"
    key = done.json["papers"][0]["key"]
    (added,) = (tmp_path / "data").rglob(f"{key}.md")
    assert "Quails migrate at night" in added.read_text(encoding="utf-8")
    found = command("find", "quails at night", "--fulltext", "--json").json
    assert found["papers"][0]["key"] == key


def test_zotero_is_synced_and_its_state_stays_on_this_computer(command: Command, tmp_path: Path) -> None:
    zotero = MadeZotero(tmp_path / "Zotero")
    zotero.item("AAAA1111", title="Looms of the night", abstractNote="Looms weave at night.")
    settings = {"ZOTERO": str(zotero.folder)}
    assert command("sync", "zotero", "--json", **settings).json["added"] == ["looms"]
    assert command("sync", "zotero", "--json", **settings).json["unchanged"] == 1
    assert len(list((tmp_path / "data").rglob("sync.json"))) == 1
    zotero.erase("AAAA1111")
    assert len(command("sync", "zotero", "--json", **settings).json["removed"]) == 1


def test_the_journal_is_summarised_and_pruned(command: Command, url: str) -> None:
    empty = command("journal", "stats")
    assert empty.code == 0 and "empty." in empty.out and "test_" not in empty.out, "nor are parameters shown"
    pruned = command("journal", "prune", "--older-than", "0", "--json")
    assert (pruned.code, pruned.json["answers"]) == (0, 0), pruned.err

"""`sync zotero` as a user gives it: what it prints, its exit codes, a kill, Ctrl-C, and links back to Zotero."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import finish, start
from tests.support.made_zotero import MadeZotero, filled, key_of, page_of
from tests.support.zotero_server import ApiFault, ZoteroServer


@pytest.fixture
def zotero(tmp_path: Path) -> MadeZotero:
    made = MadeZotero(tmp_path / "Zotero")
    made.item("AAAA1111", title="Looms of the night", date="2020", authors=[("Ada", "Lovelace")])
    made.file("FILE1111", "AAAA1111", "looms.md", page_of("jacquard"))
    made.note("NOTE1111", "AAAA1111", "<p>Compare with dobby looms</p>")
    made.item("BBBB1111", title="Only \x1b[31man abstract", abstractNote="We punch cards at night.")
    made.item("CCCC1111", title="Nothing \x1b[31mhere")
    return made


@pytest.fixture
def api(zotero: MadeZotero) -> Iterator[ZoteroServer]:
    with ZoteroServer(zotero) as running:
        yield running


def test_first_sync_second_sync_and_deletion_print_their_counts(
    citeloom: Citeloom, home: Path, zotero: MadeZotero
) -> None:
    first = citeloom("sync", "zotero", "--home", home, ZOTERO=str(zotero.folder))
    lines = first.out.splitlines()
    assert first.code == 0 and lines[0] == "1 paper without a readable file: only the abstract is indexed."
    assert (
        lines[1].startswith("1 item with neither a file nor an abstract left out: Nothing ") and "\x1b" not in first.out
    )
    assert lines[2].startswith(
        "My Library, 3 items: 2 papers added, 0 updated, 0 unchanged, 0 removed; 2 chunks embedded"
    )
    second = citeloom("sync", "zotero", "--home", home, ZOTERO=str(zotero.folder))
    assert "0 papers added, 0 updated, 2 unchanged, 0 removed; 0 chunks embedded" in second.out
    zotero.trash("AAAA1111")
    planned = citeloom("sync", "zotero", "--dry-run", "--home", home, ZOTERO=str(zotero.folder))
    assert "To remove: lovelace2020looms: its item was deleted in Zotero." in planned.out
    gone = citeloom("sync", "zotero", "--home", home, ZOTERO=str(zotero.folder))
    assert "Removed lovelace2020looms: its item was deleted in Zotero." in gone.out
    assert len(citeloom("papers", "list", "--home", home, "--json").json) == 4  # three of the user's, and the abstract


def test_a_zotero_note_is_found_and_the_paper_links_back(citeloom: Citeloom, home: Path, zotero: MadeZotero) -> None:
    citeloom("sync", "zotero", "--home", home, ZOTERO=str(zotero.folder))
    found = citeloom("find", "compare with dobby looms", "--home", home, "--json").json
    assert found["papers"][0]["key"] == "lovelace2020looms"
    assert (
        "Zotero: zotero://select/library/items/AAAA1111"
        in citeloom("papers", "show", "lovelace2020looms", "--home", home).out
    )
    passages = citeloom("search", "compare with dobby looms", "--home", home, "--json").json
    assert not any("dobby" in str(hit) for hit in passages)


def test_the_evidence_report_links_back(citeloom: Citeloom, tmp_path: Path, zotero: MadeZotero) -> None:
    home, out = tmp_path / "new", tmp_path / "out"
    citeloom("sync", "zotero", "--home", home, ZOTERO=str(zotero.folder))
    done = citeloom("research", "How many looms was the jacquard measured in?", "--out", out, "--home", home, "--json")
    assert done.code == 0
    (report,) = out.glob("**/*evidence*.html")
    assert 'href="zotero://select/library/items/AAAA1111"' in report.read_text(encoding="utf-8")


def test_refused_items_exit_with_code_4(citeloom: Citeloom, home: Path, zotero: MadeZotero) -> None:
    (zotero.folder / "storage" / "FILE1111" / "looms.md").unlink()
    done = citeloom("sync", "zotero", "--home", home, "--json", ZOTERO=str(zotero.folder))
    assert done.code == 4 and "its file is missing" in done.json["refused"][0]["reason"]
    assert "Refused: Zotero item AAAA1111 (Looms of the night): attachment FILE1111 (looms.md)" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--collection", "Thesis"], "Error: --collection Thesis: Zotero has no such collection. There is none."),
        (["--group", "Weaver"], "Error: --group Weaver: Zotero has no such group. Did you mean 'Weavers'?"),
        (["--watch", "--dry-run"], "Error: --watch and --dry-run cannot be combined."),
    ],
)
def test_wrong_options_change_nothing(
    citeloom: Citeloom, home: Path, zotero: MadeZotero, options: list[str], said: str
) -> None:
    done = citeloom("sync", "zotero", *options, "--home", home, ZOTERO=str(zotero.folder))
    assert done.code == 2 and done.errors[0].startswith(said)


def test_a_zotero_whose_api_is_switched_off_is_explained(citeloom: Citeloom, home: Path, api: ZoteroServer) -> None:
    api.faults = [ApiFault(403, b"Local API is not enabled")]
    done = citeloom("sync", "zotero", "--home", home, ZOTERO=api.url)
    assert (
        done.code == 2 and "does not allow its local API (403). In Zotero's settings, under Advanced" in done.errors[0]
    )


def test_a_killed_sync_is_completed_by_the_next(citeloom: Citeloom, tmp_path: Path, zotero: MadeZotero) -> None:
    filled(zotero, 60)
    home, settings = tmp_path / "new", {"ZOTERO": str(zotero.folder)}
    process = start("sync", "zotero", "--home", home, cwd=tmp_path, settings=settings)
    assert process.stderr is not None
    assert any("embedded" in line for line in process.stderr)  # the first tenth
    process.kill()
    process.communicate()
    done = citeloom("sync", "zotero", "--home", home, "--json", **settings)
    assert done.code == 0 and not done.json["warnings"]
    assert len(citeloom("papers", "list", "--home", home, "--json").json) == 56
    zotero.erase(key_of(0))
    assert len(citeloom("sync", "zotero", "--home", home, "--json", **settings).json["removed"]) == 1


def test_ctrl_c_stops_watching_cleanly(tmp_path: Path, zotero: MadeZotero) -> None:
    settings = {"ZOTERO": str(zotero.folder), "ZOTERO_SECONDS": "3600"}
    process = start("sync", "zotero", "--watch", "--home", tmp_path / "new", cwd=tmp_path, settings=settings)
    assert process.stdout is not None
    assert any("2 papers added" in line for line in process.stdout)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.code == 0 and done.err.splitlines()[-1] == "Stopped watching." and "Traceback" not in done.err


def test_the_python_api_syncs_too(tmp_path: Path, zotero: MadeZotero, monkeypatch: pytest.MonkeyPatch) -> None:
    import citeloom as package

    monkeypatch.setenv("CITELOOM_ZOTERO", str(zotero.folder))
    with package.open_library(tmp_path / "new") as library:
        assert sorted(package.sync_zotero(library, dry_run=True)["added"]) == ["lovelace2020looms", "only"]
        assert len(package.sync_zotero(library)["added"]) == 2
        zotero.trash("BBBB1111")
        assert len(package.sync_zotero(library)["removed"]) == 1

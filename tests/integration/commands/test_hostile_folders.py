"""A folder from someone else, on the command line: its bad files are reported, and nothing outside it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom

GOOD = "# A good paper\n\n## Introduction\n\nLooms are machines that weave cloth from threads.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "cloned"
    inside.mkdir()
    (inside / "good.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "secret.md").write_text("# Keys\n\nThe secret word is sesame.\n", encoding="utf-8")
    return inside


def test_hostile_files_are_reported_and_the_rest_is_ingested_with_exit_code_4(
    citeloom: Citeloom, folder: Path, tmp_path: Path
) -> None:
    (folder / "link.md").symlink_to("../secret.md")
    with (folder / "large.html").open("wb") as file:
        file.truncate(6_000_000_000)
    (folder / "year.md").write_text(f"---\nyear: 1{':59' * 20_000}\n---\n{GOOD}", encoding="utf-8")
    deep = "@misc{good, title = {" + r"\textbf{" * 2_000 + "}" * 2_000 + "}}"
    (folder / "library.bib").write_text(deep, encoding="utf-8")
    done = citeloom("ingest", folder, "--home", tmp_path / "home")
    assert done.code == 4 and done.out.startswith("2 papers added"), done.err
    for name in ("link.md", "large.html", "library.bib"):
        assert sum(name in line for line in done.err.splitlines()) == 1, done.err
    assert "--follow-links" in done.err and "Traceback" not in done.err
    found = citeloom("search", "secret word", "--home", tmp_path / "home")
    assert "sesame" not in found.out


def test_links_are_followed_on_request(citeloom: Citeloom, folder: Path, tmp_path: Path) -> None:
    (folder / "link.md").symlink_to("../secret.md")
    assert citeloom("ingest", folder, "--home", tmp_path / "home", "--follow-links").code == 0
    assert "sesame" in citeloom("search", "secret word", "--home", tmp_path / "home").out


@pytest.mark.parametrize("address", ["{secret}", "http://127.0.0.1:9/style", "../secret.md"])
def test_a_style_set_by_an_untrusted_folder_stops_before_anything_is_written(
    address: str, citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0: sesame\n", encoding="utf-8")
    style = tmp_path / "own.csl"
    link = f'<link href="{address.format(secret=secret)}" rel="independent-parent"/>'
    style.write_text(
        f'<style xmlns="http://purl.org/net/xbiblio/csl" version="1.0"><info>{link}</info></style>', encoding="utf-8"
    )
    Path("citeloom.toml").write_text(f'csl = "{style}"\n', encoding="utf-8")
    done = citeloom("discussion", "--exp", exp, "--home", home, "--out", tmp_path / "out")
    assert done.code == 2 and str(style) in done.err and "sesame" not in done.err + done.out
    assert not (tmp_path / "out" / "discussion.md").exists()

"""What cannot be a Ray cluster is refused in one line, before anything is read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import citeloom
from citeloom.api.arguments import ArgumentError
from citeloom.commands.adding_papers import with_ray_address
from citeloom.errors import InputError
from citeloom.ingestion.ray_executor import RayRequest
from tests.support.cli_process import run_here
from tests.support.ray_processes import free_ports


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        (["papers/", "--ray"], ["papers/", "--ray", "local"]),
        (["--ray", "papers/"], ["--ray", "local", "papers/"]),
        (["--ray", "--json", "papers"], ["--ray", "local", "--json", "papers"]),
        (["--ray", "auto", "papers"], ["--ray", "auto", "papers"]),
        (["--ray", "node1:6379", "papers"], ["--ray", "node1:6379", "papers"]),
        (["--ray", "ray://node1:10001", "papers"], ["--ray", "ray://node1:10001", "papers"]),
        (["--ray=node1:6379", "papers"], ["--ray=node1:6379", "papers"]),
        (["papers", "--", "--ray"], ["papers", "--", "--ray"]),
    ],
)
def test_the_ray_option_needs_no_address(given: list[str], whole: list[str]) -> None:
    assert with_ray_address(given) == whole


@pytest.mark.parametrize("address", ["papers", "ray://", "ray://host", "host:port", "http://host:1", "a b:1", ""])
def test_an_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a Ray cluster"):
        RayRequest(address)


def test_a_missing_package_is_reported(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = run_here(monkeypatch, capsys, "--home", tmp_path / "home", "ingest", papers, "--ray")
    assert refused.code == 2
    assert refused.errors == [
        "Error: Ingest on Ray needs more packages (ray is missing). "
        "Install it in Citeloom's folder: pip install -e '.[ray]'; or ingest without --ray."
    ]


def test_a_missing_path_or_bib_creates_no_home(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for given in (["nowhere"], [papers, "--bib", "nowhere.bib"]):
        refused = run_here(monkeypatch, capsys, "--home", tmp_path / "home", "ingest", *given, "--ray")
        assert refused.code == 2 and "nowhere" in refused.errors[0]
        assert not (tmp_path / "home").exists()


def test_an_address_without_an_answer_is_reported(
    papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    for given in (address, f"ray://{address}"):
        refused = run_here(monkeypatch, capsys, "--home", tmp_path / "home", "ingest", papers, "--ray", given)
        assert refused.code == 2 and len(refused.errors) == 1
        assert refused.errors[0].startswith(f"Error: {given}: no Ray cluster answers there (Connection refused).")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ray": 3}, "ray: expected True or the address of a cluster, got 3"),
        ({"ray": True, "ray_workers": 0}, "ray_workers: expected an integer of at least 1"),
    ],
)
def test_the_library_call_names_a_wrong_argument(
    options: dict[str, Any], message: str, papers: Path, tmp_path: Path
) -> None:
    with citeloom.open_library(tmp_path / "home") as library, pytest.raises(ArgumentError, match=message):
        citeloom.ingest(library, papers, **options)

"""Images of plots are uploaded, shown in what is written with them, and deleted with their last run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.server.uploaded_files import tidy_plots
from citeloom.stores.folder_home import FolderHome
from tests.support.run_fixtures import experiment
from tests.support.served_app import Served, served_app

__all__ = ["experiment"]
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with served_app(home, {}) as server:
        yield server


def upload(served: Served, *files: tuple[str, bytes], base: str = "") -> Any:
    return served.api.post("/plots", files=[("files", file) for file in files], data={"base": base} if base else {})


def with_plots(experiment: dict[str, Any], *paths: str) -> dict[str, Any]:
    return {**experiment, "plots": [{"path": path, "caption": f"What {path} shows"} for path in paths]}


def sets(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "plots").iterdir())


def test_a_section_shows_and_offers_uploaded_plots(served: Served, experiment: dict[str, Any], home: Path) -> None:
    stored = upload(served, ("roc kurve ü.PNG", PNG), ("cal.svg", SVG)).json()
    assert stored["files"] == ["cal.svg", "roc kurve ü.PNG"] and stored["refused"] == []
    asked = {
        "experiment": with_plots(experiment, "figures/Roc Kurve ü.png", "missing.png", "cal.svg"),
        "plot_upload": stored["id"],
    }
    (warning,) = served.post("/experiments/check", asked).json()["warnings"]
    assert "'missing.png'" in warning and "Kurve" not in warning
    written = served.post("/sections/results", asked).json()
    assert [figure["file"] for figure in written["figures"]] == ["results.figure-1.png", "results.figure-2.svg"]
    assert "Figure 1 and Figure 2" in written["text"] and "Figure 3" not in written["text"]
    files = f"/runs/{written['thread_id']}/files"
    shown = served.api.get(f"{files}/results.figure-1.png")
    assert shown.content == PNG and shown.headers["content-type"] == "image/png"
    page = served.api.get(f"{served.url}/runs/{written['thread_id']}").text
    assert f'<img src="/api/v1{files}/results.figure-1.png"' in page and "What cal.svg shows" in page
    # The same images are the same request.
    assert upload(served, ("cal.svg", SVG), ("roc kurve ü.PNG", PNG)).json()["id"] == stored["id"]
    assert served.post("/sections/results", asked).json()["thread_id"] == written["thread_id"]

    tidy_plots(FolderHome(home))
    assert sets(home) == [stored["id"]]
    assert served.api.delete(f"/runs/{written['thread_id']}").status_code == 204
    assert sets(home) == []


def test_an_unusable_image_is_refused_with_the_reason(served: Served, home: Path) -> None:
    answer = upload(
        served,
        ("../../good.png", PNG),
        ("GOOD.PNG", PNG),
        ("empty.png", b""),
        ("page.png", b"<html>"),
        ("notes.txt", b"words"),
        ("huge.png", PNG + b"0" * 20_000_000),
    ).json()
    assert answer["files"] == ["good.png"]
    reasons = {item["name"]: item["reason"] for item in answer["refused"]}
    assert reasons["GOOD.PNG"].startswith("has the same name as another image")
    assert reasons["empty.png"] == "is empty" and reasons["huge.png"] == "is larger than 20 MB"
    assert reasons["page.png"] == "is not the png image that its name says"
    assert reasons["notes.txt"].startswith("is not an image (.png")
    assert [path.name for path in (home / "plots" / answer["id"]).iterdir()] == ["good.png"]
    refused = upload(served, ("empty.png", b""))
    assert refused.status_code == 422 and refused.json()["errors"][0]["message"] == "is empty"
    many = upload(served, *[(f"{number}.png", PNG) for number in range(51)])
    assert many.status_code == 422 and "more than 50" in many.json()["detail"]


def test_more_images_extend_an_upload_and_replace_those_with_the_same_name(served: Served, home: Path) -> None:
    first = upload(served, ("a.png", PNG), ("b.png", PNG)).json()
    second = upload(served, ("b.png", PNG + b"new"), ("c.png", PNG), base=first["id"]).json()
    assert second["files"] == ["a.png", "b.png", "c.png"]
    assert (home / "plots" / second["id"] / "b.png").read_bytes() == PNG + b"new"
    assert upload(served, ("a.png", PNG), base="plots-" + "0" * 24).status_code == 404
    assert upload(served, ("a.png", PNG), base="../papers").status_code == 422


def test_a_missing_upload_is_reported(served: Served, experiment: dict[str, Any]) -> None:
    for upload_id in ("plots-" + "0" * 24, "../../etc"):
        answer = served.post("/sections/results", {"experiment": experiment, "plot_upload": upload_id})
        assert answer.status_code == 404 and answer.json()["help"] == "Upload the images again."


def test_a_name_shared_by_two_plots_belongs_to_neither(served: Served, experiment: dict[str, Any]) -> None:
    stored = upload(served, ("same.png", PNG)).json()
    asked = {"experiment": with_plots(experiment, "a/same.png", "b/same.png"), "plot_upload": stored["id"]}
    (warning,) = served.post("/experiments/check", asked).json()["warnings"]
    assert "'a/same.png', 'b/same.png'" in warning


def test_images_named_by_no_run_are_deleted_after_a_day(served: Served, home: Path) -> None:
    old, new = upload(served, ("old.png", PNG)).json()["id"], upload(served, ("new.png", PNG)).json()["id"]
    folder = home / "plots" / old
    begun = folder.stat().st_mtime - 100_000
    os.utime(folder, (begun, begun))
    tidy_plots(FolderHome(home))
    assert sets(home) == [new]

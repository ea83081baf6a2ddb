"""Images of plots that one server of a library has taken are shown by all of them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.integration.server.cluster.conftest import Cluster
from tests.support.run_fixtures import experiment
from tests.support.server_machines import Machine

__all__ = ["experiment"]
pytestmark = pytest.mark.long
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


@pytest.fixture
def settings() -> dict[str, str]:
    """No chat model."""
    return {"CHAT_MODEL": "extractive"}


@pytest.fixture
def asked(experiment: dict[str, Any]) -> dict[str, Any]:
    """The sample experiment with one plot."""
    return {**experiment, "plots": [{"path": "figures/roc ü.png", "caption": "The curve of the detector"}]}


def uploaded(machine: Machine) -> str:
    """The id of the image, uploaded there."""
    answer = machine.api.post("/plots", files=[("files", ("roc ü.png", PNG))])
    return str(answer.raise_for_status().json()["id"])


def written(machine: Machine, asked: dict[str, Any], upload: str) -> dict[str, Any]:
    """A section written there."""
    answer = machine.api.post("/sections/results", json={"experiment": asked, "plot_upload": upload})
    result: dict[str, Any] = answer.raise_for_status().json()
    return result


def images(machine: Machine) -> list[bytes]:
    """The images of plots in the caches of a machine."""
    return [file.read_bytes() for file in machine.caches.rglob("plots/plots-*/*")]


def test_plots_from_a_killed_server_appear_in_sections_written_by_another(
    cluster: Cluster, asked: dict[str, Any]
) -> None:
    first, second = cluster(2)
    upload = uploaded(first)
    first.kill()
    checked = second.api.post("/experiments/check", json={"experiment": asked, "plot_upload": upload}).json()
    assert checked["warnings"] == []
    section = written(second, asked, upload)
    assert "Figure 1" in section["text"]
    shown = second.api.get(f"/runs/{section['thread_id']}/files/results.figure-1.png")
    assert shown.status_code == 200 and shown.content == PNG


def test_a_section_with_plots_is_one_run_with_the_same_files_on_every_server(
    cluster: Cluster, asked: dict[str, Any], library: str
) -> None:
    first, second, third = machines = cluster(3)
    upload = uploaded(first)
    section = written(first, asked, upload)
    assert written(second, asked, upload)["thread_id"] == section["thread_id"]
    for machine in machines:
        files = machine.api.get(f"/runs/{section['thread_id']}/files").json()["files"]
        assert "results.figure-1.png" in [file["name"] for file in files]
        shown = machine.api.get(f"/runs/{section['thread_id']}/files/results.figure-1.png")
        assert shown.content == PNG and images(machine) == [PNG]
        assert str(machine.caches) not in machine.api.get(f"/runs/{section['thread_id']}").text
    added = third.api.post("/plots", files=[("files", ("cal.png", PNG))], data={"base": upload}).json()
    assert added["files"] == ["cal.png", "roc ü.png"], "images that another server has taken join the new ones"

    assert second.api.delete(f"/runs/{section['thread_id']}").status_code == 204
    with psycopg.connect(library) as connection:
        assert connection.execute("SELECT DISTINCT upload FROM uploads").fetchall() == [(added["id"],)]
    assert first.api.post("/plots", files=[("files", ("roc ü.png", PNG))]).json()["id"] == upload, "uploaded again"
    assert "Figure 1" in written(third, asked, upload)["text"]


def test_a_restarted_server_deletes_only_plots_unused_for_a_day_and_named_by_no_run(
    cluster: Cluster, asked: dict[str, Any], library: str
) -> None:
    first, second = cluster(2)
    used = uploaded(first)
    unused, new = (
        first.api.post("/plots", files=[("files", (name, PNG))]).json()["id"] for name in ("unused.png", "new.png")
    )
    section = written(second, asked, used)
    with psycopg.connect(library) as connection:
        connection.execute("UPDATE uploads SET stored_at = now() - interval '2 days' WHERE upload <> %s", (new,))
    second.stop()
    second.start()
    with psycopg.connect(library) as connection:
        kept = connection.execute("SELECT DISTINCT upload FROM uploads").fetchall()
    assert {upload for (upload,) in kept} == {used, new}
    assert unused not in {used, new}
    shown = second.api.get(f"/runs/{section['thread_id']}/files/results.figure-1.png")
    assert shown.content == PNG

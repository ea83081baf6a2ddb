"""An ingest on Ray gives the library that a local one gives, whatever happens to the workers."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from citeloom.errors import InputError
from citeloom.ingestion import ray_executor
from citeloom.ingestion.indexing import NOT_EMBEDDED
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.ingest_events import Embedded, IngestEvent, IngestReport, Planned, Staged, Stored
from citeloom.ingestion.ray_executor import RayRequest
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from tests.support.library_contents import converted, require_equal, without_seconds
from tests.support.many_papers import write_papers
from tests.support.postgres_server import new_schema, running_server
from tests.support.ray_processes import workers

pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("cluster")]

RAY = RayRequest(workers=2)
Libraries = tuple[Library, Library]


async def both(libraries: Libraries, papers: Sequence[Path], **options: Any) -> tuple[IngestReport, IngestReport]:
    """The reports of a local ingest and of one on Ray."""
    here, on_ray = libraries
    return await ingest(here, papers), await ingest(on_ray, papers, ray=RAY, **options)


async def test_two_hundred_papers_equal_those_of_a_local_ingest(libraries: Libraries, tmp_path: Path) -> None:
    papers = write_papers(tmp_path / "papers", 200)
    events: list[IngestEvent] = []
    here, on_ray = await both(libraries, [papers], on_event=events.append)
    assert without_seconds(here) == without_seconds(on_ray)
    assert (len(on_ray.added), len(on_ray.refused)) == (200, 3)
    await require_equal(*libraries)
    assert converted(libraries[0].home.root) == converted(libraries[1].home.root)
    planned = events[0]
    assert isinstance(planned, Planned) and planned.papers == 200
    assert sum(event.count for event in events if isinstance(event, Embedded)) == planned.texts
    staged = [event.key for event in events if isinstance(event, Staged)]
    assert staged == [event.key for event in events if isinstance(event, Stored)]
    assert sorted(staged) == sorted(on_ray.added)


async def test_real_pdfs_equal_those_of_a_local_ingest(libraries: Libraries, shared_dir: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(shared_dir / "corpus" / "pdfs", tmp_path / "pdfs", ignore=_long_ones)
    here, on_ray = await both(libraries, [folder])
    assert without_seconds(here) == without_seconds(on_ray)
    assert on_ray.added and on_ray.refused
    await require_equal(*libraries)


def _long_ones(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(".pdf") and Path(folder, name).stat().st_size > 3_000_000]


async def test_a_second_ingest_converts_nothing_and_embeds_what_changed(
    libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 20)
    await both(libraries, [papers])
    sent = watch_jobs(monkeypatch)
    again = await ingest(libraries[1], [papers], ray=RAY)
    assert (len(again.unchanged), again.chunks_embedded) == (20, 0)
    assert sent == ["parse"] * 17  # markdown, and the PDF that is refused again; the others are cached
    edited = papers / "paper001.md"
    edited.write_text(edited.read_text(encoding="utf-8") + "A last loom was found.\n", encoding="utf-8")
    here, on_ray = await both(libraries, [papers])
    assert without_seconds(here) == without_seconds(on_ray)
    assert (on_ray.updated, on_ray.chunks_embedded) == (("paper001",), 1)
    await require_equal(*libraries)


def watch_jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stages of the jobs that are sent from now on."""
    sent: list[str] = []
    real = ray_executor.RayJobs.run

    def run(self: Any, jobs: Any) -> Any:
        def watched() -> Any:
            for job in jobs:
                sent.append(job.stage)
                yield job

        return real(self, watched())

    monkeypatch.setattr(ray_executor.RayJobs, "run", run)
    return sent


Victim = tuple[str, str, int, bool]


def deadly(victims: Sequence[Victim], folder: Path) -> Callable[[], Callable[..., Any]]:
    """A task that kills its worker, and records so in `folder`.

    A victim is a stage, what an argument of it holds, how often its worker is killed, and whether after its work.
    """
    real = ray_executor._stage_task()

    def make() -> Callable[..., Any]:
        def run(wanted: Any, asked: str, *arguments: Any) -> Any:
            import os
            from pathlib import Path

            for stage, marked, deaths, late in victims:
                died = len(list(Path(folder).glob(f"{marked}-*")))
                if asked == stage and marked in repr(arguments) and died < deaths:
                    if late:
                        real(wanted, asked, *arguments)
                    Path(folder, f"{marked}-{died}").touch()
                    os.kill(os.getpid(), 9)
            return real(wanted, asked, *arguments)

        return run

    folder.mkdir()
    return make


def mark(paper: Path, word: str) -> None:
    """Add a word to the results of a paper."""
    text = paper.read_text(encoding="utf-8")
    paper.write_text(text.replace("## Results", f"## Results\n\nThe {word} was tried."), encoding="utf-8")


async def test_killing_seven_workers_costs_nothing(
    libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 60)
    chance = random.Random(5)
    victims: list[Victim] = []
    stages = ("parse", "split", "split", "embed", "embed")
    for number, paper in enumerate(chance.sample(sorted(papers.glob("paper???.md")), 5)):
        mark(paper, f"Belladonna{number}")
        victims.append((stages[number], f"Belladonna{number}", 1, chance.random() < 0.5))
    monkeypatch.setattr(ray_executor, "_stage_task", deadly(victims, tmp_path / "deaths"))
    killed: list[int] = []

    def kill(event: IngestEvent) -> None:
        if isinstance(event, Planned):
            killed.extend(workers())
            for worker in killed:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)

    here, on_ray = await both(libraries, [papers], on_event=kill)
    assert len(list((tmp_path / "deaths").iterdir())) == 5 and killed
    assert without_seconds(here) == without_seconds(on_ray)
    await require_equal(*libraries)


@pytest.mark.parametrize(
    ("stage", "reason"), [("parse", ray_executor.LOST), ("split", ray_executor.LOST), ("embed", NOT_EMBEDDED)]
)
async def test_a_paper_that_always_kills_its_worker_is_refused_and_the_others_are_ingested(
    stage: str, reason: str, libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 20)
    mark(papers / "paper011.md", "Belladonna")
    monkeypatch.setattr(ray_executor, "_stage_task", deadly([(stage, "Belladonna", 99, False)], tmp_path / "deaths"))
    report = await ingest(libraries[1], [papers], ray=RAY)
    in_batch = stage == "embed"  # with other texts at first, then alone
    assert len(list((tmp_path / "deaths").iterdir())) == ray_executor.TRIES + in_batch
    refused = {Path(item.path).name: item.reason for item in report.refused}
    assert refused.pop("paper011.md") == reason
    assert refused.keys() == {"empty.md", "latin.md", "damaged.pdf"}
    assert len(report.added) == 19 and "paper011" not in report.added
    monkeypatch.undo()
    here, on_ray = await both(libraries, [papers])
    assert on_ray.added == ("paper011",) and len(here.added) == 20
    await require_equal(*libraries)


@pytest.mark.parametrize("stage", ["parse", "embed"])
async def test_a_paper_whose_worker_is_killed_five_times_is_ingested(
    stage: str, libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 10)
    mark(papers / "paper003.md", "Belladonna")
    monkeypatch.setattr(ray_executor, "_stage_task", deadly([(stage, "Belladonna", 5, True)], tmp_path / "deaths"))
    here, on_ray = await both(libraries, [papers])
    assert without_seconds(here) == without_seconds(on_ray)
    assert len(list((tmp_path / "deaths").iterdir())) == 5


@pytest.mark.parametrize("calls", [0, 1, 4], ids=["first file", "second", "later"])
async def test_a_connection_lost_between_two_calls_pauses_the_ingest(
    calls: int, libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Any
) -> None:
    papers = write_papers(tmp_path / "papers", 6)
    real, left = cluster.wait, iter(range(calls))

    def wait(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is None:
            monkeypatch.setattr(cluster, "is_initialized", lambda: False)
            raise Exception("Ray Client is not connected.")  # as Ray does
        return real(*arguments, **options)

    monkeypatch.setattr(cluster, "wait", wait)
    with pytest.raises(ray_executor.RayStoppedError, match="the connection to its cluster was lost"):
        await ingest(libraries[1], [papers], ray=RAY)
    monkeypatch.undo()
    assert len((await ingest(libraries[1], [papers], ray=RAY)).added) == 6


async def test_a_file_that_vanishes_after_it_was_found_is_refused(
    libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 3)
    real = ray_executor._parse_here

    def vanishing(file: Path, *arguments: Any) -> Any:
        here = real(file, *arguments)
        if file.name == "paper001.md":
            file.unlink()
        return here

    monkeypatch.setattr(ray_executor, "_parse_here", vanishing)
    report = await ingest(libraries[1], [papers], ray=RAY)
    assert report.added == ("paper000", "paper002")
    assert "paper001.md" in {Path(item.path).name for item in report.refused}


async def test_a_large_file_is_parsed_locally(
    libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 10)
    sizes = sorted(file.stat().st_size for file in papers.iterdir())
    monkeypatch.setattr("citeloom.ingestion.ray_executor.MOST_SENT", sizes[8])
    sent = watch_jobs(monkeypatch)
    here, on_ray = await both(libraries, [papers])
    assert without_seconds(here) == without_seconds(on_ray)
    assert 0 < sent.count("parse") < 9
    await require_equal(*libraries)


async def test_a_worker_of_another_version_is_reported(
    libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 3)
    own = ray_executor.versions()
    monkeypatch.setattr(ray_executor, "versions", lambda: {**own, "citeloom": "9.9"})
    with pytest.raises(InputError) as refused:
        await ingest(libraries[1], [papers], ray=RAY)
    assert f"has citeloom {own['citeloom']}, this computer has citeloom 9.9." in refused.value.message
    assert refused.value.help == "Install the same version on every node of the cluster."
    assert not libraries[1].papers()


async def test_a_worker_without_citeloom_is_reported(
    libraries: Libraries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 3)
    real = ray_executor._stage_task()

    def make() -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            import sys

            hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("citeloom")}
            sys.modules["citeloom"] = None  # type: ignore[assignment]
            try:
                return real(*arguments)
            finally:
                sys.modules.update(hidden)
                if "citeloom" not in hidden:
                    del sys.modules["citeloom"]

        return run

    monkeypatch.setattr(ray_executor, "_stage_task", make)
    with pytest.raises(InputError, match=r"The Ray node \S+ has .*, this computer has \w+ \S+\."):
        await ingest(libraries[1], [papers], ray=RAY)


async def test_a_home_in_a_database_equals_one_in_a_folder(libraries: Libraries, tmp_path: Path) -> None:
    papers = write_papers(tmp_path / "papers", 10)
    with running_server() as server, new_schema(server) as url:
        database = Library.open(find_home(parse_home(url)).prepare(), LocalEmbedding())
        on_ray = await ingest(database, [papers], ray=RAY)
        here = await ingest(libraries[0], [papers])
        assert without_seconds(here) == without_seconds(on_ray)
        assert database.version() == libraries[0].version()
        for key in database.records():
            assert database.paper_chunks(key) == libraries[0].paper_chunks(key)
        database.close()

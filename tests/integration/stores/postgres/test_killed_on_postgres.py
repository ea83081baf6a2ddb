"""`kill -9` of an ingest or a run on PostgreSQL: nothing is lost, nothing is half there, and any computer continues."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from tests.support.cli_process import ROOT, Finished, environment, finish, run
from tests.support.killed_runs import home_with_three_papers, settings_of
from tests.support.killing_server import KillingServer
from tests.support.library_fixtures import papers
from tests.support.sample_library import EXPERIMENT, SAMPLES, THREE
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
SUPPORT = ROOT / "tests" / "support"


@pytest.mark.parametrize(
    ("together", "event", "number"),
    [
        (1, "FullText", 1),
        (1, "Words", 2),
        *(
            pytest.param(*moment, marks=pytest.mark.long)
            for moment in [(1, "Planned", 1), (1, "Embedded", 3), (2, "Words", 1), (1, "Staged", 1), (1, "Stored", 1)]
        ),
    ],
)
async def test_a_killed_ingest_leaves_only_complete_papers(
    url: str, papers: Path, together: int, event: str, number: int
) -> None:
    command = [sys.executable, str(SUPPORT / "interrupted_ingest.py"), url, str(papers), str(together), "kill", event]
    killed = subprocess.run([*command, str(number)], check=False)
    assert killed.returncode == -signal.SIGKILL
    embedding = WordEmbedding()
    library = Library.open(find_home(parse_home(url)), embedding)
    before = len(library.papers())
    assert before == {"Words": number - 1 if together == 1 else 0, "Staged": 1, "Stored": 1}.get(event, 0)
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    report = await ingest(library, [papers])
    assert (len(report.added), len(report.unchanged)) == (2 - before, before)
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    assert {name.partition(":")[0] for name in library.fulltext.entries()} == {"ada2020", "grace2021"}
    library.close()


class Computer:
    """A folder with its own caches, from which commands reach the same database."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.settings = settings
        self.environment = {**environment(settings), "XDG_CACHE_HOME": str(folder / "caches")}
        folder.mkdir()

    def discussion(self, at: tuple[str, int, str] | None = None) -> Finished:
        """Write a section; `at` kills the process at a write, before or after it."""
        script = [str(ROOT / "cli.py")]
        if at is not None:
            script = [str(SUPPORT / "interrupted_section.py"), at[0], str(at[1]), at[2]]
        return finish(
            subprocess.Popen(
                [sys.executable, *script, "discussion", "--exp", str(EXPERIMENT), "--out", "out"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        )


def test_a_paused_run_resumes_after_its_home_was_moved(url: str, tmp_path: Path) -> None:
    """To a database and back to another folder; each part of the run is paid once, and the text is the same."""
    with KillingServer() as server:
        (tmp_path / "template").mkdir()
        home = home_with_three_papers(server, tmp_path / "template")
        undisturbed = tmp_path / "undisturbed"
        shutil.copytree(home, undisturbed)
        settings = settings_of(server, "k") | {"MAX_CONCURRENCY": "1"}
        server.forget()
        assert Computer(tmp_path / "one", settings | {"HOME": str(undisturbed)}).discussion().code == 0
        expected, calls = (tmp_path / "one" / "out" / "discussion.md").read_bytes(), sum(server.asked.values())
        server.forget()
        places = [str(home), url, str(tmp_path / "back")]
        for place, to, limit in zip(places, [*places[1:], None], ("4", "7", None), strict=True):
            limits = {} if limit is None else {"MAX_CALLS": limit}
            ended = Computer(tmp_path / f"computer-{limit}", settings | {"HOME": place} | limits).discussion()
            assert ended.code == (3 if to else 0), ended.err
            if to:
                copied = run("library", "copy", "--to", to, "--json", cwd=tmp_path, settings=settings | {"HOME": place})
                assert copied.code == 0, copied.err
                assert copied.json["records"]["runs"] == 1 and copied.json["records"]["checkpoints"] > 0
        assert sum(server.asked.values()) == calls
    assert (tmp_path / "computer-None" / "out" / "discussion.md").read_bytes() == expected


@pytest.mark.long
def test_a_run_continues_on_another_computer_with_the_same_result_as_in_a_folder(url: str, tmp_path: Path) -> None:
    with KillingServer() as server:
        (tmp_path / "folder").mkdir()
        home_with_three_papers(server, tmp_path / "folder")
        local = Computer(tmp_path / "local", settings_of(server, "k") | {"HOME": str(tmp_path / "folder" / "home")})
        assert local.discussion().code == 0
        expected = (local.folder / "out" / "discussion.md").read_text(encoding="utf-8")
        server.forget()
        settings = settings_of(server, "k") | {"HOME": url}
        inputs = [SAMPLES / f"{key}.md" for key in THREE]
        done = run("ingest", *inputs, "--bib", SAMPLES / "library.bib", cwd=tmp_path, settings=settings)
        assert done.code == 0, done.err
        moments = [
            ("answer", 2, "before"),
            ("checkpoint", 3, "after"),
            ("answer", 4, "after"),
            ("register", 1, "before"),
        ]
        for place, moment in enumerate(moments):
            ended = Computer(tmp_path / f"computer-{place}", settings).discussion(moment)
            assert ended.code == -signal.SIGKILL, ended.err
        last = Computer(tmp_path / "last", settings)
        assert last.discussion().code == 0
        asked = sum(server.asked.values())
    assert (last.folder / "out" / "discussion.md").read_text(encoding="utf-8") == expected
    with psycopg.connect(url) as connection:
        counts = connection.execute("SELECT count(*), count(DISTINCT key) FROM answers").fetchone()
        kept = connection.execute("SELECT sum(paid) FROM spending").fetchone()
        assert connection.execute("SELECT status FROM runs").fetchall() == [("finished",)]
    assert counts is not None and counts[0] == counts[1] and kept == (counts[0],)
    assert asked > 0

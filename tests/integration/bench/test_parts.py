"""Every part of `python -m bench` starts and ends well, with three papers and a few questions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import ASKED_FOR, PARTS
from tests.support.cli_process import ROOT, environment

PAPERS = ("le2020treeheatr", "moxon2024evaluation", "olah2020overview")
SETS = ("manubot-citances", "pubmedqa")
DOCUMENTS = 6
SHORT = ("startup",)  # the others are long
RUBRIC = {
    "id": "q1",
    "question": "What does treeheatr show of a decision tree?",
    "facts": [{"fact": "It shows a heatmap.", "weight": 1, "keys": [PAPERS[0]], "near": "heatmap"}],
}


@pytest.fixture(scope="module")
def small_shared(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like that of the real papers, with little content."""
    small = tmp_path_factory.mktemp("shared")
    for folder in ("corpus/papers", "corpus/pdfs", "experiments", "standin"):
        (small / folder).mkdir(parents=True)
    for key in PAPERS:
        shutil.copyfile(shared_dir / f"corpus/papers/{key}.md", small / f"corpus/papers/{key}.md")
    shutil.copyfile(shared_dir / f"corpus/pdfs/{PAPERS[0]}.pdf", small / f"corpus/pdfs/{PAPERS[0]}.pdf")
    shutil.copyfile(shared_dir / "corpus/library.bib", small / "corpus/library.bib")
    experiment = min((shared_dir / "experiments").glob("*.json"))
    shutil.copyfile(experiment, small / "experiments" / experiment.name)
    (small / "standin/rubrics.json").write_text(json.dumps([RUBRIC]), encoding="utf-8")
    for name in SETS:
        shorten(shared_dir / "retrieval" / name, small / "retrieval" / name)
    return small


def shorten(whole: Path, part: Path) -> None:
    """The first documents of a retrieval set, with the queries that should find one of them."""

    def lines_of(name: str) -> list[str]:
        return [line for line in (whole / name).read_text(encoding="utf-8").split("\n") if line]

    part.mkdir(parents=True)
    documents = lines_of("corpus.jsonl")[:DOCUMENTS]
    ids = {json.loads(line)["_id"] for line in documents}
    head, *pairs = lines_of("qrels.tsv")
    kept = [line for line in pairs if line.split("\t")[1] in ids]
    asked = {line.split("\t")[0] for line in kept}
    queries = [line for line in lines_of("queries.jsonl") if json.loads(line)["_id"] in asked]
    for name, lines in (("corpus.jsonl", documents), ("qrels.tsv", [head, *kept]), ("queries.jsonl", queries)):
        (part / name).write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[] if part in SHORT else [pytest.mark.long]) for part in (*PARTS, *ASKED_FOR)],
)
def test_each_benchmark_starts_and_prints_its_figures(part: str, small_shared: Path, tmp_path: Path) -> None:
    done = run_bench(part, "--rounds", "1", "--home", tmp_path / "home", shared=small_shared)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "left out" not in done.stdout + done.stderr
    if done.stdout.startswith(f"{part}: skipped"):
        pytest.skip(done.stdout.strip())
    assert any(sign in done.stdout for sign in ("|", "chunks/s", "weight of facts")), done.stdout


def test_benchmarks_on_real_papers_say_in_one_line_that_the_papers_are_missing(tmp_path: Path) -> None:
    parts = ("coverage", "figures", "scans")
    done = run_bench(*parts, shared=tmp_path)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line]
    assert len(said) == len(parts)
    assert all("skipped" in line and str(tmp_path) in line and "CITELOOM_SHARED" in line for line in said), said


def run_bench(*arguments: str | Path, shared: Path) -> subprocess.CompletedProcess[str]:
    """Run the benchmarks to the end in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "bench", *map(str, arguments)],
        cwd=ROOT,
        env={**environment({}), "CITELOOM_SHARED": str(shared), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

"""Whole processes against the least that they need: help, lists, a first search, a question without a chat model.

Each row takes the best of its runs, since other work on the machine only ever slows a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Row, alternate, row_of

ROOT = Path(__file__).resolve().parent.parent
TARGET = 0.5 / 0.9
QUESTION = "How many seeds does an ensemble need?"
EMBED = (
    f"from citeloom.models.embeddings.bundled_models import LocalEmbedding; LocalEmbedding().embed_text({QUESTION!r})"
)
# Runs the command line and prints the seconds that the cross-encoder took in it, including its loading.
ASKED = """
import runpy, sys, time
from citeloom.models.embeddings import bundled_models as models
took = []
def timed(call):
    def timing(*given):
        began = time.perf_counter()
        try:
            return call(*given)
        finally:
            took.append((began, time.perf_counter()))
    return timing
load = models.load_session
loaded = timed(load)
models.load_session = lambda model: loaded(model) if model is models.RERANKER else load(model)
models.Reranker.score = timed(models.Reranker.score)
try:
    runpy.run_path("cli.py", run_name="__main__")
finally:
    until = total = 0.0
    for began, ended in sorted(took):  # on several threads
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    print(total, file=sys.stderr)
"""


async def measure(rounds: int) -> list[Row]:
    """Five rows; the first pair of each only fills the disk cache and does not count."""
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        at = [str(ROOT / "cli.py"), "--home", folder]
        library = str(ROOT / "examples" / "library")
        _seconds([*at, "ingest", library, "--bib", f"{library}/library.bib"])
        help_ = [str(ROOT / "cli.py"), "--help"]
        return [
            await _row("cli.py --help : import chromadb", help_, ["-c", "import chromadb"], rounds, TARGET),
            await _row("papers list : --help", [*at, "papers", "list"], help_, rounds, 2),
            await _row("runs list : --help", [*at, "runs", "list"], help_, rounds, 2),
            await _row("search : embed one query", [*at, "search", QUESTION], ["-c", EMBED], rounds, 1.5),
            _question([*at[1:], "research", QUESTION, "--fresh"], rounds),
        ]


async def _row(what: str, ours: Sequence[str], reference: Sequence[str], rounds: int, target: float) -> Row:
    async def mine() -> float:
        return _seconds(ours)

    async def other() -> float:
        return _seconds(reference)

    return row_of(what, (await alternate(mine, other, rounds + 1))[1:], target=target, of=min)


def _question(arguments: Sequence[str], rounds: int) -> Row:
    pairs = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", ASKED, *arguments],
            cwd=ROOT,
            env=_environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        pairs.append((time.perf_counter() - began, float(done.stderr.splitlines()[-1])))
    return row_of("research, no chat model : the cross-encoder in it", pairs[1:], target=2, of=min)


def _seconds(arguments: Sequence[str]) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=_environment(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - started


def _environment() -> dict[str, str]:
    """The environment of this process, in which Python stores compiled modules, as it does for users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

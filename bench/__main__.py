"""Runs the benchmarks and prints the table: `python -m bench [PART...]`, or `make bench`.

Exits with 0 whatever the results: times depend on the machine, and a missed target is reported as a line.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import (
    cases,
    checks,
    checks_on_papers,
    conversation,
    coverage,
    endpoint_ingest,
    evidence,
    figures,
    first_token,
    ingest,
    journal,
    judging,
    paper_matching,
    pdf,
    questions,
    retrieval,
    rubrics,
    scans,
    section,
    served,
    startup,
)
from bench.measure import Row, table
from bench.papers import ROOT, material
from citeloom.experiment import load_experiment
from citeloom.stores.folder_home import FolderHome

PARTS = (
    *("startup", "journal", "ingest", "endpoint", "evidence", "section", "first-token", "conversation"),
    *("server", "pdf", "embedder", "retrieval", "checks", "cases", "matching", "figures"),
)
# These take minutes, or a server, so only on request.
ASKED_FOR = ("coverage", "judge", "questions", "rerank", "rubrics", "scans", "stores")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures the speed of Citeloom, as ratios.")
    every = (*PARTS, *ASKED_FOR)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(every)}; default: those up to {PARTS[-1]}")
    parser.add_argument("--rounds", type=int, default=7, help="number of pairs per row")
    parser.add_argument("--questions", default="", help="coverage: only these question ids, comma-separated")
    parser.add_argument(
        "--home", type=Path, default=os.environ.get("CITELOOM_BENCH_HOME"), help="coverage: its library"
    )
    parser.add_argument("--needs", type=Path, help="coverage: JSON file with needs that a model planned")
    parser.add_argument("--named", type=Path, help="coverage: JSON file with papers that a model named by their cards")
    parser.add_argument("--single-shot", action="store_true", help="coverage: without the agent")
    parser.add_argument("--json", action="store_true", help="coverage: one JSON object instead of the table")
    given = parser.parse_args()
    if unknown := set(given.parts).difference(every):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    parts = given.parts or list(PARTS)
    for name in [name for name in os.environ if name.startswith("CITELOOM_") and name != "CITELOOM_SHARED"]:
        del os.environ[name]
    began = time.perf_counter()
    rows = asyncio.run(_rows(parts, max(1, given.rounds)))
    if rows:
        print(f"\n{table(rows)}\n")
    if "embedder" in parts:
        _embedder(given.rounds)
    if "retrieval" in parts:
        _log("retrieval: quality of each stage ...")
        retrieval.measure()
    if "rerank" in parts:
        _log("rerank: effect of the cross-encoder ...")
        retrieval.measure(retrieval.RERANKED, retrieval.RERANKED_QUERIES)
    if "questions" in parts:
        _log("questions: which ones a library accepts as its own ...")
        questions.measure()
    if "rubrics" in parts:
        _log("rubrics: an expert's papers among the passages of a question ...")
        rubrics.measure()
    if "coverage" in parts:
        _log("coverage: facts found, read and shown to the writer ...")
        names = [name for name in given.questions.split(",") if name]
        files = {"needs": given.needs, "named": given.named}
        coverage.measure(given.home, names, single_shot=given.single_shot, as_json=given.json, **files)
    if "scans" in parts:
        _log("scans: words that OCR reads ...")
        scans.measure()
    if "judge" in parts:
        _log("judge: on-topic and off-topic on pairs of real papers ...")
        judging.measure()
    if "checks" in parts:
        _log("checks: labelled cases ...")
        checks.measure()
        checks_on_papers.measure()
    if "cases" in parts:
        _log("cases: number words, passages with markup ...")
        cases.measure()
    if "matching" in parts:
        _log("matching: papers and near misses ...")
        paper_matching.measure()
    if "figures" in parts:
        _log("figures: captions, tables and cells of PDFs ...")
        figures.measure()
    _log(f"{time.perf_counter() - began:.0f} s in total; load at the end: {_load()}")


async def _rows(parts: list[str], rounds: int) -> list[Row]:
    chosen = material()
    _log(f"Python {platform.python_version()}, {os.cpu_count()} cores, load at the start: {_load()}; {chosen.note}")
    rows: list[Row] = []
    if "startup" in parts:
        _log("startup: whole processes ...")
        rows += await startup.measure(rounds)
    if "journal" in parts:
        _log("journal: overhead per call ...")
        rows += await journal.measure(rounds)
    if "stores" in parts:
        from bench import stores  # needs the extra engines

        _log("stores: a library in PostgreSQL, against the bare driver ...")
        rows += await stores.measure(rounds)
    if "endpoint" in parts:
        _log("endpoint: ingest with immediate vectors ...")
        rows += await endpoint_ingest.measure(chosen, max(1, rounds // 3))
    if "pdf" in parts:
        _log("pdf: reading, against the parser alone ...")
        rows += await pdf.measure(chosen.pdfs, max(1, rounds // 2))
    if not {"ingest", "evidence", "section", "first-token", "conversation", "server"}.intersection(parts):
        return rows
    experiment = load_experiment(chosen.experiment)
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        home = FolderHome(Path(folder) / ".citeloom")
        _log("ingest: against the embedder alone ...")
        taken_in = await ingest.measure(home, chosen)
        if "ingest" in parts:
            rows += taken_in
        if "evidence" in parts:
            _log("evidence: one query, against a bare client ...")
            rows += await evidence.measure(home, experiment, rounds)
        if "section" in parts:
            _log("section: a whole run, against its critical path ...")
            rows += await section.measure(home, experiment, rounds)
        if "first-token" in parts:
            _log("first-token: a question, against its critical path ...")
            rows += await first_token.measure(home, rounds)
        if "conversation" in parts:
            _log("conversation: the twelfth turn against the second, and the prompt of chat ...")
            rows += await conversation.measure(home, rounds)
        if "server" in parts:
            _log("server: conversations streamed at once, against a bare echo ...")
            rows += await served.measure(home, rounds, served.AT_ONCE if rounds > 1 else 3)
    return rows


def _embedder(rounds: int) -> None:
    """Print the table of embedder settings, if the real papers are available."""
    _log("embedder: alternative settings ...")
    chunks, rounds = (12, 2) if rounds > 1 else (2, 1)
    command = [sys.executable, "bench/embedder.py", "--chunks", str(chunks), "--rounds", str(rounds)]
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode:
        _log("embedder: skipped, see the line above")


def _load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""How many of an expert's papers a question without a chat model shows, and what questions from other fields show.

`rubrics.json` names the facts that an expert would want, each with a weight and its papers. A fact counts when
a passage of one of its papers is shown. This does not say whether the passage holds the fact.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.papers import ROOT
from citeloom.api.homes import open_library
from citeloom.api.ingesting import ingest
from citeloom.graph.session import open_session
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import ResearchRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home

OTHER_FIELDS = (
    "What is the best temperature for baking sourdough bread?",
    "How do central banks set interest rates during a recession?",
    "What caused the fall of the Western Roman Empire?",
    "Which football club has won the Champions League most often?",
    "How should a contract be terminated under German tenancy law?",
)


def measure() -> None:
    """Print a line per question and the share of the weights whose papers are shown; skipped without the files."""
    shared = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
    if not (shared / "standin" / "rubrics.json").is_file():
        print(f"skipped, since {shared} does not have standin/rubrics.json (set CITELOOM_SHARED)")
        return
    rubrics = json.loads((shared / "standin" / "rubrics.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        home = os.environ.get("CITELOOM_BENCH_HOME", folder)
        if home == folder:
            with open_library(home) as library:
                ingest(library, [shared / "corpus" / "papers"], bib=shared / "corpus" / "library.bib")
        asyncio.run(_measure_questions(rubrics, FolderHome(Path(home))))


async def _measure_questions(rubrics: Sequence[Mapping[str, Any]], home: Home) -> None:
    shown = wanted = 0.0
    with open_session(Settings(), home, create=False) as session:
        for rubric in rubrics:
            record = (await run_request(ResearchRequest(rubric["question"]), session)).record
            papers = {citation["key"] for citation in record["citations"]}
            facts = [fact for fact in rubric["facts"] if fact["keys"]]
            weight = sum(fact["weight"] for fact in facts)
            held = sum(fact["weight"] for fact in facts if papers.intersection(fact["keys"]))
            shown, wanted = shown + held, wanted + weight
            print(f"{rubric['id']}: {held} of {weight}, {len(papers)} papers, {record['outcome']}", flush=True)
        outcomes = [(await run_request(ResearchRequest(asked), session)).record["outcome"] for asked in OTHER_FIELDS]
    print(f"weight of facts with a paper among the passages: {shown / wanted:.2f}; other fields: {outcomes}")

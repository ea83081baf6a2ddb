"""Which questions a library accepts: matching questions should be accepted, questions of other fields rejected.

The documents of a set become a library, one chunk each, and every question goes through the stages of `research`
without a chat model: shortlist, passages, reader, and the score that at least one passage must reach.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.papers import ROOT
from bench.retrieval import SETS, RetrievalSet, fill, load
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.roles.extractive.statement_needs import split_question
from citeloom.roles.protocols import EvidenceReader, Need, Purpose
from citeloom.roles.run_roles import extractive_roles
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.tools.window_search import WindowLimits, propose_windows

ASKED = 60  # questions per row
_DOCUMENTS = 500  # per set: questions about the other documents have no match


def measure() -> None:
    """Print a table; missing sets are skipped."""
    shared = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared")) / "retrieval"
    if not all((shared / name).is_dir() for name in SETS):
        print(f"skipped, since {shared} does not have the sets (set CITELOOM_SHARED)")
        return
    print(asyncio.run(_table({name: load(shared / name, 10_000) for name in SETS})))


async def _table(sets: dict[str, RetrievalSet]) -> str:
    lines = [
        "| library | questions | asked | taken for its own | evidence of the document that fits |",
        "|---|---|---|---|---|",
    ]
    for name, own in sets.items():
        (other,) = (given for title, given in sets.items() if title != name)
        documents = dict(list(own.documents.items())[:_DOCUMENTS])
        inside = [query for query in own.queries if own.relevant.get(query, set()) & documents.keys()]
        outside = [query for query in own.queries if query in own.relevant and query not in inside]
        rows = [
            ("its own", own, inside),
            ("its field, the document left out", own, outside),
            ("another field", other, list(other.queries)),
        ]
        with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
            library = Library.open(FolderHome(Path(folder)), LocalEmbedding())
            try:
                await fill(library, documents)
                reader = extractive_roles(library.embedding, summary_words=60).answer_reader
                for title, given, queries in rows:
                    if queries:
                        lines.append(await _row(name, title, given, queries, library, reader))
                        print(lines[-1], flush=True)
            finally:
                library.close()
    return "\n" + "\n".join(lines)


async def _row(
    name: str, title: str, given: RetrievalSet, queries: Sequence[str], library: Library, reader: EvidenceReader
) -> str:
    asked = random.Random(20).sample(list(queries), min(ASKED, len(queries)))
    taken = fitting = 0
    for query in asked:
        strong = await _strong(given.queries[query][0], library, reader)
        taken += bool(strong)
        fitting += bool(strong & given.relevant.get(query, set()))
    found = f"{fitting}" if title == "its own" else ""
    return f"| {name}, {len(library.papers())} documents | {title} | {len(asked)} | {taken} | {found} |"


async def _strong(question: str, library: Library, reader: EvidenceReader) -> set[str]:
    """The documents of the passages on which an answer may rest; empty when the question is rejected."""
    settings = Settings()
    needs = (Need("N1", question, (question, *split_question(question))),)
    windows = await propose_windows(library, needs, limits=WindowLimits(hits=16, window_tokens=1), asked=question)
    found = await reader.read(Purpose(question, needs), windows)
    scores = {item.paper.key: item.score for item in reversed(found) if item.score >= settings.score_threshold}
    return set(scores) if max(scores.values(), default=0.0) >= settings.answer_threshold else set()

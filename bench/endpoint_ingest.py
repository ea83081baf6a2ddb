"""Ingest with an embedding endpoint that answers at once: the cost of everything except embedding.

200 markdown papers of 5,000 words are made from paragraphs of real ones in seeded order. The reference does the minimum
for the same chunks: counts their tokens, sends them in the same batches with a bare client, and upserts them to Chroma
with the same metadata. Both start with an empty folder.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb
import httpx
from chromadb.config import Settings as ChromaSettings

from bench.measure import Row, alternate, row_of
from bench.papers import Material
from bench.server import serving
from citeloom.documents import Chunk
from citeloom.graph.session import open_session
from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.bundled_models import count_tokens
from citeloom.models.embeddings.remote import BATCH, BATCHES_AT_ONCE
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home

PAPERS, WORDS, SECTIONS = 200, 5_000, 8
TARGET = 1.3
UNCHANGED_TARGET = 1.0  # seconds
PAGE = 5_000  # chunks per upsert


def write_papers(folder: Path, material: Material, length: int = WORDS) -> None:
    """Write `PAPERS` markdown papers of `length` words, with titles, `SECTIONS` sections and real paragraphs."""
    texts = [path.read_text(encoding="utf-8") for group in material.groups for path in group]
    parts = [part for text in texts for part in text.split("\n\n")]
    paragraphs = [part for part in parts if len(part) > 200 and part[0].isalpha() and "```" not in part]
    dice = random.Random(7)
    for number in range(PAPERS):
        lines, words = [f"# Paper {number} on the things of its time"], 0
        for section in range(SECTIONS):
            lines.append(f"## {('Introduction', 'Methods', 'Results', 'Discussion')[section % 4]} {section + 1}")
            while words < length * (section + 1) / SECTIONS:
                lines.append(dice.choice(paragraphs))
                words += len(lines[-1].split())
        (folder / f"paper{number:03}.md").write_text("\n\n".join(lines), encoding="utf-8")


async def measure(material: Material, rounds: int) -> list[Row]:
    """Rows for 200 new papers, and for the same papers again, unchanged."""
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as place, serving(0) as url:
        papers = Path(place) / "papers"
        papers.mkdir()
        write_papers(papers, material)
        homes = (FolderHome(Path(place) / f"home{number}") for number in range(rounds))
        again: list[float] = []
        chunks: list[Chunk] = []

        async def ours() -> float:
            home = next(homes)
            seconds = await time_ingest(home, papers, url)
            again.append(await time_ingest(home, papers, url, changed=False))
            if not chunks:
                chunks.extend(_chunks(home, url))
            return seconds

        async def bare() -> float:
            with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
                return await time_upserts(chunks, Path(folder), url)

        pairs = await alternate(ours, bare, rounds)
    what = f"ingest of {PAPERS} papers, {len(chunks)} chunks, endpoint at once"
    unchanged = [(seconds, UNCHANGED_TARGET) for seconds in again]
    return [
        row_of(what, pairs, target=TARGET),
        row_of("the same again, nothing changed : 1 s", unchanged, target=1.0),
    ]


def _settings(url: str) -> Settings:
    return Settings(embedding_model="fake", embedding_base_url=url)


async def time_ingest(home: Home, papers: Path, url: str, *, changed: bool = True) -> float:
    """Seconds for an ingest, including the opening of the library."""
    started = time.perf_counter()
    with open_session(_settings(url), home.prepare()) as bench:
        report = await ingest(bench.library, [papers], bib=None)
    seconds = time.perf_counter() - started
    assert len(report.added) == (PAPERS if changed else 0), f"{len(report.added)} papers were added"
    return seconds


def _chunks(home: Home, url: str) -> list[Chunk]:
    with open_session(_settings(url), home) as bench:
        return [chunk for paper in bench.library.papers() for chunk in bench.library.paper_chunks(paper.key)]


async def time_upserts(chunks: Sequence[Chunk], folder: Path, url: str) -> float:
    """Seconds to count tokens, embed and upsert."""
    started = time.perf_counter()
    texts = [chunk.text for chunk in chunks]
    await asyncio.to_thread(lambda: [count_tokens(text) for text in texts])
    turn = asyncio.Semaphore(BATCHES_AT_ONCE)

    async def embed(client: httpx.AsyncClient, batch: Sequence[str]) -> list[Any]:
        async with turn:
            body = {"model": "fake", "input": batch, "encoding_format": "float"}
            answer = await client.post(f"{url}/embeddings", json=body, headers={"Authorization": "Bearer none"})
        return [item["embedding"] for item in answer.raise_for_status().json()["data"]]

    async with httpx.AsyncClient(timeout=60) as client:
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        vectors = [row for rows in await asyncio.gather(*(embed(client, batch) for batch in batches)) for row in rows]
    database = chromadb.PersistentClient(str(folder), settings=ChromaSettings(anonymized_telemetry=False))
    collection = database.create_collection("content", embedding_function=None)
    for start in range(0, len(chunks), PAGE):
        page = chunks[start : start + PAGE]
        collection.upsert(
            ids=[chunk.id for chunk in page],
            embeddings=vectors[start : start + PAGE],
            documents=[chunk.text for chunk in page],
            metadatas=[{"key": chunk.key, "category": str(chunk.category), "index": chunk.index} for chunk in page],
        )
    return time.perf_counter() - started

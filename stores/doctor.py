"""Compares the stores with each other and says what is wrong; `stores/mending.py` mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from citeloom.documents import chunk_id, split_chunk_id
from citeloom.plurals import counted
from citeloom.stores.chroma import VectorStoreError
from citeloom.stores.fulltext import FullTextError
from citeloom.stores.library import Library
from citeloom.stores.lock import WriterLock

Level = Literal["fine", "notice", "problem"]
_SHOWN = 5
_MEND = "Run 'doctor --mend'."
_ANEW = "Run 'doctor --mend': they are indexed anew from the papers' files."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `remedy` is what to do about it, empty when it is fine."""

    level: Level
    topic: str
    message: str
    remedy: str = ""


def examine(library: Library) -> list[Finding]:
    """Look at home, embedding, counts, lock, unfinished work and each store; changes nothing."""
    made_by = library.catalog.meta("embedding")
    held = f"{counted(len(library.papers()), 'paper')}, {counted(library.chunk_count(), 'chunk')}"
    held = f"{held}, version {library.version()}"
    findings = [
        Finding("fine", "home", str(library.home.name)),
        Finding("fine", "embedding", made_by or f"{library.embedding.name} (nothing embedded yet)"),
        Finding("fine", "library", held),
    ]
    holder = WriterLock(library.home).holder()
    if holder is not None:
        findings.append(Finding("notice", "lock", f"process {holder} is writing the library", "Wait for it to end."))
    unfinished = library.catalog.unfinished()
    if unfinished:
        said = f"not fully indexed: {some(unfinished)}"
        findings.append(Finding("problem", "unfinished", said, "Run 'doctor --mend', or ingest."))
    readable = vectors_finding(library)
    findings += [readable] if readable.level == "problem" else _compared(library)
    findings.append(fulltext_finding(library))
    gone = [paper.key for paper in library.papers() if paper.source and not Path(paper.source).is_file()]
    if gone:
        said = f"the file is gone of: {some(gone)}"
        findings.append(Finding("notice", "files", said, "Remove them, or ingest with --prune."))
    return findings


def _compared(library: Library) -> list[Finding]:
    found = differences(library)
    named = (
        ("counts", "the catalog lists other chunks than it counts, or no sections, of", found.miscounted),
        ("vectors", "chunks, summaries or notes without vector in", found.missing),
    )
    findings = [
        Finding("problem", topic, f"{said}: {some(sorted(keys))}", _ANEW) for topic, said, keys in named if keys
    ]
    if found.orphans:
        said = f"{counted(len(found.orphans), 'record')} of no paper: {some(sorted(found.orphans))}"
        findings.append(Finding("problem", "vectors", said, _MEND))
    return findings or [Finding("fine", "vectors", "catalog and vector store agree")]


def vectors_finding(library: Library) -> Finding:
    """Whether the vector store can be read, down to each vector: its index may be gone while its records are there."""
    try:
        library.store.read_through()
    except VectorStoreError as error:
        return Finding("problem", "vectors", error.message.rstrip("."), _ANEW)
    return Finding("fine", "vectors", "every vector can be read")


def fulltext_finding(library: Library) -> Finding:
    """Whether the full-text index has the text of each chunk that is stored, and no other."""
    unfinished = set(library.catalog.unfinished())
    listed = {row.id: row.text_hash for row in library.catalog.chunk_rows()}
    try:
        stored = library.store.chunk_ids()
        listed = {identifier: text for identifier, text in listed.items() if identifier in stored}
        entries = library.fulltext.entries() if library.records() else {}
    except VectorStoreError:
        return Finding("notice", "full text", "cannot be compared while the vector store cannot be read", _MEND)
    except FullTextError as error:
        return Finding("problem", "full text", error.message.rstrip("."), _MEND)
    kept = {identifier: text for identifier, text in entries.items() if _key(identifier) not in unfinished}
    if kept == listed:
        return Finding("fine", "full text", "catalog and full-text index agree")
    differing = {_key(identifier) for identifier, _ in kept.items() ^ listed.items()}
    return Finding("problem", "full text", f"differs for: {some(sorted(differing))}", _MEND)


@dataclass(frozen=True, slots=True)
class Differences:
    """Where catalog and vector store differ.

    `missing` are papers that lack vectors, `miscounted` those of which the catalog lists other chunks than it
    counts, or no sections; the others are records of no paper, `strays` keys that only parts of the catalog have.
    """

    missing: frozenset[str]
    miscounted: frozenset[str]
    orphan_chunks: frozenset[str]
    orphan_summaries: frozenset[str]
    orphan_passages: frozenset[str]
    strays: frozenset[str]

    @property
    def lacking(self) -> frozenset[str]:
        """Papers that have to be indexed anew."""
        return self.missing | self.miscounted

    @property
    def orphans(self) -> frozenset[str]:
        """All records of no paper, by a name that tells what they are."""
        notes = {f"note {name}" for name in self.orphan_passages}
        return self.orphan_chunks | self.orphan_summaries | notes | {f"catalog {key}" for key in self.strays}


def differences(library: Library) -> Differences:
    """Compare the ids of catalog and vector store; raises `VectorStoreError`."""
    records = library.records()
    ready = set(records)
    listed = {row.id for row in library.catalog.chunk_rows()}
    noted = {
        chunk_id(key, place)
        for key, record in records.items()
        if record.note
        for place in range(len(record.note.spans))
    }
    stored, passages, summaries = library.store.chunk_ids(), library.store.passage_ids(), library.store.summary_keys()
    missing = {_key(identifier) for identifier in (listed - stored) | (noted - passages)} | (ready - summaries)
    miscounted = library.catalog.miscounted()
    # No orphan is what a staged change has written already, nor what the catalog has forgotten of a paper.
    spared = {*library.catalog.unfinished(), *miscounted}
    return Differences(
        frozenset(missing),
        frozenset(miscounted),
        frozenset(name for name in stored - listed if _key(name) not in spared),
        frozenset(summaries - ready - spared),
        frozenset(name for name in passages - noted if _key(name) not in spared),
        frozenset(library.catalog.strays()),
    )


def _key(identifier: str) -> str:
    try:
        return split_chunk_id(identifier)[0]
    except ValueError:
        return identifier


def some(names: Iterable[str]) -> str:
    """The first of the names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more

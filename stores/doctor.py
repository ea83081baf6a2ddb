"""Compares the stores with each other, says what is wrong, and mends what can be mended without embedding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from citeloom.documents import chunk_id, split_chunk_id
from citeloom.stores.fulltext import FullTextError
from citeloom.stores.library import Library
from citeloom.stores.lock import WriterLock

Level = Literal["fine", "notice", "problem"]
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `remedy` is what to do about it, empty when it is fine."""

    level: Level
    topic: str
    message: str
    remedy: str = ""


def examine(library: Library) -> list[Finding]:
    """Look at home, embedding, counts, lock and unfinished work; changes nothing."""
    findings = [
        Finding("fine", "home", str(library.home.root)),
        Finding(
            "fine",
            "embedding",
            library.catalog.meta("embedding") or f"{library.embedding.name} (nothing embedded yet)",
        ),
        Finding(
            "fine",
            "library",
            f"{len(library.papers())} papers, {library.chunk_count()} chunks, version {library.version()}",
        ),
    ]
    holder = WriterLock(library.home).holder()
    if holder is not None:
        findings.append(Finding("notice", "lock", f"process {holder} is writing the library", "Wait for it to end."))
    unfinished = library.catalog.unfinished()
    if unfinished:
        findings.append(
            Finding(
                "problem",
                "unfinished",
                f"not fully indexed: {_some(unfinished)}",
                "Run 'doctor --mend', or ingest.",
            )
        )
    differences = _differences(library)
    if differences.missing:
        findings.append(
            Finding(
                "problem",
                "vectors",
                f"chunks, summaries or notes without vector in: {_some(sorted(differences.missing))}",
                "Run 'doctor --mend', then ingest the papers again.",
            )
        )
    if differences.orphans:
        findings.append(
            Finding(
                "problem",
                "vectors",
                f"{len(differences.orphans)} records of no paper: {_some(sorted(differences.orphans))}",
                "Run 'doctor --mend'.",
            )
        )
    if not differences.missing and not differences.orphans:
        findings.append(Finding("fine", "vectors", "catalog and vector store agree"))
    findings.append(_fulltext_finding(library))
    gone = [paper.key for paper in library.papers() if paper.source and not Path(paper.source).is_file()]
    if gone:
        findings.append(
            Finding(
                "notice",
                "files",
                f"the file is gone of: {_some(gone)}",
                "Remove them, or ingest with --prune.",
            )
        )
    return findings


async def mend(library: Library) -> list[Finding]:
    """Finish staged changes, drop orphans, mark papers with missing vectors for the next ingest, mend full text."""
    done: list[Finding] = []
    async with WriterLock(library.home).held():
        finished = library.finish_staged()
        if finished:
            done.append(Finding("fine", "unfinished", f"finished: {_some(finished)}"))
        differences = _differences(library)
        if differences.orphans:
            library.store.delete_chunks(sorted(differences.orphan_chunks))
            for key in differences.orphan_summaries:
                library.store.delete_summary(key)
            library.store.delete_passages(sorted(differences.orphan_passages))
            done.append(Finding("fine", "vectors", f"dropped {len(differences.orphans)} records of no paper"))
        for key in sorted(differences.missing):
            library.catalog.mark_stale(key)
        if differences.missing:
            keys = _some(sorted(differences.missing))
            done.append(Finding("notice", "vectors", f"to be indexed anew: {keys}", "Ingest the papers again."))
        if _fulltext_finding(library).level == "problem":
            library.rebuild_fulltext()
            done.append(Finding("fine", "full text", "made anew from the chunks that are kept"))
    return done


def _fulltext_finding(library: Library) -> Finding:
    """Whether the full-text index has the text of each chunk that is stored, and no other."""
    unfinished = set(library.catalog.unfinished())
    stored = library.store.chunk_ids()
    listed = {row.id: row.text_hash for row in library.catalog.chunk_rows() if row.id in stored}
    try:
        entries = library.fulltext.entries() if library.records() else {}
    except FullTextError as error:
        return Finding("problem", "full text", error.message.rstrip("."), "Run 'doctor --mend'.")
    kept = {identifier: text for identifier, text in entries.items() if _key(identifier) not in unfinished}
    if kept == listed:
        return Finding("fine", "full text", "catalog and full-text index agree")
    differing = {_key(identifier) for identifier, _ in kept.items() ^ listed.items()}
    return Finding("problem", "full text", f"differs for: {_some(sorted(differing))}", "Run 'doctor --mend'.")


@dataclass(frozen=True, slots=True)
class _Differences:
    """Where catalog and vector store differ: papers that lack vectors, and records of no paper."""

    missing: frozenset[str]
    orphan_chunks: frozenset[str]
    orphan_summaries: frozenset[str]
    orphan_passages: frozenset[str]

    @property
    def orphans(self) -> frozenset[str]:
        """All records of no paper, by a name that tells a note's passage from a chunk."""
        return self.orphan_chunks | self.orphan_summaries | {f"note {name}" for name in self.orphan_passages}


def _differences(library: Library) -> _Differences:
    records = library.records()
    ready = set(records)
    unfinished = set(library.catalog.unfinished())
    listed = {row.id for row in library.catalog.chunk_rows()}
    stored = library.store.chunk_ids()
    summaries = library.store.summary_keys()
    noted = {
        chunk_id(key, place)
        for key, record in records.items()
        if record.note
        for place in range(len(record.note.spans))
    }
    passages = library.store.passage_ids()
    missing = {_key(identifier) for identifier in (listed - stored) | (noted - passages)} | (ready - summaries)
    # What a staged change has written already is no orphan: it will belong to its paper.
    return _Differences(
        frozenset(missing),
        frozenset(name for name in stored - listed if _key(name) not in unfinished),
        frozenset(summaries - ready - unfinished),
        frozenset(name for name in passages - noted if _key(name) not in unfinished),
    )


def _key(identifier: str) -> str:
    try:
        return split_chunk_id(identifier)[0]
    except ValueError:
        return identifier


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def papers_without_vectors(library: Library) -> frozenset[str]:
    """Keys of the papers that lack the vector of a chunk, of their summary or of the user's note."""
    return _differences(library).missing

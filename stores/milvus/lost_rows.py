"""Compares the rows in Milvus with the papers in PostgreSQL, such as after one of them was restored from a backup."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ...plurals import counted
from .milvus_catalog import MilvusCatalog
from .milvus_rows import CHUNKS, PAPERS, MilvusRows
from .row_records import fingerprint

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """`differing` papers have rows too few, too many or of other texts; `strange` versions belong to no paper.

    `unnumbered` papers have no version. `rows` is the number of all rows.
    """

    rows: int
    differing: frozenset[str]
    unnumbered: frozenset[str]
    strange: frozenset[int]

    def messages(self) -> list[str]:
        """One line for each kind of difference."""
        lines = []
        if papers := sorted(self.differing | self.unnumbered):
            more = f" and {len(papers) - _SHOWN} more" if len(papers) > _SHOWN else ""
            shown = ", ".join(papers[:_SHOWN])
            lines.append(f"rows are missing, or of another text, for: {shown}{more}; run 'doctor --repair'")
        if self.strange:
            lines.append(f"rows of {counted(len(self.strange), 'change')} without a paper; run 'doctor --repair'")
        return lines


def compare(catalog: MilvusCatalog, rows: MilvusRows) -> RowDifferences:
    """Compare the places and texts of all rows; raises `VectorStoreError` if there are no collections."""
    versions, records = catalog.searched(), catalog.records()
    expected: dict[str, set[tuple[int, int]]] = {key: set() for key in records}
    for row in catalog.chunk_rows():
        expected[row.key].add((row.index, fingerprint(row.text_hash)))
    chunks, papers = _by_version(rows.stored(CHUNKS)), _by_version(rows.stored(PAPERS))
    differing = set()
    for key, record in records.items():
        version = versions.get(key, -1)
        notes = len(record.note.spans) if record.note else 0
        same = chunks.get(version, set()) == expected[key]
        if not same or papers.get(version, set()) != {(place, 0) for place in range(1 + notes)}:
            differing.add(key)
    pending = {*catalog.outdated(), *catalog.staged_versions(catalog.unfinished()).values()}
    known = {versions[key] for key in versions.keys() & records.keys()} | pending
    return RowDifferences(
        sum(map(len, chunks.values())) + sum(map(len, papers.values())),
        frozenset(differing & versions.keys()),
        frozenset(records.keys() - versions.keys()),
        frozenset((chunks.keys() | papers.keys()) - known),
    )


def _by_version(rows: Iterable[tuple[int, int, int]]) -> dict[int, set[tuple[int, int]]]:
    found: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for version, place, content in rows:
        found[version].add((place, content))
    return found

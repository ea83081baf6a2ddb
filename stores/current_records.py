"""The records of the ready papers, read again when this or another process has changed the library."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from ..documents import split_chunk_id
from .paper_change import PaperRecord
from .store_protocols import LibraryStores


class CurrentRecords:
    """The catalog's records by key, the same object for as long as the library is unchanged; thread-safe."""

    def __init__(self, stores: LibraryStores) -> None:
        self._stores = stores
        self._lock = threading.RLock()
        self._revision: tuple[int, int] | None = None
        self._records: Mapping[str, PaperRecord] = {}
        self._chunk_total = 0

    def __call__(self) -> Mapping[str, PaperRecord]:
        with self._lock:
            revision = self._stores.catalog.revision()
            if revision != self._revision:
                if self._revision is not None and revision[0] != self._revision[0]:
                    # Another process has written: its vectors become visible only after reopening.
                    self._stores.vectors.close()
                    self._stores.words.close()
                self._records = self._stores.catalog.records()
                self._chunk_total = sum(record.chunk_count for record in self._records.values())
                self._revision = revision
            return self._records

    def last(self) -> Mapping[str, PaperRecord]:
        return self._records or self()

    def searched(self) -> Mapping[str, PaperRecord]:
        """The records, at least as new as the last search; only one that saw other records costs another query."""
        seen = self._stores.last_seen_revision()
        with self._lock:
            known = seen is not None and self._revision is not None and seen <= self._revision
            return self._records if known else self()

    def chunk_total(self) -> int:
        """The number of chunks of all papers."""
        self()
        return self._chunk_total


def present_ids(records: Mapping[str, PaperRecord], ids: Iterable[str]) -> set[str]:
    """The ids that belong to chunks of ready papers."""
    found: set[str] = set()
    for identifier in ids:
        try:
            key, index = split_chunk_id(identifier)
        except ValueError:
            continue
        if key in records and index < records[key].chunk_count:
            found.add(identifier)
    return found

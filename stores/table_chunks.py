"""Which chunks hold rows of tables: a search gives their words more weight."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from ..documents import split_chunk_id
from ..documents.figures import Span
from .current_records import CurrentRecords
from .store_protocols import Figures


class TableChunks:
    """The chunks with tables of a library, read again when it has changed."""

    def __init__(self, figures: Figures, records: CurrentRecords) -> None:
        self._figures = figures
        self._records = records
        self._lock = threading.Lock()
        self._loaded: tuple[object, Mapping[str, list[Span]]] = None, {}

    def among(self, ids: Iterable[str]) -> set[str]:
        """Those of the chunks that hold rows of a table."""
        spans = self._spans()

        def has_rows(name: str) -> bool:
            key, index = split_chunk_id(name)
            return any(first <= index <= last for first, last in spans.get(key, ()))

        return set(filter(has_rows, ids))

    def _spans(self) -> Mapping[str, list[Span]]:
        """The indices of the first and last chunk of each table, by paper, in the state that a search has just seen."""
        records = self._records.searched()
        with self._lock:
            if self._loaded[0] is not records:
                tables = self._figures.tables()
                spans = {key: [item.table_chunks for item in of if item.table_chunks] for key, of in tables.items()}
                self._loaded = records, spans
            return self._loaded[1]

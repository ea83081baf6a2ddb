"""Streams a draft as events while it is written: text in the citation style of the run, and its citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..citations.marker_stream import Cited, MarkerStream
from ..documents.marker_escaping import as_written
from ..roles.protocols import Draft, Source
from ..settings.config import CitationStyle


class StreamWriter(Protocol):
    """Receives events, like the stream writer of a graph's runtime."""

    def __call__(self, event: Any, /) -> None: ...


class DraftEventStream:
    """Implements `TextListener`: receives a draft with markers and emits it as events.

    Args:
        sources: the sources that the draft may cite.
        style: the citation style.
        emit: receives the events.
        before: keys that already have a number, in order.
    """

    def __init__(
        self, sources: Sequence[Source], style: CitationStyle, emit: StreamWriter, before: Sequence[str] = ()
    ) -> None:
        self._sources = sources
        self._style = style
        self._emit = emit
        self._before = before
        self._begin()

    def piece(self, text: str) -> None:
        """See `TextListener`."""
        self._received.append(text)
        self._emit_all(self._stream.feed(text))

    def restart(self) -> None:
        """See `TextListener`."""
        self._begin()
        self._emit({"source": "citeloom", "kind": "restarted"})

    def finish(self, draft: Draft) -> None:
        """Emit the rest of `draft`, or restart and emit all of it when it differs from what was streamed."""
        received = "".join(self._received)
        if not draft.text.startswith(received):
            self.restart()
            received = ""
        self.piece(draft.text[len(received) :])
        self._emit_all(self._stream.finish())

    def _begin(self) -> None:
        self._received: list[str] = []
        self._stream = MarkerStream(self._sources, self._style, self._before)

    def _emit_all(self, settled: Sequence[str | Cited]) -> None:
        for item in settled:
            if isinstance(item, str):
                self._emit({"source": "citeloom", "kind": "token", "text": as_written(item)})
                continue
            self._emit(
                {
                    "source": "citeloom",
                    "kind": "citation",
                    "number": item.number,
                    "key": item.key,
                    "page": item.page,
                    "section": item.section,
                    "evidence_id": item.evidence_id,
                }
            )

"""A draft told while it is written: text in the citation style of the run, and what it cites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..citations.marker_stream import Cited, MarkerStream
from ..config import CitationStyle
from ..documents.marker_escaping import as_written
from ..roles.inputs import Source
from ..roles.protocols import Draft


class StreamWriter(Protocol):
    """Takes events, as the runtime of a graph does."""

    def __call__(self, event: Any, /) -> None: ...


class DraftEventStream:
    """Implements `TextListener`: hears a draft with markers and tells it as events.

    Args:
        sources: what the draft may cite.
        style: how it cites.
        tell: takes the events.
        before: keys that have the first numbers already.
    """

    def __init__(
        self, sources: Sequence[Source], style: CitationStyle, tell: StreamWriter, before: Sequence[str] = ()
    ) -> None:
        self._sources = sources
        self._style = style
        self._tell = tell
        self._before = before
        self._begin()

    def piece(self, text: str) -> None:
        """See `TextListener`."""
        self._heard.append(text)
        self._tell_all(self._stream.feed(text))

    def restart(self) -> None:
        """See `TextListener`."""
        self._begin()
        self._tell({"source": "citeloom", "kind": "restarted"})

    def finish(self, draft: Draft) -> None:
        """Tell what is left of `draft`, or all of it anew where something else was heard."""
        heard = "".join(self._heard)
        if not draft.text.startswith(heard):
            self.restart()
            heard = ""
        self.piece(draft.text[len(heard) :])
        self._tell_all(self._stream.finish())

    def _begin(self) -> None:
        self._heard: list[str] = []
        self._stream = MarkerStream(self._sources, self._style, self._before)

    def _tell_all(self, settled: Sequence[str | Cited]) -> None:
        for item in settled:
            if isinstance(item, str):
                self._tell({"source": "citeloom", "kind": "token", "text": as_written(item)})
                continue
            self._tell(
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

"""Streams a draft as events while it is written, sentence by sentence, with its markers as citations.

A sentence is shown once the next one has begun, since a marker may follow its full stop, and never while a bracket is
open; its citation once the next sentence is known, which may rest on the same paper and be cited together with it. No
part of a marker is ever shown, and a marker that names no evidence becomes `[citation needed]`. Other invented
citations can only be detected in the whole text and are checked afterwards: the stream is a draft.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..citations.checks.unicode_folding import fold
from ..citations.citation_styles import show_group
from ..citations.markers import citation_runs, marker_groups, normalise_markers, papers_at_end, sentences
from ..documents.marker_escaping import unescape
from ..roles.protocols import Draft, Source
from ..settings.config import CitationStyle

# Where a sentence ends, perhaps with a marker after its full stop, or a line before a block, where no marker can be.
_STOP: Final = r"[.!?\u2026][\"'\u201d\u2019)*_]{0,9}"
_SENTENCE_END: Final = re.compile(
    rf"{_STOP}\s{{1,20}}(?=[^\W_])|{_STOP}[ \t]?[\[(][^\[\]()]{{1,60}}[\])]\s{{1,20}}(?=[^\W_a-z])"
    r"|[\u3002\uff01\uff1f]\s{0,20}(?=[^\W_])|\n\s{0,20}(?=[^\W_a-z]|[-+>|#])"
)
_LOOKBACK: Final = 128  # characters that a sentence end may span
_OPEN: Final = re.compile(r"\[[^\]]*\Z|\([^)]*\Z")
_LONGEST_BRACKET: Final = 400  # characters; anything longer is not a marker
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class DraftEventStream:
    """Implements `TextListener`: passes a draft to `emit` as events; `before` are keys already numbered, in order."""

    def __init__(
        self, sources: Sequence[Source], style: CitationStyle, emit: Callable[[Any], None], before: Sequence[str] = ()
    ) -> None:
        self._evidence = {source.evidence.id: source.evidence for source in sources}
        self._style = style
        self._emit = emit
        self._before = before
        self._begin()

    def _begin(self) -> None:
        self._text = self._paragraph = ""
        self._shown = self._looked_at = self._emitted = 0
        self._numbers: dict[str, int] = {key: number for number, key in enumerate(self._before, 1)}
        self._cited: set[str] = set()

    def piece(self, text: str) -> None:
        """See `TextListener`."""
        self._text += _SURROGATE.sub("\ufffd", text)
        ends = [match.end() for match in _SENTENCE_END.finditer(self._text, self._looked_at)]
        self._looked_at = max(self._shown, len(self._text) - _LOOKBACK)
        for end in reversed(ends):
            if not _OPEN.search(fold(self._text[max(self._shown, end - _LONGEST_BRACKET) : end]).text):
                self._show(end)
                break

    def restart(self) -> None:
        """See `TextListener`."""
        self._begin()
        self._emit({"source": "citeloom", "kind": "restarted"})

    def finish(self, draft: Draft) -> None:
        """Emit the rest of `draft`, or restart and emit all of it when it differs from what was streamed."""
        text = _SURROGATE.sub("\ufffd", draft.text)
        if not text.startswith(self._text):
            self.restart()
        self._text = text
        self._show(len(text), last=True)

    def _show(self, end: int, *, last: bool = False) -> None:
        """Emit the text up to `end` and its evidence; if not the `last`, a citation that the next may share waits."""
        text = self._paragraph + normalise_markers(self._text[self._shown : end])
        self._shown = end
        keys = {identifier: found.key for identifier, found in self._evidence.items()}
        runs = citation_runs(text, keys)
        shared = {run.group[0]: run.ids for run in runs}
        hidden = {start for run in runs for start in run.hidden}
        groups = marker_groups(text)
        until = len(text) if last else _shareable(text, keys)
        pieces: list[str] = []
        done = self._emitted
        for start, close, ids in groups:
            if close <= self._emitted or start >= until:
                continue
            new = list(self._first_citations(ids))
            words = text[done:start] if done < start else ""
            pieces.append(words.rstrip(" ") if start in hidden else words)
            if new:
                self._emit_text("".join(pieces))
                pieces = []
            for event in new:
                self._emit(event)
            if start not in hidden:
                pieces.append(show_group(shared.get(start, ids), self._evidence, self._style, self._numbers))
            done = close
        self._emit_text("".join([*pieces, text[done:until]]))
        kept = text.rfind("\n", 0, until) + 1
        self._paragraph, self._emitted = text[kept:], max(done, until) - kept

    def _first_citations(self, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        for identifier in ids:
            found = self._evidence.get(identifier)
            if found is None or identifier in self._cited:
                continue
            self._cited.add(identifier)
            number = self._numbers.setdefault(found.key, len(self._numbers) + 1)
            place = {"key": found.key, "page": found.page, "section": found.section, "evidence_id": identifier}
            yield {"source": "citeloom", "kind": "citation", "number": number, **place}

    def _emit_text(self, text: str) -> None:
        if text:
            self._emit({"source": "citeloom", "kind": "token", "text": unescape(text)})


def _shareable(text: str, keys: Mapping[str, str]) -> int:
    """Where the last citation of the text and the blank before it begin, if the next sentence may share it."""
    found = sentences(text)
    if found and not found[-1].ids:  # it may still get a marker, so it waits together with the citation before it
        found = found[:-1]
    if not found or "\n" in text[found[-1].end :] or papers_at_end(found[-1], keys) is None:
        return len(text)
    start, _, _ = next(group for group in reversed(marker_groups(text)) if group[0] < found[-1].end)
    return len(text[:start].rstrip(" "))

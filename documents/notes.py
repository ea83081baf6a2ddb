"""The user's note on a paper, `<key>.notes.md` next to it: searched with the summaries, never cited."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from ..text.sentences import sentence_spans, trim_span
from .types import Span

NOTE_ENDING: Final = ".notes.md"
_BLANK_LINE = re.compile(r"\n[ \t\r]*(?=\n)")
_LEAST_CUT = 200  # characters: shorter text is not split further


@dataclass(frozen=True, slots=True)
class Note:
    """A note as written; each of its passages, `text[start:end]`, has its own vector."""

    text: str
    spans: tuple[Span, ...]

    @property
    def passages(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.spans)


def note_stem(file: Path) -> str | None:
    """The key or file stem that a note is named after; None for other files. Extensions ignore case."""
    name = file.name
    return name[: -len(NOTE_ENDING)] if name.lower().endswith(NOTE_ENDING) else None


def make_note(text: str, count_tokens: Callable[[str], int], *, target: int = 400) -> Note:
    """Split a note (not blank) into passages of at most `target` embedding tokens, at paragraphs if possible."""
    from .chunking import pack_spans  # lists of papers know notes and load no reader of texts

    units: list[Span] = []
    cuts = [0, *(match.end() for match in _BLANK_LINE.finditer(text)), len(text)]
    for start, end in (trim_span(text, *cut) for cut in pairwise(cuts)):
        if count_tokens(text[start:end]) <= target:
            units += [(start, end)] if start < end else []
            continue
        # A long paragraph from one sentence start to the next: text between sentences belongs to the note as well.
        later = [start + first for first, _ in sentence_spans(text[start:end])][1:]
        for first, last in pairwise([start, *later, end]):
            units += _cut(text, first, first + len(text[first:last].rstrip()), count_tokens, target)
    packed = pack_spans(units, [count_tokens(text[start:end]) for start, end in units], target)
    return Note(text, tuple((start, end) for start, end, _ in packed))


def _cut(text: str, start: int, end: int, count_tokens: Callable[[str], int], target: int) -> Iterator[Span]:
    """Halve the span until each part has at most `target` tokens, at a space near the middle if there is one."""
    if end - start <= _LEAST_CUT or count_tokens(text[start:end]) <= target:
        yield start, end
        return
    middle = (start + end) // 2
    space = text.rfind(" ", start + (end - start) // 4, middle)
    middle = space if space > start else middle
    yield from _cut(text, start, middle, count_tokens, target)
    yield from _cut(text, middle, end, count_tokens, target)

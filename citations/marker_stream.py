"""Renders markers as citations while a draft is still being streamed.

The concatenated output equals `render` of the whole draft to the character, however the draft was split into pieces
(except for a `<` that only becomes a tag by a later removal). Only text that may still become part of a marker is held
back: blanks and stops, which a following marker moves, and an open bracket while its content could be a marker. So
no partial marker is ever shown, and a marker that names no evidence becomes `[citation needed]`.

Invented citations can only be detected in the whole text and are checked afterwards: the stream is a draft.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ..roles.protocols import Source
from ..settings.config import CitationStyle
from .checks.unicode_folding import fold
from .citation_styles import show_group
from .markers import marker_groups, normalise_markers


@dataclass(frozen=True, slots=True)
class Cited:
    """Evidence cited here for the first time; `number` is its paper's number by first citation."""

    number: int
    key: str
    page: int | None
    section: str
    evidence_id: str


# Characters and words next to or inside a marker in any of its forms (`citations/markers.py`), in the folded view. It
# must include every character that a marker may contain or move; extra ones only hold text back for longer.
_BESIDE: Final = frozenset(" \n\t.,!?\u2026\"'\u201d\u2019)]*_`^~")
_INSIDE: Final = _BESIDE | frozenset("0123456789:;/&-@#")
_WORDS: Final = "see also cf e g evidence source sources ref refs p pp page pages sec section and to е ε".split()
_RUN = re.compile(r"[^\W\d_]+")
_WHOLE = re.compile(f"(?:{'|'.join(_WORDS)})*")
_BEGUN = re.compile(f"(?:{'|'.join(_WORDS)})*(?:{'|'.join(word[:end] for word in _WORDS for end in range(len(word)))})")
_LINK = re.compile(r"\(#[^()\s]*")  # a link within the document, after a marker
# An incomplete comment, tag, entity, escape or emphasis: folding needs the whole of it.
_UNENDED = re.compile(
    r"(?:<!--(?:(?!-->).)*|<!?-?|</?(?:[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>]*)?/?)?"
    r"|&(?:\#\d{0,7}|\#[xX][0-9a-fA-F]{0,6}|[a-zA-Z][a-zA-Z0-9]{0,31})?|\\|~)\Z",
    re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
# More than `normalise_markers` looks back from a marker.
_CONTEXT: Final = 24
# Held-back text longer than this is only examined again once it has doubled.
_LONG: Final = 400


class MarkerStream:
    """Converts a stream of text with markers into text with citations and the evidence cited.

    `before` are the keys that already have the first numbers.
    """

    def __init__(self, sources: Sequence[Source], style: CitationStyle, before: Sequence[str] = ()) -> None:
        self._evidence = {source.evidence.id: source.evidence for source in sources}
        self._style = style
        self._numbers = {key: number for number, key in enumerate(before, 1)}
        self._cited: set[str] = set()
        self._held = ""
        self._look_at = 0
        self._context = ""  # the end of the normalised text so far

    def feed(self, piece: str) -> list[str | Cited]:
        """Add a piece; returns the text that is now final, preceded by evidence that it cites for the first time."""
        self._held += _SURROGATE.sub("\ufffd", piece)
        if len(self._held) < self._look_at:
            return []
        settled, self._held = self._settle(self._held)
        self._look_at = 2 * len(self._held) if len(self._held) > _LONG else 0
        return settled

    def finish(self) -> list[str | Cited]:
        """The remaining output at the end of the draft."""
        held, self._held = self._held, ""
        return _joined(self._normal(held, "")) if held else []

    def _settle(self, text: str) -> tuple[list[str | Cited], str]:
        """The final part of `text` rendered, and the rest."""
        ended = _end_of_comments(text)
        unended = _UNENDED.search(text, ended)
        view = fold(text[: unended.start()] if unended else text)
        out: list[str | Cited] = []
        plain = done = 0  # in `text`: the start and end of a part without markers
        for place in _inert(view.text):
            start, end = view.starts[place], view.ends[place]
            if start < done:
                continue  # one of several characters folded from a single one
            if start > done:
                out += self._plain(text[plain:done])
                out += self._normal(text[done:start], text[start:end])
                plain = start
            done = end
        out += self._plain(text[plain:done])
        return _joined(out), text[done:]

    def _plain(self, text: str) -> list[str | Cited]:
        self._context = _tail(self._context + text)
        return [text]

    def _normal(self, text: str, following: str) -> list[str | Cited]:
        """Render a stretch that may contain markers, between two characters that no marker spans."""
        if "[" not in text and not any(bracket in fold(text).text for bracket in "[("):
            return self._plain(text)
        before = self._context
        normal = normalise_markers(f"{before}{text}{following}").removeprefix(before)
        normal = normal[: len(normal) - len(following)]
        self._context = _tail(before + normal)
        out: list[str | Cited] = []
        done = 0
        for start, end, ids in marker_groups(normal):
            out.append(normal[done:start])
            out += self._new(ids)
            out.append(show_group(ids, self._evidence, self._style, self._numbers))
            done = end
        return [*out, normal[done:]]

    def _new(self, ids: Sequence[str]) -> list[str | Cited]:
        new: list[str | Cited] = []
        for identifier in ids:
            found = self._evidence.get(identifier)
            if found is None or identifier in self._cited:
                continue
            self._cited.add(identifier)
            number = self._numbers.setdefault(found.key, len(self._numbers) + 1)
            new.append(Cited(number, found.key, found.page, found.section, identifier))
        return new


def _end_of_comments(text: str) -> int:
    """The end of the last closed comment."""
    ended = 0
    while (start := text.find("<!--", ended)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        ended = end + 3
    return ended


def _inert(text: str) -> list[int]:
    """The positions of a folded text that no marker can contain or move, whatever comes next."""
    inert: list[int] = []
    brackets = 0  # open brackets that may begin a marker
    place = 0
    while place < len(text):
        character = text[place]
        link = _LINK.match(text, place)
        if link and link.end() == len(text):
            break
        if link and text[link.end()] == ")":
            place = link.end() + 1
            continue
        word = _RUN.match(text, place)
        end = word.end() if word else place + 1
        if character in "[(":
            brackets += 1
        elif not brackets:
            if character not in _BESIDE:
                inert += range(place, end)
        elif character in ")]":
            brackets -= 1
        elif not (_may_stand_in(word[0], ends=end < len(text)) if word else character in _INSIDE):
            inert += range(place, end)
            brackets = 0
        place = end
    return inert


def _may_stand_in(word: str, *, ends: bool) -> bool:
    """Whether a marker can contain `word`, or a word that begins with it if it may continue."""
    return (_WHOLE if ends else _BEGUN).fullmatch(word.casefold()) is not None


def _tail(text: str) -> str:
    """The end of a normalised text that decides how a following marker is placed; it contains no marker.

    Cutting must not create one either: after a backslash, `&#91;` was not a bracket.
    """
    tail = text[-_CONTEXT:]
    return tail[max(0, *(tail.rfind(mark) for mark in "[]()&")) :]


def _joined(out: Sequence[str | Cited]) -> list[str | Cited]:
    """Merge adjacent texts and drop empty ones."""
    joined: list[str | Cited] = []
    for is_text, items in groupby(out, key=lambda item: isinstance(item, str)):
        together = list(items)
        joined += ["".join(map(str, together))] if is_text else together
    return [item for item in joined if item != ""]

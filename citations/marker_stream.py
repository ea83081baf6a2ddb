"""Markers turned into citations while a draft is still being written.

The text that comes out, joined, is to the character what `render` makes of the whole draft, however it was cut into
pieces (but for a `<` that becomes a tag only by what is taken out behind it). Only what may still become part of a
marker is held back: blanks and stops, which a marker behind them moves, and an open bracket for as long as what follows
could stand in a marker. So no half marker is ever shown, and one that names no evidence comes out as
`[citation needed]`.

Citations that a writer invented itself need the whole text to be told from its own words; they are looked for
afterwards. What streams is a draft.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ..config import CitationStyle
from ..roles.inputs import Source
from .checks.unicode_folding import fold
from .citation_styles import show_group
from .markers import marker_groups, normalise_markers


@dataclass(frozen=True, slots=True)
class Cited:
    """Evidence that the text cites here for the first time; `number` is that of its paper, by first citation."""

    number: int
    key: str
    page: int | None
    section: str
    evidence_id: str


# What can stand beside or inside a marker that is written in one of its many ways (`citations/markers.py`), on the
# folded view. Every character that a marker may hold or move has to be here; others only hold text back for longer.
_BESIDE: Final = frozenset(" \n\t.,!?\u2026\"'\u201d\u2019)]*_`^~")
_INSIDE: Final = _BESIDE | frozenset("0123456789:;/&-@#")
_WORDS: Final = "see also cf e g evidence source sources ref refs p pp page pages sec section and to е ε".split()
_RUN = re.compile(r"[^\W\d_]+")
_WHOLE = re.compile(f"(?:{'|'.join(_WORDS)})*")
_BEGUN = re.compile(f"(?:{'|'.join(_WORDS)})*(?:{'|'.join(word[:end] for word in _WORDS for end in range(len(word)))})")
_LINK = re.compile(r"\(#[^()\s]*")  # to a place in the document, behind a marker
# A comment, tag, character by number or name, escape or dress whose end has not come yet: folding needs the whole.
_UNENDED = re.compile(
    r"(?:<!--(?:(?!-->).)*|<!?-?|</?(?:[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>]*)?/?)?"
    r"|&(?:\#\d{0,7}|\#[xX][0-9a-fA-F]{0,6}|[a-zA-Z][a-zA-Z0-9]{0,31})?|\\|~)\Z",
    re.DOTALL,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
# As far back as `normalise_markers` looks from a marker, and some.
_CONTEXT: Final = 24
# A text longer than this that is held back is looked at again only when it has doubled.
_LONG: Final = 400


class MarkerStream:
    """Text with markers in, piece by piece; text with citations out, and what is cited with it.

    `before` are the keys that have the first numbers already.
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
        """What `piece` settles: text to show, and before it what it cites for the first time."""
        self._held += _SURROGATE.sub("\ufffd", piece)
        if len(self._held) < self._look_at:
            return []
        settled, self._held = self._settle(self._held)
        self._look_at = 2 * len(self._held) if len(self._held) > _LONG else 0
        return settled

    def finish(self) -> list[str | Cited]:
        """What is left at the end of the draft."""
        held, self._held = self._held, ""
        return _joined(self._normal(held, "")) if held else []

    def _settle(self, text: str) -> tuple[list[str | Cited], str]:
        """What of `text` is settled, and the rest of it."""
        ended = _end_of_comments(text)
        unended = _UNENDED.search(text, ended)
        view = fold(text[: unended.start()] if unended else text)
        out: list[str | Cited] = []
        plain = done = 0  # in `text`: where what is inert began, and where it ends
        for place in _inert(view.text):
            start, end = view.starts[place], view.ends[place]
            if start < done:
                continue  # one of several characters that were written as one
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
        """A stretch that may hold markers, shown; it stands between two characters that no marker reaches over."""
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
    """Where the last comment ends that has an end."""
    ended = 0
    while (start := text.find("<!--", ended)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        ended = end + 3
    return ended


def _inert(text: str) -> list[int]:
    """The places of a folded text that no marker can hold or move, whatever comes next."""
    inert: list[int] = []
    brackets = 0  # that are open and may begin a marker
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
    """Whether a marker can hold `word`, or when it does not end here, one that begins with it."""
    return (_WHOLE if ends else _BEGUN).fullmatch(word.casefold()) is not None


def _tail(text: str) -> str:
    """The end of a normalised text that decides how a marker behind it is set; holds no marker.

    Nor does one appear by where it is cut: behind a backslash, `&#91;` was no bracket.
    """
    tail = text[-_CONTEXT:]
    return tail[max(0, *(tail.rfind(mark) for mark in "[]()&")) :]


def _joined(out: Sequence[str | Cited]) -> list[str | Cited]:
    """Neighbouring texts as one, empty ones left out."""
    joined: list[str | Cited] = []
    for is_text, items in groupby(out, key=lambda item: isinstance(item, str)):
        together = list(items)
        joined += ["".join(map(str, together))] if is_text else together
    return [item for item in joined if item != ""]

"""Finds quotations in a text and decides which ones repeat a passage word for word.

Only the typography may differ: white space, emphasis, escapes, the form of quotation marks and dashes, an ellipsis for
an omission, and the reference numbers and keys that `format_quote` omits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from ..documents.marker_escaping import as_written
from ..documents.plain_text import REFERENCES
from .checks.unicode_folding import fold
from .markers import MARKER, quotation_spans

_FEWEST_WORDS: Final = 5  # of a quotation; fewer may be a name, or a citation alone
_BLOCK = re.compile(r"(?m)^[ \t]*>.*$")
_OMITTED = re.compile(r"\[?(?:…|\.\.\.|\. \. \.)\]?")
_WORD = re.compile(r"[^\W_]+")
_SET = re.compile(r"[\s\"“”„«»'‘’*_`>|\\]+|\[(?=[^\W\d_]\])|(?<=\[[^\W\d_])\]")
_EDGES: Final = ".,;:!?-()[]"


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Spans of quotations including their marks, and of quoted lines (`> ...`); unclosed marks are ignored."""
    return sorted([*quotation_spans(text), *(match.span() for match in _BLOCK.finditer(text))])


def verbatim_spans(text: str, passages: Iterable[str]) -> list[tuple[int, int]]:
    """Spans of the quotations of at least five words that a passage contains word for word."""
    quoted = [(start, end) for start, end in quoted_spans(text) if is_quotation(text[start:end])]
    said = list(passages) if quoted else []
    return [span for span in quoted if any(is_verbatim(text[slice(*span)], passage) for passage in said)]


def is_quotation(words: str) -> bool:
    """Whether quoted words are long enough to be a quotation rather than a name or term."""
    return len(_WORD.findall(MARKER.sub(" ", words))) >= _FEWEST_WORDS


def is_verbatim(quotation: str, passage: str) -> bool:
    """Whether the parts of a quotation, separated by ellipses, occur in the passage in this order."""
    parts = _parts(quotation)
    return bool(parts) and any(_in_order(parts, said) for said in _wordings(passage))


def _in_order(parts: Sequence[str], said: str) -> bool:
    """Whether the parts occur in this order, each beginning and ending with whole words and numbers."""
    place = 0
    for part in parts:
        while (at := said.find(part, place)) >= 0 and (_cuts_number(said, at) or _cuts_number(said, at + len(part))):
            place = at + 1
        if at < 0:
            return False
        place = at + len(part)
    return True


def _cuts_number(said: str, at: int) -> bool:
    before, after = said[max(0, at - 2) : at], said[at : at + 1]
    return after.isdigit() and (before[-1:].isdigit() or (before[-1:] in (".", ",") and before[:1].isdigit()))


@lru_cache(maxsize=64)
def _parts(quotation: str) -> tuple[str, ...]:
    parts = (_bare(part).strip(_EDGES) for part in _OMITTED.split(MARKER.sub(" ", as_written(quotation))))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=1024)
def _wordings(passage: str) -> tuple[str, str]:
    """The passage unchanged, and without its reference numbers and keys."""
    return _bare(passage), _bare(REFERENCES.sub("", passage))


def _bare(words: str) -> str:
    return _SET.sub("", fold(words).text).casefold()

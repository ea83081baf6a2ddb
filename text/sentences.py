"""Splits a paper's markdown into sentences.

Quotes are sliced by these spans, so they are exact: `text[start:end]` is the sentence without surrounding whitespace or
list marker. The boundaries come from `sentencex`, corrected for papers: "Eq. 4", citations after the full stop, and
math, code and links that contain full stops.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from .words import STOP_WORDS, read_rules

_RULES = read_rules(__file__, "wordings")
_WORDINGS = _RULES["sentences"]
_ABBREVIATION = re.compile(_WORDINGS["abbreviation"], re.VERBOSE)  # bounded: 24 characters
_LETTERED = re.compile(_WORDINGS["lettered"])
_LEANS = re.compile(_WORDINGS["leans"], re.IGNORECASE)
_BOUNDARIES = {name: re.compile(pattern) for name, pattern in _RULES["boundaries"].items()}

# Characters examined around a cut; a line of megabytes would otherwise take minutes.
_AHEAD = 400
_BEHIND = 64
_MOST_AT_ONCE = 4_000
_STOPS = ".!?"
_SURROGATE = re.compile("[\ud800-\udfff]")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences of `text`, in order, without overlap and not empty."""
    # Without lone surrogates from a model's JSON or a PDF, which sentencex does not accept.
    text = _SURROGATE.sub("\ufffd", text)
    # No sentence crosses a paragraph, list item or table row; the line after a heading or fence begins a new passage.
    cuts = {0, len(text), *(match.start() for match in _BOUNDARIES["line_start"].finditer(text))}
    cuts.update(
        match.end()
        for pattern in (_BOUNDARIES["blank_line"], _BOUNDARIES["whole_line"])
        for match in pattern.finditer(text)
    )
    spans: list[tuple[int, int]] = []
    for passage in pairwise(sorted(cuts)):
        for left, right in _sentences(text, *passage):
            marker = _BOUNDARIES["marker"].match(text, left, right)
            start, end = trim_span(text, marker.end() if marker else left, right)
            if start < end:
                spans.append((start, end))
    return spans


def sentences_between(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [(start + left, start + right) for left, right in sentence_spans(text[start:end])]


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    # Imported lazily: sentencex loads the rules of all its languages.
    from sentencex import get_sentence_boundaries

    passage = text[start:end]
    if not passage.strip():
        return
    protected = [match.span() for match in _BOUNDARIES["protected"].finditer(passage)]  # in order, without overlap
    opens = [left for left, _ in protected]
    begin = 0
    proposed = {
        left + int(boundary["end_index"])
        for left, right in _pieces(passage)
        for boundary in get_sentence_boundaries("en", passage[left:right])
        # The end of a piece is a boundary only if it looks like one.
        if left + int(boundary["end_index"]) < right or right == len(passage) or passage[right - 2] in _STOPS
    }
    units = {match.end() for match in _BOUNDARIES["unit_ends"].finditer(passage)}
    for cut in sorted(proposed | units):
        if cut <= begin or cut >= len(passage):
            continue
        cut = _after_citations(passage, cut)
        if cut >= len(passage):
            break
        before = bisect_left(opens, cut) - 1
        inside = before >= 0 and cut < protected[before][1]
        if inside or not (cut in units or _ends_sentence(passage, begin, cut)):
            continue
        yield start + begin, start + cut
        begin = cut
    yield start + begin, end


def _pieces(passage: str) -> Iterator[tuple[int, int]]:
    """Split the passage into pieces to process separately: sentencex takes quadratic time on quotation marks."""
    start = 0
    while len(passage) - start > _MOST_AT_ONCE:
        end = start + _MOST_AT_ONCE
        stop = max(passage.rfind(f"{mark} ", start + _MOST_AT_ONCE // 2, end) for mark in _STOPS) + 2
        blank = passage.rfind(" ", start + _MOST_AT_ONCE // 2, end) + 1
        end = stop if stop > 1 else blank or end
        yield start, end
        start = end
    yield start, len(passage)


def _after_citations(passage: str, cut: int) -> int:
    """Move a cut after closing marks and citations that belong to the preceding sentence."""
    stop = cut
    while stop > 0 and passage[stop - 1].isspace():
        stop -= 1
    closing = _BOUNDARIES["closing"].match(passage, stop, min(len(passage), stop + _AHEAD))
    if closing:
        stop = closing.end()
    moved = stop
    limit = min(len(passage), stop + _AHEAD)
    while match := _BOUNDARIES["trailing_citation"].match(passage, moved, limit):
        moved = match.end()
    # "[@a] showed that ..." begins a sentence with a citation as its subject.
    if moved > stop and _BOUNDARIES["lowercase_word"].match(passage[moved : moved + _AHEAD].lstrip()):
        return cut
    return max(cut, moved)


def _ends_sentence(passage: str, begin: int, cut: int) -> bool:
    _, end = trim_span(passage, begin, cut)
    start = max(begin, end - _BEHIND)
    left = passage[start:end] if start == begin else f" {passage[start:end]}"  # a blank replaces the rest
    after = passage[cut : cut + _AHEAD]
    left, right = left.rstrip(), after.lstrip()
    if not left or not right:
        return True
    if right[0] in ",;:.)]!?" or (left[-1] == "!" and right[0] == "[" and after[0] == "["):
        return False  # "![" opens an image
    abbreviated = _ABBREVIATION.search(left[-24:]) and not _LETTERED.search(left[-32:])
    if _BOUNDARIES["lowercase_word"].match(right) and not left.endswith(("?", "!")):
        name = _BOUNDARIES["lowercase_name"].match(right)
        named = name is not None and name[0] not in STOP_WORDS
        return named and not abbreviated and _BOUNDARIES["whole_word"].search(left) is not None
    if _BOUNDARIES["before_number"].search(left) and right[0].isdigit():
        return False
    if re.search(r"(?:^|\s)\(?\d{1,2}[.)]$", left) and len(left) <= 4:
        return False  # "1." at the start of a passage is a list number
    return not abbreviated


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without surrounding whitespace; empty if it contains only whitespace."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def replace_spans(
    text: str, edits: Iterable[tuple[int, int, str]], kept: Callable[[str], str] = lambda words: words
) -> str:
    """Replace the words at these ordered, disjoint spans, and apply `kept` to the rest of the text."""
    pieces: list[str] = []
    done = 0
    for start, end, words in edits:
        pieces += [kept(text[done:start]), words]
        done = end
    return "".join([*pieces, kept(text[done:])])


def is_context_dependent(sentence: str) -> bool:
    """Whether a sentence depends on the previous one: "This", "However, it", "The latter" ..."""
    return _LEANS.match(sentence) is not None

"""Recognises captions of figures and tables, and splits them into panels."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from ..text.sentences import sentences_between

Span = tuple[int, int]

PANEL_CHARACTERS: Final = 1_200  # a longer panel is split into its sentences
_NUMBER = r"(?:[A-Z]{0,2}[\s.-]?\d{1,3}(?:\.\d{1,2})?[A-Za-z]?|[IVX]{1,4})"
_MARKS = r"[\s*_>]{0,8}"
_KIND = (
    r"(?:(?:Supplementary|Supplemental|Supporting|Extended\sData|Additional|Appendix)\s)?"
    r"(?P<kind>Figure|FIGURE|Fig|FIG|Table|TABLE|Tab|Box|Scheme|Chart|Plate|Algorithm|Video|Movie)s?\.?"
)
_NUMBERED = re.compile(
    rf"{_MARKS}(?:{_KIND}\s?{_NUMBER}|S\d{{1,2}}\s(?P<later>Fig|Figure|Table|Video))"
    rf"{_MARKS}(?:[.:|\u2013\u2014]|\s(?=\*{{0,2}}[A-Z(\u201c\"]))"
)
_PANDOC_TABLE = re.compile(r"[ \t]{0,6}(?:Table)?:[ \t]+(?=\S)")
_OPENING = re.compile(
    r"""(?:(?<=[.;:!?,)*_"\u201d\u2019][ \n])|(?<=[.;:!?)*_"\u201d\u2019][ \n]{2})|(?<=\n)|(?<=\A)|(?<=\sand\s))
    (?:
      [*_]{0,3}\\?\([*_]{0,3}(?P<round>[A-Za-z])(?:[*_]{0,3}\s?(?:[,\u2013&-]|and|to)\s?[*_]{0,3}(?P<round_to>[A-Za-z]))?[*_]{0,3}\\?\)[*_]{0,3}
        (?=[:.,]?\s+[^\s,.;)])
    | [*_]{1,3}\(?(?P<bold>[A-Za-z])(?:\s?[,\u2013&-]\s?(?P<bold_to>[A-Za-z]))?[).:,]?[*_]{1,3}[).:,|]?(?=\s+[^\s,.;)])
    | (?P<plain>[A-Za-z])(?:\s?[,\u2013-]\s?(?P<plain_to>[A-Za-z]))?(?:\)|[.,:])(?=\s+[^\s,.;)])
    )""",
    re.VERBOSE,
)
_SECOND_PANEL = re.compile(r"\([*_]{0,3}B|[*_(]B[).:,*_]|(?m:^B[).:,])|[.;] B[).:,]")
_FIRST = re.compile(r"[*_]{0,3}\\?\([*_]{0,3}[Aa][*_]{0,3}\\?\)[*_]{0,3}(?=\s+[^\s,.;)])")


def caption_kind(paragraph: str) -> str:
    """ "table", "figure", or empty if a paragraph is not a caption."""
    if _PANDOC_TABLE.match(paragraph):
        return "table"
    found = _NUMBERED.match(paragraph)
    if not found:
        return ""
    kind = found.group("kind") or found.group("later")
    return "table" if kind.lower().startswith("tab") else "figure"


def caption_label(paragraph: str) -> int:
    """The length of a caption's label, such as "Figure 2."."""
    found = _NUMBERED.match(paragraph) or _PANDOC_TABLE.match(paragraph)
    return found.end() if found else 0


def cut_caption(text: str, start: int, end: int) -> list[Span]:
    """The spans of the panels in `text[start:end]` with their descriptions; text before them, captions without panels
    and very long panels are split into sentences."""
    begins = panel_starts(text[start:end]) or [end - start]
    label = caption_label(text[start:end])
    if text[start + label : start + begins[0]].strip(" *_\n"):
        spans = list(sentences_between(text, start + label, start + begins[0]))
        spans[:1] = [(start, stop) for _, stop in spans[:1]]  # punctuation alone is not a sentence
    else:  # "Fig. 5: a, map of ..." has no words before its panels
        spans, begins = [], [0, *begins[1:]]
    for left, right in pairwise([*begins, end - start]):
        whole = _trimmed(text, start + left, start + right)
        if whole:
            spans += [whole] if right - left <= PANEL_CHARACTERS else list(sentences_between(text, *whole))
    return spans


def panel_starts(caption: str) -> list[int]:
    """The starts of a caption's panels, in order; empty if fewer than two have the same notation."""
    runs = [_run(caption, manner) for manner in ("round", "bold", "plain")]
    best = max(runs, key=len)
    return best if len(best) > 1 else []


def is_panelled(paragraph: str) -> bool:
    """Whether an unnumbered paragraph is a caption nevertheless: it or its sentences open with panels (A), (B)."""
    if not _SECOND_PANEL.search(paragraph):
        return False
    begins = panel_starts(paragraph)
    return len(begins) > 1 and re.match(r"[*_\\]{0,4}\(?[*_]{0,3}A\b", paragraph[begins[0] :]) is not None


def _run(caption: str, manner: str) -> list[int]:
    """The longest run of panels in the same notation with consecutive letters."""
    found: list[tuple[int, str, str]] = []
    for match in _OPENING.finditer(caption):
        letter = match.group(manner)
        if letter:
            found.append((match.start(), letter, match.group(f"{manner}_to") or letter))
    taken: list[tuple[int, str, str]] = []
    best: list[int] = []
    for panel in found:
        if taken and ord(panel[1]) == ord(taken[-1][2]) + 1:
            taken.append(panel)
        elif not taken or panel[1] in "Aa":
            taken = [panel]
        if len(taken) > len(best):
            best = [place for place, _, _ in taken]
    if manner == "round" and len(found) and found[0][1] in "Bb":
        # "Distributions of (A) the sites ...; (B) the genes ..."
        first = _FIRST.search(caption, 0, found[0][0])
        run = _following(found)
        return [first.start(), *run] if first else (best or run)
    return best


def _following(found: list[tuple[int, str, str]]) -> list[int]:
    run = [found[0]]
    for panel in found[1:]:
        if ord(panel[1]) == ord(run[-1][2]) + 1:
            run.append(panel)
    return [place for place, _, _ in run]


def _trimmed(text: str, start: int, end: int) -> Span | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None

"""Classifies paragraphs: boilerplate, reference list entries, headings, and captions with their panels."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from ..text.sentences import sentences_between, trim_span
from ..text.words import read_rules
from .types import Span

PARAGRAPH_RULES: Final = read_rules(__file__, "paragraph_rules")
_ADDRESS = re.compile(PARAGRAPH_RULES["address"], re.IGNORECASE)  # bounded: 1,500 characters
_FURNITURE = re.compile(PARAGRAPH_RULES["boilerplate"], re.VERBOSE | re.IGNORECASE)  # bounded: 1,500 characters
_NOTE_MARK = re.compile(
    r"\s*(?:\^[^\s^]{1,10}\^|<sup>[^<>]{1,10}</sup>|\[\^[^\[\]]{1,20}\]:|\\?[*\u2020\u2021\u00a7]{1,3})\s*"
)
_NUMBER = re.compile(r"\s*(?:\d{1,4}[.)]|\[\d{1,4}\]|\\\[\d{1,4}\\\]|[-*+\u2022])\s+")
_DEFINITION = re.compile(r"\s*\[(?!\^)[^\[\]\n]{1,200}\]:\s*\S+")
_SHORT_NAMES, _FULL_NAMES = (re.compile(PARAGRAPH_RULES[name]) for name in ("short_names", "full_names"))
_YEAR: Final = re.compile(r"(?<!\d)(?:19|20)\d\d[a-z]?(?!\d)")
_PLACE: Final = re.compile(PARAGRAPH_RULES["place"], re.IGNORECASE)
_LONGEST = 1_500  # characters per reference
_HEADING_WORDS = 8
_ENDS = re.compile(
    r"[.?!:;,)\]\u2026*_|=\u201d\"](?:\^[^\s^]{1,20}\^|<sup>[^<>]{1,20}</sup>|\s?\[[^\[\]]{1,80}\]){0,3}\s*$"
)


def is_boilerplate(line: str) -> bool:
    """Whether a line or sentence is publication boilerplate: journal data, licence, page number."""
    line = line[:_LONGEST]
    mark = _NOTE_MARK.match(line)
    body = line[mark.end() :] if mark else line
    return bool(_FURNITURE.match(body) or _ADDRESS.fullmatch(body))


def is_reference(entry: str) -> bool:
    """Whether a paragraph or list item is an entry of the reference list, or a link target."""
    if _DEFINITION.match(entry):
        return True
    if len(entry) > _LONGEST:
        return False
    numbered = _NUMBER.match(entry)
    body = entry[numbered.end() :] if numbered else entry
    dated = _YEAR.search(body)
    return bool(dated and (_FULL_NAMES.match(body) or (_SHORT_NAMES.match(body) and _PLACE.search(body))))


def is_lone_heading(paragraph: str) -> bool:
    """Whether a one-line paragraph is an unmarked heading: bold, or a few words without a final stop."""
    line = paragraph.strip()
    if "\n" in line or not line:
        return False
    words = line.split()
    if len(line) > 2 and line.startswith(("**", "__")) and line.endswith(("**", "__", "**.", "**:")):
        inner = line.strip("*_.: ")
        return len(words) <= _HEADING_WORDS + 4 and "**" not in inner and "__" not in inner
    first = line.lstrip('"\u201c(*_')[:1]
    return len(words) <= _HEADING_WORDS and (first.isupper() or first.isdigit()) and not _ENDS.search(line)


PANEL_CHARACTERS: Final = 1_200  # a longer panel is split into its sentences
_CAPTION_NUMBER = r"(?:[A-Z]{0,2}[\s.-]?\d{1,3}(?:\.\d{1,2})?[A-Za-z]?|[IVX]{1,4})"
_MARKS = r"[\s*_>]{0,8}"
_KIND = (
    r"(?:(?:Supplementary|Supplemental|Supporting|Extended\sData|Additional|Appendix)\s)?"
    r"(?P<kind>Figure|FIGURE|Fig|FIG|Table|TABLE|Tab|Box|Scheme|Chart|Plate|Algorithm|Video|Movie)s?\.?"
)
_NUMBERED = re.compile(
    rf"{_MARKS}(?:{_KIND}\s?{_CAPTION_NUMBER}|S\d{{1,2}}\s(?P<later>Fig|Figure|Table|Video))"
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


def split_caption(text: str, start: int, end: int) -> list[Span]:
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
        whole = trim_span(text, start + left, start + right)
        if whole[0] < whole[1]:
            spans += [whole] if right - left <= PANEL_CHARACTERS else list(sentences_between(text, *whole))
    return spans


def panel_starts(caption: str) -> list[int]:
    """The starts of a caption's panels, in order; empty if fewer than two have the same notation."""
    runs = [_run(caption, manner) for manner in ("round", "bold", "plain")]
    best = max(runs, key=len)
    return best if len(best) > 1 else []


def is_panelled(paragraph: str) -> bool:
    """Whether an unnumbered paragraph is still a caption, because it or its sentences open with panels (A), (B)."""
    if not _SECOND_PANEL.search(paragraph):
        return False
    begins = panel_starts(paragraph)
    return len(begins) > 1 and re.match(r"[*_\\]{0,4}\(?[*_]{0,3}A\b", paragraph[begins[0] :]) is not None


def _run(caption: str, manner: str) -> list[int]:
    """The longest run of panels in the same notation with consecutive letters."""
    found = [
        (match.start(), letter, match.group(f"{manner}_to") or letter)
        for match in _OPENING.finditer(caption)
        if (letter := match.group(manner))
    ]
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
        run = [found[0]]
        for panel in found[1:]:
            if ord(panel[1]) == ord(run[-1][2]) + 1:
                run.append(panel)
        places = [place for place, _, _ in run]
        return [first.start(), *places] if first else (best or places)
    return best

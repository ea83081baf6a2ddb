"""Formats a paper's authors for use in a sentence: "Lee", "Lee and Gitter", "Lee et al."."""

from __future__ import annotations

import re

from .types import Paper

_TITLE_WORDS = 6
_PARTICLES = frozenset({"van", "von", "der", "den", "de", "del", "della", "di", "da", "du", "la", "le", "ter", "ten"})
_SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv)\.?$", re.IGNORECASE)
_TITLE_BREAK = re.compile(r"(?<!\s)(?:\s*+[:?!.]\s|\s++[\u2013\u2014-]\s)")


def family_name(author: str) -> str:
    """The family name of a display name, with its particles ("Ludwig van Beethoven" -> "van Beethoven").

    A corporate author in braces ("{The ENCODE Consortium}") is a single name and returned whole.
    """
    name = author.strip()
    if name.startswith("{") and name.endswith("}"):
        return name[1:-1].strip()
    if "," in name:
        head, _, rest = name.partition(",")
        if not _SUFFIX.match(rest.strip()):
            return head.strip()
        name = head
    words = name.split()
    while len(words) > 1 and _SUFFIX.match(words[-1]):
        words.pop()
    start = len(words) - 1
    while start > 1 and words[start - 1].lower() in _PARTICLES:
        start -= 1
    return " ".join(words[max(start, 0) :])


def in_text_name(paper: Paper) -> str:
    """The name of the paper in a sentence: its authors, or its quoted short title if it has none."""
    families = paper.family_names or tuple(family_name(author) for author in paper.authors)
    all_names = [name.strip("{} ") for name in families if name.strip("{} ")]
    names = [name for name in all_names if name.lower() != "others"]
    if not names:
        return f"\u201c{short_title(paper)}\u201d"
    if len(all_names) > 2 or len(names) < len(all_names):
        return f"{names[0]} et al."
    return " and ".join(names)


def speaks_as_one(paper: Paper) -> bool:
    """Whether a verb after `in_text_name` is singular: one author, or a title."""
    names = paper.family_names or tuple(family_name(author) for author in paper.authors)
    return len([name for name in names if name.strip("{} ")]) < 2


def short_title(paper: Paper) -> str:
    """The title up to its first punctuation break, at most six words; the key if there is no title."""
    title = _TITLE_BREAK.split(paper.title.strip(), maxsplit=1)[0].strip()
    words = title.split()
    if not words:
        return paper.key
    return " ".join(words) if len(words) <= _TITLE_WORDS else " ".join(words[:_TITLE_WORDS]) + " \u2026"

"""Classifies the sections of a paper by their headings and parent headings.

An unambiguous title ("Methods", "Results") decides by itself, a keyword in a title only if the parent section is not
classified: "Evaluation of model accuracy" inside "Materials and Methods" is method. Sections that are not statements of
the paper and must not be quoted (reference lists, contributor lists, letters to and from reviewers, file lists) are not
searchable, nor is anything below them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..text.words import one_line, one_of, read_rules, without_accents
from .types import Category

_AND = re.compile(r"(?<!\s)\s++(?:und|et|y|e|en)\s++|[与和及と]")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# "一、引言", "第一章 绪论", "1.2方法"
_COUNTED = re.compile(r"^(?:第?[一二三四五六七八九十\d]+[章节節]\s*|[一二三四五六七八九十]+[、.．]\s*|[\d.．]+\s*)")


def _fold(text: str) -> str:
    return without_accents(one_line(text).casefold().replace("’", "'"))


# "summary" is one word in these languages for the abstract before the text and the summary after it.
_ENGLISH: Final[Mapping[str, str]] = {
    _fold(phrase): line.partition("\t")[0]
    for line in Path(__file__).with_name("translated_headings.tsv").read_text(encoding="utf-8").splitlines()
    for phrase in line.partition("\t")[2].split(",")
}


def translate_heading(title: str) -> str | None:
    """The English name of a standard heading in another language, or of two joined ones; None for any other.

    `title` has no numbering.
    """
    text = _fold(title)
    if _EAST_ASIAN.search(text):
        text = re.sub(r"\s+", "", _COUNTED.sub("", text))
    if text in _ENGLISH:
        return _ENGLISH[text]
    first, *others = _AND.split(text, maxsplit=1)
    if not others or first not in _ENGLISH:
        return None
    return " and ".join([_ENGLISH[first], *(_ENGLISH.get(other, other) for other in others)])


@dataclass(frozen=True, slots=True)
class SectionClass:
    """The classification of a section; `appended` is true for supplements, appendices and everything inside them."""

    category: Category
    searchable: bool = True
    appended: bool = False


_TITLES: Final = read_rules(__file__, "section_titles")
_LETTERS, _UNSEARCHABLE, _TABLES, _APPENDED = (
    one_of(_TITLES[name]) for name in ("letters", "unsearchable", "tables", "appended")
)
_STRONG: Final = {Category[name.upper()]: one_of(titles) for name, titles in _TITLES["strong"].items()}
_WEAK: Final = {
    Category[name.upper()]: re.compile(rf"^(?:{'|'.join(words)})\b|\b(?:{'|'.join(words)})$")
    for name, words in _TITLES["weak"].items()
}
_WEAK_WORDS = 5

_MOST_CHARACTERS = 300  # of a heading; longer ones say nothing about their section
# A standard part of a paper may be nested in another part only near the top ("Case study > Methods").
_TOP_LEVELS = 2
_INHERITING = frozenset({Category.INTRODUCTION, Category.METHOD, Category.EVALUATION, Category.CONCLUSION})


def plain_title(title: str) -> str:
    """A heading in lower case and, if standard, in English; without numbering, attributes, emphasis, final stop."""
    text = re.sub(r"\{[^{}]*\}\s*$", "", title[:_MOST_CHARACTERS])
    text = re.sub(r"\[([^\[\]]*)\]\([^()]*\)", r"\1", text)
    text = re.sub(r"[*_`\\]", "", text).replace("\u2605", " ").replace("\u2019", "'")
    text = re.sub(r"\s+", " ", text.replace("&", " and ")).strip().lower()
    text = re.sub(r"^(?:section |chapter )?(?:\d+(?:\.\d+)*\.?|[ivx]{1,5}\.|[a-z]\.[\d.]*)\s+", "", text)
    text = text.strip(" .:;-\u2013\u2014")
    return translate_heading(text) or text


def is_reviewer_letter(title: str) -> bool:
    """Whether the heading begins letters to or from reviewers, which include everything that follows."""
    return bool(_LETTERS.search(plain_title(title)))


def standard_section(title: str) -> Category | None:
    """The category of a title that names a standard part of a paper, else None."""
    plain = plain_title(title)
    return next((category for category, pattern in _STRONG.items() if pattern.search(plain)), None)


def classify_section(
    title: str, level: int, above: Sequence[SectionClass] = (), *, body_begun: bool = False, has_table: bool = False
) -> SectionClass:
    """Category and searchability of a section.

    `level` is 1 for the highest heading; `above` are the classes of its parent sections, outermost first. With
    `body_begun` an introduction, method or result came before: "Summary" then means a conclusion, else the abstract.
    `has_table` is true if a table directly follows the heading.
    """
    plain = plain_title(title)
    parent = above[-1] if above else None
    if parent is not None and not parent.searchable:
        return parent
    in_abstract = parent is not None and parent.category is Category.ABSTRACT
    listed = _UNSEARCHABLE.search(plain) and not (has_table and _TABLES.search(plain))
    if listed or _LETTERS.search(plain) or (in_abstract and plain.startswith("supplement")):
        return SectionClass(Category.OTHER, searchable=False)
    if in_abstract:
        return SectionClass(Category.ABSTRACT)
    if _APPENDED.search(plain) or (parent is not None and parent.appended):
        return SectionClass(Category.OTHER, appended=True)
    strong = standard_section(plain)
    if plain in {"summary", "overview"}:
        strong = Category.CONCLUSION if body_begun else Category.ABSTRACT
    above_it = parent.category if parent is not None else Category.OTHER
    if above_it not in _INHERITING:
        if strong is not None and not (strong is Category.ABSTRACT and body_begun):
            return SectionClass(strong)
        words = plain if len(plain.split()) <= _WEAK_WORDS and " of " not in plain else ""
        return SectionClass(next((category for category, pattern in _WEAK.items() if pattern.search(words)), above_it))
    nested = strong is Category.RELATED_WORK or (strong is Category.CONCLUSION and above_it is Category.EVALUATION)
    own = nested or (strong is not Category.ABSTRACT and level <= _TOP_LEVELS)
    return SectionClass(strong if own and strong is not None else above_it)

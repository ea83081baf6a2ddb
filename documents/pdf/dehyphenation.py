"""Repairs words from a PDF: hyphens at line ends, lost ligatures, compatibility characters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SPACE = 0.16  # times the letter size
_LIGATURE = (0.42, 1.0)  # times the letter size: the width of the gap that a lost ligature leaves
_WIDE_PAIR = 0.63  # a wider gap was "ff"
_THREE_LETTERS = 0.8  # a wider gap was a three-letter ligature
_LOST_ENOUGH = 3000  # letters: any text of this length in a European language contains "fi"
_LIGATURES = re.compile("f[fil]")
_LEAST_LIGATURES = 0.0003  # of the letters; papers have 0.003, those that lost them only a stray word in another font
_LIGATURE_IN = re.compile("ff[il]|f[fil]")
_MENDED = 5  # minimum letters of a damaged word repaired from the paper's own words; a shorter one may be intact
_WHOLE = frozenset({"owing", "lament", "laments"})  # valid words next to "flowing" and "filament"
_FL = re.compile(r"(?:[ouy]|a[gmst]|e[cx](?!i?ent)|ict|i[gp])")
_TIGHT = ("-", "\u2010", "/")
_LONGEST_WORD = 80
_PART = 3  # minimum letters of a part that counts as a word


def plain(text: str) -> str:
    """NFKC, without soft hyphens."""
    return unicodedata.normalize("NFKC", text.replace("\u00ad", ""))


def lacks_ligatures(texts: Iterable[str]) -> bool:
    """Whether the font has no mapping for ligatures, so that "profiling" is extracted as "pro" and "ling"."""
    letters = found = 0
    for text in texts:
        letters += sum(character.isalpha() for character in text)
        found += len(_LIGATURES.findall(unicodedata.normalize("NFKC", text)))
    return letters >= _LOST_ENOUGH and found < _LEAST_LIGATURES * letters


def find_damaged_words(texts: Iterable[str]) -> dict[str, str]:
    """Words that lost a ligature without a gap ("dierent"), mapped to their intact form elsewhere in the text."""
    words = {word.casefold() for text in texts for word in _WORD.findall(text)}
    whole: dict[str, set[str]] = {}
    for word in words:
        for ligature in _LIGATURE_IN.finditer(word):
            damaged = word[: ligature.start()] + word[ligature.end() :]
            long_enough = len(damaged) >= _MENDED or (len(damaged) > 2 and not re.search("[aeiouy]", damaged))
            if damaged in words and damaged not in _WHOLE and long_enough:
                whole.setdefault(damaged, set()).add(word)
    return {damaged: intact.pop() for damaged, intact in whole.items() if len(intact) == 1}


def repair_words(text: str, repairs: Mapping[str, str]) -> str:
    """The text with the words of `find_damaged_words` repaired."""

    def whole(match: re.Match[str]) -> str:
        word = match.group()
        found = repairs.get(word.casefold())
        return word if found is None else found.capitalize() if word[0].isupper() else found

    return _WORD.sub(whole, text) if repairs else text


def join_runs(left: str, right: str, gap: float, lost: bool) -> str:
    """Join two runs of one line; `gap` is the space between them in letter sizes."""
    if lost and _LIGATURE[0] <= gap <= _LIGATURE[1] and left.strip()[-1:].isalpha() and right.strip()[:1].islower():
        # The most likely lost ligature, by the width of the gap and the following letters.
        if gap > _THREE_LETTERS:
            return f"{left}{'ffl' if right[0] == 'i' else 'ffi'}{right}"
        if gap > _WIDE_PAIR or right[0].isspace():
            return f"{left}ff{right}"
        return f"{left}{'fl' if _FL.match(right) else 'fi'}{right}"
    if left[-1:].isspace() or right[:1].isspace() or gap < _SPACE:
        return left + right
    return f"{left} {right}"


class Hyphens:
    """Joins lines; a hyphen at a line end is kept if the word occurs with it elsewhere in the text."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: Counter[str] = Counter()
        for line in lines:
            self._words.update(word.casefold() for word in _WORD.findall(re.sub(r"(?<!\S)\S+-$", "", line.rstrip())))

    def join(self, left: str, right: str) -> str:
        """Join two lines of one paragraph."""
        # Only the end is examined, since the paragraph grows line by line.
        head = re.search(r"([^\W\d_]+(?:-[^\W\d_]+)*)[-\u2010]$", left[-_LONGEST_WORD:])  # bounded: 80 characters
        tail = re.match(r"[^\W\d_]+(?:-[^\W\d_]+)*", right)
        if head is None or tail is None:
            tight = left.endswith(_TIGHT) and right[:1].isalnum()
            return left + right if tight else f"{left} {right}"
        first, second = head.group(1).casefold(), tail.group().casefold()
        if right[:1].isupper() or f"{first}-{second}" in self._words:
            return left + right
        parts = (first.rpartition("-")[2], second.partition("-")[0])
        compound = all(len(part) >= _PART and self._words[part] > 0 for part in parts)
        return left + right if compound and first + second not in self._words else left[:-1] + right

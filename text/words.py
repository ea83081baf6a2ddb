"""Splits a text into words, knows stop words and generic words, and normalises wording."""

from __future__ import annotations

import html
import json
import re
import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_DASHES: Final = re.compile("[\u2010-\u2015]")
# Pure punctuation. Signs inside numbers (0.95, -1) and names (C++, C#, 50%) are significant.
_MARKS: Final = re.compile(r"[.,:](?![0-9])|[;!?\"“”„«»‘’'`()\[\]{}…]|(?<=[^\W\d])-(?=[^\W\d])")
_LONGEST_CUT: Final = 30  # characters; a shorter word is left out rather than cut
_NO_CODE_POINT: Final = re.compile(r"&#0*+[1-9]\d{7,}+;?")


def one_line(text: str) -> str:
    """`text` with every run of white space folded to a space."""
    return " ".join(text.split())


def close_gaps(text: str) -> str:
    """`text` on one line, without spaces before punctuation, which a removed citation leaves behind."""
    return re.sub(r" ([.,;:!?])", r"\1", one_line(text))


def shorten(text: str, most: int = 80) -> str:
    """Return `text` on one line of at most `most` characters; a longer one ends with an ellipsis, behind a word."""
    flat = one_line(text)
    if len(flat) <= most:
        return flat
    space = flat.rfind(" ", max(0, most - _LONGEST_CUT), most)
    return f"{flat[: most - 1 if space < 1 else space]}\u2026"


def unescape_html(text: str) -> str:
    """`text` with HTML entities decoded; a numeric entity that is not a character becomes U+FFFD."""
    return html.unescape(_NO_CODE_POINT.sub("\ufffd", text))


def without_accents(text: str) -> str:
    """`text` in compatibility form (NFKD), without its accents."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text) if not unicodedata.combining(sign))


def letters_of(text: str) -> str:
    """The letters and digits of `text` in one case, without ligatures and accents."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text.casefold())))


def plain_wording(query: str) -> str:
    """`query` in lower case, single-spaced, without punctuation; punctuation alone stays, equal only to itself."""
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", query)).casefold()
    return " ".join(_MARKS.sub(" ", text.replace("'s", "s").replace("’s", "s")).split()) or query


_MOSTLY = 0.7


def is_latin(text: str) -> bool:
    """Whether most letters of a text are Latin; true for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return latin >= _MOSTLY * len(letters)


def foreign_language(text: str) -> str:
    """The language of a text that is clearly not English, judged by its most frequent words; empty otherwise."""
    if not is_latin(text):
        return "a language other than English"
    words = re.findall(r"[^\W\d_]+", text.lower())
    known = read_rules(__file__, "wordings")["function_words"]
    counts = {name: sum(word in of.split() for word in words) for name, of in known.items()}
    name = max(counts, key=lambda name: counts[name])
    enough = 1 if "?" in text else 2
    return name if counts[name] >= enough + sum(word in STOP_WORDS for word in words) else ""


def read_words(name: str) -> frozenset[str]:
    """The words of a list in this folder."""
    return frozenset(Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").split())


@lru_cache(maxsize=16)
def read_rules(module: str, name: str) -> dict[str, Any]:
    """The rules in the TOML file `name` beside a module, with each `<<part>>` of a pattern replaced from `parts`."""
    import tomllib  # lazily: some commands read no rules

    rules = tomllib.loads(Path(module).with_name(f"{name}.toml").read_text(encoding="utf-8"))
    written = json.dumps(rules)
    for part, pattern in reversed(rules.pop("parts", {}).items()):
        written = written.replace(f"<<{part}>>", json.dumps(pattern)[1:-1])
    return dict(json.loads(written))


def one_of(patterns: Iterable[str], flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Join patterns into one that matches wherever any of them does."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)


STOP_WORDS = read_words("stop_words")
# Words common to papers of every field. One of them alone is neither a theme nor a reason to cite.
GENERIC_WORDS = read_words("generic_words")

_LONGEST = 60  # letters; anything longer is not an English word
_WORD = re.compile(r"(?<![\w-])[^\W\d_](?:[\w'’]|[-‐](?=\w))*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text, normalised, at its position; `joined` if only blanks separate it from the word before."""

    form: str
    surface: str
    start: int
    end: int
    joined: bool


_stemmers: Final = threading.local()  # a stemmer keeps the word that it works on


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The lower-case stem of an English word; other words are returned unchanged."""
    lowered = word.lower().replace("’", "'").removesuffix("'s")
    if len(lowered) > _LONGEST or not lowered.isascii() or any(character.isdigit() for character in lowered):
        return lowered
    if not hasattr(_stemmers, "english"):
        import snowballstemmer  # lazy: it loads the stemmers of thirty languages

        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(lowered))


def theme_form(word: str) -> str:
    """The stem, except for nouns in -ity and -ness, whose stem has another meaning ("essential" for "essentiality")."""
    lowered = word.lower().replace("’", "'").removesuffix("'s")
    if lowered.endswith(("ity", "ness")):
        return lowered
    if lowered.endswith("ities"):
        return f"{lowered[:-3]}y"
    return stem(lowered)


@lru_cache(maxsize=1)
def _generic_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in GENERIC_WORDS)


def split_words(text: str) -> list[Word]:
    """All words of a text in order; numbers and punctuation separate words."""
    found: list[Word] = []
    end_before = -1
    for match in _WORD.finditer(text):
        joined = end_before >= 0 and text[end_before : match.start()].isspace()
        surface = match.group()
        found.append(Word(theme_form(surface), surface, match.start(), match.end(), joined))
        end_before = match.end()
    return found


def is_stop(word: Word) -> bool:
    """Whether a word is a stop word or a single letter."""
    return word.surface.lower() in STOP_WORDS or len(word.surface) < 2


@lru_cache(maxsize=65536)
def is_generic(form: str) -> bool:
    """Whether a word, in any of its forms, is common to papers of every field."""
    return stem(form) in _generic_stems()

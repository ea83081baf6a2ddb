"""Makes citation keys from Better BibTeX patterns such as `auth.lower + year + veryshorttitle.lower`.

A pattern is a sum of terms; a term is a quoted text or a function, with arguments and filters after it. `FUNCTIONS` and
`FILTERS` list everything supported; anything else is an error that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import ConfigurationError
from ..text.words import without_accents

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z]\w*)|(?P<number>\d{1,4})|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<sign>[+.,()]))"
)
# Better BibTeX skips such words in titles.
_SKIPPED: Final = frozenset(
    "a ab aboard about above across after against al along amid among an and anti around as at before behind below "
    "beneath beside besides between beyond but by d da das de del dell dello dei degli della dem den der des despite "
    "die do down du during ein eine einem einen einer eines el en et except for from gli i il in inside into is l la "
    "las le les like lo los near nor of off on onto or over past per plus round save since so some sur than the "
    "through to toward towards un una unas under underneath une unlike uno unos until up upon versus via von while "
    "with within without yet zu zum".split()
)
_PLAIN: Final = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "AE", "đ": "d"})
_UNSAFE = re.compile(r"[^A-Za-z0-9:_-]+")
_HELP: Final = "An example: auth.lower + year + veryshorttitle.lower"
_LONGEST: Final = 120

Argument = str | int


@dataclass(frozen=True, slots=True)
class KeyFields:
    """The fields from which a key is made."""

    families: Sequence[str]
    title: str
    year: int | None
    venue: str = ""
    kind: str = ""


def _authors(fields: KeyFields, count: int, letters: int, start: int = 0) -> str:
    return "".join(_joined(family)[: letters or None] for family in fields.families[start : start + count])


def _title_words(fields: KeyFields, count: int, capitals: int) -> str:
    words = [word for word in _words(fields.title) if word.casefold() not in _SKIPPED] or _words(fields.title)
    taken = words[:count]
    return "".join(_capital(word) if place < capitals else word for place, word in enumerate(taken))


FUNCTIONS: Final[Mapping[str, tuple[tuple[int, ...], Callable[..., str]]]] = {
    # name: (defaults of its numeric arguments, its result)
    "auth": ((0, 1), lambda fields, letters, which: _authors(fields, 1, letters, max(which, 1) - 1)),
    "authors": ((0,), lambda fields, count: _authors(fields, count or len(fields.families), 0)),
    "authorLast": ((), lambda fields: _joined(fields.families[-1]) if fields.families else ""),
    "authEtAl": (
        (),
        lambda fields: _authors(fields, 1, 0) + "EtAl" if len(fields.families) > 2 else _authors(fields, 2, 0),
    ),
    "title": ((), lambda fields: "".join(map(_capital, _words(fields.title)))),
    "shorttitle": ((3, 0), _title_words),
    "veryshorttitle": ((1, 0), _title_words),
    "year": ((), lambda fields: str(fields.year or "")),
    "shortyear": ((), lambda fields: str(fields.year or "")[-2:]),
    "journal": ((), lambda fields: " ".join(_words(fields.venue))),
    "type": ((), lambda fields: fields.kind),
}
FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "lower": lambda text: text.lower(),
    "upper": lambda text: text.upper(),
    "capitalize": lambda text: _capital(text),
    "alphanum": lambda text: "".join(sign for sign in text if sign.isalnum()),
    "clean": lambda text: _safe(text),
    "fold": lambda text: _fold(text),
    "ascii": lambda text: "".join(sign for sign in _fold(text) if sign.isascii()),
    "abbr": lambda text: "".join(word[0] for word in re.findall(r"[A-Z]?[^\sA-Z]+|[A-Z]", text)),
    "select": lambda text, start=1, count=0: text[max(start - 1, 0) :][: count or None],
    "substring": lambda text, start=1, count=0: text[max(start - 1, 0) :][: count or None],
    "prefix": lambda text, lead="": lead + text if text else "",
    "postfix": lambda text, end="": text + end if text else "",
}


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class _Term:
    source: str | _Call
    filters: tuple[_Call, ...]


class KeyPattern:
    """A parsed pattern; raises `ConfigurationError` if it is invalid."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._terms = _Parser(pattern).terms()

    def key(self, fields: KeyFields, taken: Collection[str] = ()) -> str:
        """The ASCII key for a paper, with the next free letter appended if it is `taken` (ignoring case)."""
        base = _safe("".join(self._value(term, fields) for term in self._terms))[:_LONGEST] or "paper"
        used = {key.casefold() for key in taken}
        number = -1
        while (key := base + _suffix(number)).casefold() in used:
            number += 1
        return key

    def _value(self, term: _Term, fields: KeyFields) -> str:
        value = term.source
        if isinstance(value, _Call):
            defaults, function = FUNCTIONS[value.name]
            value = function(fields, *value.arguments, *defaults[len(value.arguments) :])
        for each in term.filters:
            try:
                value = FILTERS[each.name](value, *each.arguments)
            except TypeError:
                raise _refused(self._pattern, f"{each.name} does not take these arguments") from None
        return value


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(pattern.rstrip()):
            found = _TOKEN.match(pattern, place)
            if found is None or found.lastgroup is None:
                raise _refused(pattern, f"{pattern[place:].strip()[:20]!r} is not understood")
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()

    def terms(self) -> tuple[_Term, ...]:
        terms = [self._term()]
        while self._accept("+"):
            terms.append(self._term())
        if self._tokens:
            raise _refused(self._pattern, f"{self._tokens[0][1]!r} is not expected")
        return tuple(terms)

    def _term(self) -> _Term:
        kind, text = self._next()
        source: str | _Call
        if kind in ("single", "double"):
            source = text
        elif kind == "name":
            source = self._call(text, FUNCTIONS, "function")
            if len(source.arguments) > len(FUNCTIONS[source.name][0]) or any(
                isinstance(argument, str) for argument in source.arguments
            ):
                raise _refused(self._pattern, f"{source.name} does not take these arguments")
        else:
            raise _refused(self._pattern, f"{text!r} is not expected")
        filters = []
        while self._accept("."):
            filters.append(self._call(self._next()[1], FILTERS, "filter"))
        return _Term(source, tuple(filters))

    def _call(self, text: str, known: Mapping[str, object], what: str) -> _Call:
        name = next((one for one in known if one.casefold() == text.casefold()), None)
        if name is None:
            raise _refused(self._pattern, f"there is no {what} {text!r}; there are {', '.join(known)}")
        arguments: list[Argument] = []
        if self._accept("("):
            while not self._accept(")"):
                kind, value = self._next()
                if kind not in ("number", "single", "double"):
                    raise _refused(self._pattern, f"{value!r} is not an argument")
                arguments.append(int(value) if kind == "number" else value)
                self._accept(",")
        return _Call(name, tuple(arguments))

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise _refused(self._pattern, "it ends too early")
        return self._tokens.pop(0)

    def _accept(self, sign: str) -> bool:
        if self._tokens and self._tokens[0] == ("sign", sign):
            self._tokens.pop(0)
            return True
        return False


def _refused(pattern: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"Setting citation_key (CITELOOM_CITATION_KEY): {pattern!r}: {why}.", help=_HELP)


def _suffix(number: int) -> str:
    """Nothing for -1, then a, b ... z, aa, ab ..."""
    text = ""
    while number >= 0:
        number, letter = divmod(number, 26)
        text, number = chr(97 + letter) + text, number - 1
    return text


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=\w)['’-](?=\w)", "", text))


def _joined(family: str) -> str:
    return "".join(_words(family))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _fold(text: str) -> str:
    return without_accents(text.translate(_PLAIN))


def _safe(text: str) -> str:
    return _UNSAFE.sub("", _fold(text)).strip("-:_")

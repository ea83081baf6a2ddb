"""BibTeX details: values and macros, LaTeX accents, author names, rendering of entries."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from .authors import family_name

_MONTHS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
_NEEDS_DECODING = re.compile(r"[\\{}$~%]|--|``|''")
_SIGN = r"[`'^\"~=.]"
_BASE = r"(?:\\[ij](?![A-Za-z])|[A-Za-z])"
_ACCENTED = re.compile(
    rf"\\(?P<sign>{_SIGN})\s*(?:\{{(?P<braced>{_BASE})\}}|(?P<bare>{_BASE}))"
    rf"|\\(?P<name>[cvuHkr])(?:\s*\{{(?P<held>{_BASE})\}}|\s+(?P<after>{_BASE}))"
)
_ACCENTS: Final = MappingProxyType(
    {
        **{"`": "\u0300", "'": "\u0301", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307"},
        **{"c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328", "r": "\u030a"},
    }
)
_ESCAPED = re.compile(r"\\([&%$#_])")
_LETTERS: Final = MappingProxyType(
    dict(zip("ss o O l L ae AE oe OE aa AA".split(), "ß ø Ø ł Ł æ Æ œ Œ å Å".split(), strict=True))
)
_LETTER = re.compile(r"\{\\(ss|[oOlL]|ae|AE|oe|OE|aa|AA)\}")
_HARD = re.compile(r"[\\$]|[?!,]`|,,|<<|>>")  # left to the full decoder
# Titles from publishers' records contain tags, which some programs convert to LaTeX.
_ANGLE = re.compile(r"\\text(less|greater)(?:\{\}|\s+|(?![A-Za-z]))")
_TAG = re.compile(r"</?(?:i|b|u|em|strong|sub|sup|sc|scp|span|p|jats:[\w-]+)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv)\.?$", re.IGNORECASE)


def field_value(raw: str, macros: Mapping[str, str]) -> str:
    """The source text of a field, without its braces or quotes and with macros expanded."""
    parts = _value_parts(raw)
    return "".join(part[1:-1] if _delimited(part) else macros.get(part.lower(), part) for part in parts).strip()


def length_of_value(raw: str, macros: Mapping[str, str]) -> int:
    """The length of `field_value`, which expands a macro each time it is used."""
    return sum(len(part if _delimited(part) else macros.get(part.lower(), part)) for part in _value_parts(raw))


def uses_macros(raw: str) -> bool:
    """Whether a field needs an `@string` of its file; month names are predefined everywhere."""
    bare = [part for part in _value_parts(raw) if not _delimited(part)]
    return any(not part.isdigit() and part.lower() not in _MONTHS for part in bare)


def _delimited(part: str) -> bool:
    return part[:1] in {"{", '"'}


def _value_parts(raw: str) -> Iterator[str]:
    """The parts of a value joined by `#`."""
    depth, quoted, begin = 0, False, 0
    for index, character in enumerate(raw):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == '"' and depth == 0:
            quoted = not quoted
        elif character == "#" and depth == 0 and not quoted:
            yield raw[begin:index].strip()
            begin = index + 1
    last = raw[begin:].strip()
    if last:
        yield last


def readable(latex: str) -> str:
    """A LaTeX value as plain text on one line: accents as letters, no braces or tags, formulas unchanged."""
    text = _TAG.sub("", _ANGLE.sub(lambda match: "<" if match[1] == "less" else ">", latex))
    if _NEEDS_DECODING.search(text):
        quick = _decode_simple(text)
        if quick is not None:
            return quick
        # In LaTeX a bare % begins a comment and a bare & a column, but in a title they are literal.
        text = _decoder()(re.sub(r"(?<!\\)([%&])", r"\\\1", text))
    return " ".join(text.split())


def _decode_simple(latex: str) -> str | None:
    """Decode accents, dashes, quotes and braces like the full decoder; None if the value contains anything else.

    Nearly all values of a library are this simple, and the full decoder takes a second for four thousand of them.
    """
    text = _LETTER.sub(lambda match: _LETTERS[match.group(1)], _ACCENTED.sub(_composed, latex))
    if _HARD.search(_ESCAPED.sub("", text)) or not _balanced(text):
        return None
    for source, shown in (("---", "\u2014"), ("--", "\u2013"), ("``", "\u201c"), ("''", "\u201d"), ("~", " ")):
        text = text.replace(source, shown)
    return " ".join(_ESCAPED.sub(r"\1", re.sub(r"[{}]", "", text)).split())


def _composed(match: re.Match[str]) -> str:
    base = (match["braced"] or match["bare"] or match["held"] or match["after"]).removeprefix("\\")
    return unicodedata.normalize("NFC", base + _ACCENTS[match["sign"] or match["name"]])


def _balanced(text: str) -> bool:
    depth = 0
    for brace in re.findall(r"[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=1)
def _decoder() -> Callable[[str], str]:
    from pylatexenc.latex2text import LatexNodes2Text  # type: ignore[import-untyped]
    from pylatexenc.latexwalker import get_default_latex_context_db  # type: ignore[import-untyped]

    # It logs every command that it cannot convert to the user's terminal.
    logging.getLogger("pylatexenc").addHandler(logging.NullHandler())
    logging.getLogger("pylatexenc").propagate = False
    decoder = LatexNodes2Text(math_mode="verbatim", keep_comments=True)
    # Created once: otherwise it would take half the time of reading a library.
    known = get_default_latex_context_db()
    return lambda latex: str(decoder.latex_to_text(latex, latex_context=known))


def author_names(value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Display names and family names of an author field; "others" is kept for "et al."."""
    display: list[str] = []
    family: list[str] = []
    for name in _split(value, " and "):
        if name.startswith("{") and name.endswith("}") and _matching(name) == len(name) - 1:
            whole = readable(name)
            display.append(whole)
            family.append(whole)
            continue
        parts = [part.strip() for part in _split(name, ",")]
        if len(parts) >= 2 and not _SUFFIX.match(parts[-1]):
            last = readable(parts[0])
            given = " ".join([readable(parts[-1]), last, *(readable(part) for part in parts[1:-1])])
        elif len(parts) >= 3:
            last = readable(parts[0])
            given = " ".join([readable(parts[1]), last, *(readable(part) for part in parts[2:])])
        else:
            given = ", ".join(readable(part) for part in parts)
            words = list(_split(parts[0], " ")) if parts else []
            braced = bool(words) and words[-1].startswith("{")
            last = readable(words[-1]) if braced else family_name(given)
        if given.strip():
            display.append(given.strip())
            family.append(last)
    return tuple(display), tuple(family)


def _split(value: str, separator: str) -> Iterator[str]:
    """Split a value at a separator outside braces; empty parts are dropped."""
    text = re.sub(r"\s+", " ", value).strip()
    depth, begin, index = 0, 0, 0
    while index < len(text):
        if text[index] == "{":
            depth += 1
        elif text[index] == "}":
            depth -= 1
        elif depth == 0 and text[index : index + len(separator)].lower() == separator:
            if text[begin:index].strip():
                yield text[begin:index].strip()
            index += len(separator)
            begin = index
            continue
        index += 1
    if text[begin:].strip():
        yield text[begin:].strip()


def _matching(name: str) -> int:
    """Index of the brace that closes the first one; -1 if none does."""
    depth = 0
    for index, character in enumerate(name):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return index
    return -1


def render_entry(entry_type: str, key: str, fields: Mapping[str, str]) -> str:
    """Render a BibTeX entry; values must be BibTeX source."""
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{entry_type}{{{key},", *lines, "}"])


def as_latex(text: str) -> str:
    """Escape plain text as BibTeX source, so that nothing can end the field."""
    cleaned = re.sub(r"[{}\\]", "", " ".join(text.split()))
    return re.sub(r"([&%$#_])", r"\\\1", cleaned).replace("~", r"\textasciitilde{}").replace("^", r"\^{}")

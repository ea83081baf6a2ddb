"""The small print of BibTeX: values and macros, LaTeX accents, author names, entries written anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from citeloom.documents.authors import family_name

_MONTHS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
_NEEDS_DECODING = re.compile(r"[\\{}$~%]|--|``|''")
_SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv)\.?$", re.IGNORECASE)


def field_value(raw: str, macros: Mapping[str, str]) -> str:
    """The text of a field as it stands in the file: without its braces or quotes, macros filled in."""
    parts = _value_parts(raw)
    return "".join(part[1:-1] if _delimited(part) else macros.get(part.lower(), part) for part in parts).strip()


def uses_macros(raw: str) -> bool:
    """Whether a field needs an `@string` of its file; month names are known to every reader."""
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
    """A LaTeX value as plain text on one line: accents as letters, no braces, formulas as they are."""
    text = latex
    if _NEEDS_DECODING.search(text):
        # A bare % begins a comment in LaTeX but is a per cent sign in every title that has one.
        text = _decoder()(re.sub(r"(?<!\\)%", r"\\%", text))
    return " ".join(text.split())


@lru_cache(maxsize=1)
def _decoder() -> Callable[[str], str]:
    from pylatexenc.latex2text import LatexNodes2Text  # type: ignore[import-untyped]
    from pylatexenc.latexwalker import get_default_latex_context_db  # type: ignore[import-untyped]

    decoder = LatexNodes2Text(math_mode="verbatim", keep_comments=True)
    # Made once: for each value anew it would take half the time of reading a library.
    known = get_default_latex_context_db()
    return lambda latex: str(decoder.latex_to_text(latex, latex_context=known))


def author_names(value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Display names and family names of an author field; "others" stays, so that "et al." can be said."""
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
    """The parts of a value at a separator that stands outside braces; empty ones are left out."""
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
    """Index of the brace that closes the first one; -1 when none does."""
    depth = 0
    for index, character in enumerate(name):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return index
    return -1


def render_entry(entry_type: str, key: str, fields: Mapping[str, str]) -> str:
    """A BibTeX entry; the values are taken as BibTeX source."""
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{entry_type}{{{key},", *lines, "}"])


def as_latex(text: str) -> str:
    """Plain text as BibTeX source: special characters escaped, nothing that could end the field."""
    cleaned = re.sub(r"[{}\\]", "", " ".join(text.split()))
    return re.sub(r"([&%$#_])", r"\\\1", cleaned).replace("~", r"\textasciitilde{}").replace("^", r"\^{}")

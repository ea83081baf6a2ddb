"""Reads the YAML front matter of a markdown paper, leniently and safely."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from ..table_columns import strip_nul

YEAR = re.compile(r"\b(1[5-9]\d\d|20\d\d|21\d\d)\b")
_MOST_CHARACTERS = 200_000
_NULL = frozenset({"~", "null", "Null", "NULL"})
# After a name, in JATS: a note with an address.
_NOTE = re.compile(r"\\?[*<\u2020]|(?:(?:Address )?for )?Correspond(?:ing author|ence)\b[^:]{0,20}:", re.IGNORECASE)
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>{}]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The metadata in a paper's front matter; missing or malformed fields are empty.

    `problem` says why the block could not be read; `hides_code` is true if Quarto hides code cells.
    """

    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    doi: str = ""
    venue: str = ""
    abstract: str = ""
    hides_code: bool = False
    problem: str = ""


def read_front_matter(source: str) -> FrontMatter:
    """Parse metadata from YAML; invalid YAML gives empty metadata that names the problem."""
    if len(source) > _MOST_CHARACTERS:
        return FrontMatter(problem=f"front matter has more than {_MOST_CHARACTERS:,} characters and was not read")
    try:
        # All scalars stay text (else 1:59:59 is a base-60 number of any size), and `<<` merges nothing: merges copy
        # their target, so nested ones could grow exponentially.
        data = yaml.load(source, yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = re.sub(r"\s+", " ", str(error))[:160]
        return FrontMatter(problem=f"front matter is not YAML ({reason})")
    if not isinstance(data, dict):
        return FrontMatter()
    fields = {str(name).lower(): value for name, value in data.items()}
    execute = fields.get("execute")
    return FrontMatter(
        title=_text(fields.get("title")),
        authors=_authors(fields.get("author", fields.get("authors"))),
        year=_year(fields.get("year")) or _year(fields.get("date")) or _year(fields.get("published")),
        doi=find_doi(_text(fields.get("doi"))),
        venue=_text(fields.get("journal")) or _text(fields.get("venue")),
        abstract=_text(fields.get("abstract")),
        hides_code=isinstance(execute, dict) and _text(execute.get("echo")).lower() in ("false", "no", "off"),
    )


def find_doi(text: str) -> str:
    """The DOI in a text or link, in lower case; empty if there is none."""
    match = _DOI.search(text)
    return match.group(0).rstrip(".,;)]").lower() if match else ""


def _text(value: object) -> str:
    if not isinstance(value, str) or value in _NULL:
        return ""
    # YAML can contain NUL characters and lone surrogates, which cannot be stored.
    paragraphs = re.split(r"\n\s*\n", strip_nul(value))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()


def _year(value: object) -> int | None:
    match = YEAR.search(_text(value))
    return int(match.group(1)) if match else None


def _authors(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = "" if value in _NULL else strip_nul(value)
        parts = re.split(r"(?<!\s)(?:\s++and\s++|\s*+;\s*)|\n", value)
        if len(parts) == 1 and value.count(",") > 1:
            parts = value.split(",")
        return tuple(" ".join(part.split()) for part in parts if part.strip())
    names: list[str] = []
    for item in [value] if isinstance(value, dict) else value if isinstance(value, list) else []:
        name = item.get("name", item) if isinstance(item, dict) else item
        shown = _text(name)
        if isinstance(name, dict):
            given, family = name.get("given", name.get("first", "")), name.get("family", name.get("last", ""))
            shown = f"{_text(given)} {_text(family)}".strip() or _text(name.get("literal"))
        shown = _NOTE.split(shown.lstrip("\\* "))[0].rstrip(" ,;")
        names += [shown] if shown else []
    return tuple(names)

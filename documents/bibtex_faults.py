"""Says what is wrong with the syntax of a BibTeX file where it would otherwise lose fields or entries in silence.

BibTeX reads on where a comma, a brace or an @ is missing: the next field becomes part of a value, or of a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..text.words import shorten

if TYPE_CHECKING:
    from bibtexparser.model import Field

_TOKEN: Final = re.compile(r"[{}\"#=,]|(?:[^\s{}\"#=,\\]|\\.)+", re.DOTALL)
_FIELD: Final = re.compile(r"\s*(?P<name>[A-Za-z][\w-]*)\s*=\s*")
_FIELD_LINE: Final = re.compile(r"[ \t]*(?P<name>[A-Za-z][\w-]*)[ \t]*=")
_HEAD: Final = re.compile(r"@\s*\w+\s*[{(]\s*(?P<key>[^\s,{}()=]*)\s*(?P<sign>[=\w]?)")
_LAST_NAME: Final = re.compile(r",\s*+(?P<name>[A-Za-z][\w-]*+)\s*+\}?\Z")
_NO_AT: Final = re.compile(
    r"(?mi)^[ \t]*(?P<kind>article|book|booklet|collection|dataset|in(?:book|collection|proceedings)|manual|misc|online"
    r"|proceedings|report|software|techreport|(?:masters|phd)?thesis|unpublished)[ \t]*[{(][ \t]*"
    r"(?P<key>[^\s,{}()=]+)[ \t]*,"
)


def split_fields(fields: Sequence[Field]) -> tuple[list[Field], list[tuple[int, str]]]:
    """The fields of an entry, including those that a missing comma made part of a value, and the faults by line."""
    from bibtexparser import model

    read: list[model.Field] = []
    faults: list[tuple[int, str]] = []
    for item in fields:
        name, raw, done, line = item.key, str(item.value).rstrip(), 0, (item.start_line or 0) + 1
        while (end := _end_of_value(raw, done)) < len(raw):
            line += raw.count("\n", done, end)
            following = _FIELD.match(raw, end)
            if following is None:
                said = f"{shorten(raw[end:].strip(), 40)!r} stands behind its value"
                faults.append((line, f"{name}: {said}. Put all of the value in braces {{}}."))
                break
            read.append(model.Field(name, raw[done:end].strip(), item.start_line))
            said = f"the comma behind it is missing; {following['name']} was read"
            faults.append((line, f"{name}: {said}. Add the comma."))
            line += raw.count("\n", end, following.end())
            name, done = following["name"], following.end()
        read.append(model.Field(name, raw[done:].strip(), item.start_line) if done else item)
    return read, faults


def _end_of_value(raw: str, start: int) -> int:
    """The end of a value: braces, quotes, a word or a number, or several of them joined by #."""
    depth, quoted, wanted, end = 0, False, True, start
    for token in _TOKEN.finditer(raw, start):
        if depth == 0 and not quoted:
            if token[0] != "#" and not wanted:
                return end
            wanted = token[0] == "#"
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        quoted ^= token[0] == '"' and depth == 0
        end = token.end()
    return len(raw)


def entry_fault(raw: str, reason: str) -> str:
    """What keeps an entry from being read, worded to follow its name in a message; `reason` is the parser's."""
    head = _HEAD.match(raw.lstrip())
    if head and head["sign"] == "=":
        return f"has no key: write one and a comma before {head['key']}"
    if head and head["key"] and head["sign"]:
        return "lacks the comma behind its key: add it"
    depth, last = 0, ""
    for line in raw.splitlines():
        field = _FIELD_LINE.match(line)
        if field and depth > 1:
            return f"lacks a closing brace }} in its field {last}: add it" if last else ""
        last = field["name"] if field else last
        depth += line.count("{") - line.count("}")
    if "a `=`" in reason and (field := _LAST_NAME.search(raw)):
        return f"lacks the = behind the name of its field {field['name']}: add it"
    if "found `,`" in reason:
        return "has a comma too many: remove it"
    open_ended = depth > 0 and "found `{`" not in reason
    return "lacks its closing brace }: add it" if open_ended else "cannot be read as BibTeX"


def comment_fault(text: str, *, behind_entry: bool) -> str:
    """What is wrong with text outside of entries that seems to be part of one; empty for a comment."""
    if found := _NO_AT.search(text):
        return f"{found['key']}: the @ before {found['kind']} is missing, so it is not read. Add it."
    if behind_entry and text.lstrip().startswith((",", "}")):
        names = ", ".join(field["name"] for line in re.split(r"[\n,]", text) if (field := _FIELD_LINE.match(line)))
        lost = f"{shorten(names, 40)!r} of the entry before is not read" if names else "the entry before ends earlier"
        return f"{lost}: one closing brace }} too many, or an opening one too few, stands before. Mend it."
    return ""

"""Formats a table on one line: the caption, then the rows, shortened in the middle if there are many."""

from __future__ import annotations

import re
from typing import Final

from .strip_markup import plain_text

TABLE_CHARACTERS: Final = 1_000  # about 250 tokens
_CAPTION_CHARACTERS: Final = 500
_FEWEST = 120  # minimum characters for the rows, however long the caption is

RULE = re.compile(
    r"\s*+(?:\|?[ \t]*+:?-{2,}+:?(?:(?:[ \t]++(?:[|+][ \t]*+)?|[|+][ \t]*+):?-++:?)*+[ \t]*+\|?"
    r"|\+[-=:+ ]{2,}+|\|[\s|:+=-]*+)\s*+"
)
_BAR = re.compile(r"(?<!\\)\|")
_HTML_ROW = re.compile(r"</tr\s?>|<tr\b[^<>]{0,200}>", re.IGNORECASE)
_HTML_CELL = re.compile(r"</t[dh]\s?>", re.IGNORECASE)


def shown_table(rows: str, caption: str, *, below: bool) -> str:
    """The table on one line: the rows joined by " / ", with `caption` before or after them."""
    head = _in_the_middle(caption, _CAPTION_CHARACTERS)
    shown = _rows(rows)
    joined = " / ".join(shown)
    room = max(_FEWEST, TABLE_CHARACTERS - len(head))
    if len(joined) > room:
        joined = _fewer(shown, room)
    return " / ".join(part for part in ((joined, head) if below else (head, joined)) if part)


def _rows(raw: str) -> list[str]:
    """The rows with their cells joined by " | ", without rules; lines of a grid cell are joined into one row."""
    lowered = raw.lstrip().lower()
    if lowered.startswith("<table") or "<tr" in lowered[:2000]:
        pieces = [[plain_text(cell) for cell in _HTML_CELL.split(row)] for row in _HTML_ROW.split(raw)]
        cells = [[cell for cell in row if cell] for row in pieces]
        return [" | ".join(row) for row in cells if row]
    grid = raw.lstrip().startswith("+")
    rows: list[list[str]] = []
    fresh = True
    for line in raw.splitlines():
        if not line.strip() or RULE.fullmatch(line):
            fresh = True
            continue
        found = [cell.strip() for cell in _BAR.split(line.strip().removeprefix("|").removesuffix("|"))]
        if grid and not fresh and rows and len(rows[-1]) == len(found):
            rows[-1] = [f"{above} {below}".strip() for above, below in zip(rows[-1], found, strict=True)]
        else:
            rows.append(found)
        fresh = False
    plain = [[plain_text(cell) for cell in row] for row in rows]
    return [" ".join(" | ".join(row).split()) for row in plain if any(row)]


def _fewer(rows: list[str], room: int) -> str:
    """The header with as many first and last rows as fit, and the number of omitted rows."""
    head, body = _in_the_middle(rows[0], room // 2), rows[1:]
    left = room - len(head)
    first: list[str] = []
    last: list[str] = []
    while body:
        from_end = len(last) < len(first)
        row = body[-1] if from_end else body[0]
        if len(row) + 3 > left:
            break
        left -= len(row) + 3
        if from_end:
            last.insert(0, body.pop())
        else:
            first.append(body[0])
            body = body[1:]
    if body and not first:
        first, body = [_in_the_middle(body[0], max(left, _FEWEST // 2))], body[1:]
    omitted = [f"... ({len(body)} more {'row' if len(body) == 1 else 'rows'} left out) ..."] if body else []
    return " / ".join([head, *first, *omitted, *last])


def _in_the_middle(text: str, most: int) -> str:
    """`text` shortened in the middle if it has more than `most` characters."""
    if len(text) <= most:
        return text
    half = max(1, (most - 5) // 2)
    return f"{text[:half].rstrip()} ... {text[-half:].lstrip()}"

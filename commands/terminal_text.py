"""Text for terminals of any width: escapes control characters; never breaks keys, ids or numbers."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

_LEAST_PROSE: Final = 24  # minimum columns of a table cell; with fewer, rows are shown as blocks
_IN_A_PIPE: Final = 200  # columns of a table, or more if its keys need them
_FRAME: Final = 3  # padding around each column


# Control characters except tab and line feed, lone surrogates, and marks that change text direction.
_OBEYED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_TEXT = re.compile(f"[{_OBEYED}]")
# A name must contain nothing invisible, and no line break that could fake a line of ours.
_IN_NAME = re.compile(f"[{_OBEYED}\t\n\u00ad\u200b\ufeff]")


def printable(text: str) -> str:
    """Escape control characters (`\\u202e`) in text from papers and models; keep line breaks."""
    return _IN_TEXT.sub(_escape, text)


def one_line(text: str) -> str:
    """Put a name (of a file, key, title, model, home) or message on one line: `\\n` for a break."""
    return _IN_NAME.sub(_escape, text)


def json_text(record: object) -> str:
    """A record as JSON that is safe on a terminal and parses back to the same strings."""
    written = json.dumps(record, ensure_ascii=False, indent=2)
    return _IN_TEXT.sub(lambda match: json.dumps(match[0])[1:-1], written)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def terminal_width(stream: TextIO) -> int | None:
    """The width of the terminal behind a stream (`COLUMNS` overrides it); None if it is not a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrap(text: str, width: int | None) -> str:
    """Wrap each line of `text` between words, keeping its indent; never breaks a long word."""
    if width is None:
        return text
    return "\n".join(line for whole in text.split("\n") for line in _lines(whole, width))


def end_with_command(text: str, command: str, width: int | None) -> str:
    """Append a command to `text`, on its own line if too long; never breaks it, so it can be copied."""
    line = f"{text} {command}"
    return line if width is None or len(line) <= width else f"{wrap(text, width)}\n{command}"


def _lines(line: str, width: int) -> list[str]:
    from rich.cells import cell_len

    if cell_len(line) <= width:
        return [line]
    indent = " " * min(len(line) - len(line.lstrip(" ")), width // 2)
    return textwrap.wrap(
        line.strip(),
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], prose: Sequence[str] = ()) -> None:
    """Print a table, or its rows as blocks if it does not fit. Without rows only the title is printed.

    Args:
        columns: names; the first two may number and name a row.
        prose: the columns that may wrap; cells of the others are never broken.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    least = [_least(name, [row[place] for row in cells], name in prose) for place, name in enumerate(columns)]
    needed = sum(least) + _FRAME * len(columns) + 1
    asked = os.environ.get("COLUMNS", "")
    width = terminal_width(sys.stdout) or (int(asked) if asked.isdigit() else 0) or max(_IN_A_PIPE, needed)
    parts = [wrap(one_line(title), width)]
    if cells and needed <= width:
        parts.append(_drawn(columns, cells, least, prose, width))
    else:
        parts += ["\n".join(_stacked(columns, row, prose, width)) for row in cells]
    print("\n".join(parts), flush=True)  # noqa: T201


def _least(name: str, cells: Sequence[str], wraps: bool) -> int:
    """The width for one column."""
    whole = max(map(_cell_len, [name, *cells]))
    longest_word = max(_cell_len(word) for text in [name, *cells] for word in text.split() or [""])
    return min(whole, max(_LEAST_PROSE, longest_word)) if wraps else whole


def _drawn(
    columns: Sequence[str], rows: Sequence[Sequence[str]], least: Sequence[int], prose: Sequence[str], width: int
) -> str:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    drawn = Table()
    for name, narrowest in zip(columns, least, strict=True):
        drawn.add_column(name, overflow="fold", no_wrap=name not in prose, min_width=narrowest)
    for row in rows:
        drawn.add_row(*map(escape, row))
    # rich honours the width only if a height is set too: otherwise it uses 80 columns on "dumb" terminals.
    console = Console(width=width, height=25, color_system="auto" if sys.stdout.isatty() else None)
    with console.capture() as capture:
        console.print(drawn, highlight=False)
    return capture.get().rstrip("\n")


def _stacked(columns: Sequence[str], row: Sequence[str], prose: Sequence[str], width: int) -> Iterator[str]:
    """A row as lines: number and name, then the other cells, indented below column names."""
    named = 2 if not columns[0] else 1
    yield ". ".join(row[:named])
    for name, text in list(zip(columns, row, strict=True))[named:]:
        for line in text.split("\n") if text else []:
            said = line if name in prose else f"{name}: {line}"
            yield wrap(f"  {said}", width)


def _cell_len(text: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for line in text.split("\n")), default=0)

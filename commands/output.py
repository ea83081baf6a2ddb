"""Prints notices and progress on stderr, results on stdout: text, tables and JSON for terminals of any width."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, TextIO

import typer

from .. import api
from ..api.messages import counted

# Chunks per second that the bundled model embeds on two cores, for the first estimate. Low, so that ingestion rarely
# takes longer than announced.
TEXTS_PER_SECOND = 10


def notice(*texts: str) -> None:
    """Print each text as one line on stderr; on a terminal it wraps between words."""
    for text in texts:
        print(wrap(one_line(text), terminal_width(sys.stderr)), file=sys.stderr, flush=True)  # noqa: T201


def notice_command(text: str, command: str) -> None:
    """Print a notice on stderr that ends in a command; the command stays on one line."""
    width = terminal_width(sys.stderr)
    print(end_with_command(one_line(text), one_line(command), width), file=sys.stderr, flush=True)  # noqa: T201


def result(*texts: str) -> None:
    """Print results on stdout; on a terminal they wrap between words."""
    for text in texts:
        print(wrap(printable(text), terminal_width(sys.stdout)), flush=True)  # noqa: T201


def result_json(record: Any) -> None:
    print(json_text(record), flush=True)  # noqa: T201


@dataclass(frozen=True, slots=True)
class Printed:
    """A command's result: a record, printed as JSON or by `show` (which may return lines), and its exit code."""

    record: Any
    show: Callable[[Any], Iterable[str] | None]
    code: int = 0

    @classmethod
    def listed(cls, records: Sequence[Any], noun: str, columns: Columns, prose: Collection[str]) -> Printed:
        """Return records shown as a table, titled with their number."""
        return cls(records, lambda _: table(counted(len(records), noun), records, columns, prose))

    def print_and_exit(self, *, as_json: bool) -> None:
        """Print the record, and exit with its exit code unless that is 0."""
        if as_json:
            result_json(self.record)
        else:
            result(*self.show(self.record) or ())
        if self.code:
            raise typer.Exit(self.code)


def print_warnings(record: dict[str, Any]) -> None:
    notice(*(f"Warning: {warning}" for warning in record["warnings"]))
    notice(*(f"Refused: {refusal['path']}: {refusal['reason']}" for refusal in record["refused"]))


def show_rebuilt_index(record: dict[str, Any]) -> None:
    embedded = f"{counted(record['chunks_embedded'], 'chunk')} embedded in {record['seconds']:.1f} s"
    result(f"{counted(record['papers_rebuilt'], 'paper')} indexed again, {embedded}.")


def name_refused_figures(record: dict[str, Any]) -> None:
    notice(*(f"Not described: {item['key']}, {item['figure']}: {item['reason']}." for item in record["refused"]))


@contextmanager
def ingest_progress() -> Iterator[Any]:
    """Yield a callback that renders the events of an ingest: as a bar on a terminal, else in about ten lines."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    ingesting, terminal, done, total = api.ingesting, sys.stderr.isatty(), 0, 0

    def each_tenth(what: str, before: int, done: int, total: int) -> str:
        passed = 10 * done // max(1, total) > 10 * before // max(1, total)
        return f"{what.split()[0]} {done} of {counted(total, what.split()[1])}" if passed and not terminal else ""

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not terminal) as bar:
        task = bar.add_task("reading", total=None)

        def show(event: api.ingesting.IngestEvent) -> None:
            nonlocal done, total
            line = ""
            if isinstance(event, ingesting.Waiting):
                line = f"waiting for the lock held by process {event.pid or 'unknown'}"
            elif isinstance(event, ingesting.Planned):
                done, total = 0, event.texts
                bar.update(task, description="embedding", total=total, completed=0)
                about = f", about {total / TEXTS_PER_SECOND:.0f} s with the bundled model" if total > 100 else ""
                planned = f"{counted(event.files, 'file')}, {counted(event.papers, 'paper')} to index"
                line = f"{planned}, {counted(total, 'text')} to embed{about}"
            elif isinstance(event, ingesting.Embedded):
                bar.advance(task, event.count)
                before, done = done, done + event.count
                line = each_tenth("embedded text", before, done, total)
            elif isinstance(event, ingesting.Described):
                bar.update(task, description="describing figures", total=event.total, completed=event.done)
                line = each_tenth("described figure", event.done - 1, event.done, event.total)
            if line and terminal:
                bar.console.print(escape(one_line(line)), style="dim", highlight=False)
            elif line:
                notice(f"  {line}")

        yield show


_LEAST_PROSE: Final = 24  # minimum columns of a table cell; with fewer, rows are shown as blocks
_IN_A_PIPE: Final = 200  # minimum width of a table in a pipe
_FRAME: Final = 3  # padding around each column


# Control characters except tab and line feed, lone surrogates, and marks that change text direction.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_UNSAFE_IN_TEXT = re.compile(f"[{_UNSAFE}]")
# In a name also invisible characters, and line breaks, which could fake a line of our output.
_UNSAFE_IN_NAME = re.compile(f"[{_UNSAFE}\t\n\u00ad\u200b\ufeff]")


def printable(text: str) -> str:
    """Escape control characters (`\\u202e`) in text from papers and models; keep line breaks."""
    return _UNSAFE_IN_TEXT.sub(_escape, text)


def one_line(text: str) -> str:
    """Put a name (of a file, key, title, model, home) or message on one line: `\\n` for a break."""
    return _UNSAFE_IN_NAME.sub(_escape, text)


def json_text(record: object) -> str:
    """Format a record as JSON that is safe on a terminal and parses back to the same strings."""
    written = json.dumps(record, ensure_ascii=False, indent=2)
    return _UNSAFE_IN_TEXT.sub(lambda match: json.dumps(match[0])[1:-1], written)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def terminal_width(stream: TextIO) -> int | None:
    """Return the width of a stream's terminal (`COLUMNS` overrides it); None if it is not a terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrap(text: str, width: int | None) -> str:
    """Wrap each line of `text` between words, keeping its indent; never breaks a long word."""
    if width is None:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * min(len(line) - len(line.lstrip(" ")), width // 2)
        fits = cell_len(line) <= width
        lines += [line] if fits else [indent + part for part in _wrap_words(line.strip(), max(width, 20) - len(indent))]
    return "\n".join(lines)


def end_with_command(text: str, command: str, width: int | None) -> str:
    """Append a command to `text`, on its own line if too long; never breaks it, so it can be copied."""
    line = f"{text} {command}"
    return line if width is None or len(line) <= width else f"{wrap(text, width)}\n{command}"


Columns = Mapping[str, str | Callable[[Any], object]]


def table(title: str, records: Sequence[Any], columns: Columns, prose: Collection[str] = ()) -> None:
    """Print a table, or its rows as blocks if it does not fit. Without records only the title is printed.

    Args:
        columns: by name, the key or function that gives a cell's value; None is shown as an empty cell. A first column
            named "" numbers the rows.
        prose: the columns that may wrap; cells of the others are never broken.
    """

    def cell(name: str, shown: str | Callable[[Any], object], record: Any) -> str:
        value = record[shown] if isinstance(shown, str) else shown(record)
        text = "" if value is None else str(value)
        return printable(" ".join(text.split())) if name in prose else one_line(text)

    cells = [
        [cell(name, shown, record) if name else str(number) for name, shown in columns.items()]
        for number, record in enumerate(records, 1)
    ]
    least: list[int] = []
    for name, *column in zip(columns, *cells, strict=True):
        longest_word = max(cell_len(word) for text in [name, *column] for word in text.split() or [""])
        whole = max(map(cell_len, [name, *column]))
        least.append(min(whole, max(_LEAST_PROSE, longest_word)) if name in prose else whole)
    needed = sum(least) + _FRAME * len(columns) + 1
    asked = os.environ.get("COLUMNS", "")
    width = terminal_width(sys.stdout) or (int(asked) if asked.isdigit() else 0) or max(_IN_A_PIPE, needed)
    parts = [wrap(one_line(title), width)]
    if cells and needed <= width:
        parts.append(_draw_table([*columns], cells, least, prose, width))
    else:
        parts += ["\n".join(_row_lines([*columns], row, width)) for row in cells]
    print("\n".join(parts), flush=True)  # noqa: T201


def _draw_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], least: Sequence[int], prose: Collection[str], width: int
) -> str:
    """Draw the table with its frame; prose columns share the width that the others leave."""
    widths = list(least)
    room = width - sum(least) - _FRAME * len(columns) - 1
    growing = [place for place, name in enumerate(columns) if name in prose]
    wanted = {place: max(cell_len(row[place]) for row in (columns, *rows)) for place in growing}
    for left, place in enumerate(sorted(growing, key=lambda place: wanted[place] - least[place]), -len(growing)):
        grown = min(wanted[place] - least[place], room // -left)
        widths[place] += grown
        room -= grown
    top, middle, bottom, *sides = _BOX if (sys.stdout.encoding or "").lower().startswith("utf") else _ASCII_BOX

    def ruled(rule: str) -> str:
        return rule[0] + rule[2].join(rule[1] * (size + 2) for size in widths) + rule[3]

    def lines(row: Sequence[str], side: str) -> Iterator[str]:
        cells = [_wrap_words(cell, size) for cell, size in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            filled = (part + " " * (size - cell_len(part)) for part, size in zip(parts, widths, strict=True))
            yield f"{side} {f' {side} '.join(filled)} {side}"

    shown = [ruled(top), *lines(columns, sides[0]), ruled(middle)]
    return "\n".join([*shown, *(line for row in rows for line in lines(row, sides[1])), ruled(bottom)])


# A table's horizontal rules (left end, line, joint, right end), then the sides of its heading and its rows.
_BOX: Final = ("┏━┳┓", "┡━╇┩", "└─┴┘", "┃", "│")
_ASCII_BOX: Final = ("+-++", "+-++", "+-++", "|", "|")


def _wrap_words(text: str, width: int) -> list[str]:
    """Break a cell into lines between words."""
    lines: list[str] = []
    line = ""
    for word in text.split() if cell_len(text) > width else [text]:
        longer = f"{line} {word}" if line else word
        if line and cell_len(longer) > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]


def _row_lines(columns: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    """Show a row as lines: number and name, then the other cells, indented and labelled with their columns."""
    named = 2 if not columns[0] else 1
    yield ". ".join(row[:named])
    for name, text in list(zip(columns, row, strict=True))[named:]:
        if text:
            yield wrap(f"  {name}: {text}", width)


def cell_len(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)

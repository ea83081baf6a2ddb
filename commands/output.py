"""Prints notices and progress on stderr, results on stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from ..api.messages import counted, given_command
from .terminal_text import Columns, end_with_command, json_text, one_line, printable, table, terminal_width, wrap

if TYPE_CHECKING:
    from ..api.ingesting import IngestEvent


_CREATING = frozenset({"add", "ingest", "serve", "sync"})  # commands

# Chunks per second that the bundled model embeds on two cores, for the estimate before the bar has its own. Low, so
# that ingestion rarely takes longer than announced.
TEXTS_PER_SECOND = 10


def notice(text: str) -> None:
    """Print one line on stderr; on a terminal it wraps between words."""
    print(wrap(one_line(text), terminal_width(sys.stderr)), file=sys.stderr, flush=True)  # noqa: T201


def notice_command(text: str, command: str) -> None:
    """Print a notice on stderr that ends in a command; the command stays on one line."""
    width = terminal_width(sys.stderr)
    print(end_with_command(one_line(text), one_line(command), width), file=sys.stderr, flush=True)  # noqa: T201


def result(text: str) -> None:
    """Print a result on stdout; on a terminal it wraps between words."""
    print(wrap(printable(text), terminal_width(sys.stdout)), flush=True)  # noqa: T201


def result_json(record: Any) -> None:
    print(json_text(record), flush=True)  # noqa: T201


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command gives: a record, printed as JSON or by `show`, which may return lines; and its exit code."""

    record: Any
    show: Callable[[Any], Iterable[str] | None]
    code: int = 0

    @classmethod
    def listed(cls, records: Sequence[Any], noun: str, columns: Columns, prose: Collection[str]) -> Printed:
        """Records as a table under their number."""
        return cls(records, lambda _: table(counted(len(records), noun), records, columns, prose))

    def out(self, *, as_json: bool) -> None:
        """Print the record and end with its code."""
        if as_json:
            result_json(self.record)
        for line in () if as_json else self.show(self.record) or ():
            result(line)
        if self.code:
            raise typer.Exit(self.code)


def announce_home(name: object, *, exists: bool) -> None:
    """Print the command's home, and whether it will be created."""
    notice(f"Home: {name}{'' if exists or given_command() not in _CREATING else ' (new)'}")


def warnings_and_refusals(record: dict[str, Any]) -> None:
    for warning in record["warnings"]:
        notice(f"Warning: {warning}")
    for refusal in record["refused"]:
        notice(f"Refused: {refusal['path']}: {refusal['reason']}")


def show_rebuilt(record: dict[str, Any]) -> None:
    embedded = f"{counted(record['chunks_embedded'], 'chunk')} embedded in {record['seconds']:.1f} s"
    result(f"{counted(record['papers_rebuilt'], 'paper')} indexed again, {embedded}.")


def name_refused_figures(record: dict[str, Any]) -> None:
    for item in record["refused"]:
        notice(f"Not described: {item['key']}, {item['figure']}: {item['reason']}.")


@contextmanager
def ingest_progress() -> Iterator[Any]:
    """A callback that renders the events of an ingest: as a bar on a terminal, else in about ten lines."""
    from ..api.ingesting import Described, Embedded, Planned, Waiting

    def line_of(event: IngestEvent) -> str:
        if isinstance(event, Waiting):
            return f"waiting for the lock held by process {event.pid or 'unknown'}"
        if not isinstance(event, Planned):
            return ""
        seconds = f", about {event.texts / TEXTS_PER_SECOND:.0f} s with the bundled model" if event.texts > 100 else ""
        planned = f"{counted(event.files, 'file')}, {counted(event.papers, 'paper')} to index"
        return f"{planned}, {counted(event.texts, 'text')} to embed{seconds}"

    if not sys.stderr.isatty():
        done = total = 0

        def show_line(event: IngestEvent) -> None:
            nonlocal done, total
            line = line_of(event)
            if isinstance(event, Planned):
                total = event.texts
            elif isinstance(event, Embedded):
                before, done = done, done + event.count
                if 10 * done // max(1, total) > 10 * before // max(1, total):
                    line = f"embedded {done} of {counted(total, 'text')}"
            elif isinstance(event, Described) and 10 * event.done // event.total > 10 * (event.done - 1) // event.total:
                line = f"described {event.done} of {counted(event.total, 'figure')}"
            if line:
                notice(f"  {line}")

        yield show_line
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading", total=None)

        def show(event: IngestEvent) -> None:
            if isinstance(event, Planned):
                bar.update(task, description="embedding", total=event.texts, completed=0)
            elif isinstance(event, Embedded):
                bar.advance(task, event.count)
            elif isinstance(event, Described):
                bar.update(task, description="describing figures", total=event.total, completed=event.done)
            if line := line_of(event):
                bar.console.print(escape(one_line(line)), style="dim", highlight=False)

        yield show

"""Shows a running run: steps, evidence and cost so far, and an answer's draft."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ..api.messages import counted, shorten
from .output import notice
from .terminal_text import cell_len, one_line, printable

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

    from ..api.running import Event, FindingEvent, ProgressEvent
    from ..api.spending import Usage

    Spent = Callable[[], Usage]


def paid_parts(used: Usage) -> list[str]:
    """Calls, tokens and cost; empty if there were no calls."""
    if not used.llm_calls and not used.journal_hits:
        return []
    reused = f" + {used.journal_hits} reused" if used.journal_hits else ""
    parts = [f"{counted(used.llm_calls, 'call')}{reused}", counted(used.input_tokens + used.output_tokens, "token")]
    return [*parts, f"cost {used.cost:.4f}"] if used.cost is not None and used.llm_calls else parts


class RunProgress:
    """Prints the steps of a run as lines; evidence, tokens and citations are not shown."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent

    def __call__(self, event: Event) -> None:
        if event["kind"] == "stage":
            self.draw(event)
        elif event["kind"] == "finding":
            self.found(event)

    def draw(self, event: ProgressEvent) -> None:
        paid = ", ".join(paid_parts(self._spent()))
        notice(f"  {shorten(event['text'], 110)}{f' ({paid})' if paid else ''}")

    def found(self, event: FindingEvent) -> None:
        """Show a finding as it is read; does nothing here, since printed findings would hide the steps."""

    def hide(self) -> None:
        """Hide the view until the next step, to make room for other output."""


class LiveProgress(RunProgress):
    """Renders a run on a terminal: finished steps scroll, the current state stays below, with the usage so far."""

    def __init__(self, spent: Spent, console: Console) -> None:
        from rich.spinner import Spinner

        super().__init__(spent)
        self._console = console
        self._spinner = Spinner("dots")
        self.stage = "starting"
        self._section = ""
        self._searches = self._findings = 0
        self._doing = ""
        self._live: Live | None = None

    def show(self) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(self, console=self._console, refresh_per_second=8, transient=True)
            self._live.start(refresh=True)

    def hide(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def found(self, event: FindingEvent) -> None:
        self.show()
        self._doing = one_line(shorten(f"{event['key']}: {event['text']}", max(20, self._console.width)))

    def draw(self, event: ProgressEvent) -> None:
        from rich.text import Text

        self.show()
        if "section" in event:
            self._section = f"{event['section']}, "
        place = f" [{event['done']}/{event['total']}]" if "done" in event and "total" in event else ""
        self.stage = f"{self._section}{event['stage']}{place}"
        self._doing = one_line(shorten(event["text"], max(20, self._console.width)))
        if event["stage"] == "searched":
            self._searches += 1
            self._findings += event.get("passages", 0)
        else:
            self._console.print(Text(f"  {self._doing}", style="dim"), highlight=False)

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        doing = f"{self.stage}: {self._doing}" if self._doing else self.stage
        counts = [f"searches: {self._searches}", f"findings: {self._findings}", *paid_parts(self._spent())]
        self._spinner.update(text=Text(doing, no_wrap=True, overflow="ellipsis"))
        room = max(20, self._console.width - 4)
        return Group(self._spinner, Text(f"  {' · '.join(counts)}"[:room], style="dim"))


@contextmanager
def section_progress(spent: Spent) -> Iterator[RunProgress]:
    """Renders a run: a live view on a terminal, else plain lines; `spent` is called several times a second."""
    if not sys.stderr.isatty():
        yield RunProgress(spent)
        return
    from rich.console import Console

    progress = LiveProgress(spent, Console(stderr=True))
    try:
        progress.show()
        yield progress
    finally:
        progress.hide()


class WrappedText:
    """Wraps streamed text between words, to `width` columns."""

    def __init__(self, out: TextIO, width: int) -> None:
        self._out = out
        self._width = width
        self._column = 0
        self._word = ""

    def write(self, text: str) -> None:
        for character in text:
            if character.isspace():
                self._end_word()
                if character == "\n":
                    self._put("\n")
                elif self._column:
                    self._word = " "
            else:
                self._word += character
        self._out.flush()

    def end(self) -> None:
        self._end_word()
        if self._column:
            self._put("\n")
        self._out.flush()

    def _end_word(self) -> None:
        word, self._word = self._word, ""
        if self._column and self._column + cell_len(word) > self._width:
            self._put("\n")
        self._put(word if self._column else word.lstrip())

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._column = 0 if text == "\n" else self._column + cell_len(text)


class AnswerStreamView:
    """Renders a run: its steps by `progress`, and its draft to `out`, a terminal of `width` columns; None hides it."""

    def __init__(self, progress: RunProgress, out: TextIO | None, width: int = 80) -> None:
        self._progress = progress
        self._out = out
        self._width = width
        self._said: list[str] = []
        self._text: WrappedText | None = None

    def __call__(self, event: Event) -> None:
        if event["kind"] == "token":
            self._said.append(event["text"])
            if self._out is None:
                return
            if self._text is None:
                self._progress.hide()
                self._out.write("\n")
                self._text = WrappedText(self._out, self._width)
            self._text.write(printable(event["text"]))
        elif event["kind"] == "restarted":
            self._end_text()
            if self._said and self._out is not None:
                self._out.write("\nThe connection broke off; the answer starts over:\n")
            self._said.clear()
        else:
            if event["kind"] == "stage":
                self._end_text()
            self._progress(event)

    def end(self) -> None:
        self._end_text()
        self._progress.hide()

    def _end_text(self) -> None:
        text, self._text = self._text, None
        if text is not None:
            text.end()

    def has_shown(self, record: Mapping[str, Any]) -> bool:
        """Whether the streamed text equals the answer of `record`."""
        if self._out is None:
            return False
        from ..api.result_views import inert  # imports all of `citations`

        return inert("".join(self._said)).strip() == inert(str(record["text"])).strip()

    @property
    def has_output(self) -> bool:
        """Whether any part of a draft was shown."""
        return self._out is not None and bool(self._said)


@contextmanager
def answer_progress(spent: Callable[[], Usage], *, draft: bool) -> Iterator[AnswerStreamView]:
    """Renders an answer's events; also its draft if `draft` is set and stdout is a terminal."""
    # Keep stdout before the live view starts, since that redirects it.
    out = sys.stdout if draft and sys.stdout.isatty() else None
    with section_progress(spent) as progress:
        view = AnswerStreamView(progress, out, shutil.get_terminal_size().columns)
        try:
            yield view
        finally:
            view.end()

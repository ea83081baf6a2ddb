"""A live view of a run: current step, what was found, cost so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..api.messages import counted
from ..api.spending import Usage

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

    from ..api.events import Event, ProgressEvent

Spent = Callable[[], Usage]


class RunView:
    """The state of a run, built from its events; `spent` returns what this command has used so far."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent
        self.stage = "starting"
        self._section = ""
        self.searches = 0
        self.passages = 0

    def take(self, event: ProgressEvent) -> None:
        """Note an event."""
        if "section" in event:
            self._section = f"{event['section']}, "
        counted = f" [{event['done']}/{event['total']}]" if "done" in event and "total" in event else ""
        self.stage = f"{self._section}{event['stage']}{counted}"
        if event["stage"] == "searched":
            self.searches += 1
            self.passages += event.get("passages", 0)

    def counts(self) -> str:
        """Searches, evidence, calls, tokens and cost on one line; calls are omitted when there were none."""
        parts = [f"searches: {self.searches}", f"passages: {self.passages}", *self._paid()]
        return " · ".join(parts)

    def paid(self) -> str:
        """The usage so far, as a suffix of a log line."""
        paid = self._paid()
        return f" ({', '.join(paid)})" if paid else ""

    def _paid(self) -> list[str]:
        used = self._spent()
        if not used.llm_calls and not used.journal_hits:
            return []
        reused = f" + {used.journal_hits} reused" if used.journal_hits else ""
        parts = [f"{counted(used.llm_calls, 'call')}{reused}", counted(used.input_tokens + used.output_tokens, "token")]
        return [*parts, f"cost {used.cost:.4f}"] if used.cost is not None and used.llm_calls else parts


class LiveRunView:
    """Renders a `RunView` on a terminal: finished steps scroll, the current state stays below."""

    def __init__(self, view: RunView, console: Console) -> None:
        from rich.spinner import Spinner

        self._view = view
        self._console = console
        self._spinner = Spinner("dots")
        self._doing = ""

    def show(self, event: ProgressEvent, text: str) -> None:
        """Render an event; single searches only update the state."""
        from rich.text import Text

        self._view.take(event)
        self._doing = text
        if event["stage"] != "searched":
            self._console.print(Text(f"  {text}", style="dim"), highlight=False)

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        doing = f"{self._view.stage}: {self._doing}" if self._doing else self._view.stage
        room = max(20, self._console.width - 4)
        self._spinner.update(text=Text(doing, no_wrap=True, overflow="ellipsis"))
        return Group(self._spinner, Text(f"  {self._view.counts()}"[:room], style="dim"))


class RunProgress:
    """Prints the steps of a run; evidence, tokens and citations are not shown."""

    def __init__(self, draw: Callable[[ProgressEvent], None]) -> None:
        self._draw = draw

    def __call__(self, event: Event) -> None:
        """Render an event."""
        if event["kind"] == "stage":
            self._draw(event)

    def hide(self) -> None:
        """Hide the view until the next step, to make room for other output."""


class LiveProgress(RunProgress):
    """The same as a live view; `shortened` truncates a text to a width."""

    def __init__(self, view: RunView, console: Console, shortened: Callable[[str, int], str]) -> None:
        self._console = console
        self._shortened = shortened
        self._drawn = LiveRunView(view, console)
        self._live: Live | None = None
        super().__init__(self._step)

    def show(self) -> None:
        """Show the view below what was printed."""
        from rich.live import Live

        if self._live is None:
            self._live = Live(self._drawn, console=self._console, refresh_per_second=8, transient=True)
            self._live.start(refresh=True)

    def hide(self) -> None:
        """See `RunProgress`."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _step(self, event: ProgressEvent) -> None:
        self.show()
        self._drawn.show(event, self._shortened(event["text"], self._console.width))

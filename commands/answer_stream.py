"""Streams an answer to the terminal while it is written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from .output import section_progress
from .terminal_text import printable

if TYPE_CHECKING:
    from ..api.events import Event
    from ..api.spending import Usage
    from .live_view import RunProgress


class WrappedText:
    """Writes streamed text in lines of `width` columns, broken between words."""

    def __init__(self, out: TextIO, width: int) -> None:
        self._out = out
        self._width = width
        self._column = 0
        self._word = ""

    def write(self, text: str) -> None:
        """Write the complete words of `text`; buffer the last, unfinished one."""
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
        """Write the last word and end the line."""
        self._end_word()
        if self._column:
            self._put("\n")
        self._out.flush()

    def _end_word(self) -> None:
        word, self._word = self._word, ""
        if self._column and self._column + _columns(word) > self._width:
            self._put("\n")
        self._put(word if self._column else word.lstrip())

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._column = 0 if text == "\n" else self._column + _columns(text)


class AnswerStreamView:
    """Renders the events of a run, including the draft if `out` is a terminal.

    Args:
        progress: renders the steps.
        out: where the draft is written; None hides it.
        width: columns of `out`.
    """

    def __init__(self, progress: RunProgress, out: TextIO | None, width: int = 80) -> None:
        self._progress = progress
        self._out = out
        self._width = width
        self._said: list[str] = []
        self._text: WrappedText | None = None

    def __call__(self, event: Event) -> None:
        """Render an event."""
        if event["kind"] == "token":
            self._say(event["text"])
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
        """Stop rendering; later output is printed below the draft."""
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
        from ..api.result_views import inert  # which loads all of the citations

        return inert("".join(self._said)).strip() == inert(str(record["text"])).strip()

    @property
    def has_output(self) -> bool:
        """Whether any part of a draft was shown."""
        return self._out is not None and bool(self._said)

    def _say(self, text: str) -> None:
        self._said.append(text)
        if self._out is None:
            return
        if self._text is None:
            self._progress.hide()
            self._out.write("\n")
            self._text = WrappedText(self._out, self._width)
        self._text.write(printable(text))


@contextmanager
def answer_progress(spent: Callable[[], Usage], *, draft: bool) -> Iterator[AnswerStreamView]:
    """Renders the events of an answer's run; also the draft, if `draft` is set and stdout is a terminal."""
    # Taken before the live view is there, which would draw what is written to stdout itself.
    out = sys.stdout if draft and sys.stdout.isatty() else None
    with section_progress(spent) as progress:
        view = AnswerStreamView(progress, out, shutil.get_terminal_size().columns)
        try:
            yield view
        finally:
            view.end()


def _columns(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)

"""Streams only the answer of a model's text: no heading, no references of its own, nothing when it declines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ...models.journal.streaming import TextListener
from ..protocols import Draft

_DECLINED = re.compile(r"\W*not answered\W*", re.IGNORECASE)
_ANSWER_HEADING = re.compile(r"\A#{1,6}[ \t]*+answer[ \t]*+:?[ \t]*+\n+", re.IGNORECASE)
# A reference list of the model's own; ours is built from the citations.
_LISTS: Final = ("references", "bibliography", "sources", "works cited")
_LIST_LINE: Final = rf"(?<!\n)\n++[ \t]*+(?:#{{1,6}}[ \t]*|\*\*)(?:{'|'.join(_LISTS)})\b[ \t:*]*"
_REFERENCES = re.compile(rf"{_LIST_LINE}(?:\n.*)?\Z", re.IGNORECASE | re.DOTALL)

# The same for an unfinished text: a list has begun, or may begin at the end; the text may decline, or have a heading.
_LIST_BEGUN = re.compile(rf"{_LIST_LINE}\n", re.IGNORECASE)
_BEGINNINGS: Final = "|".join(word[:end] for word in _LISTS for end in range(len(word)))
_LIST_BEGINS = re.compile(
    rf"(?<!\s)\s*(?:\n[ \t]*+(?:[#*]*+[ \t]*+(?:{_BEGINNINGS})?|"
    rf"[#*]++[ \t]*+(?:{'|'.join(_LISTS)})[ \t:*]*+))?\Z",
    re.IGNORECASE,
)
_START: Final = "not answered"
_LONGEST: Final = 400  # characters that are held back at the start
_HEADING_BEGINS = re.compile(r"#{1,6}[ \t]*(?:a|an|ans|answ|answe|answer[ \t]*+:?[ \t]*+)?\n*\Z", re.IGNORECASE)


def answer_alone(draft: Draft) -> Draft:
    """The draft without an "Answer" heading and without references; empty when it declines to answer."""
    text = _REFERENCES.sub("", _ANSWER_HEADING.sub("", draft.text)).strip()
    return replace(draft, text="" if _DECLINED.fullmatch(text) else text)


class AnswerFilter:
    """Implements `TextListener`: receives a draft and forwards to `listener` what `answer_alone` will keep of it."""

    def __init__(self, listener: TextListener) -> None:
        self._listener = listener
        self._begin()

    def _begin(self) -> None:
        self._held = ""
        self._look_at = 0
        self._at_start = True
        self._ended = False

    def restart(self) -> None:
        """See `TextListener`."""
        started = not self._at_start
        self._begin()
        if started:
            self._listener.restart()

    def piece(self, text: str) -> None:
        """See `TextListener`."""
        self._held += text
        if self._ended or (len(self._held) <= _LONGEST and self._at_start and self._may_be_no_answer()):
            return
        if len(self._held) < self._look_at:
            return
        begun = _LIST_BEGUN.search(self._held)
        self._ended = begun is not None
        stop = begun or _LIST_BEGINS.search(self._held)
        self._forward(self._held[: stop.start()] if stop else self._held)
        self._held = self._held[stop.start() :] if stop else ""
        # Text that is held back for long is checked again only when it has doubled.
        self._look_at = 2 * len(self._held) if len(self._held) > _LONGEST else 0

    def finish(self) -> None:
        """Forward what was held back, once the draft is complete."""
        if self._ended:
            return
        if self._at_start:
            self._forward(answer_alone(Draft(self._held)).text)
        else:
            self._forward(_REFERENCES.sub("", self._held).rstrip())
        self._held = ""

    def _may_be_no_answer(self) -> bool:
        """True when the text so far may decline to answer or be a heading; a finished heading is removed."""
        self._held = _ANSWER_HEADING.sub("", self._held).lstrip()
        words = re.sub(r"\A\W*", "", self._held).lower()
        declines = _START.startswith(words[: len(_START)]) and not re.search(r"\w", words[len(_START) :])
        return declines or _HEADING_BEGINS.match(self._held) is not None

    def _forward(self, text: str) -> None:
        if text:
            self._at_start = False
            self._listener.piece(text)

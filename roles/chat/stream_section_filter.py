"""Streams a writer's answer without what `clean_output.prose` removes: thinking, announcements, headings.

A stream is a draft: when only the complete text can decide, as with a fence that is never closed, the streamed text may
differ from the draft that is kept; the final event then says so.
"""

from __future__ import annotations

import re
from typing import Final

from ...experiment import SECTION_KINDS
from ...models.journal.streaming import TextListener
from .clean_output import without_heading, without_preamble

_THINKING: Final = "<think>"
_THOUGHT: Final = "</think>"
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n")
# First lines that are removed once they have ended, and how such a line may begin.
_LINES: Final = {
    "preamble": (
        re.compile(r"(?:sure|certainly|of course|okay|absolutely|here (?:is|are)|here's|below (?:is|are))\b.*", re.I),
        ("sure", "certainly", "of course", "okay", "absolutely", "here is", "here are", "here's", "below is"),
    ),
    "fence": (re.compile(r"(?:`{3,}|~{3,})[\w-]*[ \t]*"), ("```", "~~~")),
    "heading": (
        re.compile(rf"#.*|\*\*[^*]*(?:\*\*?:?[ \t]*)?|(?:{'|'.join(SECTION_KINDS)}):?[ \t]*", re.I),
        ("**", *SECTION_KINDS),
    ),
}
_LONGEST: Final = 300  # no line that is removed is longer


class StreamedProse:
    """Implements `TextListener`: receives an answer and forwards its prose to `listener`."""

    def __init__(self, listener: TextListener) -> None:
        self._listener = listener
        self._told = False
        self._begin()

    def _begin(self) -> None:
        self._held = ""
        self._fence = ""
        self._steps = ["preamble", "fence", "heading"]  # still to be done
        self._untouched = True

    def restart(self) -> None:
        """See `TextListener`."""
        self._begin()
        if self._told:
            self._told = False
            self._listener.restart()

    def piece(self, text: str) -> None:
        """See `TextListener`."""
        self._held += text
        if _THOUGHT in self._held:
            # Some servers omit the opening tag: the text before the closing one is thinking all the same.
            rest = self._held.rpartition(_THOUGHT)[2]
            self.restart()
            self._held, self._untouched = rest, False
        if not self._begun():
            return
        end = min(_end_of(self._held), _place_of(_THOUGHT, self._held))
        self._forward(self._held[:end])
        self._held = self._held[end:]

    def finish(self) -> None:
        """Forward what was held back, once the answer is complete."""
        if self._steps:
            thinking = self._untouched and self._held.lstrip().startswith(_THINKING)
            self._held = "" if thinking else self._held.strip()
            while self._steps:
                self._take()
        left = self._held.rstrip()
        if self._fence:
            left = left.removesuffix(self._fence).rstrip()
        self._forward(left)
        self._held = ""

    def _begun(self) -> bool:
        """True when the prose has begun; what precedes it is removed."""
        while self._steps:
            self._held = self._held.lstrip()
            if self._untouched and _THINKING.startswith(self._held[: len(_THINKING)]):
                return False
            line, ended, rest = self._held.partition("\n")
            special, beginnings = _LINES[self._steps[0]]
            may_be = len(line) <= _LONGEST and (
                special.fullmatch(line) or (not ended and any(start.startswith(line.lower()) for start in beginnings))
            )
            if may_be and not rest.strip():
                return False
            self._take()
        return True

    def _take(self) -> None:
        """Do the next step: remove a line if it is what the step removes."""
        step = self._steps.pop(0)
        self._untouched = False
        if step == "preamble":
            self._held = without_preamble(self._held)
        elif step == "heading":
            self._held = without_heading(self._held)
        elif fence := _FENCE.match(self._held):
            self._fence, self._held = fence["fence"], self._held[fence.end() :]
            self._steps.insert(0, "preamble")

    def _forward(self, text: str) -> None:
        if not self._told:
            text = text.lstrip()
        if text:
            self._told = True
            self._listener.piece(text)


def _end_of(text: str) -> int:
    """The end of a text without what may be removed from it: white space, and the fence around the whole."""
    bare = text.rstrip()
    unfenced = bare.rstrip("`~")
    return len(unfenced.rstrip()) if unfenced.endswith("\n") else len(bare)


def _place_of(tag: str, text: str) -> int:
    """Where `tag` may begin at the end of `text`; the end itself when it does not."""
    return next((len(text) - size for size in range(len(tag), 0, -1) if text.endswith(tag[:size])), len(text))

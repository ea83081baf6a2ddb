"""Strips wrapping from models' answers: thinking, fences, announcements and headings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from langchain_core.messages import AIMessage

from ...documents.marker_escaping import without_stand_ins
from ...experiment import SECTION_KINDS
from ...models.journal.streaming import TextListener
from ..protocols import Draft

# Providers name the reason differently; each means "cut off at the output limit".
_CUT_OFF = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens"})
_WHOLE_FENCE = re.compile(r"\A(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n(?P<body>.*?)\n?(?P=fence)\s*\Z", re.DOTALL)
_AGREES = r"sure|certainly|of course|okay|absolutely"
_SHOWS = r"here (?:is|are)|here's|below (?:is|are)"
_PREAMBLE = re.compile(rf"\A(?:(?:{_AGREES})\b[^\n]{{0,120}}|(?:{_SHOWS})\b[^\n]{{0,160}})[:.!]\s*\n+", re.IGNORECASE)
_HEADING = re.compile(
    r"#{1,6}[ \t]+(?:\d+\.?[ \t]+)?(?P<hash>.*)"
    rf"|\*\*(?P<bold>[^*]*)\*\*:?[ \t]*|(?P<plain>{'|'.join(SECTION_KINDS)}):?[ \t]*",
    re.IGNORECASE,
)
_LONGEST_HEADING = 300  # characters
_OTHER_HEADINGS = frozenset({"summary", "method", "materials and methods", "methodology", "conclusions"})


def answer_text(message: AIMessage) -> str:
    """The text of an answer, without the thinking that some local servers leave in it."""
    return _without_thinking(str(message.text))


def _without_thinking(text: str) -> str:
    text = without_stand_ins(text).strip()
    if "</think>" in text:
        return text.rpartition("</think>")[2].strip()
    return "" if text.startswith("<think>") else text


def was_cut_off(message: AIMessage) -> bool:
    """Whether the answer ended at the model's output limit."""
    metadata = message.response_metadata
    return any(metadata.get(name) in _CUT_OFF for name in ("finish_reason", "stop_reason"))


def prose(text: str) -> str:
    """An answer's text without a fence, an announcing first line, or a heading of its kind; otherwise unchanged."""
    text = _PREAMBLE.sub("", _without_thinking(text), count=1)
    if whole := _WHOLE_FENCE.match(text):
        text = _PREAMBLE.sub("", whole["body"].strip(), count=1)
    line, ended, rest = text.partition("\n")
    heading = _HEADING.fullmatch(line) if ended and len(line) <= _LONGEST_HEADING else None
    if heading:
        title = (heading["hash"] or heading["bold"] or heading["plain"] or "").rstrip("# \t").strip(" :.").lower()
        if title in SECTION_KINDS or title in _OTHER_HEADINGS:
            return rest.strip()
    return text.strip()


_DECLINED = re.compile(r"\W*not answered\W*", re.IGNORECASE)
# The refusal before a paragraph on the evidence that comes nearest.
_DECLINES = re.compile(r"\A[^\w\[]{0,20}not answered[*_]{0,3}(?:[.:;!]|[ \t]*\n)[\s.:;!*_-]*(?=[\w\[])", re.IGNORECASE)
_ANSWER_HEADING = re.compile(r"\A#{1,6}[ \t]*+answer[ \t]*+:?[ \t]*+\n+", re.IGNORECASE)
# A reference list added by the model; ours is built from the citations.
_LISTS: Final = ("references", "bibliography", "sources", "works cited")
_LIST_LINE: Final = rf"(?<!\n)\n++[ \t]*+(?:#{{1,6}}[ \t]*|\*\*)(?:{'|'.join(_LISTS)})\b[ \t:*]*"
_REFERENCES = re.compile(rf"{_LIST_LINE}(?:\n.*)?\Z", re.IGNORECASE | re.DOTALL)


def extract_answer(draft: Draft) -> Draft:
    """The draft without an "Answer" heading and references; of one that declines to answer, what it names instead."""
    text = _REFERENCES.sub("", _ANSWER_HEADING.sub("", draft.text)).strip()
    if _DECLINED.fullmatch(text):
        return replace(draft, text="", declined=True)
    instead = _DECLINES.sub("", text)
    return replace(draft, text=instead, declined=instead != text)


_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n")
# A first line that may be removed once the text is longer, and how one begins.
_REMOVABLE = re.compile(
    rf"(?:{_AGREES}|{_SHOWS})\b.*"
    r"|(?:`{3,}|~{3,})[\w-]*[ \t]*|#.*|\*\*[^*]*(?:\*\*?:?[ \t]*)?|\W*not answered\W*"
    rf"|(?:{'|'.join(SECTION_KINDS)}):?[ \t]*",
    re.IGNORECASE,
)
_BEGINNINGS: Final = (
    *(*_AGREES.split("|"), "here is", "here are", "here's", "below is", "below are"),
    *("```", "~~~", "**", "<think>", "not answered", *SECTION_KINDS),
)
_MOST_LINES: Final = 4  # an announcement, a fence, another announcement, a heading
_LOOK_AGAIN: Final = 16  # a text is cleaned again when it has grown by this part


class CleanStream:
    """Implements `TextListener`: forwards to `listener` what `clean` keeps of an answer, while it is written.

    What a longer text may still change is held back: first lines that may be removed, and a last line that may begin a
    list of references. If the text changes all the same, it starts again.
    """

    def __init__(self, listener: TextListener, clean: Callable[[str], str]) -> None:
        self._listener = listener
        self._clean = clean
        self._text = self._forwarded = ""
        self._look_at = 0

    def restart(self) -> None:
        self._text, self._look_at = "", 0
        self._show("")

    def piece(self, text: str) -> None:
        self._text += text
        if len(self._text) >= self._look_at and _has_begun(self._text):
            self._look_at = len(self._text) + len(self._text) // _LOOK_AGAIN
            self._show(self._clean(_settled(self._text)))

    def finish(self) -> None:
        """Forward what was held back, once the answer is complete."""
        self._show(self._clean(self._text))

    def _show(self, kept: str) -> None:
        if not kept.startswith(self._forwarded):
            self._forwarded = ""
            self._listener.restart()
        if kept != self._forwarded:
            self._listener.piece(kept[len(self._forwarded) :])
            self._forwarded = kept


def _has_begun(text: str) -> bool:
    """Whether the prose has begun, whatever precedes it."""
    rest = text.rpartition("</think>")[2].lstrip()
    for _ in range(_MOST_LINES):
        line, ended, more = rest.partition("\n")
        begins = not ended and any(start.startswith(line.lower()) for start in _BEGINNINGS)
        if len(line) > _LONGEST_HEADING or not (begins or _REMOVABLE.fullmatch(line)):
            return bool(line)
        rest = more.lstrip()
    return bool(rest)


def _settled(text: str) -> str:
    """A text without a last line that may begin references or close its fence, which is closed."""
    head, ended, last = text.rpartition("\n")
    word = last.strip("#*`~ \t:").lower()
    settled = head if ended and any(name.startswith(word) for name in _LISTS) else text
    opened = _FENCE.match(_PREAMBLE.sub("", _without_thinking(text), count=1))
    if opened is None:
        return settled
    return f"{settled.rstrip().removesuffix(opened['fence'])}\n{opened['fence']}"

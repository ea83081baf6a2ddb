"""Strips wrapping from models' answers: thinking, fences, announcements and headings."""

from __future__ import annotations

import re
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
_PREAMBLE = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|absolutely)\b[^\n]{0,120}|(?:here|below) (?:is|are)\b[^\n]{0,160}"
    r"|here's\b[^\n]{0,160})[:.!]\s*\n+",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"#{1,6}[ \t]+(?:\d+\.?[ \t]+)?(?P<hash>.*)"
    rf"|\*\*(?P<bold>[^*]*)\*\*:?[ \t]*|(?P<plain>{'|'.join(SECTION_KINDS)}):?[ \t]*",
    re.IGNORECASE,
)
_LONGEST_HEADING = 300  # characters
_OTHER_HEADINGS = frozenset({"summary", "method", "materials and methods", "methodology", "conclusions"})


def answer_text(message: AIMessage) -> str:
    """The text of an answer, without the thinking that some local servers leave in it."""
    text = without_stand_ins(str(message.text)).strip()
    if "</think>" in text:
        return text.rpartition("</think>")[2].strip()
    return "" if text.startswith("<think>") else text


def was_cut_off(message: AIMessage) -> bool:
    """Whether the answer ended at the model's output limit."""
    metadata = message.response_metadata
    return any(metadata.get(name) in _CUT_OFF for name in ("finish_reason", "stop_reason"))


def prose(message: AIMessage) -> str:
    """The text without a fence around it, an announcing first line, or a heading that names its kind.

    The text itself is not changed: other problems are left to the checks.
    """
    text = strip_preamble(answer_text(message))
    if whole := _WHOLE_FENCE.match(text):
        text = strip_preamble(whole["body"].strip())
    return strip_heading(text).strip()


def strip_preamble(text: str) -> str:
    """The text after a first line that announces it."""
    return _PREAMBLE.sub("", text, count=1)


def strip_heading(text: str) -> str:
    """The text after a first line that names its kind."""
    line, ended, rest = text.partition("\n")
    heading = _HEADING.fullmatch(line) if ended and len(line) <= _LONGEST_HEADING else None
    if heading:
        title = (heading["hash"] or heading["bold"] or heading["plain"] or "").rstrip("# \t").strip(" :.").lower()
        if title in SECTION_KINDS or title in _OTHER_HEADINGS:
            return rest.lstrip("\n")
    return text


_THINKING: Final = "<think>"
_THOUGHT: Final = "</think>"
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n")
# First lines that are removed once complete, with patterns for their beginnings.
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
_LONGEST_LINE: Final = 300  # removed lines are never longer


class StreamedProse:
    """Implements `TextListener`: receives an answer and forwards its prose to `listener`."""

    def __init__(self, listener: TextListener) -> None:
        self._listener = listener
        self._told = False
        self._begin()

    def _begin(self) -> None:
        self._held = ""
        self._fence = ""
        self._steps = ["preamble", "fence", "heading"]  # remaining steps
        self._untouched = True

    def restart(self) -> None:
        self._begin()
        if self._told:
            self._told = False
            self._listener.restart()

    def piece(self, text: str) -> None:
        self._held += text
        if _THOUGHT in self._held:
            # Some servers omit the opening tag: the text before the closing tag is still thinking.
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
        """True once the prose has begun; removes whatever precedes it."""
        while self._steps:
            self._held = self._held.lstrip()
            if self._untouched and _THINKING.startswith(self._held[: len(_THINKING)]):
                return False
            line, ended, rest = self._held.partition("\n")
            special, beginnings = _LINES[self._steps[0]]
            may_be = len(line) <= _LONGEST_LINE and (
                special.fullmatch(line) or (not ended and any(start.startswith(line.lower()) for start in beginnings))
            )
            if may_be and not rest.strip():
                return False
            self._take()
        return True

    def _take(self) -> None:
        """Do the next step: remove the first line if it matches the step's pattern."""
        step = self._steps.pop(0)
        self._untouched = False
        if step == "preamble":
            self._held = strip_preamble(self._held)
        elif step == "heading":
            self._held = strip_heading(self._held)
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
    """The end of a text without removable parts: white space, and a fence around the whole."""
    bare = text.rstrip()
    unfenced = bare.rstrip("`~")
    return len(unfenced.rstrip()) if unfenced.endswith("\n") else len(bare)


def _place_of(tag: str, text: str) -> int:
    """Where `tag` may begin at the end of `text`; the end itself if it cannot."""
    return next((len(text) - size for size in range(len(tag), 0, -1) if text.endswith(tag[:size])), len(text))


_DECLINED = re.compile(r"\W*not answered\W*", re.IGNORECASE)
# The refusal before a paragraph on the evidence that comes nearest.
_DECLINES = re.compile(r"\A[^\w\[]{0,20}not answered[*_]{0,3}(?:[.:;!]|[ \t]*\n)[\s.:;!*_-]*(?=[\w\[])", re.IGNORECASE)
_ANSWER_HEADING = re.compile(r"\A#{1,6}[ \t]*+answer[ \t]*+:?[ \t]*+\n+", re.IGNORECASE)
# A reference list added by the model; ours is built from the citations.
_LISTS: Final = ("references", "bibliography", "sources", "works cited")
_LIST_LINE: Final = rf"(?<!\n)\n++[ \t]*+(?:#{{1,6}}[ \t]*|\*\*)(?:{'|'.join(_LISTS)})\b[ \t:*]*"
_REFERENCES = re.compile(rf"{_LIST_LINE}(?:\n.*)?\Z", re.IGNORECASE | re.DOTALL)

# The same for unfinished text: a list that has begun or may be beginning; a possible refusal or heading.
_LIST_BEGUN = re.compile(rf"{_LIST_LINE}\n", re.IGNORECASE)
_BEGINNINGS: Final = "|".join(word[:end] for word in _LISTS for end in range(len(word)))
_LIST_BEGINS = re.compile(
    rf"(?<!\s)\s*(?:\n[ \t]*+(?:[#*]*+[ \t]*+(?:{_BEGINNINGS})?|"
    rf"[#*]++[ \t]*+(?:{'|'.join(_LISTS)})[ \t:*]*+))?\Z",
    re.IGNORECASE,
)
_START: Final = "not answered"
_LONGEST_START: Final = 400  # characters held back at the start
_HEADING_BEGINS = re.compile(r"#{1,6}[ \t]*(?:a|an|ans|answ|answe|answer[ \t]*+:?[ \t]*+)?\n*\Z", re.IGNORECASE)


def extract_answer(draft: Draft) -> Draft:
    """The draft without an "Answer" heading and references; of one that declines to answer, what it names instead."""
    text = _REFERENCES.sub("", _ANSWER_HEADING.sub("", draft.text)).strip()
    if _DECLINED.fullmatch(text):
        return replace(draft, text="", declined=True)
    instead = _DECLINES.sub("", text)
    return replace(draft, text=instead, declined=instead != text)


class AnswerFilter:
    """Implements `TextListener`: receives a draft and forwards to `listener` what `extract_answer` will keep of it."""

    def __init__(self, listener: TextListener) -> None:
        self._listener = listener
        self._begin()

    def _begin(self) -> None:
        self._held = ""
        self._look_at = 0
        self._at_start = True
        self._ended = False

    def restart(self) -> None:
        started = not self._at_start
        self._begin()
        if started:
            self._listener.restart()

    def piece(self, text: str) -> None:
        self._held += text
        if self._ended or (len(self._held) <= _LONGEST_START and self._at_start and self._may_be_no_answer()):
            return
        if len(self._held) < self._look_at:
            return
        begun = _LIST_BEGUN.search(self._held)
        self._ended = begun is not None
        stop = begun or _LIST_BEGINS.search(self._held)
        self._forward(self._held[: stop.start()] if stop else self._held)
        self._held = self._held[stop.start() :] if stop else ""
        # Text held back for long is rechecked only when its length has doubled.
        self._look_at = 2 * len(self._held) if len(self._held) > _LONGEST_START else 0

    def finish(self) -> None:
        """Forward what was held back, once the draft is complete."""
        if self._ended:
            return
        if self._at_start:
            self._forward(extract_answer(Draft(self._held)).text)
        else:
            self._forward(_REFERENCES.sub("", self._held).rstrip())
        self._held = ""

    def _may_be_no_answer(self) -> bool:
        """True when the text so far may decline to answer or be a heading; a finished heading is removed."""
        self._held = _DECLINES.sub("", _ANSWER_HEADING.sub("", self._held).lstrip())
        words = re.sub(r"\A\W*", "", self._held).lower()
        declines = _START.startswith(words[: len(_START)]) and not re.search(r"\w", words[len(_START) :])
        return declines or _HEADING_BEGINS.match(self._held) is not None

    def _forward(self, text: str) -> None:
        if text:
            self._at_start = False
            self._listener.piece(text)

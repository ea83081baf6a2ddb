"""Strips what models put around their answers: thinking, fences, announcements and headings."""

from __future__ import annotations

import re

from langchain_core.messages import AIMessage

from ...documents.marker_escaping import without_stand_ins
from ...experiment import SECTION_KINDS

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


def cut_off(message: AIMessage) -> bool:
    """Whether the answer ended at the model's output limit."""
    metadata = message.response_metadata
    return any(metadata.get(name) in _CUT_OFF for name in ("finish_reason", "stop_reason"))


def prose(message: AIMessage) -> str:
    """The text without a fence around it, an announcing first line, or a heading that names its kind.

    The text itself is not touched: the checks find whatever else is wrong with it.
    """
    text = without_preamble(answer_text(message))
    if whole := _WHOLE_FENCE.match(text):
        text = without_preamble(whole["body"].strip())
    return without_heading(text).strip()


def without_preamble(text: str) -> str:
    """The text after a first line that announces it."""
    return _PREAMBLE.sub("", text, count=1)


def without_heading(text: str) -> str:
    """The text after a first line that names its kind."""
    line, ended, rest = text.partition("\n")
    heading = _HEADING.fullmatch(line) if ended and len(line) <= _LONGEST_HEADING else None
    if heading and _names_a_kind((heading["hash"] or heading["bold"] or heading["plain"] or "").rstrip("# \t")):
        return rest.lstrip("\n")
    return text


def _names_a_kind(title: str) -> bool:
    words = title.strip(" :.").lower()
    return words in SECTION_KINDS or words in _OTHER_HEADINGS

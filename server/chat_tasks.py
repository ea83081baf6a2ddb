"""Answers side requests of chat programs: a title for the chat, tags, follow-up questions.

These come as ordinary questions after the first answer. The library cannot answer them, and a run for each would cost
as much as an answer, so they are answered here: the title from the user's own question, the rest empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from ..api.running import find_subject

_HEAD: Final = 800  # characters to search for an instruction
_WORDS: Final = 8  # of a title
_ORDER = re.compile(  # bounded: 800 characters
    r"^[ \t#*>-]*(?:task\s*:\s*)?(?:please\s+|based on[^,\n]{0,60},\s*|you (?:are|will|should|must)\b[^.\n]{0,80}?\b)?"
    r"(?:generat|creat|writ|provid|suggest|summari[sz]|giv|analy[sz]|return|determin|mak|com)\w*\b",
    re.IGNORECASE | re.MULTILINE,
)
_CHAT = r"(?:(?:chat|conversation|dialog(?:ue)?)s?\b|(?:user's|first) (?:messages?|query)\b)"
_TITLE_OF_CHAT = re.compile(
    r"\btitle\b[^.\n]{0,80}?\b(?:for|of|summari[sz]ing|based on)\s+"
    rf"(?:(?:this|the|our|a|an|following|current|whole)\s+){{0,3}}{_CHAT}|{_CHAT} a (?:short )?(?:title|name)\b",
    re.IGNORECASE,
)
_TRANSCRIPT = re.compile(r"<(?:chat_history|conversation)>|^[^\w\n]*(?:user|human)\W*:", re.IGNORECASE | re.MULTILINE)
_TASK = re.compile(r"\s*#+\s*task\b.*<chat_history>", re.IGNORECASE | re.DOTALL)
_TRANSCRIPT_LINE = re.compile(r"^[^\w\n]*(?:user|human|question)[^\w:]*+:\s*+(\S.*)$", re.IGNORECASE | re.MULTILINE)
_JSON = re.compile(r"\{\s*\"(\w+)\"\s*:\s*(\[?)")


def task_answer(messages: Sequence[AnyMessage]) -> str | None:
    """Answer a request that is about the chat, not the library; None for any other."""
    asked = str(messages[-1].text)
    system = "\n".join(str(message.text) for message in messages if isinstance(message, SystemMessage))
    by_system = _is_task(system)
    if not by_system and not _is_task(asked):
        return None
    instruction = system if by_system else asked
    form = _JSON.search(instruction)
    question = _first_question(messages, by_system=by_system)[:_HEAD]
    question = question.encode(errors="replace").decode()  # without lone surrogates
    words = " ".join((find_subject(question).phrase or question).split()[:_WORDS]).strip(" .?!:;,\"'")
    title = f"{words[:1].upper()}{words[1:]}" or "Questions to the library"
    if form is None:
        return title
    return json.dumps({form[1]: [] if form[2] else title if "title" in form[1].lower() else ""}, ensure_ascii=False)


def _is_task(text: str) -> bool:
    """True for a request to title a chat, or for another task on its transcript."""
    if _TASK.match(text):
        return True
    head = text[:_HEAD]
    names = _TITLE_OF_CHAT.search(head) or (re.search(r"\btitle\b", head) and _TRANSCRIPT.search(text))
    return bool(names and _ORDER.search(head))


def _first_question(messages: Sequence[AnyMessage], *, by_system: bool) -> str:
    """The question that opened the chat: from the request's transcript, else the user's first message."""
    asked = str(messages[-1].text)
    history = asked.rpartition("<chat_history>")[2]
    if line := _TRANSCRIPT_LINE.search(history):
        return line[1]
    users = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
    if len(users) > 1 or by_system:
        return users[0]
    return asked.strip().rpartition("\n")[2]

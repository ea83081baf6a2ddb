"""A chat model for questions behind the fake server: reads, rewrites and answers from what it is shown."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from typing import Any

from tests.support.openai_server import Json
from tests.support.protocol_answers import completion, envelope, readings

MARKER = re.compile(r"\[(E\d+)\]")
EARLIER, FRESH = "Sources that earlier answers cited:", "Sources of this question:"


class Librarian:
    """Reads every passage with one `score`, rewrites follow-up questions, and cites some of what it is shown.

    `said` is the content of each of its sentences, `filler` the number of following sentences without a source. `hang`
    are the numbers, from 1, of the writing requests that are never answered; `reached` is set when they arrive.
    """

    def __init__(self, *, score: float = 0.9, filler: int = 0) -> None:
        self.score = score
        self.filler = filler
        self.said = "The authors see it in this way too"
        self.writing: list[Json] = []
        self.rewriting: list[str] = []
        self.hang: set[int] = set()
        self.hung: list[Json] = []
        self.reached: dict[int, threading.Event] = defaultdict(threading.Event)

    @property
    def prompts(self) -> list[str]:
        """The prompts of the writer, in order."""
        return [str(body["messages"][-1]["content"]) for body in self.writing]

    def __call__(self, body: Json) -> Any:
        form = (body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        text = str(body["messages"][-1]["content"])
        if form == "PassageReading":
            return envelope(body, content=json.dumps(readings("It says so.", self.score)))
        if form == "Rewritten":
            self.rewriting.append(text)
            asked = re.findall(r"question \(data[^\n]*\n([^\n]+)", text)[-1]
            return envelope(body, content=json.dumps({"question": f"{asked.rstrip('?')} (of calibration)?"}))
        if form or body.get("tools"):
            return completion(body, tool_turns=0)
        self.writing.append(body)
        if (number := len(self.writing)) in self.hang:
            self.hung.append(body)
            self.reached[number].set()
            return "hang"
        return envelope(body, content=self._answer(text))

    def _answer(self, text: str) -> str:
        """Two of the new sources, alternating between turns, and the last recalled one; none when all scores are 0."""
        if not self.score:
            return "NOT ANSWERED"
        head, _, fresh = text.partition(FRESH)
        ids = list(dict.fromkeys(MARKER.findall(fresh)))
        place = len(self.writing) % max(1, len(ids) - 1)
        recalled = MARKER.findall(head.partition(EARLIER)[2])
        told = " ".join(f"{self.said} [{item}]." for item in [*ids[place : place + 2], *recalled[-1:]])
        return f"{told}\n\n{'Nothing else is said about it here. ' * self.filler}".strip()

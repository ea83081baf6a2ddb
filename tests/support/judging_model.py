"""A model that writes given drafts, and judges a sentence deterministically by a word in it."""

from __future__ import annotations

import json
import re

from tests.support.openai_server import Json
from tests.support.protocol_answers import completion, envelope, readings

GOOD = "Ensembles of seeds were compared with single networks [E1]."
FALSE = "Every wearer slept well [E2]."
REVERSED = "Calibration never helps [E3]."
WEAK = "It may help others too [E1]."
DRAFT = f"{GOOD} {FALSE}\n\n{REVERSED} {WEAK}"
REASONS = {"slept": "no word on sleep", "never": "it says that it helps", "others": "for one group only"}
VERDICTS = {"slept": "unsupported", "never": "contradicted", "others": "partly"}


class JudgingModel:
    """Writes `drafts` in sequence, each as the repair of the previous one; judges by the words of a sentence.

    When asked to repair sentences, it keeps those that are in the next draft and removes the others; the first of them
    is replaced by what that draft adds.
    """

    def __init__(self, *drafts: str) -> None:
        self._drafts = list(drafts)
        self.repairs: list[str] = []
        self.judged: list[list[str]] = []

    def __call__(self, body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        request = body["messages"][-1]["content"]
        fields = answer_fields(body)
        if "P1" in fields:
            asked = judged_sentences(request)
            self.judged.append([sentence for _, _, sentence in asked])
            given = {name: self.verdict(sentence, letters) for name, letters, sentence in asked}
            return envelope(body, content=json.dumps(given))
        if "S1" in fields:
            self.repairs.append(request)
            return envelope(body, content=json.dumps(self.repaired(failing_sentences(request))))
        if "findings" in fields:
            return envelope(body, content=json.dumps(readings("It says so.", 0.9)))
        if fields:
            return completion(body, tool_turns=0)
        if "A first draft of this section" in request:
            self.repairs.append(request)
        return envelope(body, content=self._next())

    def _next(self) -> str:
        return self._drafts.pop(0) if len(self._drafts) > 1 else self._drafts[0]

    def repaired(self, failing: dict[str, str]) -> dict[str, str]:
        """The replacement of each failing sentence according to the next draft."""
        following = self._next()
        put = {name: sentence if sentence in following else "" for name, sentence in failing.items()}
        new = [
            part for part in re.split(r"(?<=\.)\s+", following) if part not in DRAFT and part not in failing.values()
        ]
        for name in put:
            if not put[name]:
                put[name] = " ".join(new)
                break
        return put

    def verdict(self, sentence: str, letters: list[str]) -> Json:
        word = next((word for word in VERDICTS if word in sentence), "")
        label = VERDICTS.get(word, "supported")
        does = {"unsupported": "idle", "contradicted": "contradicts"}.get(label, "supports")
        share = {"does": does, "sentences": [] if does == "idle" else [1]}
        reason = REASONS.get(word, "it says so")
        return {"reason": reason, **dict.fromkeys(letters, share), "verdict": label}


def answer_fields(body: Json) -> dict[str, Json]:
    """The fields of the requested answer, by its schema; none when text is requested."""
    form = body.get("response_format") or {}
    return dict(form.get("json_schema", {}).get("schema", {}).get("properties", {}))


def judged_sentences(request: str) -> list[tuple[str, list[str], str]]:
    """The sentences to be judged: id, ids of the passages, words."""
    found = re.findall(r"^(P\d+), (?:cites|weighs) passages? ([E\d, ]+): (.*)$", request, re.MULTILINE)
    return [(name, letters.split(", "), sentence) for name, letters, sentence in found]


def failing_sentences(request: str) -> dict[str, str]:
    """The sentences to be repaired, by id."""
    return dict(re.findall(r"^(S\d+): (.*)$", request, re.MULTILINE))

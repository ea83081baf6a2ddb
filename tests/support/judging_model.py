"""A model that writes given drafts, and judges a sentence by a word in it, honestly and always alike."""

from __future__ import annotations

import json
import re

from tests.support.openai_server import Json
from tests.support.protocol_answers import completion, envelope

GOOD = "Ensembles of seeds were compared with single networks [E1]."
FALSE = "Every wearer slept well [E2]."
REVERSED = "Calibration never helps [E3]."
WEAK = "It may help others too [E1]."
DRAFT = f"{GOOD} {FALSE}\n\n{REVERSED} {WEAK}"
REASONS = {"slept": "no word on sleep", "never": "it says that it helps", "others": "for one group only"}
VERDICTS = {"slept": "unsupported", "never": "contradicted", "others": "partly"}


class JudgingModel:
    """Writes `drafts` one after the other, each as the repair of the one before; judges by what a sentence says."""

    def __init__(self, *drafts: str) -> None:
        self._drafts = list(drafts)
        self.repairs: list[str] = []
        self.judged: list[list[str]] = []

    def __call__(self, body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        request = body["messages"][-1]["content"]
        if body.get("response_format"):
            pairs = re.findall(r"^(P\d+), cites passage \w: (.*)$", request, re.MULTILINE)
            if not pairs:
                return completion(body, tool_turns=0)
            self.judged.append([sentence for _, sentence in pairs])
            return envelope(body, content=json.dumps({name: self.verdict(sentence) for name, sentence in pairs}))
        if "A first draft of this section" in request:
            self.repairs.append(request)
        return envelope(body, content=self._drafts.pop(0) if len(self._drafts) > 1 else self._drafts[0])

    def verdict(self, sentence: str) -> Json:
        word = next((word for word in VERDICTS if word in sentence), "")
        label = VERDICTS.get(word, "supported")
        place = 0 if label == "unsupported" else 1
        reason = REASONS.get(word, "it says so")
        return {"reason": reason, "verdict": label, "first_sentence": place, "last_sentence": place}

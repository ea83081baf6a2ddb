"""A model that judges sentences of users' texts by a word in them, and says which need a citation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tests.support.judging_model import answer_fields, judged_sentences
from tests.support.openai_server import Json
from tests.support.protocol_answers import envelope

LABELS = {"always": "overstated", "never": "contradicted", "tuesday": "not_found"}


class CheckingModel:
    """Says `overstated`, `contradicted` or `not_found` where a sentence has the word for it, else `supported`.

    `labels` are such words, in small letters. A sentence without a citation needs one if it has the word "worldwide".
    """

    def __init__(self, labels: Mapping[str, str] = LABELS) -> None:
        self.labels = labels
        self.judged: list[str] = []
        self.classified: list[str] = []

    def __call__(self, body: Json) -> Json:
        request = body["messages"][-1]["content"]
        fields = answer_fields(body)
        if "P1" in fields:
            asked = judged_sentences(request)
            self.judged += [sentence for _, _, sentence in asked]
            given = {name: self._verdict(letters, sentence) for name, letters, sentence in asked}
            return envelope(body, content=json.dumps(given))
        sentences = dict(re.findall(r"^(S\d+): (.*)$", request, re.MULTILINE))
        self.classified += list(sentences.values())
        kinds = {name: "needs" if "worldwide" in words else "own" for name, words in sentences.items()}
        return envelope(body, content=json.dumps(kinds))

    def _verdict(self, letters: list[str], sentence: str) -> Json:
        label = next((label for word, label in self.labels.items() if word in sentence.lower()), "supported")
        does = {"not_found": "idle", "contradicted": "contradicts"}.get(label, "supports")
        share = {"does": does, "sentences": [] if does == "idle" else [1]}
        return {"reason": f"passage E1 decides: {label}", **dict.fromkeys(letters, share), "verdict": label}

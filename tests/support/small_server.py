"""A chat model on a server that holds few tokens and refuses what is more, as llama.cpp and vLLM do."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.openai_server import Json, Status
from tests.support.protocol_answers import MARKER, completion, envelope

_CHARACTERS = 3.5  # of a token, as llama.cpp counts papers


class SmallServer:
    """Answers what fits: a reading gives findings from all over its passages, a text cites each marker it is shown.

    `held` is what each answered request took with its answer, `asked` the forms of them, `invalid` the questions that
    were asked again. After `busy_after` answers it is busy. vLLM `counts_answer` too, llama.cpp the prompt alone.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.counts_answer = True
        self.busy_after: int | None = None
        self.held: list[int] = []
        self.asked: list[str] = []
        self.answered: list[Json] = []
        self.refused: list[int] = []
        self.invalid = 0
        self.markers_shown_to_the_writer: set[str] = set()

    def __call__(self, body: Json) -> Any:
        if self.busy_after is not None and len(self.answered) >= self.busy_after:
            return Status(503)
        text = json.dumps([body["messages"], body.get("tools") or []], ensure_ascii=False)
        taken = int(len(text) / _CHARACTERS) + (body["max_tokens"] if self.counts_answer else 0)
        if taken > self.size:
            self.refused.append(taken)
            return Status(
                400, f"the request exceeds the available context size ({self.size} tokens), try increasing it"
            )
        form = (body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        self.held.append(taken)
        self.answered.append(body)
        self.asked.append(form or ("planning" if body.get("tools") else "writing"))
        self.invalid += any("JSON" in str(item["content"]) for item in body["messages"][2:] if item["role"] == "user")
        if form == "PassageReading":
            return envelope(body, content=json.dumps({"findings": _findings(str(body["messages"][-1]["content"]))}))
        if form or body.get("tools"):
            return completion(body, tool_turns=3)
        shown = list(dict.fromkeys(MARKER.findall(str(body["messages"][-1]["content"]))))
        self.markers_shown_to_the_writer |= {marker.strip("[]") for marker in shown}
        return envelope(body, content=" ".join(f"The authors see it in this way too {marker}." for marker in shown))


def _findings(text: str) -> list[Json]:
    numbers = [int(number) for number in re.findall(r"^(\d+): ", text, re.MULTILINE)]
    needs = re.findall(r"^(N\d+) \(", text, re.MULTILINE)
    chosen = numbers[:: max(1, len(numbers) // 5)][:5]
    return [
        {
            "statement": f"What sentence {number} says of the matter at hand, with its conditions.",
            "sentences": [number, min(number + 1, numbers[-1])],
            "need": needs[place % len(needs)],
            "score": round(0.95 - 0.05 * place, 2),
        }
        for place, number in enumerate(chosen)
    ]

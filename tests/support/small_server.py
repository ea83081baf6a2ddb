"""A chat model on a server with a small context, which treats longer prompts as llama.cpp, vLLM or Ollama do."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from tests.support.openai_server import Json, Raw, Status
from tests.support.protocol_answers import MARKER, completion, envelope

Kind = Literal["llama.cpp", "vllm", "ollama"]
_CHARACTERS = 3.5  # per token, as llama.cpp counts papers


class SmallServer:
    """Answers what fits: a reading returns findings from all its passages, a text cites each marker it is shown.

    vLLM rejects a prompt that does not fit together with the longest answer; llama.cpp one that does not fit by itself,
    and it cuts an answer off at the end of its context. Ollama silently reads only the end of a long prompt.

    `held` is the size of each answered request with its answer, `asked` their forms, `invalid` the requests that were
    repeated, `unread` and `cut` those that were not completely read or written. After `busy_after` answers it is busy.
    """

    def __init__(self, size: int, kind: Kind = "vllm") -> None:
        self.size = size
        self.kind = kind
        self.answer_tokens = 300  # at least, where there is room
        self.busy_after: int | None = None
        self.held: list[int] = []
        self.asked: list[str] = []
        self.answered: list[Json] = []
        self.refused: list[int] = []
        self.invalid = self.unread = self.cut = 0
        self.markers_shown_to_the_writer: set[str] = set()

    def __call__(self, body: Json) -> Any:
        if self.busy_after is not None and len(self.answered) >= self.busy_after:
            return Status(503)
        said = [body["messages"], body.get("tools") or []]
        prompt = _tokens(json.dumps(said, ensure_ascii=False))
        if refusal := self._refusal(prompt, body["max_tokens"]):
            self.refused.append(prompt)
            return refusal
        self.unread += prompt > self.size
        self.answered.append(body)
        self.asked.append(_form(body) or ("planning" if body.get("tools") else "writing"))
        self.invalid += any("JSON" in str(item["content"]) for item in body["messages"][2:] if item["role"] == "user")
        return self._bounded(self._answer(body), min(prompt, self.size), body["max_tokens"])

    def _refusal(self, prompt: int, answer: int) -> Raw | Status | None:
        if self.kind == "llama.cpp" and prompt > self.size:
            said = (
                f"request ({prompt} tokens) exceeds the available context size ({self.size} tokens), try increasing it"
            )
            error = {"code": 400, "message": said, "type": "exceed_context_size_error"}
            return Raw(json.dumps({"error": {**error, "n_prompt_tokens": prompt, "n_ctx": self.size}}), 400)
        if self.kind == "vllm" and prompt + answer > self.size:
            said = (
                f"This model's maximum context length is {self.size} tokens. However, you requested {prompt + answer} "
            )
            said += f"tokens ({prompt} in the messages, {answer} in the completion). Please reduce the length."
            return Status(400, said, code="BadRequestError")
        return None

    def _answer(self, body: Json) -> Json:
        form, shown = _form(body), str(body["messages"][-1]["content"])
        if form == "PassageReading":
            return envelope(body, content=json.dumps({"findings": _findings(shown)}))
        if form or body.get("tools"):
            return completion(body, tool_turns=3)
        markers = list(dict.fromkeys(MARKER.findall(shown)))
        self.markers_shown_to_the_writer |= {marker.strip("[]") for marker in markers}
        return envelope(body, content=" ".join(f"The authors see it in this way too {marker}." for marker in markers))

    def _bounded(self, answer: Json, prompt: int, most: int) -> Json:
        """The answer with its usage, cut off at the end of the context."""
        choice = answer["choices"][0]
        text = choice["message"]["content"]
        left = self.size - prompt if self.kind == "llama.cpp" else most
        given = min(most, max(self.answer_tokens, _tokens(text))) if text else 30
        if text and given > left:
            self.cut += 1
            given, choice["finish_reason"] = left, "length"
            choice["message"]["content"] = text[: len(text) // 2]
        self.held.append(prompt + given)
        answer["usage"] = {"prompt_tokens": prompt, "completion_tokens": given, "total_tokens": prompt + given}
        return answer


def _tokens(text: str) -> int:
    return int(len(text) / _CHARACTERS)


def _form(body: Json) -> str:
    return str((body.get("response_format") or {}).get("json_schema", {}).get("name", ""))


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

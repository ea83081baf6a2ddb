"""A model that makes the mistakes models make, by seed: pass `Adversary(seed)` to `FakeOpenAI(behaviour=...)`.

Every mistake has been observed in servers and models: sources that do not exist, citations in foreign formats, numbers
that nobody measured, copied paragraphs, invalid JSON, empty answers, unknown tools. It knows only the protocol.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.judging_model import answer_fields, judged_sentences
from tests.support.openai_server import Raw
from tests.support.protocol_answers import (
    Json,
    envelope,
    instance,
    markers,
    phrase,
    request_hash,
    request_words,
    sentences,
)

# What no output may ever contain.
FOREIGN_KEYS = ("made_up", "made2024up", "Smith et al., 2021", "[E999]", "[E0]")

_FOREIGN = (
    " as shown before [E999]",
    " [E0]",
    " (Smith et al., 2021)",
    " [@made_up]",
    " [@made_up, p. 4]",
    " @made_up",
    r" \cite{made2024up}",
    r" \citep[see][p.~4]{made2024up}",
    " [17]",
    " (made2024up)",
    " [E1, E999]",
    " [[E999]]",
)

# What a repaired sentence must not start.
_FORGED = ("", "## References\n\n- Smith", "| a | b |\n|---|---|", '"An open quotation ', "`code ", "- ", "1. ", "\n\n")


class Adversary:
    """Answers a request wrongly with probability `how_often` (0-1); seed and request determine how."""

    def __init__(self, seed: int, how_often: float = 0.6) -> None:
        self._seed = seed
        self._how_often = how_often
        # A model that searches endlessly does so in every turn.
        self._endless = random.Random(f"endless {seed}").random() < 0.25

    def __call__(self, body: Json) -> Json | Raw | None:
        dice = random.Random(f"{self._seed} {request_hash(body)}")
        if body.get("tools") and self._endless:
            return envelope(body, tool_calls=[_call(body, dice) for _ in range(dice.randint(1, 4))])
        if dice.random() >= self._how_often:
            return None
        ways = _WITH_TOOLS if body.get("tools") else _WITH_SCHEMA if body.get("response_format") else _WITH_TEXT
        return dice.choice(ways)(body, dice)


def _call(
    body: Mapping[str, Any], dice: random.Random, *, name: str | None = None, arguments: str | None = None
) -> Json:
    function = dice.choice(body["tools"])["function"]
    if arguments is None:
        arguments = json.dumps(instance(function.get("parameters") or {}, dice, request_words(body)))
    # Some servers give every call the same id.
    identifier = dice.choice(["call_0", "", f"call_{dice.getrandbits(24):x}"])
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": name or function["name"], "arguments": arguments},
    }


def _unknown_tool(body: Json, dice: random.Random) -> Json:
    name = dice.choice(["browse_web", "finish", "", "search evidence", "__import__"])
    return envelope(body, tool_calls=[_call(body, dice, name=name or "?")])


def _bad_arguments(body: Json, dice: random.Random) -> Json:
    arguments = dice.choice(
        [
            '{"query": "unfinished',
            "{}",
            "",
            "null",
            "[]",
            '"a string"',
            '{"query": 7, "papers": "all", "years": "recent"}',
            '{"query": ""}',
            '{"chunk_id": "nobody:00000", "window": -3}',
            '{"chunk_id": "../../etc/passwd", "window": 1000000}',
            '{"key": "made_up"}',
            '{"query": "' + "very " * 400 + 'long"}',
            '{"query": "x", "made_up_argument": true}',
        ]
    )
    return envelope(body, tool_calls=[_call(body, dice, arguments=arguments)])


def _many_calls(body: Json, dice: random.Random) -> Json:
    return envelope(body, content="Searching.", tool_calls=[_call(body, dice) for _ in range(12)])


def _foreign_citations(body: Json, dice: random.Random) -> Json:
    text = sentences(dice, request_words(body), markers(body))
    parts = text.split(".")
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(parts))
        parts[place] += dice.choice(_FOREIGN)
    return envelope(body, content=".".join(parts))


def _only_foreign(body: Json, dice: random.Random) -> Json:
    words = request_words(body)
    lines = [f"{phrase(dice, words, 8, 14).capitalize()}{dice.choice(_FOREIGN)}." for _ in range(5)]
    references = "\n\n## References\n\n- Smith, J. et al. (2021). A paper that does not exist. [@made_up]"
    return envelope(body, content=" ".join(lines) + dice.choice(["", references]))


def _invented_numbers(body: Json, dice: random.Random) -> Json:
    """Values that nobody measured, in the notations that people use."""
    text = sentences(dice, request_words(body), markers(body))
    values = [
        f" reached {dice.random():.4f}",
        f" {dice.randint(1000, 9999):,} times",
        f" by {dice.uniform(1, 99):.2f}%",
        f" (p = {dice.uniform(1, 9):.1f} × 10^-{dice.randint(3, 9)})",
        " 1e99999",
        " 1" + "0" * 5000,
    ]
    return envelope(body, content=text.replace(".", dice.choice(values) + ".", dice.randint(1, 4)))


def _copied_paragraph(body: Json, dice: random.Random) -> Json:
    """The longest line of the request as the model's own, or after an unclosed quotation mark."""
    lines = sorted(body["messages"][-1]["content"].splitlines(), key=len)[-4:]
    copied = dice.choice(lines)
    cited = dice.choice([*markers(body), ""])
    return envelope(body, content=f"{dice.choice(['', '“', 'It is so that '])}{copied} {cited}")


def _wrong_evidence(body: Json, dice: random.Random) -> Json:
    """Every sentence cites the same source."""
    known = markers(body) or ["[E1]"]
    wrong = dice.choice(known)
    lines = [phrase(dice, request_words(body), 8, 14).capitalize() for _ in range(7)]
    return envelope(body, content=" ".join(f"{line} {wrong}." for line in lines))


def _empty(body: Json, dice: random.Random) -> Json:
    return envelope(body, content=dice.choice(["", " \n ", None, "...", "I cannot help with that."]))


def _cut_off(body: Json, dice: random.Random) -> Json:
    text = sentences(dice, request_words(body), markers(body))
    return envelope(body, content=text[: dice.randrange(len(text))], finish_reason="length")


def _wrapped(body: Json, dice: random.Random) -> Json:
    text = sentences(dice, request_words(body), markers(body))
    thought = f"<think>I could cite [@made_up] here.</think>\n{text}"
    return envelope(body, content=dice.choice([f"```markdown\n{text}\n```", f"Sure! Here it is:\n\n{text}", thought]))


def _hostile_text(body: Json, dice: random.Random) -> Json:
    text = sentences(dice, request_words(body), markers(body))
    extra = dice.choice(
        [
            "<script>alert(1)</script>",
            "\x00\x1b[31m",
            "\u202eevil\u202c",
            "![x](http://example.invalid/x.png)",
            "{query}",
        ]
    )
    return envelope(body, content=f"{extra} {text}")


def _broken_json(body: Json, dice: random.Random) -> Json:
    form = body["response_format"]
    schema = form.get("json_schema", {}).get("schema", {"type": "object"})
    whole = json.dumps(instance(schema, dice, request_words(body)))
    return envelope(
        body,
        content=dice.choice(
            [
                whole[: len(whole) // 2],
                whole.replace('"', "'"),
                f"Here you are:\n```json\n{whole}\n```",
                "{}",
                "null",
                "[]",
                "no JSON at all",
                "",
                whole.replace("{", '{"score": 17, "first_sentence": -4, "last_sentence": 1000000000, ', 1),
                json.dumps({"findings": _FINDINGS}),
                json.dumps({"needs": _NEEDS}),
                "{" * 500,
            ]
        ),
    )


_FINDINGS = [
    {"statement": "So it is", "sentences": [0, 9999, -3], "need": "N999", "score": 1.0},
    {"statement": "[E1] [@made_up] says so", "sentences": "1-9999999", "need": ["N1"], "score": "85%"},
    {"statement": "", "sentences": [], "need": None, "score": "high"},
    "a finding",
]
_NEEDS = [
    {"need": "``` [@made_up] {query}", "asks": "everything", "queries": "one [E999]"},
    *(
        {"need": f"need {number} " + "very " * 400, "asks": "limit", "queries": ["", "0.7", "x" * 4000]}
        for number in range(40)
    ),
]


def _broken_envelope(body: Json, dice: random.Random) -> Json | Raw:
    whole = envelope(body, content="text")
    choice = whole["choices"][0]
    way = dice.randrange(4)
    if way == 0:
        choice["message"].pop("content")
    elif way == 1:
        whole.pop("usage")
        choice["finish_reason"] = None
    elif way == 2:
        choice["message"]["tool_calls"] = []
    else:
        choice["message"]["content"] = [{"type": "text", "text": "in a block"}]
    return whole


def _judged_wrongly(body: Json, dice: random.Random) -> Json:
    """Random verdicts, some omitted, garbled or given for sentences that were not asked about."""
    schema = body["response_format"].get("json_schema", {}).get("schema", {})
    parts = schema.get("properties", {})
    if not parts or any(part.get("type") != "object" for part in parts.values()):
        return _broken_json(body, dice)
    given: dict[str, Any] = {}
    for name, part in parts.items():
        said = _random_instance(part, instance(part, dice, request_words(body), schema), dice)
        way = dice.random()
        if way < 0.6:
            given[name] = said
        elif way < 0.75:
            given[f"{name}{dice.randint(1, 9)}"] = said
        elif way < 0.9:
            given[name] = dice.choice(["supported", None, [], {"verdict": "supported"}, 7])
    return envelope(body, content=dice.choice([json.dumps(given), json.dumps([given]), f"So:\n{json.dumps(given)}"]))


def _random_instance(schema: Json, value: Any, dice: random.Random) -> Any:
    """A value of a schema with choices and numbers drawn at random, occasionally out of bounds."""
    if "enum" in schema:
        return dice.choice([*schema["enum"] * 2, "SUPPORTED!", "on-topic", "true"])
    if schema.get("type") == "object":
        return {name: _random_instance(schema["properties"].get(name, {}), item, dice) for name, item in value.items()}
    if schema.get("type") == "array":
        return dice.choice([[dice.randint(-1, 9) for _ in range(dice.randint(0, 3))], "1-3", None])
    return dice.randint(-1, 9) if schema.get("type") == "integer" else value


def _repaired_wrongly(body: Json, dice: random.Random) -> Json:
    """Sentences that cite no evidence of ours, merge with the next or forge a heading; some are omitted."""
    parts = body["response_format"].get("json_schema", {}).get("schema", {}).get("properties", {})
    if not parts or any(part.get("type") != "string" for part in parts.values()):
        return _broken_json(body, dice)
    words, cited, wrong = request_words(body), [*markers(body), ""], [*_FOREIGN, "", ""]
    given = {
        name: f"{dice.choice(_FORGED)}{phrase(dice, words, 4, 12)} {dice.choice(cited)}{dice.choice(wrong)}."
        for name in parts
        if dice.random() < 0.8
    }
    return envelope(body, content=json.dumps(given | {"S99": "Nobody asked for this."}))


def honest_verdicts(body: Json) -> Json | None:
    """The answer of a judge that accepts a sentence when its passages share words with it; None for other requests."""
    if "P1" not in answer_fields(body):
        return None
    request = body["messages"][-1]["content"]
    passages = dict(re.findall(r"^`{3,}text passage (\w+) [^\n]*\n(.*?)^`{3,}$", request, re.MULTILINE | re.DOTALL))
    given = {}
    for name, letters, sentence in judged_sentences(request):
        words = set(re.findall(r"[a-z]{5,}", sentence.lower()))
        shares = {
            letter: sum(word in passages.get(letter, "").lower() for word in words) / max(1, len(words))
            for letter in letters
        }
        believed = max(shares.values()) >= _BELIEVED
        given[name] = {
            "reason": f"{max(shares.values()):.2f} of its words",
            **{
                letter: {"does": "supports", "sentences": [1]} if believed else {"does": "idle", "sentences": []}
                for letter in letters
            },
            "verdict": "supported" if believed else "unsupported",
        }
    return envelope(body, content=json.dumps(given))


_BELIEVED = 0.2
_Way = Callable[[Json, random.Random], "Json | Raw"]
_WITH_TEXT: tuple[_Way, ...] = (
    _foreign_citations,
    _foreign_citations,
    _only_foreign,
    _invented_numbers,
    _copied_paragraph,
    _wrong_evidence,
    _empty,
    _cut_off,
    _wrapped,
    _hostile_text,
    _broken_envelope,
)
_WITH_SCHEMA: tuple[_Way, ...] = (
    _broken_json,
    _judged_wrongly,
    _judged_wrongly,
    _repaired_wrongly,
    _empty,
    _cut_off,
    _broken_envelope,
)
_WITH_TOOLS: tuple[_Way, ...] = (
    _unknown_tool,
    _bad_arguments,
    _bad_arguments,
    _many_calls,
    _empty,
    _broken_envelope,
)

"""Answers of chat models: prose without its wrapping, and validated structured answers, requested again once.

The schema is sent as `response_format` through the caller and the answer is validated here: LangChain's structured
output costs 50 ms more per call with twenty concurrent calls. Servers that ignore the format still work, since JSON in
prose, in fences or with small errors is found and repaired.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

import json_repair
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ...documents.marker_escaping import strip_placeholders
from ...experiment import SECTION_KINDS
from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, Room
from ...models.journal.streaming import TextListener
from ...prompts import PromptLibrary
from ..protocols import Brief, Draft
from .prompt_format import present_lines

Note = Callable[[str], None]

_log = logging.getLogger(__name__)
_READ_CHARACTERS = 50_000
_OBJECTS_TRIED = 20
# Fields that OpenAI's strict mode accepts; pydantic validates bounds and formats afterwards.
_SCHEMA_FIELDS = ("type", "description", "enum")
# A part that occurs more often is referenced instead of inlined; small models' servers support references less well.
_MOST_INLINED = 6
_REFERENCE = re.compile(r'"#/\$defs/([^"]+)"')


class StructuredAnswer(BaseModel):
    """Base of requested answers; every field is required, unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, str_strip_whitespace=True)

    @classmethod
    def candidates(cls, objects: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the candidates for the answer among the JSON objects in a text."""
        return objects

    @classmethod
    def usable_part(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Return the usable part of an answer that was cut off."""
        return data


class NumberedAnswer(StructuredAnswer):
    """Base of answers with a field per item (S1, S2 ...), so that a server that enforces the schema omits none."""

    @model_validator(mode="before")
    @classmethod
    def _by_id(cls, data: Any) -> Any:
        return {str(name).strip().upper(): value for name, value in data.items()} if isinstance(data, Mapping) else data


def lowercase(value: object) -> object:
    """Normalize a word of an answer to lower case without blanks, quotes or full stop; other values are unchanged."""
    return value.strip(" .\"'").lower() if isinstance(value, str) else value


MOST_SENTENCES: Final = 8  # maximum per finding
_RANGE: Final = re.compile(r"(\d{1,4})(?:\s*(?:-|\u2013|\u2014|to|\.\.+|\u2026)\s*(\d{1,4}))?")
# A sentence quoted after its number; other numbers in it do not name sentences.
_QUOTED: Final = re.compile(r"\s*[\[(]?s?(\d{1,4})[\])]?\s*[:.)]\s*[^\W\d_]{2}", re.IGNORECASE)


def parse_numbers(value: Any) -> list[int]:
    """Parse sentence numbers in any notation: 3, "3-5", "[2], [4]", ["1", 2], ["2: the sentence itself"]."""
    parts = value if isinstance(value, list | tuple) else [value]
    found: list[int] = []
    for part in map(str, parts):
        quoted = _QUOTED.match(part)
        for first, last in [(quoted[1], "")] if quoted else _RANGE.findall(part):
            found += range(int(first), min(int(last or first), int(first) + MOST_SENTENCES) + 1)
    return sorted(set(found))


AnswerT = TypeVar("AnswerT", bound=StructuredAnswer)


def log_note(note: str) -> None:
    """The default `Note`: writes notes to the log."""
    _log.warning(note)


@lru_cache(maxsize=32)
def build_schema(model: type[StructuredAnswer]) -> dict[str, Any]:
    """Return the JSON schema of an answer for OpenAI's strict mode; cached, so do not modify it."""
    made = model.model_json_schema()
    definitions, used = made.get("$defs", {}), Counter(_REFERENCE.findall(json.dumps(made)))
    shared = {name for name, number in used.items() if number > _MOST_INLINED}
    schema = {"title": model.__name__, **_make_strict(made, definitions, shared)}
    return schema | (
        {"$defs": {name: _make_strict(definitions[name], definitions, shared) for name in shared}} if shared else {}
    )


def _make_strict(schema: dict[str, Any], definitions: dict[str, Any], shared: Collection[str]) -> dict[str, Any]:
    """Reduce a schema to what strict mode accepts; nested objects are inlined, unless they are `shared`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {"$ref": schema["$ref"]} if name in shared else _make_strict(definitions[name], definitions, shared)
    if "properties" not in schema:
        plain = {part: schema[part] for part in _SCHEMA_FIELDS if part in schema}
        return {**plain, "items": _make_strict(schema["items"], definitions, shared)} if "items" in schema else plain
    fields = schema["properties"]
    return {
        "type": "object",
        "properties": {name: _make_strict(field, definitions, shared) for name, field in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class ChatRole:
    """Base of the roles on a chat model.

    Args:
        caller: calls the model.
        max_tokens: limit for one answer, in tokens of the model.
        room: the server's context size.
        note: receives one line about each task for which the model gave no valid answer.
    """

    caller: ChatCaller
    prompts: PromptLibrary
    max_tokens: int = field(kw_only=True)
    room: Room = field(default=UNLIMITED, kw_only=True)
    note: Note = field(default=log_note, kw_only=True)

    def preamble(self, brief: Brief) -> str:
        """The author's preferences as a text to put before a task; empty if there are none."""
        if not brief.preferences:
            return ""
        return f"{self.prompts['preferences'].render(lines=present_lines(brief.preferences, 'preferences'))}\n\n"

    async def ask(
        self,
        messages: Sequence[BaseMessage],
        model: type[AnswerT],
        *,
        check: Callable[[AnswerT], object] = lambda answer: None,
        cache_messages: Sequence[BaseMessage] | None = None,
    ) -> AnswerT | None:
        """Return the answer as a `model`, or None if two attempts give no valid one.

        Args:
            check: validates what pydantic cannot, such as sentence numbers; raises ValueError with one line for the
                model.
            cache_messages: see `ChatCaller.call`.
        """
        schema = build_schema(model)
        more: list[BaseMessage] = []
        for _ in range(2):
            alias: dict[str, Any] = {} if cache_messages is None else {"cache_messages": [*cache_messages, *more]}
            answer = await self.caller.call([*messages, *more], schema=schema, max_tokens=self.max_tokens, **alias)
            text = answer_text(answer.message)
            try:
                return parse(text, model, check, cut=was_cut_off(answer.message))
            except ValueError as problem:
                await self.caller.reject(answer)
                ending = "; it was cut off, so be briefer" if was_cut_off(answer.message) else ""
                complaint = self.prompts["json_again"].render(problem=f"{problem}{ending}")
            # The second attempt shows as much of the first answer as fits; some servers refuse an empty message.
            asked = [str(message.content) for message in messages]
            shown = text[: self.room.left(_READ_CHARACTERS, complaint, *asked)]
            more = [AIMessage(shown or "(empty)"), HumanMessage(self.room.shorten(complaint))]
        return None


def parse(
    text: str, model: type[AnswerT], check: Callable[[AnswerT], object] = lambda answer: None, *, cut: bool = False
) -> AnswerT:
    """Return the first JSON object in `text` that is a valid `model`; raises ValueError with a one-line problem."""
    problem = "it has no JSON object"
    for index, data in enumerate(model.candidates(json_objects(text))):
        try:
            answer = model.model_validate(model.usable_part(data) if cut else data)
            check(answer)
        except ValidationError as error:
            # Without the inputs, which are the model's own text: this line becomes part of a prompt.
            found = "; ".join(f"field {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            problem = found if index == 0 else problem
        except ValueError as error:
            problem = str(error)
        else:
            return answer
    raise ValueError(problem)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in `text`: first the valid ones, then repaired ones."""
    text = text[:_READ_CHARACTERS]
    decoder = json.JSONDecoder()
    position = -1
    for _ in range(_OBJECTS_TRIED):
        position = text.find("{", position + 1)
        if position < 0:
            break
        try:
            data, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            yield data
            position = end - 1
    repaired = repair_json(text[max(0, text.find("{")) :])
    # An empty list counts as an empty object.
    for data in repaired or [{}] if isinstance(repaired, list) else [repaired]:
        if isinstance(data, dict):
            yield data


# Repairing takes quadratic time or worse in the number of brackets: 50,000 opening braces take minutes. Our schemas are
# flat, so an answer worth repairing has few.
_CHARACTERS: Final = 20_000
_BRACKETS: Final = 200


def repair_json(text: str) -> Any:
    """Return the JSON that `text` most likely meant, or None if it cannot be repaired."""
    if len(text) > _CHARACTERS or sum(map(text.count, "{}[]()")) > _BRACKETS:
        return None
    try:
        return json_repair.loads(text)
    except (ValueError, RecursionError, AssertionError):
        # The repair library raises AssertionError for a fence inside an object.
        return None


# Providers name the reason differently; each means "cut off at the output limit".
_CUT_OFF = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens"})
_WHOLE_FENCE = re.compile(r"\A(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n(?P<body>.*?)\n?(?P=fence)\s*\Z", re.DOTALL)
_AGREES = r"sure|certainly|of course|okay|absolutely"
_SHOWS = r"here (?:is|are)|here's|below (?:is|are)"
_PREAMBLE = re.compile(rf"\A(?:(?:{_AGREES})\b[^\n]{{0,120}}|(?:{_SHOWS})\b[^\n]{{0,160}})[:.!]\s*\n+", re.IGNORECASE)
_HEADING = re.compile(
    r"#{1,6}[ \t]+(?:\d+\.?[ \t]+)?(?P<hash>.*)"
    rf"|\*\*(?P<bold>[^*]*)\*\*:?[ \t]*|(?P<plain>{'|'.join(SECTION_KINDS)}):?[ \t]*",
    re.IGNORECASE,
)
_LONGEST_HEADING = 300  # characters
_OTHER_HEADINGS = frozenset({"summary", "method", "materials and methods", "methodology", "conclusions"})


def answer_text(message: AIMessage) -> str:
    """Return the text of an answer, without the thinking that some local servers leave in it."""
    return _without_thinking(str(message.text))


def _without_thinking(text: str) -> str:
    text = strip_placeholders(text).strip()
    if "</think>" in text:
        return text.rpartition("</think>")[2].strip()
    return "" if text.startswith("<think>") else text


def was_cut_off(message: AIMessage) -> bool:
    """Whether the answer ended at the model's output limit."""
    metadata = message.response_metadata
    return any(metadata.get(name) in _CUT_OFF for name in ("finish_reason", "stop_reason"))


def prose(text: str) -> str:
    """Strip a fence, an announcing first line, or a heading with the section's name from an answer's text."""
    text = _PREAMBLE.sub("", _without_thinking(text), count=1)
    if whole := _WHOLE_FENCE.match(text):
        text = _PREAMBLE.sub("", whole["body"].strip(), count=1)
    line, ended, rest = text.partition("\n")
    heading = _HEADING.fullmatch(line) if ended and len(line) <= _LONGEST_HEADING else None
    if heading:
        title = (heading["hash"] or heading["bold"] or heading["plain"] or "").rstrip("# \t").strip(" :.").lower()
        if title in SECTION_KINDS or title in _OTHER_HEADINGS:
            return rest.strip()
    return text.strip()


_DECLINED = re.compile(r"\W*not answered\W*", re.IGNORECASE)
# The refusal before a paragraph on the nearest evidence.
_DECLINES = re.compile(r"\A[^\w\[]{0,20}not answered[*_]{0,3}(?:[.:;!]|[ \t]*\n)[\s.:;!*_-]*(?=[\w\[])", re.IGNORECASE)
_ANSWER_HEADING = re.compile(r"\A#{1,6}[ \t]*+answer[ \t]*+:?[ \t]*+\n+", re.IGNORECASE)
# A reference list added by the model; ours is built from the citations.
_LISTS: Final = ("references", "bibliography", "sources", "works cited")
_LIST_LINE: Final = rf"(?<!\n)\n++[ \t]*+(?:#{{1,6}}[ \t]*|\*\*)(?:{'|'.join(_LISTS)})\b[ \t:*]*"
_REFERENCES = re.compile(rf"{_LIST_LINE}(?:\n.*)?\Z", re.IGNORECASE | re.DOTALL)


def extract_answer(draft: Draft) -> Draft:
    """Strip an "Answer" heading, references, and the refusal of a draft that only names the nearest evidence."""
    text = _REFERENCES.sub("", _ANSWER_HEADING.sub("", draft.text)).strip()
    if _DECLINED.fullmatch(text):
        return replace(draft, text="", declined=True)
    instead = _DECLINES.sub("", text)
    return replace(draft, text=instead, declined=instead != text)


_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})[\w-]*[ \t]*\n")
# First lines that may be removed once the text is longer, and their beginnings.
_REMOVABLE = re.compile(
    rf"(?:{_AGREES}|{_SHOWS})\b.*"
    r"|(?:`{3,}|~{3,})[\w-]*[ \t]*|#.*|\*\*[^*]*(?:\*\*?:?[ \t]*)?|\W*not answered\W*"
    rf"|(?:{'|'.join(SECTION_KINDS)}):?[ \t]*",
    re.IGNORECASE,
)
_BEGINNINGS: Final = (
    *(*_AGREES.split("|"), "here is", "here are", "here's", "below is", "below are"),
    *("```", "~~~", "**", "<think>", "not answered", *SECTION_KINDS),
)
_MOST_LINES: Final = 4  # an announcement, a fence, another announcement, a heading
_LOOK_AGAIN: Final = 16  # a text is cleaned again when it has grown by a sixteenth


class CleanStream:
    """Implements `TextListener`: cleans an answer while it is written, and forwards it to `listener`.

    Parts that may still change are held back: first lines that may be removed, and a last line that may begin a list of
    references. If forwarded text changes nevertheless, it starts again.
    """

    def __init__(self, listener: TextListener, clean: Callable[[str], str]) -> None:
        self._listener = listener
        self._clean = clean
        self._text = self._forwarded = ""
        self._look_at = 0

    def restart(self) -> None:
        self._text, self._look_at = "", 0
        self._show("")

    def piece(self, text: str) -> None:
        self._text += text
        if len(self._text) >= self._look_at and _has_begun(self._text):
            self._look_at = len(self._text) + len(self._text) // _LOOK_AGAIN
            self._show(self._clean(_settled_part(self._text)))

    def finish(self) -> None:
        """Forward what was held back, once the answer is complete."""
        self._show(self._clean(self._text))

    def _show(self, kept: str) -> None:
        if not kept.startswith(self._forwarded):
            self._forwarded = ""
            self._listener.restart()
        if kept != self._forwarded:
            self._listener.piece(kept[len(self._forwarded) :])
            self._forwarded = kept


def _has_begun(text: str) -> bool:
    """Whether the prose itself has begun."""
    rest = text.rpartition("</think>")[2].lstrip()
    for _ in range(_MOST_LINES):
        line, ended, more = rest.partition("\n")
        begins = not ended and any(start.startswith(line.lower()) for start in _BEGINNINGS)
        if len(line) > _LONGEST_HEADING or not (begins or _REMOVABLE.fullmatch(line)):
            return bool(line)
        rest = more.lstrip()
    return bool(rest)


def _settled_part(text: str) -> str:
    """Drop a last line that may begin references or close the fence; an open fence is closed."""
    head, ended, last = text.rpartition("\n")
    word = last.strip("#*`~ \t:").lower()
    settled = head if ended and any(name.startswith(word) for name in _LISTS) else text
    opened = _FENCE.match(_PREAMBLE.sub("", _without_thinking(text), count=1))
    if opened is None:
        return settled
    return f"{settled.rstrip().removesuffix(opened['fence'])}\n{opened['fence']}"

"""Structured answers: ask with a schema, validate what comes, ask once more with the error shown.

The schema goes out as `response_format` through the caller and the answer is validated here: LangChain's own
structured output costs 50 ms more a call when twenty run at once. Servers that ignore the format still work,
since JSON in prose, in a fence or with slips is found and repaired.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import json_repair
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, ValidationError

from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, Room
from ...prompts import PromptLibrary
from .clean_output import answer_text, cut_off

Note = Callable[[str], None]

_log = logging.getLogger(__name__)
_READ_CHARACTERS = 50_000
_OBJECTS_TRIED = 20
# What OpenAI's strict mode takes; bounds and formats are checked by pydantic after the answer.
_SCHEMA_FIELDS = ("type", "description", "enum")


class StructuredAnswer(BaseModel):
    """Base of the answers that are asked for; every field required, unasked fields ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, str_strip_whitespace=True)

    @classmethod
    def given(cls, objects: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """What may be the answer, of the JSON objects in a text."""
        return objects


AnswerT = TypeVar("AnswerT", bound=StructuredAnswer)


def log_note(note: str) -> None:
    """Where notes go when the caller of a role has no place of its own for them."""
    _log.warning(note)


@lru_cache(maxsize=32)
def schema_of(model: type[StructuredAnswer]) -> dict[str, Any]:
    """The JSON schema of an answer, as OpenAI's strict mode wants it; one for all, not to be changed.

    Made once: with twenty calls at once, making it for each of them took 5 ms.
    """
    made = model.model_json_schema()
    return {"title": model.__name__, **_strict(made, made.get("$defs", {}))}


def _strict(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema with the parts that strict mode takes; an object in it stands in its place, not in a definition."""
    if "$ref" in schema:
        return _strict(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "properties" not in schema:
        plain = {part: schema[part] for part in _SCHEMA_FIELDS if part in schema}
        return {**plain, "items": _strict(schema["items"], definitions)} if "items" in schema else plain
    fields = schema["properties"]
    return {
        "type": "object",
        "properties": {name: _strict(field, definitions) for name, field in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }


async def ask(
    caller: ChatCaller,
    prompts: PromptLibrary,
    messages: Sequence[BaseMessage],
    model: type[AnswerT],
    *,
    max_tokens: int,
    check: Callable[[AnswerT], None] = lambda answer: None,
    cache_messages: Sequence[BaseMessage] | None = None,
    room: Room = UNLIMITED,
) -> AnswerT | None:
    """The answer as a `model`, or None when neither the first nor the second try gave a valid one.

    Args:
        check: what pydantic cannot know, such as how many sentences were shown; raises ValueError with
            one line for the model.
        max_tokens: limit of each answer, in tokens of the model.
        cache_messages: see `ChatCaller.call`.
        room: what the server holds; the second try shows no more of the first answer than fits.
    """
    schema = schema_of(model)
    more: list[BaseMessage] = []
    for _ in range(2):
        alias: dict[str, Any] = {} if cache_messages is None else {"cache_messages": [*cache_messages, *more]}
        answer = await caller.call([*messages, *more], schema=schema, max_tokens=max_tokens, **alias)
        text = answer_text(answer.message)
        try:
            return parse(text, model, check)
        except ValueError as problem:
            await caller.reject(answer)
            ending = "; it was cut off, so be briefer" if cut_off(answer.message) else ""
            complaint = prompts["json_again"].render(problem=f"{problem}{ending}")
        # An answer without text would be refused by some servers when it is sent back.
        asked = [str(message.content) for message in messages]
        shown = text[: room.left(_READ_CHARACTERS, complaint, *asked)]
        more = [AIMessage(shown or "(empty)"), HumanMessage(room.shortened(complaint))]
    return None


def parse(text: str, model: type[AnswerT], check: Callable[[AnswerT], None] = lambda answer: None) -> AnswerT:
    """The first JSON object in `text` that is a valid `model`; ValueError says in one line what is wrong."""
    problem = "it holds no JSON object"
    for index, data in enumerate(model.given(json_objects(text))):
        try:
            answer = model.model_validate(data)
            check(answer)
        except ValidationError as error:
            # Without the inputs: they are the model's words, and the line becomes part of a prompt.
            found = "; ".join(f"field {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            problem = found if index == 0 else problem
        except ValueError as error:
            problem = str(error)
        else:
            return answer
    raise ValueError(problem)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects in `text`: the sound ones first, then what can be repaired."""
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
    repaired = repaired_json(text[max(0, text.find("{")) :])
    # An empty list stands for an object that holds nothing.
    for data in repaired or [{}] if isinstance(repaired, list) else [repaired]:
        if isinstance(data, dict):
            yield data


# The repair takes quadratic time or worse in brackets: 50,000 opening braces hold it for minutes. Our schemas are
# flat, so an answer worth repairing has few.
_CHARACTERS: Final = 20_000
_BRACKETS: Final = 200


def repaired_json(text: str) -> Any:
    """What `text` most likely meant as JSON, or None when it cannot be told."""
    if len(text) > _CHARACTERS or sum(map(text.count, "{}[]()")) > _BRACKETS:
        return None
    try:
        return json_repair.loads(text)
    except (ValueError, RecursionError, AssertionError):
        # The assertion is the repair's own, met on a fence inside an object.
        return None

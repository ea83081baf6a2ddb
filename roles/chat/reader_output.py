"""The answer format of the reader, with repairs of nearly correct answers: small models vary names and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import Field, field_validator, model_validator

from .structured_output import StructuredAnswer

MOST_SENTENCES: Final = 8  # that one finding may rest on
_STATEMENT: Final = ("statement", "finding", "summary", "text")
_SENTENCES: Final = ("sentences", "sentence", "sentence_numbers", "numbers")
_NEED: Final = ("need", "need_id", "needs", "need_ids")
_SCORE: Final = ("score", "relevance")
_RANGE: Final = re.compile(r"(\d{1,4})(?:\s*(?:-|\u2013|\u2014|to|\.\.+|\u2026)\s*(\d{1,4}))?")
# A sentence quoted in full: its own number comes first, other numbers in it do not name sentences.
_QUOTED: Final = re.compile(r"\s*[\[(]?s?(\d{1,4})[\])]?\s*[:.)]\s*[^\W\d_]{2}", re.IGNORECASE)
_NEED_ID: Final = re.compile(r"\bN?(\d{1,2})\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(-?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+))?")
_UNSCORED: Final = 0.5  # for a finding that the model listed without a readable score


class ReadFinding(StructuredAnswer):
    """One finding as the model returns it."""

    statement: str = Field(min_length=3, description="The finding, with its numbers and conditions.")
    sentences: list[int] = Field(min_length=1, description="Numbers of the sentences that carry it.")
    need: str = Field(description="Id of the need that it serves most.")
    score: float = Field(ge=0, le=1, description="How much it helps with that need, from 0 to 1.")

    @model_validator(mode="before")
    @classmethod
    def _by_usual_names(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = _by_plain_names(data)
        first, last = given.get("first_sentence"), given.get("last_sentence")
        numbered = f"{first}-{last}" if first is not None and last is not None else None
        return {
            "statement": _first(given, _STATEMENT),
            "sentences": _first(given, _SENTENCES, numbered),
            "need": _first(given, _NEED, ""),
            "score": _first(given, _SCORE),
        }

    @field_validator("sentences", mode="before")
    @classmethod
    def _as_numbers(cls, value: Any) -> Any:
        """Sentence numbers in any notation: 3, "3-5", "[2], [4]", ["1", 2], ["2: the sentence itself"]."""
        parts = value if isinstance(value, list | tuple) else [value]
        found: list[int] = []
        for part in map(str, parts):
            quoted = _QUOTED.match(part)
            for first, last in [(quoted[1], "")] if quoted else _RANGE.findall(part):
                found += range(int(first), min(int(last or first), int(first) + MOST_SENTENCES) + 1)
        return sorted(set(found))

    @field_validator("need", mode="before")
    @classmethod
    def _one_need(cls, value: Any) -> Any:
        """The id of the first need named: "n2", 2, ["N2", "N3"], "N2 (limit): how far it holds"."""
        given = value[0] if isinstance(value, list) and value else value
        named = _NEED_ID.search(str(given))
        return f"N{int(named[1])}" if named else ""

    @field_validator("score", mode="before")
    @classmethod
    def _in_bounds(cls, value: Any) -> Any:
        """A score from 0 to 1 in any notation: out of ten or a hundred, "80%", "8/10", "0,8" or "0.8 (strong)"."""
        number = _NUMBER.search(str(value))
        if number is None:
            return _UNSCORED
        score, most = float(number[1].replace(",", ".")), int(number[2] or 0)
        if most:
            score /= most
        elif score > 1:
            score /= 100 if score > 10 else 10
        return score if 0 <= score <= 1 else _UNSCORED


class PassageReading(StructuredAnswer):
    """The reader's answer for the passages of one paper; unreadable findings are left out."""

    findings: list[ReadFinding] = Field(description="What helps with the purpose, the most useful first.")

    @classmethod
    def given(cls, objects: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Separate findings, in a bare list or one per line, form one reading; `{}` is an empty one."""
        alone: list[dict[str, Any]] = []
        empty = False
        for item in objects:
            if _is_finding(item):
                alone += [item] * (item not in alone)
            elif item:
                yield item
            else:
                empty = True
        if alone or empty:
            yield {"findings": alone}

    @model_validator(mode="before")
    @classmethod
    def _without_the_unreadable(cls, data: Any) -> Any:
        items = _listed(data)
        if items is None:
            return data
        readable = [item for item in items if _valid(item)]
        # When none is readable, their errors are shown to the model.
        return {"findings": readable or items}


def _listed(data: Any, deep: int = 3) -> list[Any] | None:
    """The findings in an answer, under any name and in any wrapping; None when they cannot be identified."""
    if not data or (isinstance(data, str) and data.strip().lower() == "none"):
        return []
    if isinstance(data, list):
        return data
    if not isinstance(data, Mapping):
        return None
    if _is_finding(data):
        return [data]
    given = _by_plain_names(data)
    named = [given[name] for name in ("findings", "finding") if name in given]
    inside = named or [value for value in given.values() if isinstance(value, Mapping | list)]
    if inside and all(_is_finding(value) for value in inside):
        return inside
    return _listed(inside[0], deep - 1) if len(inside) == 1 and deep else None


def _valid(item: Any) -> bool:
    try:
        ReadFinding.model_validate(item)
    except ValueError:
        return False
    return True


def _is_finding(item: Any) -> bool:
    return isinstance(item, Mapping) and any(name in _by_plain_names(item) for name in _STATEMENT)


def _by_plain_names(data: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name).strip().lower(): value for name, value in data.items()}


def _first(given: Mapping[str, Any], names: Sequence[str], otherwise: Any = None) -> Any:
    return next((given[name] for name in names if given.get(name) not in (None, "")), otherwise)

"""Describes invalid values in JSON terms instead of pydantic's: "must be text, but is a list"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_EXPECTED: Final = {
    **{"string": "text", "int": "a whole number", "float": "a number", "bool": "true or false"},
    **dict.fromkeys(("dict", "model", "dataclass", "mapping"), "an object"),
    **dict.fromkeys(("list", "tuple", "set"), "a list"),
}
_KINDS: Final = ((int | float, "a number"), (str, "text"), (dict, "an object"), (list | tuple, "a list"))
_SUBJECT = re.compile(r"(?:Input|String|List|Dictionary|Tuple|Set|Value) should ")
_LONGEST_VALUE: Final = 80  # characters


def kind_of_value(value: Any) -> str:
    """The JSON type of a value: "text", "a number", "null"; never the value itself, which may be secret."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return next((name for kind, name in _KINDS if isinstance(value, kind)), type(value).__name__)


def describe_invalid(item: ErrorDetails, *, show: bool = False) -> str:
    """The problem with a value: "must be text, but is a list"; `show` adds the value if its kind is not enough."""
    kind, value = item["type"], item["input"]
    if kind == "missing":
        return "is missing"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return "is unknown"
    name, _, wrong = kind.partition("_")
    if name in _EXPECTED and wrong in ("type", "attributes_type"):
        return f"must be {_EXPECTED[name]}, but is {kind_of_value(value)}"
    if name in _EXPECTED and wrong in ("parsing", "from_float"):
        problem = f"must be {_EXPECTED[name]}"
    else:
        problem = _SUBJECT.sub("must ", item["msg"].removeprefix("Value error, ")).replace(" after validation", "")
    return f"{problem}, but is {value!r:.{_LONGEST_VALUE}}" if show else problem


def field_path(parts: Iterable[str | int]) -> str:
    """The path of a field as messages name it: `plots[0].path`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")

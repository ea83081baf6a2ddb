"""Rewrites plausible forms of `exp.json` values to the documented form, and shortens values that are too large.

Other values stay unchanged, so that type validation refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


def move_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Move `results` into `metrics` if it is an object, and a top-level `title` into a concept without one.

    Existing metrics are kept, and get the results under the name `results`.
    """
    found = dict(data)
    results, metrics = found.get("results"), as_metrics({} if found.get("metrics") is None else found["metrics"])
    if isinstance(results, dict):
        del found["results"]
        if isinstance(metrics, dict):  # else the metrics are refused
            found["metrics"] = {**metrics, "results": results} if metrics else results
    if isinstance(found.get("title"), str):
        concept = {} if found.get("paper_concept") is None else found["paper_concept"]
        concept = {"description": concept} if isinstance(concept, str) else concept
        if isinstance(concept, dict) and not concept.get("title"):
            found["paper_concept"] = {**concept, "title": found.pop("title")}
    return found


def as_text(value: Any) -> Any:
    """Convert a number to text, and a list of texts to paragraphs."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return "\n\n".join(str(item) for item in value)
    return value


def as_whole_number(value: Any) -> Any:
    """Convert text to a whole number if it is one."""
    digits = value.strip().removeprefix("-") if isinstance(value, str) else ""
    return int(value[:20]) if digits.isascii() and digits.isdigit() else value


def as_metrics(value: Any) -> Any:
    """Convert a list of objects with `name` and `value` to one object."""
    if not isinstance(value, list):
        return value
    pairs = [item for item in value if isinstance(item, dict) and {"name", "value"} <= {*item}]
    named = {item["name"]: item["value"] for item in pairs if isinstance(item["name"], str)}
    return named if len(named) == len(value) else value


def as_plots(value: Any) -> Any:
    """Convert a single plot, plain paths, or plots by name to a list of objects with a `path`."""
    if isinstance(value, str):
        return [{"path": value}]
    if isinstance(value, list):
        return [{"path": plot} if isinstance(plot, str) else plot for plot in value]
    if not isinstance(value, dict) or {"path", "caption"} & value.keys():
        return [value] if isinstance(value, dict) else value
    plots = [{"path": plot} if isinstance(plot, str) else plot for plot in value.values()]
    if not all(isinstance(plot, dict) and "path" in plot for plot in plots):
        return value
    captions = (" ".join(str(name).replace("_", " ").split()) for name in value)
    return [{"caption": caption, **plot} for caption, plot in zip(captions, plots, strict=True)]


_LEAST_PART: Final = 50  # smallest part worth keeping, in characters
_LONG_TEXT: Final = 200  # characters


def shorten_json(value: Any, most: int) -> tuple[Any, int]:
    """The part that fits into `most` characters of JSON, single values and small parts first, and the full size."""
    sizes: dict[int, int] = {}
    size = _size(value, sizes)
    return (_shorten(value, most, sizes) if size > most else value), size


def _size(value: Any, sizes: dict[int, int]) -> int:
    """The approximate length of a value as JSON; caches the sizes of containers in `sizes` by id."""
    if id(value) in sizes:
        return sizes[id(value)]
    if isinstance(value, str):
        return len(value) + 4
    if isinstance(value, dict):
        size = 2 + sum(len(str(name)) + 4 + _size(item, sizes) for name, item in value.items())
    elif isinstance(value, list | tuple):
        size = 2 + sum(_size(item, sizes) for item in value)
    else:
        return len(str(value)) + 2
    sizes[id(value)] = size
    return size


def _shorten(value: Any, room: int, sizes: dict[int, int]) -> Any:
    """The part of a text or container that fits: an object's single values first, then small parts before large."""
    if isinstance(value, str):
        return value[: max(0, room - 4)]
    listed = not isinstance(value, dict)
    names = list(range(len(value)) if listed else value)
    weights = {name: _size(value[name], sizes) + (0 if listed else len(str(name)) + 4) for name in names}
    if not listed:
        names.sort(key=lambda name: weights[name] if _is_long(value[name]) else 0)
    kept: dict[Any, Any] = {}
    left = room - 2
    for name in names:
        if weights[name] > left:
            rest = left - (0 if listed else len(str(name)) + 4)
            if _is_long(value[name]) and rest > _LEAST_PART:
                kept[name] = _shorten(value[name], rest, sizes)
            break
        kept[name] = value[name]
        left -= weights[name]
    return list(kept.values()) if listed else {name: kept[name] for name in value if name in kept}


def _is_long(value: Any) -> bool:
    return isinstance(value, dict | list | tuple) or (isinstance(value, str) and len(value) > _LONG_TEXT)

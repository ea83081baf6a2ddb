"""Plain values of `exp.json`: rewrites plausible forms to the documented one, and shortens what is too large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_TEXTS: Final = ("experimental_plan", "experiment_code", "verdict", "reasoning", "results", "summary")
_RECORDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {  # the field that a bare text is, and all texts
    "paper_concept": ("description", ("title", "description")),
    "hypothesis": ("description", ("description", "method_combination")),
    "execution_result": ("stdout", ("stdout", "stderr")),
}


def normalise_forms(data: Mapping[str, Any]) -> dict[str, Any]:
    """The experiment with every plausible form rewritten; anything else stays, and is refused by its type.

    Known fields that are null count as missing. An object as `results` joins `metrics`, under its own name if there
    are some already. A `title` is the concept's unless that has one.
    """
    known = {*_TEXTS, *_RECORDS, "metrics", "plots"}
    found = {name: value for name, value in data.items() if value is not None or name not in known}
    if isinstance(found.get("metrics"), list):  # objects with `name` and `value`, as one object
        pairs = [item for item in found["metrics"] if isinstance(item, dict) and {"name", "value"} <= {*item}]
        named = {item["name"]: item["value"] for item in pairs if isinstance(item["name"], str)}
        found["metrics"] = named if len(named) == len(found["metrics"]) else found["metrics"]
    results = found.get("results")
    if isinstance(results, dict) and isinstance(found.get("metrics", {}), dict):
        del found["results"]
        metrics = found.get("metrics", {})
        found["metrics"] = {**metrics, "results": results} if metrics else results
    concept = found.get("paper_concept")
    if isinstance(found.get("title"), str) and (concept is None or isinstance(concept, str)):
        concept = {} if concept is None else {"description": concept}
    if isinstance(found.get("title"), str) and isinstance(concept, dict) and not concept.get("title"):
        found["paper_concept"] = {**concept, "title": found.pop("title")}
    for name in _TEXTS:
        if name in found:
            found[name] = _text(found[name])
    for name, (main, texts) in _RECORDS.items():
        if name in found:
            found[name] = _record(found[name], main, texts)
    if "plots" in found:
        found["plots"] = _plots(found["plots"])
    return found


def _text(value: Any) -> Any:
    """A number as text, and a list of texts as paragraphs."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return "\n\n".join(str(item) for item in value)
    return value


def _record(value: Any, main: str, texts: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return {main: value}
    if not isinstance(value, dict):
        return value
    found = {name: item for name, item in value.items() if item is not None}
    for name in texts:
        if name in found:
            found[name] = _text(found[name])
    if isinstance(found.get("open_questions"), str):
        found["open_questions"] = [found["open_questions"]]
    code = found.get("returncode")
    if isinstance(code, str) and code.strip().lstrip("-").isascii() and code.strip().lstrip("-").isdigit():
        found["returncode"] = int(code[:20])
    return found


def _plots(value: Any) -> Any:
    """A list of objects with a `path`, also of a single plot, of bare paths, or of plots by name."""
    if isinstance(value, dict) and not {"path", "caption"} & value.keys():
        if not all(isinstance(plot, str) or (isinstance(plot, dict) and "path" in plot) for plot in value.values()):
            return value
        plots: Any = [
            {
                "caption": " ".join(str(name).replace("_", " ").split()),
                **({"path": plot} if isinstance(plot, str) else plot),
            }
            for name, plot in value.items()
        ]
    else:
        plots = [value] if isinstance(value, str | dict) else value
    if not isinstance(plots, list):
        return value
    return [{"path": plot} if isinstance(plot, str) else plot for plot in plots]


_LEAST_PART: Final = 50  # smallest part worth keeping, in characters
_LONG_TEXT: Final = 200  # characters


def shorten_json(value: Any, most: int) -> tuple[Any, int]:
    """The part of a value that has at most so many characters as JSON, roughly, and the size of the whole.

    Single values are kept first, then small parts before large ones.
    """
    sizes: dict[int, int] = {}
    size = _size(value, sizes)
    return (_shorten(value, most, sizes) if size > most else value), size


def _size(value: Any, sizes: dict[int, int]) -> int:
    """The length of a value as JSON, roughly; the sizes of containers are added to `sizes` by their id."""
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

"""The metrics of an experiment as markdown tables: single values as one table, nested ones as rows and columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...text.normalize import one_line

_NONE: Final = "\u2013"
_SPECIAL: Final = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|~^$#"})


@dataclass(frozen=True, slots=True)
class MetricsTable:
    """The blocks of markdown that show the metrics, and the path of each value in them."""

    blocks: tuple[str, ...]
    used: tuple[str, ...]


def metrics_table(metrics: Mapping[str, Any]) -> MetricsTable:
    """Every value of `metrics`: single values in a table of two columns, nested dicts in tables of their own.

    Dicts of values with the same names, such as two scores of three models, are the rows of one table.
    """
    plain = {name: value for name, value in metrics.items() if not _nested(value)}
    found = [_table(("Metric", "Value"), [(_named(name), _shown(value)) for name, value in plain.items()])]
    groups: dict[str | tuple[str, ...], dict[str, Any]] = {}
    for name, value in metrics.items():
        if _nested(value):
            groups.setdefault(name if any(map(_nested, value.values())) else tuple(value), {})[name] = value
    for group in groups.values():
        found.append(_nested_table("Metric", group) if len(group) > 1 else _nested_table(*next(iter(group.items()))))
    used = [path for name, value in metrics.items() for path in _paths(value, name)]
    return MetricsTable(tuple(filter(None, found)), tuple(used))


def _nested(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _nested_table(name: str, rows: Mapping[str, Any]) -> str:
    """A dict of dicts has a column for each inner name; a dict of values two columns."""
    if not any(_nested(value) for value in rows.values()):
        return _table((_named(name), "Value"), [(_named(row), _shown(value)) for row, value in rows.items()])
    cells = {row: dict(_flat(value)) for row, value in rows.items()}
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    body = [
        (_named(row), *(_shown(of[column]) if column in of else "" for column in columns)) for row, of in cells.items()
    ]
    return _table((_named(name), *(_named(column) or "value" for column in columns)), body)


def _flat(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The values under the names of a row; deeper names are joined by a slash."""
    if not _nested(value):
        yield before, value
        return
    for name, inner in value.items():
        yield from _flat(inner, f"{before} / {name}" if before else name)


def _paths(value: Any, path: str) -> Iterator[str]:
    if not _nested(value):
        yield path
        return
    for name, inner in value.items():
        yield from _paths(inner, f"{path}.{name}")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _named(name: str) -> str:
    return one_line(str(name)).replace("_", " ").translate(_SPECIAL)


def _shown(value: Any) -> str:
    """A value as the author wrote it; null is a dash."""
    if value is None:
        return _NONE
    if isinstance(value, str):
        return one_line(value).translate(_SPECIAL)
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value) or _NONE
    return json.dumps(value, ensure_ascii=False).translate(_SPECIAL)

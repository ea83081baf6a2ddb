"""Contracts of results and interfaces: the names in them, as committed under `tests/data/contracts/`.

A name that is added, removed or renamed fails its test, so that nobody loses what a program reads. When that is meant,
run the test with WRITE_CONTRACTS=1 and commit the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

CONTRACTS = Path(__file__).resolve().parents[1] / "data" / "contracts"


def require_contract(name: str, found: Mapping[str, Any]) -> None:
    """Compare `found` with the committed contract `name`, entry by entry."""
    file = CONTRACTS / f"{name}.json"
    if os.environ.get("WRITE_CONTRACTS"):
        file.parent.mkdir(exist_ok=True)
        lines = [f"{json.dumps(entry)}: {json.dumps(found[entry], ensure_ascii=False)}" for entry in sorted(found)]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    expected = json.loads(file.read_text("utf-8"))
    assert found.keys() == expected.keys()
    for entry, value in expected.items():
        assert found[entry] == value, entry


def key_paths(record: Any, place: str = "") -> list[str]:
    """The keys in plain data, with those of nested values: `citations[].key`."""
    return sorted(set(_key_paths(record, place)))


def _key_paths(record: Any, place: str) -> Iterator[str]:
    if isinstance(record, Mapping):
        for key, value in record.items():
            path = f"{place}.{key}".lstrip(".")
            yield path
            yield from _key_paths(value, path)
    elif isinstance(record, Sequence) and not isinstance(record, str):
        for item in record:
            yield from _key_paths(item, f"{place}[]")


def schema_keys(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 4) -> Any:
    """The names of the fields in a JSON schema, with its references resolved; the type of a value without fields."""
    if reference := schema.get("$ref"):
        return schema_keys(schemas[reference.rpartition("/")[2]], schemas, depth) if depth else reference
    if fields := schema.get("properties"):
        return {name: schema_keys(field, schemas, depth - 1) for name, field in sorted(fields.items())}
    if "items" in schema:
        return [schema_keys(schema["items"], schemas, depth)]
    for alternatives in ("anyOf", "oneOf", "allOf"):
        if alternatives in schema:
            return [alternatives, *(schema_keys(each, schemas, depth) for each in schema[alternatives])]
    return schema.get("type", schema.get("enum", schema.get("const", "any")))

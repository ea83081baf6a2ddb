"""How invalid values are described: in the words of JSON, never in pydantic's."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citeloom.invalid_values import describe_invalid, field_path


class _Inner(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    name: str = ""


class _Record(BaseModel):
    model_config = ConfigDict(strict=True)
    inner: _Inner = Field(default_factory=_Inner)
    names: list[str] = Field(default_factory=list)
    counts: dict[str, int] = Field(default_factory=dict)
    share: float = Field(0.5, ge=0)
    kind: Literal["a", "b"] = "a"
    on: bool = True


class _Loose(BaseModel):
    count: int


@pytest.mark.parametrize(
    ("model", "given", "path", "problem"),
    [
        (_Record, {"inner": 3}, "inner", "must be an object, but is a number"),
        (_Record, {"inner": {"name": None}}, "inner.name", "must be text, but is null"),
        (_Record, {"inner": {"nam": ""}}, "inner.nam", "is unknown"),
        (_Record, {"names": ["a", ["b"]]}, "names[1]", "must be text, but is a list"),
        (_Record, {"counts": {"a": "3"}}, "counts.a", "must be a whole number, but is text"),
        (_Record, {"share": -1.0}, "share", "must be greater than or equal to 0, but is -1.0"),
        (_Record, {"kind": "c"}, "kind", "must be 'a' or 'b', but is 'c'"),
        (_Record, {"on": "yes"}, "on", "must be true or false, but is text"),
        (_Loose, {}, "count", "is missing"),
        (_Loose, {"count": 1.5}, "count", "must be a whole number, but is 1.5"),
        (_Loose, {"count": "many"}, "count", "must be a whole number, but is 'many'"),
    ],
)
def test_a_problem_is_described_in_json_terms(
    model: type[BaseModel], given: dict[str, Any], path: str, problem: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(given)
    (item,) = refused.value.errors()
    assert (field_path(item["loc"]), describe_invalid(item, show=True)) == (path, problem)

"""Options that a server refuses are left out from then on, one at a time."""

from __future__ import annotations

import pytest

from citeloom.models.http.dialect import Dialect
from citeloom.models.http.failures import ServerRefusalError

SCHEMA = {"title": "Reading of one", "type": "object"}
BEST = Dialect()


def test_a_server_is_first_asked_with_a_strict_schema() -> None:
    assert BEST.arguments(schema=SCHEMA, max_tokens=9, temperature=0.5) == {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "Reading_of_one", "schema": SCHEMA},
        },
        "max_tokens": 9,
        "temperature": 0.5,
    }


@pytest.mark.parametrize(
    ("error", "before", "after"),
    [
        (ServerRefusalError(400, "response_format is unavailable"), BEST, Dialect(format="json_object")),
        (ServerRefusalError(422, "unknown field json_schema"), BEST, Dialect(format="json_object")),
        (ServerRefusalError(500, "failed to parse grammar"), BEST, Dialect(format="json_object")),
        (
            ServerRefusalError(400, "'response_format.type' must be 'json_schema' or 'text'"),
            Dialect(format="json_object"),
            Dialect(format="none"),
        ),
        (TypeError("create() got an unexpected keyword argument 'response_format'"), BEST, Dialect("json_object")),
        (ServerRefusalError(400, "response_format"), Dialect(format="none"), None),
        (ServerRefusalError(400, "temperature is not supported"), BEST, Dialect(temperature=False)),
        (
            ServerRefusalError(400, "Unsupported parameter: 'max_tokens'"),
            BEST,
            Dialect(limit="max_completion_tokens"),
        ),
        (ServerRefusalError(400, "max_tokens is larger than the context"), BEST, None),
        (ServerRefusalError(400, "the prompt is too long"), BEST, None),
        (ServerRefusalError(401, "response_format needs a better key"), BEST, None),
        (ServerRefusalError(429, "response_format requests are limited"), BEST, None),
        (RuntimeError("response_format"), BEST, None),
    ],
    ids=str,
)
def test_a_refusal_turns_off_the_refused_option(error: Exception, before: Dialect, after: Dialect | None) -> None:
    assert before.after(error, with_schema=True) == after


def test_without_a_schema_an_error_about_formats_changes_nothing() -> None:
    assert BEST.after(ServerRefusalError(400, "json_schema"), with_schema=False) is None


def test_learning_a_dialect_terminates() -> None:
    dialect: Dialect | None = BEST
    error = ServerRefusalError(400, "unsupported: response_format, temperature, max_tokens")
    steps = 0
    while dialect is not None:
        dialect = dialect.after(error, with_schema=True)
        steps += 1
    assert steps == 5

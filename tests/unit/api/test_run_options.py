"""Options declared once are used by every front end."""

from __future__ import annotations

import inspect
import typing
from dataclasses import fields
from typing import Any

import pytest
import typer
from pydantic import TypeAdapter, ValidationError
from typer.testing import CliRunner

from citeloom.api.agent_tools import with_fields
from citeloom.api.run_options import QuestionOptions, shown_options
from citeloom.api.running import RunOptions, aresearch
from citeloom.commands.options import as_command
from citeloom.errors import InputError
from citeloom.server.request_models import ResearchBody

BODY: TypeAdapter[ResearchBody] = TypeAdapter(ResearchBody)


def given_options(arguments: list[str]) -> QuestionOptions:
    found: list[QuestionOptions] = []
    app = typer.Typer()

    @app.command()
    @as_command
    def ask(*, options: QuestionOptions) -> None:
        """Ask."""
        found.append(options)

    CliRunner().invoke(app, arguments, catch_exceptions=False)
    return found[0]


def test_a_command_gets_its_options_as_one_value() -> None:
    given = given_options(["--sources", "3", "--papers", "a,b", "--papers", "a", "--single-shot"])
    assert given == QuestionOptions(sources=3, papers=("a", "b"), single_shot=True)
    with pytest.raises(InputError, match="--papers"):
        given_options(["--papers", ","])


@pytest.mark.parametrize(
    "wrong",
    [{"sources": 51}, {"length": 49}, {"max_calls": 0}, {"max_cost": -1}, {"depth": "deep"}, {"min_year": 2000}],
)
def test_a_request_body_has_the_limits_of_the_options_and_no_other_fields(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BODY.validate_python({"question": "Why?", **wrong})


def test_a_request_body_contains_the_options_of_its_run() -> None:
    body = BODY.validate_python({"question": "Why?", "papers": ["a"], "strict": True, "depth": "brief"})
    assert body.papers == ("a",)
    assert body.changes() == {"strict": True, "depth": "brief"}


def test_a_tool_accepts_what_a_request_body_accepts() -> None:
    async def ask(*, asked: ResearchBody) -> None:
        """Ask."""

    assert inspect.signature(with_fields(ask)).parameters.keys() == {item.name for item in fields(ResearchBody)}


def test_python_accepts_the_options_of_the_command_line() -> None:
    names = {"min_year": "from_year", "max_year": "to_year"}  # as Python calls them
    assert "fresh" in typing.get_type_hints(RunOptions)
    explicit = inspect.signature(aresearch).parameters.keys() - {"session", "question", "on_event", "options"}
    assert {names.get(name, name) for name in explicit} == shown_options(QuestionOptions).keys() - {"fresh"}

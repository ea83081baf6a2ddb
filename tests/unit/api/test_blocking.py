"""A blocking twin takes what the async call takes, says what it does, and names that call where a loop runs."""

from __future__ import annotations

import inspect

import pytest

from citeloom.api.blocking import blocking
from citeloom.errors import ConfigurationError


class Desk:
    async def aask(self, question: str, *, times: int = 1) -> str:
        """Ask a question."""
        return question * times

    ask = blocking(aask)


def test_a_blocking_twin_returns_the_result_and_has_the_signature_of_its_call() -> None:
    assert Desk().ask("why?", times=2) == "why?why?"
    assert inspect.signature(Desk.ask) == inspect.signature(Desk.aask)
    assert Desk.ask.__name__ == "ask"
    assert "Ask a question." in (inspect.getdoc(Desk.ask) or "")


async def test_inside_an_event_loop_the_error_names_the_call_to_await() -> None:
    with pytest.raises(ConfigurationError, match="An event loop is running") as refused:
        Desk().ask("why?")
    assert "await citeloom.Desk.aask(...)" in str(refused.value.help)

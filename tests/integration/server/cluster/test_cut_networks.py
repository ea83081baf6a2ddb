"""A server whose network is cut while it works: another takes its run, and what it does later changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.server.cluster.test_servers_of_one_library import (
    QUESTION,
    RUN,
    conversation,
    get_state,
    names,
    opened,
    paid_twice,
)
from tests.support.event_streams import Gate
from tests.support.librarian import Librarian
from tests.support.network_fixtures import computers, url
from tests.support.network_hosts import Network
from tests.support.openai_server import FakeOpenAI
from tests.support.server_machines import Machine, eventually, machines

__all__ = ["computers", "url"]
pytestmark = [pytest.mark.long, pytest.mark.attack]


@pytest.fixture
def model(computers: Network) -> Iterator[FakeOpenAI]:
    """The model; streams wait at its gate after four chunks."""
    with FakeOpenAI(behaviour=Librarian(), gate=Gate(after=4), host=computers.address) as running:
        yield running


@pytest.fixture
def servers(
    computers: Network, library: str, settings: dict[str, str], tmp_path: Path
) -> Iterator[tuple[Machine, Machine]]:
    """A server on each host; no key, which would not be sent over this network unencrypted."""
    given = {**settings, "CHAT_API_KEY": "", "SERVER_TOKEN": "a-token-of-the-library"}
    with machines(tmp_path, library, given, 2, computers.hosts) as (first, second):
        yield first, second


def test_a_server_cut_off_from_the_database_loses_its_run_and_writes_nothing_after_returning(
    servers: tuple[Machine, Machine], computers: Network, model: FakeOpenAI, library: str
) -> None:
    first, second = servers
    path = f"/conversations/{conversation(first)}"
    seen = first.until_token(f"{path}/turns", {"question": QUESTION})
    computers.hosts[0].cut()
    opened(model)  # the rest of the answer to the first server arrives once its link is back
    events = second.events(f"{path}/events", seen[-1].id)
    assert "reset" in names(events) and events[-1].name == "done"
    assert events[-1].data["result"]["citations"]
    calls, before = model.calls(), get_state(library)
    computers.hosts[0].restore()
    eventually(lambda: first.api.get("/ready").status_code == 200 and rejoined(first), "the first one joins again")
    assert model.calls() == calls and get_state(library) == before
    assert paid_twice(model) <= 1, "only the call that was cut off"
    assert first.events(f"{path}/events")[-1].data == events[-1].data
    assert len(first.api.get(path).json()["turns"]) == 1
    assert first.api.post(f"{path}/turns", json={"question": RUN}).json()["number"] == 2


def rejoined(machine: Machine) -> bool:
    """Whether a server has learnt that others took it for dead."""
    return "rejoining" in "".join(machine.said)

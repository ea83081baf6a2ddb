"""Workers on two computers share a journal over a network whose link is cut: nothing is lost, nothing paid twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.models.journal.records import Spending
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from tests.support.call_workers import CallWorkers, call_workers
from tests.support.network_fixtures import computers, url
from tests.support.network_hosts import Host, Network
from tests.support.server_machines import eventually
from tests.support.shared_calls import CONCURRENCY

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
__all__ = ["computers", "url"]
pytestmark = pytest.mark.long


def two_on_each(computers: Network) -> list[list[str]]:
    """Workers 0 and 1 on the first host, 2 and 3 on the second."""
    return [host.prefix for host in computers.hosts for _ in range(2)]


def cut_in_the_middle(host: Host, workers: CallWorkers, after: int) -> None:
    """Cut the link when so many calls are paid for; returns when something that the host sent was lost."""
    eventually(lambda: sum(map(len, workers.paid())) >= after, f"{after} calls are paid for")
    host.cut()
    eventually(lambda: host.has_unanswered() or not workers.running, "something is sent over the cut link")


async def spending(url: str) -> list[Spending]:
    with find_home(parse_home(url)).open_journal() as journal:
        return await journal.spending()


async def test_twenty_thousand_calls_over_an_unreliable_link_are_paid_for_once_each(
    url: str, computers: Network, tmp_path: Path
) -> None:
    calls, second = 5_000, computers.hosts[1]
    with call_workers(url, tmp_path / "paid", calls, two_on_each(computers), most=calls) as workers:
        for after in (500, 1_500, 2_500, 3_500):
            cut_in_the_middle(second, workers, after)
            second.restore()
        assert workers.ended(0, 1, 2, 3) == [0] * 4, "the budget has room for each call once"
        paid = workers.paid()
    assert sorted(key for keys in paid for key in keys) == sorted(f"call-{number}" for number in range(calls))
    assert all(paid), "every worker did a part"
    spent = await spending(url)
    assert sum(row.paid for row in spent) == calls and sum(row.reused for row in spent) == 3 * calls
    assert sum(row.reserved_calls for row in spent) == 0


async def test_a_computer_dropped_by_the_database_pays_again_only_for_calls_in_flight(
    url: str, computers: Network, tmp_path: Path
) -> None:
    """The server ends the connections of a computer that is silent for a minute; here it need not wait for that."""
    calls, most, second = 2_000, 1_500, computers.hosts[1]
    with call_workers(url, tmp_path / "paid", calls, two_on_each(computers), most=most) as workers:
        cut_in_the_middle(second, workers, 300)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_addr = %s", (second.address,)
            )
        assert workers.ended(0, 1) == [3, 3], "the other computer continues until the budget is reached"
        second.restore()
        assert workers.ended(2, 3) == [3, 3]
        paid = [key for keys in workers.paid() for key in keys]
    assert len(paid) <= most, "the budget holds for both computers"
    assert len(paid) - len(set(paid)) <= 2 * CONCURRENCY, "only what was in flight is paid again"
    with psycopg.connect(url) as connection:
        answered = {key for (key,) in connection.execute("SELECT key FROM answers")}
    with call_workers(url, tmp_path / "resumed", calls, two_on_each(computers)) as workers:
        assert workers.ended(0, 1, 2, 3) == [0] * 4
        resumed = [key for keys in workers.paid() for key in keys]
    assert len(answered) + len(resumed) == len(answered | set(resumed)) == calls, "what is answered is not paid again"

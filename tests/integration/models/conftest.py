"""A separate journal for each test, and no connection left open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from citeloom.models import chat_caller
from citeloom.models.http.dialect import DialectMemory
from citeloom.models.journal.journal import Journal
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def journal(tmp_path: Path, clock: FakeClock) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.sqlite", clock=clock) as opened:
        yield opened


@pytest.fixture(autouse=True)
async def _no_connection_left(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    # A port may be given out again: what was learned about the server behind it is not for the next test.
    learned: defaultdict[tuple[str, str], DialectMemory] = defaultdict(DialectMemory)
    monkeypatch.setattr(chat_caller, "_dialect", lambda *model: learned[model])
    yield
    from citeloom.models.http.client import close_connections

    await close_connections()

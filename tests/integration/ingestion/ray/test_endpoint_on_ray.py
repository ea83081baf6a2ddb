"""With an embedding endpoint, one process asks it for the whole cluster: limits hold, and no worker is sent the key."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citeloom.graph.session import open_session
from citeloom.ingestion import ray_executor
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.ray_executor import RayRequest
from citeloom.settings.config import load_settings
from citeloom.stores.folder_home import FolderHome
from tests.support.library_contents import without_seconds
from tests.support.many_papers import write_papers
from tests.support.openai_server import FakeOpenAI, Status

pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = [pytest.mark.long, pytest.mark.usefixtures("cluster")]

KEY = "sk-seen-by-nobody-else"
AT_ONCE = 3


class Crowd(FakeOpenAI):
    """Counts the requests that it handles at once."""

    most = 0
    inside = 0
    lock = threading.Lock()

    async def _handle(self, request: Any, answer: Any) -> Any:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            return await super()._handle(request, answer)
        finally:
            with self.lock:
                self.inside -= 1


async def test_one_limit_holds_for_the_cluster_and_no_text_is_paid_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 200)
    sent: list[str] = []

    def recorded(number: int, stage: str, load: Callable[[], tuple[Any, ...]], size: int = 0) -> ray_executor.RayJob:
        def loaded() -> tuple[Any, ...]:
            arguments = load()
            sent.append(repr(arguments))
            return arguments

        return ray_executor.RayJob(number, stage, loaded, size)

    monkeypatch.setattr("citeloom.ingestion.ray_executor.RayJob", recorded)
    embedded: list[str] = []
    refusals = [Status(429, retry_after="0.2"), Status(503)]
    with Crowd(
        delay=0.05, api_key=KEY, failures=refusals, behaviour=lambda body: embedded.extend(body["input"])
    ) as server:
        settings = load_settings(
            embedding_model="fake", embedding_base_url=server.base_url, embedding_api_key=KEY, max_concurrency=AT_ONCE
        )
        with open_session(settings, FolderHome(tmp_path / "ray").prepare()) as session:
            on_ray = await ingest(session.library, [papers], ray=RayRequest(workers=2))
            version = session.library.version()
        assert server.most == AT_ONCE
        assert len(on_ray.added) == 200 and on_ray.chunks_embedded > 0
        assert len(embedded) == len(set(embedded)) >= on_ray.chunks_embedded
        with open_session(settings, FolderHome(tmp_path / "here").prepare()) as session:
            here = await ingest(session.library, [papers])
            assert session.library.version() == version
    assert without_seconds(on_ray) == without_seconds(here)
    assert len(sent) > 200 and KEY not in "".join(sent)

"""A model server that cannot be reached is no mistake of the request: 503, for every kind of client."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.served_app import Served, served_app

QUESTION = "How do random seeds change results?"


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    settings = {"chat_model": "fake", "chat_base_url": nobody, "chat_api_key": "k", "max_retries": 0}
    with served_app(home, settings) as server:
        yield server


def test_an_unreachable_model_server_is_an_error_with_status_503(served: Served) -> None:
    refused = served.post("/research", {"question": QUESTION})
    assert refused.status_code == 503 and refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:citeloom:EndpointUnreachableError"
    assert "cannot be reached" in refused.json()["detail"] and "CITELOOM_CHAT_BASE_URL" in refused.json()["help"]
    turn = served.post(f"/conversations/{served.conversation()}/turns", {"question": QUESTION})
    assert turn.status_code == 503


def test_chat_programs_get_the_error_in_their_format(served: Served) -> None:
    body = {"model": "citeloom", "messages": [{"role": "user", "content": QUESTION}]}
    refused = httpx.post(f"{served.url}/v1/chat/completions", json=body, timeout=300)
    assert refused.status_code == 503 and refused.json()["error"]["code"] == "endpoint_unreachable"

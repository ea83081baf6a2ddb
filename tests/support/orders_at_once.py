"""Requests sent at the same moment, and the guarantees for their answers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from tests.support.served_app import IN_BACKGROUND

DONE = {200, 202, 204}
Request = tuple[str, str, dict[str, Any] | None]


def at_once(clients: list[httpx.Client], requests: tuple[Request, ...]) -> list[httpx.Response]:
    """The answers to requests that are sent at the same moment."""
    together = threading.Barrier(len(requests))

    def send(client: httpx.Client, request: Request) -> httpx.Response:
        method, path, body = request
        together.wait(300)
        return client.request(method, path, json=body, headers=IN_BACKGROUND)

    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(send, clients, requests))


def require_one_carried_out(answers: list[httpx.Response], told: str) -> None:
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= DONE | {409} and DONE & set(statuses), [(item.status_code, item.text) for item in answers]
    for answer in answers:
        if answer.status_code == 409:
            assert answer.headers["content-type"] == "application/problem+json"
            assert any(word in answer.json()["detail"] for word in told.split("|")), answer.text

"""Papers are looked up and added by identifier over HTTP and from Python, with the answers of recorded services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import citeloom
from citeloom.errors import InputError
from citeloom.settings.config import load_settings
from tests.integration.commands.test_add import QUAILS
from tests.integration.commands.test_enrich import SEEDS
from tests.support.metadata_server import Fault, MetadataServer
from tests.support.served_app import SSE, Served, events_of, served_app

KEY = "obrien2019seeds"
RETRACTED = replace(SEEDS, updates=(("retraction", "10.5555/notice", (2024, 6, 4), "publisher"),))


@pytest.fixture
def services() -> Iterator[MetadataServer]:
    with MetadataServer(RETRACTED, QUAILS) as running:
        running.found["seeds"] = [RETRACTED]
        yield running


def settings_of(services: MetadataServer) -> dict[str, Any]:
    return {name.lower(): value for name, value in services.settings().items()}


@pytest.fixture
def served(home: Path, services: MetadataServer) -> Iterator[Served]:
    with served_app(home, settings_of(services)) as server:
        yield server


def done(served: Served, path: str, body: dict[str, Any]) -> Any:
    """The result of a job, from its events."""
    with served.api.stream("POST", path, json=body, headers=SSE) as answer:
        assert answer.status_code == 200
        return next(event.data["result"] for event in events_of(answer.iter_lines()) if event.name == "done")


def test_a_paper_is_looked_up_and_its_retraction_is_shown_everywhere(served: Served, services: MetadataServer) -> None:
    record = done(served, "/papers/enrich", {"keys": [KEY]})
    assert [(item["key"], item["outcome"], item["status"]) for item in record["papers"]] == [
        (KEY, "found", "retracted")
    ]
    passages = served.api.get("/search", params={"q": "seeds of classifiers", "paper": KEY}).json()["passages"]
    assert passages and all(item["status"] == "retracted" and item["notices"] for item in passages)
    page = served.api.get(f"{served.url}/library/{KEY}").text
    assert "<b>Retracted.</b>" in page and "10.5555/notice" in page
    assert '<span class="chip doubt">Retracted</span>' in served.api.get(f"{served.url}/library").text
    asked = len(services.requests)
    done(served, "/papers/enrich", {"keys": [KEY]})
    assert len(services.requests) == asked  # answered from the cache


def test_a_paper_is_added_by_its_doi_once(served: Served) -> None:
    body = {"identifiers": [f"https://doi.org/{QUAILS.doi}"]}
    begun = served.post("/papers/by-identifier", body, Idempotency_Key="once")
    assert begun.status_code == 202 and begun.headers["location"] == f"/api/v1/ingests/{begun.json()['id']}"
    assert served.post("/papers/by-identifier", body, Idempotency_Key="once").json()["id"] == begun.json()["id"]
    with served.api.stream("GET", f"/ingests/{begun.json()['id']}/events") as answer:
        events = {event.name: event.data for event in events_of(answer.iter_lines())}
    (key,) = events["done"]["result"]["added"]
    assert events["paper"]["outcome"] == "abstract" and events["paper"]["file"] == f"{key}.md"
    assert served.api.get(f"/papers/{key}").json()["doi"] == QUAILS.doi
    assert done(served, "/papers/by-identifier", body)["unchanged"] == [key]


def test_a_work_that_cannot_be_added_is_reported_with_the_reason(served: Served, services: MetadataServer) -> None:
    refused = served.post("/papers/by-identifier", {"identifiers": ["quails"]})
    assert refused.status_code == 422 and "neither a DOI nor an arXiv id" in refused.json()["detail"]
    record = done(served, "/papers/by-identifier", {"identifiers": ["10.5555/nobody"]})
    assert record["added"] == [] and "no service knows it" in record["refused"][0]["reason"]
    assert served.post("/papers/enrich", {"keys": ["nobody2020"]}).status_code == 404
    for name in ("crossref", "datacite", "openalex", "s2"):
        services.faults[name] = [Fault(status=500)] * 40
    record = done(served, "/papers/by-identifier", {"identifiers": ["10.5555/other"]})
    assert record["added"] == [] and record["refused"]


def test_a_server_without_configured_services_sends_nothing(home: Path, services: MetadataServer) -> None:
    with served_app(home, {**settings_of(services), "metadata_services": []}) as server:
        for path, body in (("enrich", {}), ("by-identifier", {"identifiers": [QUAILS.doi]})):
            refused = server.post(f"/papers/{path}", body)
            assert refused.status_code == 409 and "CITELOOM_METADATA_SERVICES" in refused.json()["help"]
        assert 'id="identifiers"' not in server.api.get(f"{server.url}/library").text
        assert 'id="enrich"' not in server.api.get(f"{server.url}/library/{KEY}").text
    assert services.requests == []


def test_python_can_enrich_and_add_papers(home: Path, services: MetadataServer) -> None:
    with citeloom.open_library(home, settings=load_settings(**settings_of(services))) as library:
        record = citeloom.enrich(library, KEY)
        assert record["papers"][0]["status"] == "retracted" and record["requests"] > 0
        assert citeloom.enrich(library, KEY, offline=True)["requests"] == 0
        (added,) = citeloom.add(library, QUAILS.doi)["papers"]
        assert added["outcome"] == "abstract" and library.library.paper(added["key"]).doi == QUAILS.doi
        with pytest.raises(InputError, match="neither a DOI nor an arXiv id"):
            citeloom.add(library, ["quails"])

"""Evidence tables over HTTP: made as a job, listed, edited without lost edits, downloaded, deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.served_app import IN_BACKGROUND, Served, served_app

QUESTION = "How are scores calibrated?"
PAPER = "varga2021calibration"


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("tables") / "home")
    with served_app(home, per_minute=1_000_000) as server:
        yield server


@pytest.fixture(scope="module")
def table(served: Served) -> dict[str, Any]:
    """A table of two columns, made without a chat model."""
    made = served.post("/tables", {"question": QUESTION, "columns": ["method", "error"], "papers": [PAPER]})
    assert made.status_code == 200, made.text
    result: dict[str, Any] = made.json()
    return result


def _put(served: Served, table: dict[str, Any], **given: Any) -> httpx.Response:
    body = {"key": PAPER, "column": "method", "value": "mine", **given}
    return served.api.put(f"/tables/{table['table_id']}/cells", json=body)


def test_a_table_is_made_as_a_job_listed_and_shown(served: Served, table: dict[str, Any]) -> None:
    assert [column["name"] for column in table["columns"]] == ["method", "error"]
    assert [row["key"] for row in table["rows"]] == [PAPER]
    [listed] = served.api.get("/tables").json()["tables"]
    assert (listed["table_id"], listed["question"], listed["active"]) == (table["table_id"], QUESTION, None)
    shown = served.api.get(f"/tables/{table['table_id']}").json()
    assert shown["rows"][0]["cells"].keys() == {"method", "error"}
    assert served.api.get("/tables/table-0").status_code == 404


def test_the_same_table_in_the_background_is_the_same_job(served: Served, table: dict[str, Any]) -> None:
    body = {"question": QUESTION, "papers": [PAPER]}
    answer = served.api.post("/tables", json=body, headers=IN_BACKGROUND)
    assert (answer.status_code, answer.json()["id"]) == (202, table["table_id"])
    assert answer.headers["location"] == f"/api/v1/tables/{table['table_id']}"
    events = served.events(f"/tables/{table['table_id']}/events")
    assert "1 paper in scope, 0 left to read" in [event.data.get("text") for event in events]
    assert events[-1].data["result"]["table_id"] == table["table_id"]


def test_an_edit_of_a_cell_changed_by_somebody_else_is_refused_with_the_stored_value(
    served: Served, table: dict[str, Any]
) -> None:
    place = {"params": {"key": PAPER, "column": "method"}}
    shown = served.api.get(f"/tables/{table['table_id']}/cells", **place).json()
    first = _put(served, table, value="temperature scaling", revision=shown["revision"])
    assert (first.status_code, first.json()["status"], first.json()["edited"]) == (200, "edited", True)
    second = _put(served, table, value="something else", revision=shown["revision"])
    assert (second.status_code, second.json()["cell"]["value"]) == (409, "temperature scaling")
    again = _put(served, table, value="something else", revision=second.json()["cell"]["revision"])
    assert again.json()["value"] == "something else"
    kept = served.post("/tables", {"question": QUESTION, "columns": ["method", "n"], "papers": [PAPER]}).json()
    assert kept["rows"][0]["cells"]["method"]["value"] == "something else"


def test_unknown_rows_columns_and_values_are_refused(served: Served, table: dict[str, Any]) -> None:
    address = f"/tables/{table['table_id']}"
    assert served.api.get(f"{address}/cells", params={"key": PAPER, "column": "colour"}).status_code == 404
    assert _put(served, table, column="colour").status_code == 422
    assert served.api.get(f"{address}/files/pptx").status_code == 422
    assert served.api.post("/tables", json={"question": QUESTION, "colums": ["n"]}).status_code == 422


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("md", b"Without a chat model"),
        ("csv", b"\xef\xbb\xbfStudy"),
        ("xlsx", b"PK"),
        ("docx", b"PK"),
        ("html", b"<!"),
        ("tex", b""),
    ],
)
def test_a_table_is_downloaded_in_each_format(name: str, begins: bytes, served: Served, table: dict[str, Any]) -> None:
    answer = served.api.get(f"/tables/{table['table_id']}/files/{name}")
    assert (answer.status_code, answer.content.lstrip()[: len(begins)]) == (200, begins), answer.content[:80]
    assert answer.headers["content-disposition"].endswith(f".{name}")


async def test_agents_can_make_and_read_tables(served: Served) -> None:
    async with (
        httpx.AsyncClient(timeout=300) as http,
        Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
    ):
        made = await client.call_tool("make_table", {"question": "Which seeds?", "columns": ["n"], "papers": [PAPER]})
        assert not made.is_error, made.content
        table = made.structured_content
        read = await client.call_tool("get_table", {"table_id": table["table_id"]})
        assert read.structured_content == table
        assert json.loads(read.content[0].text)["question"] == "Which seeds?"


async def test_agreement_runs_as_a_job_is_stored_as_a_table_and_offered_to_agents(served: Served) -> None:
    asked = {"claim": "Temperature scaling calibrates scores.", "papers": [PAPER]}
    made = served.post("/tables/agree", asked).json()
    assert made["table_id"].startswith("agree-") and [item["key"] for item in made["studies"]] == [PAPER]
    assert made["studies"][0]["stance"] == "not judged" and made["studies"][0]["quote"]
    assert served.api.get(f"/tables/{made['table_id']}").json()["question"] == asked["claim"]
    again = served.events(f"/tables/{made['table_id']}/events")[-1].data["result"]
    assert again["studies"] == made["studies"]
    async with (
        httpx.AsyncClient(timeout=300) as http,
        Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
    ):
        told = await client.call_tool("agree", asked)
        assert not told.is_error, told.content
        assert told.structured_content["studies"] == made["studies"]


def test_a_deleted_table_is_gone(served: Served) -> None:
    made = served.post("/tables", {"question": "What is gone?", "columns": ["n"], "papers": [PAPER]}).json()
    address = f"/tables/{made['table_id']}"
    assert served.api.delete(address).status_code == 204
    assert [served.api.get(address).status_code, served.api.delete(address).status_code] == [404, 404]

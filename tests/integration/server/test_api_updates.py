"""What a changed library concerns, over HTTP and on the page Runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served_app import Served, served_app

QUESTION = {"question": "How does temperature scaling change the calibration for new wearers?"}


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with served_app(home, {}) as server:
        yield server


def test_an_update_names_a_removed_paper_and_asks_the_question_again(served: Served) -> None:
    answer = served.api.post("/research", json=QUESTION).json()
    key = answer["citations"][0]["key"]
    assert served.api.post("/updates").json()["items"] == []
    assert served.api.delete(f"/papers/{key}").status_code in (200, 204)
    found = served.api.post("/updates").json()
    assert found["items"] and all(item["reason"] == "removed" and item["keys"] == [key] for item in found["items"])
    shown = served.api.get(str(served.api.base_url.join("/runs"))).text
    assert f"{key} is no longer in the library." in shown and "may need another look" in shown
    assert f"accept={found['items'][0]['id']}" in shown and ">Ask again</button>" in shown
    assert served.api.post("/updates", params={"accept": 99}).status_code == 422
    ids = [item["id"] for item in found["items"]]
    done = served.api.post("/updates", params={"accept": ids}).json()
    assert done["items"] == [] and len(done["accepted"]) == len(ids)
    assert served.api.post("/updates", params={"accept": ids[:1]}).status_code == 422
    assert "may need another look" not in served.api.get(str(served.api.base_url.join("/runs"))).text

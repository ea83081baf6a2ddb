"""The page links a paper and its citations back to Zotero, under the same policy as before."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from citeloom.api.homes import open_library
from citeloom.api.paper_lookup import async_zotero
from citeloom.settings.config import load_settings
from tests.support.made_zotero import MadeZotero, page_of
from tests.support.served_app import Served, served_app


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    zotero = MadeZotero(tmp_path / "Zotero")
    zotero.item("AAAA1111", title="Looms of the night", date="2020", authors=[("Ada", "Lovelace")])
    zotero.file("FILE1111", "AAAA1111", "looms.md", page_of("jacquard"))
    with open_library(tmp_path / "home", settings=load_settings(zotero=str(zotero.folder))) as library:
        asyncio.run(async_zotero(library))
    with served_app(tmp_path / "home", {}) as server:
        yield server


def test_a_paper_and_a_citation_link_back(served: Served) -> None:
    link = 'href="zotero://select/library/items/AAAA1111"'
    paper = httpx.get(f"{served.url}/library/lovelace2020looms", headers={"Accept": "text/html"})
    assert link in paper.text and "default-src 'none'" in paper.headers["content-security-policy"]
    assert (
        httpx.get(f"{served.url}/api/v1/papers/lovelace2020looms").json()["zotero"]
        == "zotero://select/library/items/AAAA1111"
    )
    answer = served.post("/research", {"question": "In how many looms was the jacquard measured?"}).json()
    shown = httpx.get(f"{served.url}/runs/{answer['thread_id']}", headers={"Accept": "text/html"}).text
    (address, *_) = re.findall(r'href="(/runs/[^"]+/citations/\d+)"', shown)
    details = httpx.get(f"{served.url}{address}", headers={"Accept": "text/html"}).text
    assert link in details

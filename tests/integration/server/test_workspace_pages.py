"""The pages Write, Runs and Settings as they are sent: small, without anything inline, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import httpx
import pytest

from tests.support.run_fixtures import experiment
from tests.support.served_app import Served, served_app

__all__ = ["experiment"]
SECRET = "sk-must-never-be-shown"
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202egnihtyna'


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    settings = {"chat_api_key": SECRET, "judge_base_url": "https://user:" + SECRET + "@models.example/v1"}
    with served_app(home, settings) as server:
        yield server


def page(served: Served, path: str, **headers: str) -> httpx.Response:
    return httpx.get(served.url + path, headers={"Accept": "text/html", **headers})


def _inline(html: str) -> list[str]:
    """Scripts, styles and handlers within a page, and images from elsewhere."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = dict(attrs)
            live = tag == "style" or (tag == "script" and not given.get("src"))
            elsewhere = tag in ("img", "script") and not str(given.get("src")).startswith("/static/")
            handlers = [name for name in given if name.startswith("on") or name == "style"]
            found.extend([tag] * (live or elsewhere) + handlers)

    Reader(convert_charrefs=True).feed(html)
    return found


def test_pages_are_small_and_have_no_inline_scripts_or_styles(served: Served, experiment: dict[str, Any]) -> None:
    concept = {**experiment["paper_concept"], "title": HOSTILE}
    run = served.post("/sections/discussion", {"experiment": {**experiment, "paper_concept": concept}}).json()
    for path in ("/write", "/check", "/runs", f"/runs/{run['thread_id']}", "/settings"):
        shown = page(served, path)
        assert shown.status_code == 200, path
        assert _inline(shown.text) == [], path
        assert "\u202e" not in shown.text, path
        parts = [
            shown,
            *(httpx.get(served.url + name) for name in re.findall(r'(?:href|src)="(/static/[^"]+)"', shown.text)),
        ]
        assert sum(len(part.content) for part in parts) < 150_000, path
        policy = shown.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy


def test_the_settings_page_shows_origins_and_hides_secrets(served: Served) -> None:
    shown = page(served, "/settings").text
    assert SECRET not in shown and "models.example" in shown
    assert re.search(r"chat_api_key</b>.*?>set<", shown, re.DOTALL)
    assert "Set for this server" in shown and "CITELOOM" not in shown.partition("<main")[2].partition("notice")[0]


def test_the_page_of_a_missing_run_says_so(served: Served) -> None:
    missing = page(served, "/runs/nothing-here")
    assert missing.status_code == 404 and "There is no run" in missing.text and "<main" in missing.text
    asked_by_a_script = page(served, "/runs/nothing-here", **{"X-Part": "1"})
    assert asked_by_a_script.status_code == 404 and "There is no run" in asked_by_a_script.json()["detail"]
    assert page(served, "/runs/nothing/citations/1").status_code == 404
    assert page(served, "/runs?show=unknown").status_code == 422
    assert "Nothing has run yet" in page(served, "/runs").text


def test_a_passage_beside_a_checked_sentence_opens_at_its_words(served: Served) -> None:
    text = "The two temperatures answer different questions [@varga2021calibration]."
    shown = httpx.post(
        f"{served.url}/check", headers={"Accept": "text/html", "X-Part": "1"}, json={"text": text}, timeout=60
    )
    assert shown.status_code == 200 and "1 not judged" in shown.text
    link = re.search(r'href="(/library/[^"]+/read[^"]+)" data-panel', shown.text)
    assert link and page(served, unescape(link[1])).status_code == 200


def test_words_found_in_a_text_are_shown_in_their_whole_sentence(served: Served) -> None:
    shown = page(served, "/library?q=different+on+questions").text
    opened = re.findall(r'quote=([^"]+)" data-panel aria-haspopup="dialog" dir="auto">([^<]+)</a>', shown)
    assert "The two temperatures differ since they answer different questions." in dict(opened).values()
    assert all(unquote_plus(sentence).endswith(".") for sentence, _ in opened)
    passages = [
        unquote_plus(quote) for quote in re.findall(r'quote=([^"]+)" data-panel aria-haspopup="dialog"><', shown)
    ]
    assert passages and all(passage.rstrip().endswith((".", "|")) for passage in passages), passages


def test_the_check_of_a_sentence_is_shown_with_its_sources(served: Served, experiment: dict[str, Any]) -> None:
    run = served.post("/sections/discussion", {"experiment": experiment}).json()["thread_id"]
    (source, *_) = served.api.get(f"/runs/{run}").json()["result"]["citations"]
    for words, said in ((source["quote"].rstrip("."), source["key"]), ("It <b>slept</b> 7.77 hours", "7.77")):
        body = {"position": 0, "text": f"{words} ({source['key']}).", "keep": True}
        checked = served.post(f"/runs/{run}/sentences", body).json()
        shown = page(served, f"/runs/{run}/sentences/0", **{"X-Part": "1"})
        assert shown.status_code == 200, shown.text
        assert said in shown.text and "<b>slept" not in shown.text and "Rewriting needs a chat model" in shown.text
        for number in filter(lambda number: number["found"], checked["numbers"]):
            assert f"<b>{number['text']}</b> also stands in" in shown.text
        assert ("No problem was found." in shown.text) == checked["ok"]
        whole = page(served, f"/runs/{run}").text
        assert said in whole and "<b>slept" not in whole and _inline(whole) == []
    assert page(served, f"/runs/{run}/sentences/999").status_code == 422
    refused = served.post(f"/runs/{run}/sentences/0/rewrite", {"text": "It slept.", "how": "shorter"})
    assert refused.status_code == 422 and refused.json()["detail"] == "Rewriting needs a chat model."


def test_links_in_a_text_open_their_details(served: Served, experiment: dict[str, Any]) -> None:
    run = served.post("/sections/discussion", {"experiment": experiment}).json()["thread_id"]
    shown = page(served, f"/runs/{run}").text
    address = re.findall(r'href="(/runs/[^"]+/citations/\d+)"', shown)[0]
    alone, part = page(served, address), page(served, address, **{"X-Part": "1"})
    assert "<mark>" in alone.text and "<html" in alone.text
    assert "<mark>" in part.text and "<html" not in part.text
    assert page(served, f"/runs/{run}/citations/999").status_code == 404

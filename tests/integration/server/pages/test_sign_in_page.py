"""Signing in: the token is given once, a cookie keeps the browser signed in, and nobody is led to another site."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from citeloom.server.app import create_app
from citeloom.server.server_options import ServerOptions
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome

TOKEN = "a token of sixteen and more"
PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def client(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser without scripts, at a server with a token."""
    home = FolderHome(shutil.copytree(sample_home, tmp_path_factory.mktemp("signed") / "home"))
    app = create_app(Settings(chat_model="extractive"), home, ServerOptions(token=SecretStr(TOKEN)))
    with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as running:
        yield running


@pytest.fixture(autouse=True)
def _signed_out(client: TestClient) -> None:
    client.cookies.clear()


def test_a_page_asks_for_the_token_and_then_opens(client: TestClient) -> None:
    asked = client.get("/library", headers=PAGE)
    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?next=/library")
    assert 'name="token"' in client.get(asked.headers["location"]).text

    given = client.post("/sign-in", data={"token": TOKEN, "next": "/library"})

    assert (given.status_code, given.headers["location"]) == (303, "/library")
    cookie = given.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and TOKEN not in cookie
    assert client.get("/library", headers=PAGE).status_code == 200


def test_a_wrong_token_is_refused_with_a_message_for_screen_readers(client: TestClient) -> None:
    answer = client.post("/sign-in", data={"token": "wrong"})

    assert answer.status_code == 401 and "set-cookie" not in answer.headers
    assert 'role="alert"' in answer.text and "not the token" in answer.text and "wrong" not in answer.headers


def test_signing_out_forgets_the_cookie(client: TestClient) -> None:
    client.post("/sign-in", data={"token": TOKEN})
    assert client.get("/", headers=PAGE).status_code == 200

    client.post("/sign-out")

    assert client.get("/", headers=PAGE).status_code == 303


@pytest.mark.parametrize(
    "address", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:1", "/a\r\nX: y", "library"]
)
def test_signing_in_never_redirects_to_another_site(address: str, client: TestClient) -> None:
    answer = client.post("/sign-in", data={"token": TOKEN, "next": address})

    assert answer.headers["location"] == "/"


def test_static_files_are_cached_for_good_only_under_their_digest(client: TestClient) -> None:
    page = client.get("/sign-in").text
    style = next(part for part in page.split('"') if part.endswith("citeloom.css"))

    assert "immutable" in client.get(style).headers["cache-control"]
    assert client.get("/static/0123456789abcdef/citeloom.css").headers["cache-control"] == "no-cache"
    assert client.get("/static/0123456789abcdef/..%2f..%2fapp.py").status_code == 404

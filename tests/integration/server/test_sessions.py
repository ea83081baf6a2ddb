"""Sessions of browsers: ended by signing out, by a changed token and by time, but not by a restart of the server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from citeloom.api.people import LIFETIMES
from citeloom.server.server_options import COOKIE
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

TOKEN = "a-token-of-enough-characters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
OWN_PAGE = "own page"
ASK = "/api/v1/conversations"


@pytest.fixture(scope="module")
def library(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(sample_home, tmp_path_factory.mktemp("sessions") / "home")


@pytest.fixture(scope="module")
def served(library: Path) -> Iterator[Served]:
    with served_app(library, token=SecretStr(TOKEN)) as server:
        yield server


def sign_in(served: Served) -> str:
    """The session of a browser that signed in just now."""
    answer = httpx.post(f"{served.url}/sign-in", data={"token": TOKEN})
    assert answer.status_code == 303
    return answer.cookies[COOKIE]


def status(served: Served, session: str) -> int:
    other = f'odd="; {COOKIE}={session}'  # of another program on this machine
    return httpx.get(f"{served.url}/api/v1/runs", headers={"Cookie": other}).status_code


def post(served: Served, path: str, session: str, **headers: str) -> int:
    given = {name: served.url + "/library" if value == OWN_PAGE else value for name, value in headers.items()}
    return httpx.post(served.url + path, headers={"Cookie": f"{COOKIE}={session}", **given}).status_code


def test_signing_out_ends_only_this_session(served: Served) -> None:
    first, second = sign_in(served), sign_in(served)
    assert first != second and (status(served, first), status(served, second)) == (200, 200)
    assert post(served, "/sign-out", first) == 303
    assert (status(served, first), status(served, second)) == (401, 200), "a copy of the cookie is worth nothing"


def test_signing_out_everywhere_ends_all_sessions(served: Served) -> None:
    sessions = [sign_in(served) for _ in range(3)]
    page = httpx.get(f"{served.url}/settings", headers={"Cookie": f"{COOKIE}={sessions[0]}"}).text
    assert 'action="/sign-out-everywhere"' in page
    assert httpx.post(f"{served.url}/sign-out-everywhere").status_code == 401, "only for who is signed in"
    assert post(served, "/sign-out-everywhere", sessions[0]) == 303
    assert {status(served, session) for session in sessions} == {401}
    assert served.api.get("/runs").status_code == 200, "the token stays valid"


def test_a_session_survives_a_restart_and_ends_when_the_token_changes(home: Path) -> None:
    with served_app(home, token=SecretStr(TOKEN)) as first:
        kept, ended = sign_in(first), sign_in(first)
        post(first, "/sign-out", ended)
    with served_app(home, token=SecretStr(TOKEN)) as again:
        assert (status(again, kept), status(again, ended)) == (200, 401)
    with served_app(home, token=SecretStr("another-token-of-the-server")) as changed:
        assert status(changed, kept) == 401
    with served_app(home, token=SecretStr(TOKEN)) as back:
        assert status(back, kept) == 401, "also when the first token is used again"


def test_a_session_expires_after_thirty_days(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    session = sign_in(served)
    now = time.time()
    for later, expected in ((LIFETIMES["session"] - 60, 200), (LIFETIMES["session"] + 60, 401)):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda later=later: now + later)
            assert status(served, session) == expected


def test_a_copy_of_the_home_signs_nobody_in(served: Served, library: Path) -> None:
    session = sign_in(served)
    stored = b"".join(path.read_bytes() for path in library.glob("accounts.sqlite*"))
    assert stored and session.encode() not in stored and TOKEN.encode() not in stored


UNSAFE: dict[str, tuple[dict[str, str], int]] = {
    "referer of another site": ({"Referer": "https://evil.example/page"}, 403),
    "referer of another port": ({"Referer": "http://127.0.0.1:1/"}, 403),
    "referer that begins with ours": ({"Referer": "http://127.0.0.1.evil.example/"}, 403),
    "referer with our address as its user": ({"Referer": "http://127.0.0.1@evil.example/"}, 403),
    "referer that is no address": ({"Referer": "http://["}, 403),
    "empty referer": ({"Referer": ""}, 403),
    "foreign referer with our origin in its query": ({"Referer": "https://evil.example/?http://127.0.0.1"}, 403),
    "referer of our page": ({"Referer": OWN_PAGE}, 201),
    "nothing, as a program sends": ({}, 201),
}


@pytest.mark.parametrize(("headers", "expected"), UNSAFE.values(), ids=UNSAFE)
def test_a_page_of_another_site_cannot_use_a_session(served: Served, headers: dict[str, str], expected: int) -> None:
    assert post(served, ASK, sign_in(served), **headers) == expected
    by_token = httpx.post(served.url + ASK, headers=BEARER | ({} if OWN_PAGE in headers.values() else headers))
    assert by_token.status_code == 201, "a page cannot send the token"


def test_a_foreign_referer_is_refused_if_no_token_is_required(home: Path) -> None:
    with served_app(home) as open_to_all:
        assert httpx.post(open_to_all.url + ASK, headers={"Referer": "https://evil.example/"}).status_code == 403
        assert httpx.post(open_to_all.url + ASK).status_code == 201

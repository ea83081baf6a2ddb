"""A group's own sign-in: whom it lets in and as what, and what a wrong, late or repeated answer of it does."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from citeloom.api.people import invite
from citeloom.errors import ConfigurationError
from citeloom.server.identity_provider import IdentityProvider
from citeloom.stores.folder_home import find_home
from tests.support.oidc_server import CLIENT, SECRET, OidcServer
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

RULES = {"owner": ["olga@example.org"], "writer": ["@Example.org"], "reader": ["groups:students"]}
OLGA = {"sub": "7", "email": "Olga@example.org", "email_verified": True}
ADA = {"sub": "1", "email": "ada@example.org", "email_verified": True, "preferred_username": "Ada L."}


@pytest.fixture
def provider() -> Iterator[OidcServer]:
    with OidcServer() as server:
        yield server


@pytest.fixture
def served(sample_home: Path, tmp_path: Path, provider: OidcServer) -> Iterator[Served]:
    """A server that nobody was invited to, with a run of before."""
    home = shutil.copytree(sample_home, tmp_path / "group")
    settings = {"oidc_issuer": provider.url, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET}
    with served_app(home, settings | {"oidc_roles": json.dumps(RULES)}) as server:
        yield server


@contextmanager
def coming(served: Served, place: str = "/sign-in/group") -> Iterator[tuple[httpx.Client, str]]:
    """A browser that was led to the provider, and where that sends it back to."""
    with httpx.Client(base_url=served.url, headers={"Accept": "text/html"}) as browser:
        led = browser.get(place)
        assert led.status_code == 303, led.text
        yield browser, httpx.get(led.headers["location"]).headers["location"]


def come(served: Served, place: str = "/sign-in/group") -> httpx.Response:
    """The first page of whoever the provider takes a browser for, or why there is none."""
    with coming(served, place) as (browser, back):
        answer = browser.get(back)
        return browser.get(answer.headers["location"]) if answer.status_code == 303 else answer


def names(served: Served) -> dict[str, str]:
    return {person.name: person.role for person in served.app.state.people.accounts.people()}


def test_the_first_account_is_an_owners_and_rules_assign_roles(served: Served, provider: OidcServer) -> None:
    assert "/sign-in/group" in httpx.get(f"{served.url}/sign-in").text
    provider.person = dict(ADA)
    assert come(served).status_code == 422, "the first account is an owner's"
    provider.person = dict(OLGA)
    assert "Ask" in come(served).text
    provider.person = {**ADA, "sub": "9", "groups": ["students"], "email": "ada@elsewhere.org"}
    provider.use_key("ES256")
    served.app.state.people.provider._keys.cooldown_duration = 0
    come(served)
    provider.in_userinfo = {"email", "email_verified"}
    provider.person = dict(ADA)
    come(served)
    assert names(served) == {"olga": "owner", "ada-l": "reader", "ada-l-2": "writer"}
    provider.person |= {"preferred_username": "another", "groups": ["students"], "email": "ada@elsewhere.org"}
    come(served)
    assert names(served)["ada-l-2"] == "reader", "the account goes with who it is, the role with the rules"
    deeds = served.app.state.people.accounts.audit_lines("ada-l-2")
    assert any("the role reader" in deed["action"] for deed in deeds), deeds
    provider.person = {**OLGA, "email": "olga@elsewhere.org", "groups": ["students"]}
    come(served)
    assert names(served)["olga"] == "owner", "the only one stays"
    provider.person = {"sub": "9"}
    assert "has no access" in come(served).text, "who has left the group"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"nonce": "another"}, "another sign-in"),
    ({"nonce": None}, "another sign-in"),
    ({"azp": "another"}, "another sign-in"),
    ({"iss": "https://evil.example"}, "not valid"),
    ({"aud": "another"}, "not valid"),
    ({"exp": int(time.time()) - 3600}, "not valid"),
    ({"iat": int(time.time()) + 3600}, "not valid"),
    ({"email_verified": False}, "has no access"),
    ({"email_verified": "true"}, "has no access"),
    ({"email": "olga@example.org.evil.example"}, "has no access"),
]


def test_an_invalid_answer_of_the_identity_provider_signs_nobody_in(served: Served, provider: OidcServer) -> None:
    provider.person = dict(OLGA)
    come(served)
    for wrong, said in WRONG:
        provider.person, provider.wrong = {**ADA, "sub": "3"}, wrong
        refused = come(served)
        assert refused.status_code in (403, 422) and said in refused.text, wrong
    assert names(served) == {"olga": "owner"}
    provider.wrong = {"exp": int(time.time()) - 30, "iat": int(time.time()) + 30}
    assert come(served).status_code == 200, "clocks may differ"


def test_an_answer_of_the_identity_provider_works_once_in_the_browser_that_started(
    served: Served, provider: OidcServer
) -> None:
    provider.person = dict(OLGA)
    with coming(served) as (browser, back):
        assert httpx.get(back).status_code == 403, "in another browser"
        assert browser.get(back.replace("state=", "state=x")).status_code == 403
        assert browser.get(f"{back}&iss=https://evil.example").status_code == 403
        assert "access_denied" in browser.get(back.replace("code=", "error=access_denied&no=")).text
        begun = browser.cookies["citeloom_sign_in"]
        assert browser.get(back).status_code == 303
        browser.cookies.set("citeloom_sign_in", begun)
        again = browser.get(back)
        assert again.status_code == 403 and "invalid_grant" in again.text
    with coming(served) as (browser, back):
        browser.cookies.clear()
        browser.cookies.set("citeloom_sign_in", begun.rpartition(".")[0] + ".forged")
        assert browser.get(back).status_code == 403
    with coming(served, "/sign-in/group?next=https://evil.example") as (browser, back):
        assert browser.get(back).headers["location"] == "/"


def test_removed_people_stay_out_and_invited_people_keep_their_account(served: Served, provider: OidcServer) -> None:
    provider.person = dict(OLGA)
    come(served)
    provider.person = dict(ADA)
    with coming(served) as (browser, back):
        browser.get(back)
        assert browser.get("/runs").status_code == 200
        accounts = served.app.state.people.accounts
        accounts.remove("ada-l")
        assert browser.get("/runs").status_code == 303, "the session ended"
    provider.person = dict(OLGA)
    with coming(served) as (browser, back):  # a cookie ends sessions alone, not an identity that it names
        browser.cookies.set("citeloom_session", f"{provider.url} 1")
        assert browser.get(back).status_code == 303
    provider.person = dict(ADA)
    assert "was removed" in come(served).text
    provider.person = {"sub": "5"}
    link = invite(find_home(accounts_home(served)), "bo", "writer")
    assert "Use your group" in httpx.get(f"{served.url}/join?invitation={link}").text
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    shown = httpx.get(f"{served.url}/sign-in/group?invitation={link}", headers=elsewhere, follow_redirects=True)
    assert "Welcome, bo" in shown.text, "a link of somebody else names the account first"
    assert come(served, f"/sign-in/group?invitation={link}").status_code == 200
    assert come(served).status_code == 200 and names(served) == {"olga": "owner", "bo": "writer"}
    another = invite(find_home(accounts_home(served)), "mallory", "writer")
    assert "You have the account bo" in come(served, f"/sign-in/group?invitation={another}").text
    provider.person = {"sub": "6"}
    assert "was used" in come(served, f"/sign-in/group?invitation={link}").text


def accounts_home(served: Served) -> Path:
    return Path(served.state.session.home.name)


def test_agents_can_use_access_tokens_issued_for_mcp(served: Served, provider: OidcServer) -> None:
    place = httpx.post(f"{served.url}/mcp", json={}).headers["www-authenticate"].split('"')[1]
    about = httpx.get(place).json()
    assert about["authorization_servers"] == [provider.url] and about["resource"] == f"{served.url}/mcp"
    good = {"sub": "7", "aud": [about["resource"]], "scope": "openid write"}

    def status(**claims: Any) -> int:
        return httpx.post(f"{served.url}/mcp", json={}, headers=bearer(provider, {**good, **claims})).status_code

    assert status() == 401, "nobody has signed in yet"
    provider.person = dict(OLGA)
    come(served)
    for claims in ({"aud": CLIENT}, {"iss": "https://evil.example"}, {"exp": int(time.time()) - 3600}, {"sub": "8"}):
        assert status(**claims) == 401, claims
    assert httpx.get(f"{served.url}/api/v1/runs", headers=bearer(provider, good)).status_code == 401, "for MCP alone"

    async def refused(scope: str) -> str:
        sent = bearer(provider, {**good, "scope": scope})
        async with (
            httpx.AsyncClient(headers=sent, timeout=60) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as agent,
        ):
            await agent.call_tool("library_status", {})
            return str((await agent.call_tool("update_texts", {})).content)

    assert "not allowed" in asyncio.run(refused("openid")) and "not allowed" not in asyncio.run(refused("write"))
    asked = provider.key_requests
    for _ in range(3):
        status(sub="7"), httpx.post(f"{served.url}/mcp", json={}, headers={"Authorization": "Bearer a.b.c"})
    assert provider.key_requests == asked, "strangers make no requests to the provider"


def bearer(provider: OidcServer, claims: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {provider.sign(**claims)}"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"CLIENT_ID": ""}, "CITELOOM_OIDC_CLIENT_ID"),
        ({"CLIENT_SECRET": ""}, "CITELOOM_OIDC_CLIENT_SECRET"),
        ({"ISSUER": "http://id.example.org"}, "https"),
        ({"ROLES": '{"king": ["@example.org"]}'}, "CITELOOM_OIDC_ROLES: must be"),
        ({"ROLES": '{"owner": ["ada"]}'}, "CITELOOM_OIDC_ROLES: "),
        ({"ROLES": "olga"}, "CITELOOM_OIDC_ROLES"),
    ],
)
def test_wrong_settings_are_reported(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], said: str) -> None:
    whole = {"ISSUER": "https://id.example.org", "CLIENT_ID": "a", "CLIENT_SECRET": "b", "ROLES": json.dumps(RULES)}
    for name, value in {**whole, **given}.items():
        monkeypatch.setenv(f"CITELOOM_OIDC_{name}", value)
    with pytest.raises(ConfigurationError, match=said) as raised:
        IdentityProvider()
    assert raised.value.help


def test_an_unreachable_or_misnamed_provider_is_reported(served: Served, provider: OidcServer) -> None:
    known = served.app.state.people.provider
    known.issuer = provider.url + "/"
    assert httpx.get(f"{served.url}/sign-in/group").status_code == 502
    known.issuer = "http://127.0.0.1:9"
    assert "cannot be reached" in httpx.get(f"{served.url}/sign-in/group").text


def test_a_provider_without_an_endpoint_or_keys_is_reported(
    served: Served, provider: OidcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = provider.answer

    def without(name: str) -> None:
        def incomplete(*given: Any) -> tuple[int, dict[str, Any]]:
            status, record = answer(*given)
            return status, {key: value for key, value in record.items() if key != name}

        monkeypatch.setattr(provider, "answer", incomplete)

    without("token_endpoint")
    refused = httpx.get(f"{served.url}/sign-in/group")
    assert refused.status_code == 502 and "token_endpoint" in refused.text
    without("")
    provider.person = dict(OLGA)
    with coming(served) as (browser, back):
        served.app.state.people.provider._keys.uri = f"{served.url}/sign-in"  # a page, no JSON
        assert browser.get(back).status_code == 403

"""Accounts keep what they promise: one owner at least, invitations once, budgets, and few attempts to sign in."""

from __future__ import annotations

import base64
import json
import shutil
import time
from pathlib import Path
from threading import Event

import httpx
import pytest
from pydantic import SecretStr

from citeloom.api.conversation import delete_expired
from citeloom.api.people import acting, invite, join
from citeloom.errors import InputError
from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.server.server_options import COOKIE, ServerOptions
from citeloom.stores.folder_home import find_home
from tests.support.journal_calls import once
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.people import PASSWORD, add_person, signed_in
from tests.support.served_app import IN_BACKGROUND, SSE, served_app

pytestmark = pytest.mark.attack


@pytest.fixture
def group(sample_home: Path, tmp_path: Path) -> Path:
    """A home with an owner and a writer."""
    home = shutil.copytree(sample_home, tmp_path / "group")
    add_person(home, "olga", "owner")
    add_person(home, "ada", "writer")
    return home


def test_the_last_owner_stays_and_the_first_account_is_an_owners(home: Path, group: Path) -> None:
    with pytest.raises(InputError, match="first account"):
        invite(find_home(home), "bo", "writer")
    accounts = find_home(group).accounts()
    for change in (lambda: accounts.remove("Olga"), lambda: accounts.change("olga", role="reader")):
        with pytest.raises(InputError, match="only owner"):
            change()
    invite(find_home(group), "bo", "owner")
    with pytest.raises(InputError, match="only owner"):
        accounts.remove("olga")  # an owner who was only invited cannot take over
    accounts.change("ada", role="owner")
    accounts.remove("olga")
    assert [person.name for person in accounts.people()] == ["ada", "bo"]
    assert accounts.holder("session", accounts.grant("session", "olga")) is None  # she was signing in meanwhile


def test_everything_older_than_the_first_invitation_belongs_to_the_first_owner(
    sample_home: Path, tmp_path: Path
) -> None:
    home = shutil.copytree(sample_home, tmp_path / "before")
    with served_app(home) as before:
        asked = httpx.post(f"{before.url}/api/v1/research", json={"question": "How many seeds?"}, timeout=300).json()
    add_person(home, "olga", "owner")
    add_person(home, "ada", "writer")
    with served_app(home) as after:
        for name, seen in (("olga", 200), ("ada", 404)):
            with signed_in(after.url, name) as browser:
                assert browser.get(f"/api/v1/runs/{asked['thread_id']}").status_code == seen


def test_people_can_be_invited_into_a_new_home_before_it_has_papers(tmp_path: Path) -> None:
    home = find_home(tmp_path / "home")
    with pytest.raises(InputError, match="first account is an owner's"):
        invite(home, "ada", "writer")
    assert not home.exists()
    join(home.accounts(), invite(home, "ada", "owner"), PASSWORD)
    with served_app(tmp_path / "home") as served, signed_in(served.url, "ada") as browser:
        assert browser.get("/api/v1/papers").json()["total"] == 0
        assert httpx.get(f"{served.url}/api/v1/papers").status_code == 401


def test_the_person_at_the_machine_becomes_the_owner_and_then_everybody_signs_in(
    sample_home: Path, tmp_path: Path
) -> None:
    home = shutil.copytree(sample_home, tmp_path / "alone")
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    opening["params"] = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    accepts = {"Accept": "application/json, text/event-stream"}
    with served_app(home) as served, httpx.Client(base_url=served.url, headers={"Origin": served.url}) as owner:
        asked = owner.post("/api/v1/research", json={"question": "How many seeds?"}, timeout=300).json()
        agent = httpx.post(f"{served.url}/mcp", json=opening, headers=accepts).headers["mcp-session-id"]
        first = {"name": "Ada", "password": PASSWORD}
        for wrong in ({"password": "short"}, {"name": "a b"}):
            assert owner.post("/settings/people/first", data=first | wrong).status_code == 422
        foreign = owner.post("/settings/people/first", data=first, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403 and not find_home(home).accounts().people()
        begun = owner.post("/settings/people/first", data=first)
        assert begun.status_code == 303 and begun.headers["location"] == "/settings/people"
        assert 'aria-label="Invite"' in owner.get("/settings/people").text
        assert owner.get(f"/api/v1/runs/{asked['thread_id']}").status_code == 200
        assert httpx.get(f"{served.url}/api/v1/papers").status_code == 401
        second = {"name": "eve", "password": PASSWORD}
        assert owner.post("/settings/people/first", data=second).status_code == 403
        assert httpx.post(f"{served.url}/settings/people/first", data=second).status_code == 401
        assert [person.name for person in find_home(home).accounts().people()] == ["ada"]
        token = find_home(home).accounts().grant("token", "ada", "agent", ("read",))
        later = accepts | {"Mcp-Session-Id": agent, "Authorization": f"Bearer {token}"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert httpx.post(f"{served.url}/mcp", json=listing, headers=later).status_code == 404, "from before"


def test_the_first_account_is_refused_while_work_runs(home: Path) -> None:
    begun, first = Event(), {"name": "ada", "password": PASSWORD}

    def hang(_: object) -> str:
        begun.set()
        return "hang"

    with FakeOpenAI(behaviour=hang) as model:
        settings = {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k"}
        with served_app(home, settings) as served:
            origin = {"Origin": served.url}
            table = {"question": "Which seeds were used?", "columns": ["seeds"]}
            running = served.api.post("/tables", json=table, headers=IN_BACKGROUND).json()["id"]
            assert begun.wait(60)
            refused = httpx.post(f"{served.url}/settings/people/first", data=first, headers=origin)
            assert refused.status_code == 409 and "Wait until it ends, or stop it" in refused.text
            assert not find_home(home).accounts().people() and served.api.get("/papers").status_code == 200
            assert served.api.post(f"/tables/{running}/cancel").json()["stopped"] is True
            assert served.events(f"/tables/{running}/events")[-1].name == "stopped"
            begins = httpx.post(f"{served.url}/settings/people/first", data=first, headers=origin)
            assert begins.status_code == 303 and find_home(home).accounts().people()[0].role == "owner"


def test_an_invitation_from_the_shell_is_valid_on_a_running_server(sample_home: Path, tmp_path: Path) -> None:
    home, token = shutil.copytree(sample_home, tmp_path / "running"), "a token of sixteen or more"
    with (
        served_app(home, token=SecretStr(token)) as served,
        httpx.Client(base_url=served.url, headers={"Origin": served.url}) as browser,
    ):
        assert browser.post("/sign-in", data={"token": token}).status_code == 303
        assert browser.get("/settings").status_code == served.api.get("/papers").status_code == 200
        assert browser.post("/settings/people/first", data={"name": "eve", "password": PASSWORD}).status_code == 403
        link = invite(find_home(home), "ada", "owner")
        assert browser.get("/settings").status_code == served.api.get("/papers").status_code == 401
        assert 'name="password"' in browser.get("/sign-in").text
        assert browser.post("/join", data={"invitation": link, "password": PASSWORD}).status_code == 303
        assert browser.get("/settings/people").status_code == 200
    with served_app(home, token=SecretStr(token)) as served:
        session = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        kept = httpx.get(f"{served.url}/settings/people", headers=session)
        assert kept.status_code == 200, "sessions outlive a restart"


def test_only_the_person_at_the_machine_can_start_a_group(home: Path) -> None:
    first = {"name": "eve", "password": PASSWORD}
    for options in ({"names": ("library.example.org",)}, {"host": "0.0.0.0", "token": SecretStr("x" * 16)}):
        with served_app(home, **options) as served:
            headers = {"Origin": served.url, "Authorization": f"Bearer {'x' * 16}"}
            with httpx.Client(base_url=served.url, headers=headers) as other:
                assert other.post("/settings/people/first", data=first).status_code == 403
                assert other.get("/settings/people").status_code == 403
                assert "/settings/people" not in other.get("/settings").text
    assert not (home / "accounts.sqlite").exists()


def test_an_invitation_is_valid_once_and_for_a_week(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, accounts = find_home(group), find_home(group).accounts()
    older, newer = invite(home, "Bo", "reader"), invite(home, " bo", "reader")
    with pytest.raises(InputError, match="used or has expired"):
        join(accounts, older, PASSWORD)
    with pytest.raises(InputError, match="12 characters"):
        join(accounts, newer, "short")
    accounts.grant("passkey", "bo", secret="of a stolen laptop")
    assert join(accounts, newer, PASSWORD).name == "bo"
    assert accounts.holder("passkey", "of a stolen laptop") is None
    with pytest.raises(InputError, match="used or has expired"):
        join(accounts, newer, PASSWORD)
    late, now = invite(home, "cy", "reader"), time.time()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now + 8 * 86_400)
        with pytest.raises(InputError, match="used or has expired"):
            join(accounts, late, PASSWORD)
    for name in ("", "a.b", "a b", "../ada", "a" * 41):
        with pytest.raises(InputError, match="a name has"):
            invite(home, name, "reader")
    stored = b"".join(path.read_bytes() for path in group.glob("accounts.sqlite*"))
    assert PASSWORD.encode() not in stored and late.encode() not in stored and b"argon2id" in stored


def test_each_sign_in_starts_a_new_session_and_too_many_failures_are_refused(group: Path) -> None:
    with served_app(group) as served, signed_in(served.url, "ada") as ada:
        first = ada.cookies[COOKIE]
        again = ada.post("/sign-in", data={"name": "ADA", "password": PASSWORD})
        cookie = again.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=lax" in cookie and "secure" not in cookie
        assert ada.cookies[COOKIE] != first
        assert httpx.get(f"{served.url}/api/v1/runs", headers={"Cookie": f"{COOKIE}={first}"}).status_code == 401
        behind = {"X-Forwarded-Proto": "https"}
        secure = ada.post("/sign-in", data={"name": "ada", "password": PASSWORD}, headers=behind)
        assert "secure" in secure.headers["set-cookie"].lower()
        told = httpx.post(f"{served.url}/mcp", json={})
        place = f"{served.url}/.well-known/oauth-protected-resource/mcp"
        assert told.headers["www-authenticate"] == f'Bearer resource_metadata="{place}"'
        assert httpx.get(place).json()["resource"] == f"{served.url}/mcp"
        assert ada.post("/sign-in", data={"name": "ada"}, headers={"Origin": "https://evil.example"}).status_code == 403
        wrong, right = ({"name": "ada", "password": given} for given in ("wrong", PASSWORD))
        with httpx.Client(base_url=served.url) as stranger:  # at the same address, as all are behind a proxy
            refused = [stranger.post("/sign-in", data=wrong).status_code for _ in range(11)]
            assert refused == [401] * 10 + [429]
            assert stranger.post("/sign-in", data=right).status_code == 429
            assert stranger.post("/sign-in", data={"name": "olga", "password": PASSWORD}).status_code == 303
        ada.post("/sign-out")
        assert ada.post("/sign-in", data=right).status_code == 303, "not in a browser where she signed in before"
        link = invite(find_home(group), "ada", "writer")
        entered = httpx.post(f"{served.url}/join", data={"invitation": link, "password": PASSWORD})
        assert entered.status_code == 303, "nor with an invitation"
        refused = [ada.post("/sign-in", data=wrong).status_code for _ in range(11)]
        assert refused == [401] * 10 + [429], "but guesses count there too"


def test_a_passkey_made_up_by_a_stranger_is_refused(group: Path) -> None:
    pytest.importorskip("webauthn")
    with served_app(group) as served, signed_in(served.url, "ada") as ada:
        challenge = ada.post("/settings/people/passkeys", json={}).json()["create"]["challenge"]
        said = {"type": "webauthn.get", "challenge": challenge, "origin": served.url}
        given = {"clientDataJSON": base64.urlsafe_b64encode(json.dumps(said).encode()).decode()}
        for credential in (
            {},
            {"id": 1},
            {"id": "x", "response": 1},
            {"id": "x", "response": {"clientDataJSON": "e30"}},
        ):
            for place in ("/sign-in/passkey", "/settings/people/passkeys"):
                assert ada.post(place, json={"credential": credential}).status_code == 403, (place, credential)
        for _ in range(2):  # a challenge of another kind, and one that was used
            assert ada.post("/sign-in/passkey", json={"credential": {"id": "x", "response": given}}).status_code == 403
        logged = len(served.app.state.people.accounts.audit_lines())
        assert httpx.post(f"{served.url}/sign-in/passkey", json={}).status_code == 200
        assert httpx.post(f"{served.url}/join", data={"invitation": "x", "password": PASSWORD}).status_code == 422
        assert len(served.app.state.people.accounts.audit_lines()) == logged, "strangers cannot fill the log"


def test_a_person_whose_budget_is_spent_is_paused_and_others_are_not(group: Path) -> None:
    prices = json.dumps({"fake": {"input": 1.0, "output": 2.0}})
    find_home(group).accounts().change("ada", budget=0.0)
    with FakeOpenAI(behaviour=Librarian()) as model:
        settings = {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k", "prices": prices}
        with (
            served_app(group, settings) as served,
            signed_in(served.url, "ada") as ada,
            signed_in(served.url, "olga") as o,
        ):
            question = {"question": "How are scores calibrated?"}
            refused = ada.post("/api/v1/research", json=question)
            assert refused.status_code == 503 and "budget" in refused.text and "owner" in refused.json()["help"]
            assert model.requests == []
            assert o.post("/api/v1/research", json=question).status_code == 200
            assert ada.get("/api/v1/usage").json()["runs"] == []
            assert o.get("/api/v1/usage").json()["total"]["cost"] > 0


async def test_deleted_runs_still_count_towards_a_persons_budget(group: Path) -> None:
    home, nobody = find_home(group), acting.set("ada")
    home.conversations().begin("chat-1")
    acting.reset(nobody)

    async def pay() -> CallResult:
        return CallResult('"answer"', 10, 5)

    with home.open_journal() as journal:
        await once(journal, CallRecord("key", "chat", "http://host/v1", "fake"), RunScope("chat-1"), pay)
        assert [entry.thread_id for entry in await delete_expired(home, -1)] == ["chat-1"]
        assert [spent.paid for spent in await journal.spending(home.runs().owned_ids("ada"))] == [1]


def test_a_resumed_run_counts_towards_the_budget_of_whoever_started_it(group: Path) -> None:
    begun, prices = Event(), json.dumps({"fake": {"input": 1.0, "output": 2.0}})

    def hang(_: object) -> str:
        begun.set()
        return "hang"

    with FakeOpenAI(behaviour=hang) as model:
        settings = {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k", "prices": prices}
        asked = {"question": "Which seeds were used?", "columns": ["seeds"]}
        with served_app(group, settings) as served, signed_in(served.url, "ada") as ada:
            table = ada.post("/api/v1/tables", json=asked, headers=IN_BACKGROUND).json()["id"]
            assert begun.wait(60)
        find_home(group).accounts().change("ada", budget=0.0)
        model.behaviour, sent = Librarian(), len(model.requests)
        with served_app(group, settings) as served, signed_in(served.url, "ada") as ada:
            said = ada.get(f"/api/v1/tables/{table}/events", headers=SSE).text
            assert "budget" in said and len(model.requests) == sent


def test_the_name_of_a_removed_person_cannot_be_reused(group: Path) -> None:
    home, accounts = find_home(group), find_home(group).accounts()
    token = accounts.grant("token", "ada", "notebook", ("read",))
    accounts.remove("ada")
    assert accounts.holder("token", token) is None and accounts.find("ada") is None
    with pytest.raises(InputError, match="was removed"):
        invite(home, " Ada", "reader")
    with pytest.raises(InputError, match="no account"):
        accounts.change("ada", role="owner")


def test_a_token_is_revoked_only_by_its_whole_id(group: Path) -> None:
    accounts = find_home(group).accounts()
    for _ in range(40):
        accounts.grant("token", "ada", "notebook", ("read",))
    first, *others = accounts.secrets_of("ada")
    for part in (first.id[:1], first.id[:11], first.hash, "notebook"):
        with pytest.raises(InputError, match="has no token"):
            accounts.revoke("ada", part)
    accounts.revoke("ada", first.id)
    assert accounts.secrets_of("ada") == others


def test_a_single_user_sees_only_how_to_start_a_group(home: Path) -> None:
    with served_app(home) as served:
        for path in ("/join", "/.well-known/oauth-protected-resource"):
            assert httpx.get(served.url + path).status_code == 404
        begin = httpx.get(f"{served.url}/settings/people").text
        assert "owner" in begin and "Invite" not in begin and "Sign out" not in begin
        assert not (home / "accounts.sqlite").exists()
    assert ServerOptions("0.0.0.0", people=True).token is None

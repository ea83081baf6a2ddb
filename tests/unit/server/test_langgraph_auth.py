"""Who may use the LangGraph server, and what its image installs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph_sdk import Auth

from citeloom.graph.input_check import GraphInputError
from citeloom.graph.shared_sessions import SectionContext, shared_session
from citeloom.server.langgraph_app import authenticate, keep_apart
from citeloom.stores.tables import acting

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "a-token-of-enough-characters"


@pytest.mark.parametrize(
    ("token", "sent", "host", "origin", "status"),
    [
        ("", "", "127.0.0.1:2024", "", None),
        ("", "", "localhost:2024", "http://localhost:3000", None),
        ("", "", "localhost:2024", "https://eu.smith.langchain.com", None),
        ("", "", "localhost:2024", "http://smith.langchain.com", 403),
        ("", "", "localhost:2024", "https://evil-smith.langchain.com.example", 403),
        ("", "", "localhost:2024", "null", 403),
        ("", "", "192.168.0.7:2024", "", 403),
        (TOKEN, "", "localhost:2024", "", 401),
        (TOKEN, "Bearer another-token-of-its-length", "localhost:2024", "", 401),
        (TOKEN, f"x-api-key {TOKEN}", "localhost:2024", "http://localhost:3000", None),  # as agent-chat-ui sends it
        (TOKEN, "x-api-key another-token-of-its-length", "localhost:2024", "", 401),
        (TOKEN, f"Bearer {TOKEN}", "192.168.0.7:2024", "https://chat.example", None),
    ],
)
async def test_a_token_is_required_if_set_and_otherwise_only_this_machine_is_admitted(
    monkeypatch: pytest.MonkeyPatch, token: str, sent: str, host: str, origin: str, status: int | None
) -> None:
    monkeypatch.setenv("CITELOOM_SERVER_TOKEN", token)
    headers = {b"host": host.encode(), b"origin": origin.encode()}
    if sent.startswith("x-api-key "):
        headers, sent = {**headers, b"x-api-key": sent.split()[1].encode()}, ""
    try:
        await authenticate(headers, sent or None)
    except Auth.exceptions.HTTPException as error:
        assert error.status_code == status
    else:
        assert status is None


async def test_with_accounts_a_personal_token_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_HOME", str(tmp_path))
    monkeypatch.setenv("CITELOOM_SERVER_TOKEN", TOKEN)
    monkeypatch.setenv("CITELOOM_OIDC_ISSUER", "https://id.example.org")  # a group's home, though nobody is there yet
    for given in (None, f"Bearer {TOKEN}"):
        with pytest.raises(Auth.exceptions.HTTPException) as refused:
            await authenticate({b"host": b"localhost:2024"}, given)
        assert refused.value.status_code == 401


@pytest.mark.parametrize(
    ("resource", "action", "value", "rights", "answer"),
    [
        ("threads", "create", {}, [], True),
        ("threads", "create", {"metadata": {"owner": "bo"}}, ["read", "write"], {"owner": "ada"}),
        ("threads", "create_run", {}, ["read"], False),
        ("threads", "search", {}, ["read"], {"owner": "ada"}),
        ("assistants", "search", {}, ["read"], {"$or": [{"owner": "ada"}, {"created_by": "system"}]}),
        ("assistants", "update", {"metadata": {"created_by": "system"}}, ["read", "write"], {"owner": "ada"}),
        ("crons", "create", {}, ["read", "write"], False),
        ("store", "search", {"namespace": ("memory", "users", "ada")}, ["read"], True),
        ("store", "put", {"namespace": ("memory", "everyone")}, ["read"], False),
        ("store", "search", {"namespace": ("memory",)}, ["read"], False),
        ("store", "search", {"namespace": ("memory", "users", "bo")}, ["read"], False),
        ("store", "list_namespaces", {"namespace": None}, ["read"], False),
    ],
)
async def test_people_see_only_their_own_data(
    resource: str, action: str, value: dict[str, Any], rights: list[str], answer: object
) -> None:
    context: Any = SimpleNamespace(
        resource=resource,
        action=action,
        permissions=rights and ["citeloom", *rights],
        user=SimpleNamespace(identity="ada"),
    )
    assert await keep_apart(context, value) == answer
    assert value.get("metadata", {"owner": "ada"}) == {"owner": "ada"} or not rights


def test_the_image_installs_the_servers_packages_without_shell_characters() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    local, *listed = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["dependencies"]
    names = [re.split(r"[^\w-]", item)[0] for item in project["server"]]
    assert local == "." and [re.split(r"[^\w-]", item)[0] for item in listed] == names
    assert not any(set(item) & set("<>;&|$ ") for item in listed)


@pytest.mark.parametrize("name", ["home", "prompts_dir", "retraction_watch"])
async def test_a_person_cannot_choose_files_of_the_server(name: str, tmp_path: Path) -> None:
    context, token = SectionContext.model_validate({name: str(tmp_path)}), acting.set("ada")
    try:
        with pytest.raises(GraphInputError, match=f"only the server's owner can choose {name}"):
            await shared_session(SimpleNamespace(context=context))  # type: ignore[arg-type]
    finally:
        acting.reset(token)

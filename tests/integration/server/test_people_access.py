"""Two people try every route, tool and stream with each other's ids, and a reader what writes or costs.

The requests are made from the lists of routes and of tools, so that a new one is tried by itself; one that
`access.toml` does not classify fails here.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from citeloom.server.access import ROUTES, TOOLS
from citeloom.settings.addresses import HomeAddress
from tests.support.people import add_person, minimal, signed_in, token_of
from tests.support.run_fixtures import ROOT
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

SECRET = "xylophone"  # in everything that is Ada's alone
KEY = "obrien2019seeds"
_UNSAFE = ("POST", "PUT", "DELETE", "PATCH")


@dataclass(frozen=True)
class Group:
    """A server with accounts, and what is Ada's."""

    served: Served
    home: HomeAddress
    ids: dict[str, Any]

    def browser(self, name: str) -> AbstractContextManager[httpx.Client]:
        return signed_in(self.served.url, name)


@pytest.fixture(scope="module")
def group(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    with group_at(shutil.copytree(sample_home, tmp_path_factory.mktemp("group") / "home")) as made:
        yield made


@contextmanager
def group_at(home: HomeAddress) -> Iterator[Group]:
    """A server with accounts on the library in this home, and what Ada did there."""
    for name, role in (("olga", "owner"), ("ada", "writer"), ("bo", "writer"), ("rea", "reader")):
        add_person(home, name, role)  # type: ignore[arg-type]
    with served_app(home, per_minute=1_000_000) as served, signed_in(served.url, "ada") as ada:
        line = _ok(ada.post("/api/v1/memory", json={"text": f"{SECRET}, not glockenspiel"}))["id"]
        question = f"Does the {SECRET} change how seeds vary?"
        thread = _ok(ada.post("/api/v1/conversations"))["thread_id"]
        _ok(ada.post(f"/api/v1/conversations/{thread}/turns", json={"question": question}))
        answer = _ok(ada.post("/api/v1/research", json={"question": question}))["thread_id"]
        experiment = json.loads((ROOT / "examples" / "exp.json").read_text(encoding="utf-8"))
        run = _ok(ada.post("/api/v1/sections/discussion", json={"experiment": experiment}))["thread_id"]
        edit = {"position": 0, "text": f"The {SECRET} stands here.", "check": False, "keep": True}
        for text in (run, f"{thread}.1"):
            _ok(ada.post(f"/api/v1/runs/{text}/sentences", json=edit))
            assert SECRET in ada.get(f"/api/v1/runs/{text}/sentences").text
        assert ada.put(f"/api/v1/papers/{KEY}/note", json={"text": f"My {SECRET}."}).status_code == 204
        table = _ok(ada.post("/api/v1/tables", json={"question": "Which seeds were used?", "columns": ["seeds"]}))
        ids = {"thread_id": thread, "run_id": run, "line_id": line, "key": KEY, "key:path": KEY}
        ids |= {
            "table_id": table["table_id"],
            "answer": answer,
            "runs": [run],
            "position": 0,
            "number": 1,
            "name": "answer.md",
        }
        yield Group(served, home, ids | {"kinds": "sources", "which": "1", "question": "Do seeds matter?"})


def _ok(answer: httpx.Response) -> Any:
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def routes(group: Group) -> list[tuple[str, str, str]]:
    """Each route as method, template, and path with Ada's ids."""
    listed = []
    for route in iter_route_contexts(group.served.app.routes):
        for method in sorted(set(route.methods or ()) - {"HEAD"}):
            assert route.path is not None
            named = re.sub(r"\{([a-z_]+(?::path)?)\}", lambda found: str(group.ids.get(found[1], "x")), route.path)
            listed.append((method, route.path, named))
    assert len(listed) > 90
    return listed


def body_of(group: Group, method: str, path: str) -> dict[str, Any]:
    """The smallest body that a route takes."""
    document = group.served.app.openapi()
    plain = re.sub(r":path\}", "}", path)
    content = document["paths"].get(plain, {}).get(method.lower(), {}).get("requestBody", {}).get("content", {})
    if "application/json" in content:
        return {"json": minimal(content["application/json"]["schema"], document, group.ids)}
    if "multipart/form-data" in content:
        return {"files": {"file": ("text.md", b"Another sentence.")}}
    return {"data": {"position": 0}} if method == "POST" else {}


def test_every_route_and_tool_is_classified_and_only_listed_posts_count_as_reading(group: Group) -> None:
    found = {f"{method} {path}" for method, path, _ in routes(group)}
    assert found == set(ROUTES), "add a new route to server/access.toml, under what it needs"
    assert set(tool_names(group)) == set(TOOLS), "add a new tool to server/access.toml, under what it needs"
    unsafe = {name for name, need in ROUTES.items() if need == "read" and not name.startswith("GET ")}
    assert unsafe == {"POST /api/v1/experiments/check"}, "a reader changes nothing"


def test_nobody_without_an_account_gets_anything(group: Group) -> None:
    with httpx.Client(base_url=group.served.url) as stranger:
        for method, path, address in routes(group):
            if ROUTES[f"{method} {path}"] != "open":
                answer = stranger.request(method, address, **body_of(group, method, path))
                assert answer.status_code == 401, (method, address, answer.text[:200])
        assert stranger.post("/mcp", json={}).status_code == 401
        for name in ("ada", "nobody"):
            wrong = stranger.post("/sign-in", data={"name": name, "password": "wrong wrong wrong"})
            assert (
                wrong.status_code == 401
                and "do not belong together" in wrong.text
                and "set-cookie" not in wrong.headers
            )


def everything_of(browser: httpx.Client, group: Group) -> list[Any]:
    """What a person has, as the API shows it."""
    paths = [f"/conversations/{group.ids['thread_id']}", f"/runs/{group.ids['run_id']}", "/memory"]
    paths += [
        f"/runs/{group.ids['answer']}",
        f"/runs/{group.ids['run_id']}/sentences",
        f"/runs/{group.ids['thread_id']}.1/sentences",
        "/conversations",
        "/runs",
        f"/papers/{KEY}",
    ]
    return [_ok(browser.get(f"/api/v1{path}")) for path in paths]


def test_another_person_sees_and_changes_nothing_on_any_route_or_stream(group: Group) -> None:
    with group.browser("ada") as ada, group.browser("bo") as bo:
        before = everything_of(ada, group)
        assert SECRET in json.dumps(before), "there is something to be seen"
        shared = {"DELETE /api/v1/papers/{key:path}", "DELETE /api/v1/tables/{table_id}", "POST /sign-out-everywhere"}
        for method, path, address in routes(group):
            name = f"{method} {path}"
            if name in shared | {"POST /sign-out", "POST /library/sample", "PUT /api/v1/papers/{key:path}/entry"}:
                continue
            of_answer = address.replace(group.ids["run_id"], f"{group.ids['thread_id']}.1")
            for place in dict.fromkeys((address, of_answer)):
                answer = bo.request(method, place, **body_of(group, method, path))
                assert SECRET not in answer.text, (place, answer.text[:500])
                assert answer.status_code < 500, (place, answer.text[:500])
                if re.search(r"\{(thread_id|run_id|line_id)\}", path):
                    unknown = answer.status_code == 404 or (answer.status_code == 422 and "There is no" in answer.text)
                    assert unknown, (name, answer.status_code, answer.text[:300])
        assert everything_of(ada, group) == before
        for searched in ("search/papers", "conversations", "conversations?archived=true"):
            joint = "&" if "?" in searched else "?"
            assert SECRET not in bo.get(f"/api/v1/{searched}{joint}q={SECRET}").text, "nor by a search"


def test_a_conversation_is_readable_only_while_it_is_shared(group: Group) -> None:
    thread = group.ids["thread_id"]
    readers = f"/api/v1/conversations/{thread}/readers"
    shown = (
        *(f"/conversations/{thread}", f"/conversations/{thread}/turns/1", f"/conversations/{thread}/turns/1/sources/1"),
        *(f"/api/v1/conversations/{thread}", f"/api/v1/conversations/{thread}/export"),
        f"/api/v1/conversations/{thread}/turns/1/files/answer.md",
    )
    with group.browser("ada") as ada, group.browser("bo") as bo, group.browser("rea") as rea:
        assert _ok(ada.put(readers, json={"readers": ["BO", "ada"]})) == {"readers": ["bo"]}
        assert ada.put(readers, json={"readers": ["nobody"]}).status_code == 422, "there is no such account"
        for path in (shown[0], *shown[3:]):
            assert SECRET in bo.get(path).text and rea.get(path).status_code == 404, path
        page = bo.get(shown[0]).text
        assert "Shared by ada" in page and 'id="composer"' not in page and "conversation-list" not in page
        assert bo.get(shown[1]).headers["location"].endswith(f"{thread}#turn-1")
        for method, path, address in routes(group):
            named = "{thread_id}" in path or "{run_id}" in path
            if named and not (method == "GET" and address in (*shown, f"{shown[0]}/turns/1/x/x")):
                for place in (address, address.replace(group.ids["run_id"], f"{thread}.1")):
                    answer = bo.request(method, place, **body_of(group, method, path))
                    assert SECRET not in answer.text or place in shown, (method, place)
                    assert answer.status_code in (404, 422) or place in shown, (method, place, answer.status_code)
        assert SECRET not in bo.get("/api/v1/conversations").text and _ok(ada.get(readers)) == {"readers": ["bo"]}
        listed = {
            name: other.get("/conversations?q=seeds").text for name, other in (("bo", bo), ("rea", rea), ("ada", ada))
        }
        assert "Shared with you" in listed["bo"] and "ada" in listed["bo"] and f'href="{shown[0]}"' in listed["bo"]
        assert (
            SECRET not in listed["rea"]
            and "Shared with you" not in listed["ada"] + bo.get("/conversations?q=glockenspiel").text
        )
        assert "Shared with you" in bo.get("/").text
        assert ada.post(f"/conversations/{thread}/readers", data={"readers": ["*"]}).status_code == 303
        assert SECRET in rea.get(shown[3]).text and SECRET in rea.get("/conversations").text, (
            "everybody with an account"
        )
        _ok(ada.put(readers, json={"readers": []}))
        assert not any("Shared with you" in other.get("/conversations").text for other in (bo, rea, ada))
        assert {other.get(path).status_code for other in (bo, rea) for path in shown} == {404}


def test_another_persons_identical_question_is_a_run_of_their_own(group: Group) -> None:
    question = {"question": f"Does the {SECRET} change how seeds vary?"}
    with group.browser("olga") as olga, group.browser("ada") as ada:
        own = _ok(olga.post("/api/v1/research", json=question, headers={"Idempotency-Key": "one"}))["thread_id"]
        assert own != group.ids["answer"]
        again = _ok(ada.post("/api/v1/research", json=question, headers={"Idempotency-Key": "one"}))["thread_id"]
        assert again == group.ids["answer"]
        assert olga.get(f"/api/v1/runs/{again}").status_code == 404, "an owner sees no more"
        assert olga.delete(f"/api/v1/runs/{own}").status_code == 204
        assert ada.get(f"/api/v1/runs/{again}").status_code == 200


def test_a_reader_cannot_call_anything_that_writes_or_costs(group: Group) -> None:
    with group.browser("rea") as reader:
        for method, path, address in routes(group):
            need = ROUTES[f"{method} {path}"]
            if need in ("write", "costs", "admin"):
                answer = reader.request(method, address, **body_of(group, method, path))
                assert answer.status_code in (403, 422), (method, path, answer.status_code)
                assert answer.status_code == 403 or "body" in answer.text, (method, path, answer.text)
        listed = _ok(reader.get("/api/v1/conversations")), _ok(reader.get("/api/v1/runs"))
        assert [each["total"] for each in listed] == [0, 0]


def test_a_token_grants_only_its_scopes_and_nothing_after_it_ends(group: Group) -> None:
    token = token_of(group.home, "ada", "read")
    with httpx.Client(base_url=group.served.url, headers={"Authorization": f"Bearer {token}"}) as program:
        assert SECRET in program.get(f"/api/v1/runs/{group.ids['answer']}").text
        assert program.post("/api/v1/conversations").status_code == 403
        assert program.post("/settings/people/tokens", data={"scope": "admin"}).status_code == 403
        with group.browser("ada") as ada:
            ada.post("/settings/people/tokens", data={"label": "mine", "scope": "write"})
            page = ada.get("/settings/people").text
            made = re.search(r'id="token">(ct_[^<]+)<', page)
            assert made is not None and made[1] not in ada.get("/settings/people").text, "shown once"
            if isinstance(group.home, Path):
                assert made[1].encode() not in (group.home / "accounts.sqlite").read_bytes(), "stored as a hash"
            assert ada.post("/settings/people/tokens", data={"label": "more", "scope": "admin"}).status_code == 403
            for secret_id in re.findall(r"/settings/people/tokens/(\w+)/revoke", page):
                assert ada.post(f"/settings/people/tokens/{secret_id}/revoke").status_code == 303
        assert program.get("/api/v1/runs").status_code == 401


def mcp(group: Group, token: str, work: Any) -> Any:
    """The result of work with an MCP client that sends this token."""

    async def connect() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx.AsyncClient(headers=headers, timeout=300) as http,
            Client(streamable_http_client(f"{group.served.url}/mcp", http_client=http)) as agent,
        ):
            return await work(agent)

    return asyncio.run(connect())


def tool_names(group: Group) -> list[str]:
    async def names(agent: Client) -> list[str]:
        return [tool.name for tool in (await agent.list_tools()).tools]

    return list(mcp(group, token_of(group.home, "rea", "read"), names))


def test_tools_keep_people_apart_and_readers_away_from_costs(group: Group) -> None:
    known = {**group.ids, "id": KEY, "chunk_id": KEY, "text": "Seeds vary.", "query": SECRET}

    async def call_all(agent: Client) -> dict[str, Any]:
        answers = {}
        for tool in (await agent.list_tools()).tools:
            schema = tool.input_schema
            arguments = minimal(schema, schema, known)
            arguments |= {name: known[name] for name in ("runs", "run_id") if name in schema["properties"]}
            answers[tool.name] = await agent.call_tool(tool.name, arguments)
        return answers

    reader = mcp(group, token_of(group.home, "rea", "read"), call_all)
    refused = {name for name, answer in reader.items() if "is not allowed to this token" in str(answer.content)}
    assert refused == {name for name, need in TOOLS.items() if need != "read"}
    other = mcp(group, token_of(group.home, "bo", "read", "write"), call_all)
    for name, answer in other.items():
        said = str(answer.content).replace(f"'{SECRET}'", "")
        assert SECRET not in said or name in ("search", "search_evidence", "search_papers"), (name, said)
    assert "There is no run" in str(other["answer_run"].content) and "There is no run" in str(
        other["update_texts"].content
    )


def test_the_log_says_who_changed_what(group: Group) -> None:
    with group.browser("ada") as ada, group.browser("olga") as olga, group.browser("rea") as reader:
        thread = _ok(ada.post("/api/v1/conversations"))["thread_id"]
        ada.delete(f"/api/v1/conversations/{thread}")
        log = olga.get("/settings/people").text
        assert f"DELETE /api/v1/conversations/{thread}" in log and SECRET not in log
        assert thread not in reader.get("/settings/people").text, "others see what they did themselves"
        assert "signed in</span>" in log and "nobody signed in" not in log
        assert "For written answers" in olga.get("/").text and "For written answers" not in ada.get("/").text

"""The real LangGraph dev server with our `langgraph.json`, used through its SDK as Studio does."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from citeloom import ingest, open_library
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope
from citeloom.stores.folder_home import find_home
from tests.support.openai_server import FakeOpenAI
from tests.support.people import add_person, token_of

ROOT = Path(__file__).resolve().parents[3]
OTHER_FIELD = "pellegrini2017soil"  # a paper that no search of the sample experiment finds
KEY = "key-of-the-environment"
PATIENCE = 300.0  # seconds until the server must be ready, on a busy machine


@dataclass(frozen=True)
class Server:
    """A running dev server: its address, the folder it was started in, its environment, and its log."""

    url: str
    folder: Path
    environment: dict[str, str]
    log: Path


@pytest.fixture(scope="module")
def server(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server in a folder whose `.env` names the home; a `.citeloom` beside it must not be used."""
    folder = tmp_path_factory.mktemp("project")
    home = shutil.copytree(sample_home, folder / "my library")
    with open_library(home) as opened:
        ingest(opened, [ROOT / "examples" / "library" / f"{OTHER_FIELD}.md"])
    (folder / ".citeloom").mkdir()
    with dev_server(folder, home) as started:
        yield started


@contextmanager
def dev_server(folder: Path, home: Path) -> Iterator[Server]:
    (folder / ".env").write_text(f'CITELOOM_HOME="{home}"\nCITELOOM_CHAT_API_KEY={KEY}\n', encoding="utf-8")
    foreign = ("CITELOOM_", "OPENAI_", "LANG")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | {
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_STRICT_MSGPACK": "true",
        "NO_COLOR": "1",
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("langgraph"), "dev", "--no-browser", "--no-reload"]
    command += ["--port", str(port), "--config", str(ROOT / "langgraph.json")]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process, log)
            yield Server(url, folder, environment, log)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(f"{url}/ok").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)  # between two questions; what counts is the answer
    pytest.fail(f"the dev server did not become ready:\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server.url) as opened:
        yield opened


async def stream(
    client: LangGraphClient, thread: str, given: Any, graph: str = "section", **options: Any
) -> list[tuple[str, Any]]:
    """All events of a run, in order."""
    modes = ["custom", "updates"]
    return [
        (part.event, part.data)
        async for part in client.runs.stream(thread, graph, input=given, stream_mode=modes, **options)
    ]


def steps(events: list[tuple[str, Any]]) -> list[str]:
    """The nodes that were finished."""
    return [node for kind, data in events if kind == "updates" for node in data if not node.startswith("__")]


def stages(events: list[tuple[str, Any]]) -> list[str]:
    return [data["stage"] for kind, data in events if kind == "custom" and data["kind"] == "stage"]


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


def home_of_the_command_line(server: Server) -> Path:
    """What `doctor` says in the folder and the environment in which the server was started."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), "doctor", "--json"],
        cwd=server.folder,
        env=server.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert KEY not in done.stdout + done.stderr
    return Path(json.loads(done.stdout)["home"])


async def test_the_graphs_have_forms_for_their_input_and_settings(client: LangGraphClient) -> None:
    by_graph = {assistant["graph_id"]: assistant for assistant in await client.assistants.search()}
    assert by_graph.keys() == {"section", "paper", "research", "conversation"}
    of_chat = (await client.assistants.get_schemas(by_graph["conversation"]["assistant_id"]))["input_schema"]
    fields = {"messages", "asked", "turn_kind", "papers", "interrupts"}
    assert of_chat is not None and of_chat["properties"].keys() == fields
    asked = (await client.assistants.get_schemas(by_graph["research"]["assistant_id"]))["input_schema"]
    assert asked is not None and asked["required"] == ["question"]
    assert {"sources", "words", "min_year", "max_year", "venue", "papers", "single_shot"} <= asked["properties"].keys()
    of_paper = (await client.assistants.get_schemas(by_graph["paper"]["assistant_id"]))["input_schema"]
    assert of_paper is not None and of_paper["required"] == ["experiment"]
    assistant = by_graph["section"]
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    given, settings = schemas["input_schema"], schemas["context_schema"]
    assert given is not None and settings is not None
    assert given["required"] == ["section", "experiment"]
    assert "discussion" in given["properties"]["section"]["enum"]
    assert {"chat_model", "top_k_final", "cite_style", "section_words"} <= set(settings["properties"])
    form = settings["properties"]
    assert all(field["description"] and field["title"] for field in form.values())
    assert not any("default" in field for field in form.values())  # a form would send it, over the environment's value
    assert form["cite_style"]["enum"] == ["key", "pandoc", "latex", "numeric", "key-page"]
    top = form["top_k_final"]
    assert (top["type"], top["minimum"], top["maximum"], top["title"]) == ("integer", 1, 50, "Top k final")
    assert "api_key" not in json.dumps(schemas)
    assert "password" not in json.dumps(schemas)


async def test_a_question_is_answered_or_declined_on_the_server(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    events = await stream(client, thread, {"question": "What does Okafor say about temperature?"}, "research")
    assert steps(events)[0] == "route" and steps(events)[-1] == "render"
    values = (await client.threads.get_state(thread))["values"]
    assert values["answered"] is (None if values["result"]["citations"] else False)
    assert values["text"]


async def test_a_chat_page_asks_and_follows_up_with_messages(client: LangGraphClient) -> None:
    thread = await new_thread(client)
    for asked in ("What does Okafor say about temperature?", "And about ensembles?"):
        events = await stream(client, thread, {"messages": [{"role": "user", "content": asked}]}, "conversation")
        assert steps(events) == ["rewrite", "answer", "remember"], events[-1]
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    assert [message["type"] for message in messages] == ["human", "ai"] * 2
    assert messages[2]["content"] == "And about ensembles?"


@pytest.mark.parametrize(
    ("graph", "given", "said"),
    [
        ("conversation", {"messages": [{"content": "no role"}]}, "input: field messages cannot be read"),
        ("conversation", {"question": "What?"}, "input: unknown field 'question'"),
        ("research", {"messages": [{"role": "user", "content": "What?"}]}, "use the conversation graph"),
    ],
)
async def test_a_malformed_chat_is_reported(client: LangGraphClient, graph: str, given: Any, said: str) -> None:
    kind, data = (await stream(client, await new_thread(client), given, graph))[-1]
    assert kind == "error" and said in data["message"]


async def test_a_run_streams_stops_at_its_interrupt_and_resumes(
    server: Server, client: LangGraphClient, experiment: dict[str, Any]
) -> None:
    thread = await new_thread(client)
    given = {"section": "discussion", "experiment": experiment}
    context = {"max_search_iterations": 1, "top_k_initial": 4, "cite_style": "pandoc"}

    before = await stream(client, thread, given, context=context, interrupt_before=["generate"])

    assert steps(before) == ["default_queries", "plan_needs", "gather"]
    assert stages(before)[0] == "queries"
    assert "searched" in stages(before)
    state = await client.threads.get_state(thread)
    assert state["next"] == ["generate"]
    assert [item["id"] for item in state["values"]["evidence"]][:2] == ["E1", "E2"]
    assert not state["values"]["text"]

    after = await stream(client, thread, None, context=context)

    assert steps(after) == ["generate", "check", "render"]
    state = await client.threads.get_state(thread)
    assert state["next"] == []
    result = state["values"]["result"]
    assert result["text"] == state["values"]["text"]
    assert "[@" in result["text"]
    assert len({citation["key"] for citation in result["citations"]}) >= 2
    with open_library(home_of_the_command_line(server)) as opened:
        for citation in result["citations"]:
            (chunk,) = opened.library.chunks([citation["chunk_id"]])
            assert chunk.text[citation["start"] : citation["end"]] == citation["quote"]


async def test_the_server_opens_the_home_named_by_doctor(
    server: Server, client: LangGraphClient, experiment: dict[str, Any]
) -> None:
    thread = await new_thread(client)
    with FakeOpenAI(api_key=KEY) as endpoint:
        context = {"chat_model": "any", "chat_base_url": endpoint.base_url, "max_search_iterations": 1}
        given = {"section": "introduction", "experiment": experiment}
        events = await stream(client, thread, given, context=context)
    state = await client.threads.get_state(thread)
    assert state["next"] == [], events[-1]
    with Journal(home_of_the_command_line(server) / "journal.sqlite") as journal:
        usage = await journal.usage(RunScope(thread))
    assert usage.llm_calls == endpoint.calls() > 0
    # The key is in the environment of the server, and nowhere in its answers.
    history = await client.threads.get_history(thread)
    assert KEY not in json.dumps([state, history, events])


async def test_a_fork_with_another_pinned_paper_pays_only_for_what_follows(
    client: LangGraphClient, experiment: dict[str, Any]
) -> None:
    thread = await new_thread(client)
    with FakeOpenAI(api_key=KEY, tool_turns=0) as endpoint:
        context: dict[str, Any] = {"chat_model": "any", "chat_base_url": endpoint.base_url}
        context |= {"top_k_initial": 1, "window_tokens": 200}  # reads little, and so not of another field
        await stream(client, thread, {"section": "discussion", "experiment": experiment}, context=context)
        first = list(endpoint.requests)
        before = next(
            step for step in await client.threads.get_history(thread, limit=100) if step["next"] == ["gather"]
        )
        fork = {"checkpoint_id": before["checkpoint"]["checkpoint_id"], "context": context}
        same = await stream(client, thread, None, **fork)
        assert endpoint.requests == first, "what was answered once is not paid again"
        again = await stream(client, thread, None, **fork | {"context": {**context, "pinned": [OTHER_FIELD]}})
    assert steps(same)[0] == steps(again)[0] == "gather"

    def read(requests: list[Any]) -> str:
        return json.dumps([item for item in requests if item["messages"][0]["content"].startswith("You read passages")])

    paid = endpoint.requests[len(first) :]
    assert "orchard" in read(paid) and "orchard" not in read(first)
    assert "You prepare a search" not in json.dumps([item["messages"][0] for item in paid]), (
        "needs are not planned again"
    )
    assert len(await client.threads.get_history(thread, limit=100)) > len(steps(same)) + len(steps(again))
    kind, data = (await stream(client, thread, None, **fork | {"context": {**context, "pinned": ["nobody1999"]}}))[-1]
    assert kind == "error" and "nobody1999" in data["message"]


@pytest.mark.long
def test_the_studio_client_steers_forks_and_streams(server: Server, tmp_path: Path) -> None:
    """The JavaScript SDK, with which Studio and agent-chat-ui are made."""
    package = "@langchain/langgraph-sdk@1.15.0"
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", package], cwd=tmp_path, capture_output=True
    )
    if installed.returncode:
        pytest.skip(f"{package} cannot be installed here")
    shutil.copy(Path(__file__).with_name("studio_client.mjs"), tmp_path)
    with FakeOpenAI(api_key=KEY, tool_turns=0) as model:
        arguments = [server.url, model.base_url, str(ROOT / "examples" / "exp.json"), OTHER_FIELD]
        done = subprocess.run(
            ["node", "studio_client.mjs", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
    assert seen["form"] == {"title": "Cite style", "options": ["key", "pandoc", "latex", "numeric", "key-page"]}
    assert seen["asked"]["ask"] == "needs" and seen["asked"]["steps"][-1] == "__interrupt__"
    assert seen["asked"]["allows"] == {
        **dict.fromkeys(("allow_accept", "allow_edit", "allow_respond"), True),
        "allow_ignore": False,
    }
    assert seen["refused"].startswith("answer: there is no field 'N9'"), "one line, and it still waits"
    ended, fork = seen["ended"], seen["fork"]
    assert not ended["errors"] and ended["steps"][0] == "ask_needs" and ended["steps"][-1] == "render"
    assert ended["needs"][-1] == "early stopping" and "[@" in ended["text"], "the assistant's citation style"
    assert not fork["errors"] and fork["steps"][0] == "gather" and "orchard" in json.dumps(model.requests)
    assert seen["history"][1] > seen["history"][0]
    assert seen["typed"]["ask"] == "needs" and seen["typed"]["text"]
    assert seen["typed"]["stages"][:2] == ["queries", "needs"] and seen["typed"]["stages"][-1] == "rendered"
    assert seen["store"] == [{"any": "thing"}, 1]


async def test_the_servers_store_is_the_librarys_memory(server: Server, client: LangGraphClient) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        line = (await http.post("/api/v1/memory", json={"text": "British spelling", "shared": True})).json()
        found = (await client.store.search_items(["memory", "everyone"]))["items"]
        assert [(item["key"], item["value"]["text"]) for item in found] == [(line["id"], "British spelling")]
        await client.store.put_item(["notes"], "a", {"any": "thing"})
        assert (await client.store.get_item(["notes"], "a"))["value"] == {"any": "thing"}
        assert (await http.delete(f"/api/v1/memory/{line['id']}")).status_code == 204
        assert not (await client.store.search_items(["memory", "everyone"]))["items"]


async def test_the_api_is_served_beside_the_graphs_and_strangers_are_refused(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url) as http:
        found = await http.get("/api/v1/search", params={"q": "temperature scaling", "limit": 1})
        assert found.json()["passages"][0]["key"]
        initialize = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}
        agent = await http.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
        assert '"name":"citeloom"' in agent.text.replace(" ", "")
        for page, status in (("https://smith.langchain.com", 200), ("https://smith.langchain.com.evil.org", 403)):
            asked = await http.post("/assistants/search", json={}, headers={"Origin": page})
            assert asked.status_code == status
        assert (await http.get("/api/v1/papers", headers={"Sec-Fetch-Site": "cross-site"})).status_code == 403
        assert (await http.post("/assistants/search", json={}, headers={"Host": "evil.org"})).status_code == 403


@pytest.mark.parametrize(
    ("given", "context", "message"),
    [
        (
            {"section": "discussion"},
            {},
            "input: field experiment is missing; known fields: section, experiment, ",
        ),
        ({"experiment": {"verdict": "yes"}}, {}, "field section: expected one of introduction, methods"),
        ({"section": "intro", "experiment": {}}, {}, "got 'intro'"),
        ({"section": "discussion", "experiment": {"verdict": {"is": 3}}}, {}, "field verdict"),
        ({"section": "discussion", "experiments": {}}, {}, "unknown field 'experiments' (did you mean 'experiment'?)"),
        ({"section": "discussion", "experiment": {}}, {"section_words": 2}, "Setting section_words"),
        ({"section": "discussion", "experiment": {}}, {"home": "nowhere"}, "nowhere holds no library"),
    ],
    ids=["no-experiment", "no-section", "unknown-section", "wrong-type", "unknown-field", "bad-setting", "no-library"],
)
async def test_a_wrong_input_ends_in_a_readable_error(
    server: Server, client: LangGraphClient, given: Any, context: dict[str, Any], message: str
) -> None:
    events = await stream(client, await new_thread(client), given, context=context)
    kind, data = events[-1]
    assert kind == "error"
    assert message in data["message"]
    assert not (server.folder / "nowhere").exists()


@pytest.mark.long
async def test_people_see_only_their_own_threads_runs_and_memory(sample_home: Path, tmp_path: Path) -> None:
    home = shutil.copytree(sample_home, tmp_path / "group")
    for name, role in (("olga", "owner"), ("ada", "writer"), ("bo", "writer"), ("rea", "reader")):
        add_person(home, name, role)  # type: ignore[arg-type]
    with dev_server(tmp_path, home) as server:
        async with AsyncExitStack() as stack:

            async def client_of(name: str) -> LangGraphClient:
                sent = {"Authorization": f"Bearer {token_of(home, name, 'read', 'write')}"} if name else {}
                return await stack.enter_async_context(get_client(url=server.url, headers=sent))

            nobody, rea, ada, bo = [await client_of(name) for name in ("", "rea", "ada", "bo")]
            await _keep_apart(home, nobody, rea, ada, bo)


async def _keep_apart(home: Path, nobody: LangGraphClient, rea: LangGraphClient, ada: Any, bo: Any) -> None:
    given = {"question": "What does Okafor say about temperature?"}
    for stranger, status in ((nobody, 401), (rea, 403)):
        with pytest.raises(APIStatusError) as refused:
            await stranger.threads.create()
        assert refused.value.status_code == status
    thread = await new_thread(ada)
    events = await stream(ada, thread, given, "research")
    assert steps(events)[-1] == "render", events[-1]
    assert (await ada.threads.get_state(thread))["values"]["text"]
    (run,) = await ada.runs.list(thread)
    assert find_home(home).runs().owned_ids("ada") == [thread], "it counts for her budget"
    stateless = await ada.runs.create(None, "research", input=given)
    for call in (
        lambda: bo.threads.get(thread),
        lambda: bo.threads.get_state(thread),
        lambda: bo.threads.get_history(thread),
        lambda: bo.threads.update(thread, metadata={"owner": "bo"}),
        lambda: bo.threads.update_state(thread, {"text": "x"}),
        lambda: bo.threads.copy(thread),
        lambda: bo.threads.delete(thread),
        lambda: bo.runs.create(thread, "research", input=given),
        lambda: bo.runs.get(thread, run["run_id"]),
        lambda: bo.runs.cancel(thread, run["run_id"]),
        lambda: bo.runs.get(stateless["thread_id"], stateless["run_id"]),
        lambda: bo.store.search_items([]),
        lambda: bo.store.search_items(["memory"]),
        lambda: bo.store.search_items(["memory", "users", "ada"]),
        lambda: bo.store.put_item(["memory", "users", "ada"], "a", {"text": "x"}),
        lambda: bo.store.list_namespaces(),
        lambda: bo.crons.create("research", schedule="* * * * *", input=given),
    ):
        with pytest.raises(APIStatusError) as refused:
            await call()
        assert refused.value.status_code in (403, 404, 409), refused.value
    assert await bo.threads.search() == [] and len(await ada.threads.search(metadata={"owner": "ada"})) >= 1
    await ada.threads.update(thread, metadata={"owner": "bo"})
    assert (await ada.threads.get(thread))["metadata"]["owner"] == "ada", "nor can she give it away"
    made = await ada.assistants.create("research", name="mine", metadata={"created_by": "system", "owner": "bo"})
    seen = [item["assistant_id"] for item in await bo.assistants.search()]
    assert len(seen) == 4 and made["assistant_id"] not in seen
    kind, data = (await stream(bo, await new_thread(bo), given, "research", context={"home": str(home)}))[-1]
    assert kind == "error" and "home" in data["message"]


def test_no_call_blocks_the_servers_event_loop(server: Server) -> None:
    # The server refuses a blocking call where it is made; this one also finds those in its own background tasks.
    assert "BlockingError" not in server.log.read_text(errors="replace")

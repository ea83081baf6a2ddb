"""Calls of servers that speak OpenAI's protocol, on real sockets: what goes out, what comes back, what goes wrong."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.runnables import RunnableLambda

from citeloom.errors import CiteloomError, ConfigurationError
from citeloom.models.chat_caller import ChatCaller, chat_endpoint, chat_identity
from citeloom.models.http.client import Endpoint, close_connections
from citeloom.models.http.failures import EndpointBusyError, EndpointLostError, EndpointRefusedError
from citeloom.models.http.limiter import Limiter
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope, Usage
from citeloom.settings.config import Settings
from tests.support.fake_clock import FakeClock
from tests.support.openai_server import FakeOpenAI, Raw, Status
from tests.support.protocol_answers import envelope

RUN = RunScope("run")
KEY = "sk-very-secret-0123456789"
SCHEMA = {
    "title": "Reading",
    "type": "object",
    "properties": {"summary": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 10}},
    "required": ["summary", "score"],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search_evidence",
            "description": "Searches.",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string"}, "years": {"type": "array", "items": {"type": "integer"}}},
                "required": ["query"],
            },
        },
    }
]
ASKED = [SystemMessage("be brief"), HumanMessage("ducks swimming across quiet ponds")]


def settings(server: FakeOpenAI, **given: Any) -> Settings:
    return Settings(chat_model="some-model", chat_base_url=server.base_url, **given)


def patient(caller: ChatCaller, clock: FakeClock, **given: Any) -> ChatCaller:
    """The caller with a limiter whose waits take no time."""
    limits = {"max_concurrency": 20, "max_retries": 3, "timeout": 10.0} | given
    caller._limiter = Limiter(**limits, clock=clock, seed=1)
    return caller


class Recorder(AsyncCallbackHandler):
    """What LangChain's tracers are given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        self.seen += [given["name"], [message.content for message in messages[0]], given["tags"]]

    async def on_llm_end(self, response: LLMResult, **given: Any) -> None:
        self.seen.append(response.generations[0][0].message.usage_metadata)  # type: ignore[union-attr]

    async def on_llm_error(self, error: BaseException, **given: Any) -> None:
        self.seen.append(type(error).__name__)


async def test_callbacks_of_the_surrounding_chain_receive_each_request(journal: Journal) -> None:
    recorder = Recorder()
    with FakeOpenAI(behaviour=lambda body: Status(400) if body["messages"][0]["content"] == "two" else None) as server:
        caller = ChatCaller(settings(server), "writer", journal=journal, scope=RUN)

        async def ask(text: str) -> AIMessage:
            return (await caller.call([HumanMessage(text)])).message

        node = RunnableLambda(ask)
        await node.ainvoke("one", {"callbacks": [recorder], "tags": ["mine"]})
        with pytest.raises(CiteloomError):
            await node.ainvoke("two", {"callbacks": [recorder]})
        await node.ainvoke("one", {"callbacks": [recorder]})  # from the journal: no request
    assert recorder.seen[:3] == ["some-model", ["one"], ["mine"]] and recorder.seen[3]["total_tokens"] > 0
    assert recorder.seen[4:] == ["some-model", ["two"], [], "ServerRefusalError"]


async def test_requests_and_answers_have_the_documented_form(journal: Journal) -> None:
    with FakeOpenAI(api_key=KEY, model="some-model") as server:
        caller = ChatCaller(settings(server, chat_api_key=KEY), "writer", journal=journal, scope=RUN)
        answer = await caller.call(ASKED, max_tokens=77)
    assert server.requests == [
        {
            "model": "some-model",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "ducks swimming across quiet ponds"},
            ],
            "max_tokens": 77,
            "temperature": 0.2,
            "stream": False,
        }
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "swimming" in answer.message.text
    assert answer.message.response_metadata == {"finish_reason": "stop"}
    usage = answer.message.usage_metadata
    assert usage is not None
    assert await journal.usage(RUN) == Usage(1, 0, usage["input_tokens"], usage["output_tokens"])


async def test_structured_answers_are_validated_and_replayed(journal: Journal) -> None:
    with FakeOpenAI() as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        paid = await caller.call(ASKED, schema=SCHEMA, max_tokens=50)
        again = await caller.call(ASKED, schema=SCHEMA, max_tokens=50)
        other_run = ChatCaller(settings(server), "reader", journal=journal, scope=RunScope("other"))
        elsewhere = await other_run.call(ASKED, schema=SCHEMA, max_tokens=50)
    jsonschema.validate(json.loads(paid.message.text), SCHEMA)
    assert server.requests[0]["response_format"]["json_schema"] == {"name": "Reading", "schema": SCHEMA}
    assert paid == again == elsewhere
    assert server.calls() == 1


async def test_a_conversation_uses_tools(journal: Journal) -> None:
    with FakeOpenAI(tool_turns=2) as server:
        caller = ChatCaller(settings(server), "agent", journal=journal, scope=RUN)
        messages: list[BaseMessage] = list(ASKED)
        turns = 0
        while (said := (await caller.call(messages, tools=TOOLS)).message).tool_calls:
            turns += 1
            messages.append(said)
            for call in said.tool_calls:
                jsonschema.validate(call["args"], TOOLS[0]["function"]["parameters"])
                messages.append(ToolMessage("nothing found", tool_call_id=call["id"]))
    assert turns == 2
    assert server.requests[0]["tools"] == TOOLS
    # What goes back is what came, and every answer belongs to a call.
    calls, answers = server.requests[-1]["messages"][-2:]
    assert calls["tool_calls"][0]["id"] == answers["tool_call_id"]
    assert len(calls["tool_calls"][0]["id"]) == 9
    assert calls["content"] is None  # some servers refuse an empty text


async def test_an_answer_cut_off_at_its_limit_is_kept_with_the_reason(journal: Journal) -> None:
    def cut(body: dict[str, Any]) -> dict[str, Any]:
        return envelope(body, content='{"summary": "half', finish_reason="length")

    with FakeOpenAI(behaviour=cut) as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        for schema in (None, SCHEMA):
            answer = await caller.call(ASKED, schema=schema)
            assert answer.message.text == '{"summary": "half'
            assert answer.message.response_metadata["finish_reason"] == "length"


async def test_a_rejected_answer_is_requested_again_in_a_later_run(journal: Journal) -> None:
    with FakeOpenAI() as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        answer = await caller.call(ASKED)
        await caller.reject(answer)
        assert await caller.call(ASKED) == answer
        assert server.calls() == 1
        later = ChatCaller(settings(server), "reader", journal=journal, scope=RunScope("later"))
        await later.call(ASKED)
    assert server.calls() == 2


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param([Status(429, retry_after="2"), Status(503)], id="busy"),
        pytest.param(["drop", "drop"], id="connection dropped"),
        pytest.param(["truncated"], id="body cut off"),
        pytest.param(["html"], id="HTML"),
        pytest.param(["not-json"], id="not JSON"),
        pytest.param(["list"], id="a JSON list"),
        pytest.param(["no-choices"], id="no choices"),
        pytest.param(["empty-choices"], id="empty choices"),
        pytest.param(["empty"], id="empty body"),
        pytest.param(["huge"], id="10 MB"),
        pytest.param(["hang"], id="hangs"),
    ],
)
async def test_a_temporary_failure_goes_unnoticed(journal: Journal, clock: FakeClock, failures: list[Any]) -> None:
    with FakeOpenAI(failures=failures) as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        answer = await patient(caller, clock, timeout=3.0 if "hang" in failures else 60.0).call(ASKED)
    assert "ponds" in answer.message.text
    assert server.calls() == len(failures) + 1
    assert (await journal.usage(RUN)).llm_calls == 1


# What is answered for ever, the class of error before and after the first answered call, the requests that the
# failing call makes, and words that its message must have.
GIVEN_UP = [
    pytest.param(Status(429, "slow down"), EndpointBusyError, EndpointBusyError, 4, "slow down", id="429"),
    pytest.param(Status(500, "oops"), EndpointBusyError, EndpointBusyError, 4, "oops", id="500"),
    pytest.param("drop", EndpointBusyError, EndpointBusyError, 4, "could not answer", id="dropped"),
    pytest.param("truncated", EndpointBusyError, EndpointBusyError, 4, "could not answer", id="cut off"),
    pytest.param(
        Status(429, "slow", retry_after="3600"), EndpointBusyError, EndpointBusyError, 1, "3600 s", id="429, an hour"
    ),
    pytest.param(
        Status(429, "no money", code="insufficient_quota"),
        EndpointRefusedError,
        EndpointLostError,
        1,
        "used up",
        id="quota",
    ),
    pytest.param(
        Status(401, f"bad key {KEY}"), EndpointRefusedError, EndpointLostError, 1, "CITELOOM_CHAT_API_KEY", id="401"
    ),
    pytest.param(Status(403, "no"), EndpointRefusedError, EndpointLostError, 1, "CITELOOM_CHAT_API_KEY", id="403"),
    pytest.param(
        Status(404, "no such model"), EndpointRefusedError, EndpointLostError, 1, "CITELOOM_CHAT_MODEL", id="404"
    ),
    pytest.param(
        Status(400, "context_length_exceeded"),
        EndpointRefusedError,
        EndpointLostError,
        1,
        "CITELOOM_CONTEXT_TOKENS",
        id="too long",
    ),
    pytest.param(Status(400, "odd field"), EndpointRefusedError, EndpointLostError, 1, "odd field", id="400"),
    pytest.param("html", EndpointRefusedError, EndpointLostError, 3, "Welcome to nginx", id="HTML"),
    pytest.param("empty-choices", EndpointRefusedError, EndpointLostError, 3, "no choices", id="empty choices"),
]


@pytest.mark.parametrize("answered", [False, True], ids=["before the first answer", "after it"])
@pytest.mark.parametrize(("failure", "before", "after", "calls", "words"), GIVEN_UP)
async def test_a_lasting_failure_raises_its_error(
    journal: Journal,
    clock: FakeClock,
    answered: bool,
    failure: Any,
    before: type[CiteloomError],
    after: type[CiteloomError],
    calls: int,
    words: str,
) -> None:
    with FakeOpenAI() as server:
        given = settings(server, chat_api_key=KEY)
        caller = patient(ChatCaller(given, "reader", journal=journal, scope=RUN), clock)
        if answered:
            await caller.call([HumanMessage("the first question")])
        done = server.calls()
        server.failures = [failure] * 30
        with pytest.raises(after if answered else before) as caught:
            await caller.call(ASKED)
    message = str(caught.value)
    assert server.calls() - done == calls
    assert words in message
    assert "some-model" in message
    assert server.base_url in message
    assert KEY not in message
    assert "\n" not in message
    assert caught.value.exit_code == (2 if isinstance(caught.value, EndpointRefusedError) else 3)


async def test_a_hanging_server_is_given_up(journal: Journal, clock: FakeClock) -> None:
    with FakeOpenAI(failures=["hang", "hang"]) as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        with pytest.raises(EndpointBusyError, match="CITELOOM_REQUEST_TIMEOUT"):
            await patient(caller, clock, timeout=1.5).call(ASKED)
    assert server.calls() == 2


async def test_an_error_about_a_port_without_a_server_names_the_setting(journal: Journal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = Settings(chat_model="m", chat_base_url=f"http://127.0.0.1:{port}/v1")
    caller = ChatCaller(given, "reader", journal=journal, scope=RUN)
    with pytest.raises(EndpointRefusedError, match="CITELOOM_CHAT_BASE_URL") as caught:
        await caller.call(ASKED)
    assert caught.value.exit_code == 2


async def test_the_error_names_the_setting_of_the_role(journal: Journal) -> None:
    with FakeOpenAI(model="known", api_key="right") as server:
        common: dict[str, Any] = {"chat_model": "known", "chat_base_url": server.base_url}
        unknown = Settings(**common, chat_api_key="right", reader_model="unknown")
        wrong = Settings(**common, chat_api_key="right", reader_api_key="wrong")
        for given, words in ((unknown, "CITELOOM_READER_MODEL"), (wrong, "CITELOOM_READER_API_KEY")):
            caller = ChatCaller(given, "reader", journal=journal, scope=RUN)
            with pytest.raises(EndpointRefusedError, match=words):
                await caller.call(ASKED)


@pytest.mark.parametrize(
    "url",
    ["localhost:1234/v1", "ftp://host/v1", "http://", "http://host:port/v1", f"http://me:{KEY}@host/v1", f"//:{KEY}@"],
)
def test_an_error_about_an_invalid_address_names_the_setting_and_hides_the_key(url: str) -> None:
    with pytest.raises(ConfigurationError, match="CITELOOM_CHAT_BASE_URL") as caught:
        chat_endpoint(Settings(chat_model="m", chat_base_url=url), "reader")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("known", "formats"),
    [
        ({"json_object"}, ["json_schema", "json_object", "json_object"]),
        (set(), ["json_schema", "json_object", None, None]),
    ],
)
async def test_a_server_that_supports_fewer_formats_is_used(
    journal: Journal, known: set[str], formats: list[str | None]
) -> None:
    def picky(body: dict[str, Any]) -> Raw | None:
        asked = body.get("response_format", {}).get("type")
        if asked is None or asked in known:
            return None
        return Raw(json.dumps({"error": f"response_format {asked} is not supported"}), status=400)

    with FakeOpenAI(behaviour=picky) as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        await caller.call(ASKED, schema=SCHEMA)
        # A caller of another role on the same model has learned it too.
        other = ChatCaller(settings(server), "judge", journal=journal, scope=RUN)
        await other.call([HumanMessage("another question")], schema=SCHEMA)
    assert [body.get("response_format", {}).get("type") for body in server.requests] == formats
    assert (await journal.usage(RUN)).llm_calls == 2


async def test_a_model_that_rejects_temperature_is_used(journal: Journal) -> None:
    def fixed(body: dict[str, Any]) -> Raw | None:
        refusal = Raw(json.dumps({"error": {"message": "Unsupported value: 'temperature'"}}), status=400)
        return refusal if "temperature" in body else None

    with FakeOpenAI(behaviour=fixed) as server:
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)
        await caller.call(ASKED)
        await caller.call([HumanMessage("another question")])
    assert ["temperature" in body for body in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ({"error": {"message": "overloaded", "code": 503}}, "overloaded"),
        ({"choices": [{"message": {"content": 7}}]}, "neither text nor blocks"),
        ({"choices": [{"text": "old protocol"}]}, "no message"),
        ({"choices": [{"message": {"content": "", "tool_calls": [{"id": "1"}]}}]}, "tool call without a name"),
        ({"choices": [{"message": {"role": "user", "content": "you say?"}}]}, "user message"),
    ],
    ids=["error under 200", "number as content", "no message", "nameless tool", "wrong role"],
)
async def test_invalid_answers_are_refused(
    journal: Journal, clock: FakeClock, body: dict[str, Any], failure: str
) -> None:
    with FakeOpenAI(behaviour=lambda _: body) as server:
        caller = patient(ChatCaller(settings(server), "reader", journal=journal, scope=RUN), clock)
        with pytest.raises((EndpointRefusedError, EndpointBusyError), match=failure):
            await caller.call(ASKED)
    assert await journal.usage(RUN) == Usage()


async def test_the_environment_sets_no_address_or_key(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI() as server:
        for name, value in {
            "OPENAI_BASE_URL": "http://127.0.0.1:9/elsewhere",
            "OPENAI_API_BASE": "http://127.0.0.1:9/elsewhere",
            "OPENAI_API_KEY": KEY,
            "OPENAI_ORG_ID": "org-ambient",
            "OPENAI_PROJECT_ID": "proj-ambient",
            "OPENAI_CUSTOM_HEADERS": "X-Ambient: secret\nAuthorization: Bearer ambient",
        }.items():
            monkeypatch.setenv(name, value)
        # The client of an endpoint is kept; a path of its own makes a new one.
        given = Settings(chat_model="ambient-test", chat_base_url=f"{server.base_url}/")
        await ChatCaller(given, "reader", journal=journal, scope=RUN).call(ASKED)
    sent = json.dumps(server.headers[0])
    assert server.headers[0]["authorization"] == "Bearer none"
    assert not any(word in sent for word in (KEY, "ambient", "x-ambient"))


async def test_a_key_never_reaches_the_journal(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "journal.sqlite"
    with FakeOpenAI(api_key=KEY) as server, Journal(path) as journal:
        given = settings(server, chat_api_key=KEY)
        caller = patient(ChatCaller(given, "reader", journal=journal, scope=RUN), clock)
        await caller.call(ASKED, schema=SCHEMA)
        server.api_key = "another"
        with pytest.raises(EndpointLostError) as caught:
            await caller.call([HumanMessage("more")])
        assert KEY not in str(caught.value)
        assert KEY not in repr(chat_identity(given, "reader"))
        kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(kept) > 4096
    assert KEY.encode() not in kept


def test_one_model_serves_several_event_loops(tmp_path: Path) -> None:
    with (
        FakeOpenAI() as server,
        Journal(tmp_path / "journal.sqlite") as journal,
        asyncio.Runner() as one,
        asyncio.Runner() as two,
    ):
        caller = ChatCaller(settings(server), "reader", journal=journal, scope=RUN)

        async def ask(question: str) -> None:
            await asyncio.gather(*[caller.call([HumanMessage(f"{question} {n}")]) for n in range(3)])

        for runner, question in ((one, "first"), (two, "second"), (one, "third"), (two, "fourth")):
            runner.run(asyncio.wait_for(ask(question), 300))
        for runner in (one, two):
            runner.run(close_connections())
    assert server.calls() == 12


class HandedIn(BaseChatModel):
    """A LangChain model of some other provider, which knows no `response_format`."""

    model_name: str = "other"
    answers: list[AIMessage]
    asked: list[dict[str, Any]]

    @property
    def _llm_type(self) -> str:
        return "handed-in"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any) -> Any:
        self.asked.append(given)
        if "response_format" in given:
            raise TypeError("create() got an unexpected keyword argument 'response_format'")
        return ChatResult(generations=[ChatGeneration(message=self.answers[len(self.asked) % len(self.answers)])])

    def bind_tools(self, tools: Any, **given: Any) -> Any:
        return self.bind(tools=tools, **given)


async def test_any_langchain_model_is_accepted(journal: Journal) -> None:
    model = HandedIn(answers=[AIMessage("from elsewhere")], asked=[])
    caller = ChatCaller(Settings(), model, journal=journal, scope=RUN)
    first = await caller.call(ASKED, schema=SCHEMA, tools=TOOLS, max_tokens=9)
    again = await caller.call(ASKED, schema=SCHEMA, tools=TOOLS, max_tokens=9)
    assert first == again
    assert first.message.text == "from elsewhere"
    assert [sorted(given) for given in model.asked] == [
        ["max_tokens", "response_format", "tools"],
        ["max_tokens", "response_format", "tools"],
        ["max_tokens", "tools"],
    ]
    third = HandedIn(model_name="third", answers=[AIMessage("x")], asked=[])
    other = ChatCaller(Settings(), third, journal=journal, scope=RUN)
    assert (await other.call(ASKED)).key != (await caller.call(ASKED)).key


async def test_an_error_in_a_given_langchain_model_is_raised_unchanged(journal: Journal) -> None:
    caller = ChatCaller(Settings(), HandedIn(answers=[], asked=[]), journal=journal, scope=RUN)
    with pytest.raises(ZeroDivisionError):
        await caller.call(ASKED)


async def test_twenty_calls_are_sent_concurrently(journal: Journal) -> None:
    waiting = asyncio.Event()
    loop = asyncio.get_running_loop()
    arrived = 0

    def count(body: dict[str, Any]) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == 20:
            loop.call_soon_threadsafe(waiting.set)

    async def all_arrived() -> None:
        await waiting.wait()

    counting: Callable[[dict[str, Any]], None] = count
    with FakeOpenAI(behaviour=counting) as server:
        caller = ChatCaller(settings(server, max_concurrency=20), "reader", journal=journal, scope=RUN)
        async with asyncio.timeout(300):
            await asyncio.gather(
                all_arrived(), *[caller.call([HumanMessage(f"question {number}")]) for number in range(20)]
            )
    assert (await journal.usage(RUN)).llm_calls == 20


async def test_only_the_limiter_limits_the_connections() -> None:
    together = asyncio.Barrier(256)

    async def answer_when_all_are_here(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await together.wait()
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n{"data": [1]}')
        writer.close()

    async with await asyncio.start_server(answer_when_all_are_here, "127.0.0.1", backlog=256) as server:
        endpoint = Endpoint("http://{}:{}/v1/".format(*server.sockets[0].getsockname()), None, timeout=60)
        answers = await asyncio.gather(*[endpoint.ask("/models") for _ in range(together.parties)])
    assert answers == [{"data": [1]}] * 256


async def test_a_cookie_that_a_server_sets_for_one_key_is_not_sent_with_another(journal: Journal) -> None:
    with FakeOpenAI() as server:
        for key in ("one", "another"):
            caller = ChatCaller(settings(server, chat_api_key=key), "reader", journal=journal, scope=RUN)
            await caller.call([HumanMessage(f"asked with {key} key")])
    assert [headers.get("cookie") for headers in server.headers] == [None, None]


def test_two_roles_with_one_model_share_its_identity() -> None:
    given = Settings(chat_model="m", chat_base_url="http://localhost:1/v1")
    reader, writer = chat_identity(given, "reader"), chat_identity(given, "writer")
    assert reader == replace(writer)

"""Streamed answers over real sockets: heard as they come, journaled when complete, whole in the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from citeloom.models.chat_caller import ChatCaller
from citeloom.models.http.failures import EndpointBusyError, EndpointRefusedError
from citeloom.models.http.limiter import Limiter
from citeloom.models.journal.budget import Budget, BudgetLimits, BudgetReachedError
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope, Usage
from citeloom.settings.config import Settings
from tests.support.event_streams import Gate, pieces_of
from tests.support.fake_clock import FakeClock
from tests.support.listener import Heard, ask_in_turn
from tests.support.openai_server import FakeOpenAI, Raw, Status
from tests.support.protocol_answers import envelope

RUN = RunScope("run")
ASKED = [HumanMessage("ducks swimming across quiet ponds")]
ROOT = Path(__file__).resolve().parents[4]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "search_evidence",
            "description": "Searches.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    }
]


def caller_of(server: FakeOpenAI, journal: Journal, run: RunScope = RUN, **given: Any) -> ChatCaller:
    settings = Settings(chat_model="some-model", chat_base_url=server.base_url)
    return ChatCaller(settings, "writer", journal=journal, scope=run, **given)


def patient(caller: ChatCaller, clock: FakeClock, **given: Any) -> ChatCaller:
    """The caller with a limiter whose waits take no time."""
    limits = {"max_concurrency": 20, "max_retries": 3, "timeout": 10.0} | given
    caller._limiter = Limiter(**limits, clock=clock, seed=1)
    return caller


async def test_an_answer_streams_in_pieces_and_is_replayed(journal: Journal) -> None:
    heard, again, elsewhere = Heard(), Heard(), Heard()
    with FakeOpenAI() as server:
        caller = caller_of(server, journal)
        answer = await caller.call(ASKED, max_tokens=99, listener=heard)
        replayed = await caller.call(ASKED, max_tokens=99, listener=again)
        plain = await caller_of(server, journal, RunScope("other")).call(ASKED, max_tokens=99)
        await caller_of(server, journal, RunScope("third")).call(ASKED, max_tokens=99, listener=elsewhere)
    text = answer.message.text
    assert heard.said == pieces_of(text)
    assert len(heard.said) > 20
    assert again.said == elsewhere.said == [text]
    assert answer == replayed == plain
    assert server.calls() == 1
    assert server.requests[0]["stream"] is True
    assert server.requests[0]["stream_options"] == {"include_usage": True}
    assert answer.message.response_metadata == {"finish_reason": "stop"}
    usage = answer.message.usage_metadata
    assert usage is not None
    assert await journal.usage(RUN) == Usage(1, 1, usage["input_tokens"], usage["output_tokens"])


async def test_a_streamed_answer_equals_the_complete_one(journal: Journal, tmp_path: Path) -> None:
    with FakeOpenAI() as server, Journal(tmp_path / "other.sqlite") as other:
        streamed = await caller_of(server, journal).call(ASKED, tools=TOOLS, listener=Heard())
        whole = await caller_of(server, other).call(ASKED, tools=TOOLS)
        assert streamed == whole
        assert streamed.message.tool_calls
        said: list[BaseMessage] = [*ASKED, streamed.message]
        said += [ToolMessage("nothing", tool_call_id=call["id"]) for call in streamed.message.tool_calls]
        assert await caller_of(server, journal).call(said, listener=Heard()) == await caller_of(server, other).call(
            said
        )


async def test_a_complete_answer_reaches_a_listener_as_one_piece(journal: Journal) -> None:
    heard = Heard()
    with FakeOpenAI() as server:
        caller = caller_of(server, journal)
        answer = await caller.call(ASKED)
        await caller.call(ASKED, listener=heard)
    assert heard.said == [answer.message.text]
    assert server.calls() == 1


async def test_two_readers_of_one_stream_receive_all_of_it_and_pay_once(journal: Journal) -> None:
    gate = Gate(after=9)
    first, second = Heard(), Heard()
    with FakeOpenAI(gate=gate) as server:
        caller, other = caller_of(server, journal), caller_of(server, journal, RunScope("other"))
        asking = asyncio.create_task(caller.call(ASKED, listener=first))
        await asyncio.to_thread(gate.reached.wait, 20)
        joining = asyncio.create_task(other.call(ASKED, listener=second))
        await second.next()
        before = "".join(second.said)  # the second came late, and hears at once what was said
        plain = asyncio.create_task(caller_of(server, journal, RunScope("third")).call(ASKED))
        gate.open()
        answers = await asyncio.gather(asking, joining, plain)
    text = answers[0].message.text
    assert answers[0] == answers[1] == answers[2]
    assert 0 < len(before) < len(text)
    assert len(second.said) > 5
    assert "".join(first.said) == "".join(second.said) == text
    assert first.restarts == second.restarts == 0
    assert server.calls() == 1


async def test_a_subscriber_keeps_the_stream_if_the_caller_is_cancelled(journal: Journal) -> None:
    gate = Gate(after=9)
    first, second = Heard(), Heard()
    with FakeOpenAI(gate=gate) as server:
        asking = asyncio.create_task(caller_of(server, journal).call(ASKED, listener=first))
        await asyncio.to_thread(gate.reached.wait, 20)
        joining = asyncio.create_task(caller_of(server, journal, RunScope("other")).call(ASKED, listener=second))
        await second.next()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        gate.open()
        answer = await joining
    assert second.restarts == 1
    assert second.text == answer.message.text
    assert server.calls() == 2


def test_readers_in_two_event_loops_share_one_stream(tmp_path: Path) -> None:
    gate = Gate(after=9)
    heard: dict[str, Heard] = {}

    async def ask(name: str) -> str:
        from citeloom.models.http.client import close_connections

        heard[name] = Heard()
        try:
            return (await caller_of(server, journal, RunScope(name)).call(ASKED, listener=heard[name])).message.text
        finally:
            await close_connections()

    async def ask_late() -> str:
        asking = asyncio.create_task(ask("late"))
        await asyncio.sleep(0)
        await heard["late"].next()
        gate.open()
        return await asking

    texts: list[str] = []
    with FakeOpenAI(gate=gate) as server, Journal(tmp_path / "journal.sqlite") as journal:
        other = threading.Thread(target=lambda: texts.append(asyncio.run(ask("early"))))
        other.start()
        assert gate.reached.wait(300)
        texts.append(asyncio.run(ask_late()))
        other.join()
        calls = server.calls()
    assert calls == 1
    assert texts[0] == texts[1] == heard["early"].text == heard["late"].text


@pytest.mark.parametrize(
    ("failures", "restarts"),
    [
        pytest.param(["cut"], 1, id="connection dropped half way"),
        pytest.param(["unended"], 1, id="ended without its end"),
        pytest.param(["garbage", "list-chunk"], 2, id="garbage between chunks"),
        pytest.param(["no-delta"], 1, id="a chunk without a delta"),
        pytest.param(["stream-error"], 1, id="an error between chunks"),
        pytest.param(["silence"], 1, id="silent half way"),
        pytest.param([Status(429, retry_after="2"), Status(503)], 0, id="busy"),
        pytest.param(["drop", "html"], 0, id="no stream at all"),
        pytest.param(["empty", "not-json"], 0, id="no answer at all"),
        pytest.param(["cut", Status(500), "cut"], 2, id="dropped twice"),
    ],
)
async def test_pieces_of_a_broken_stream_are_discarded(
    journal: Journal, clock: FakeClock, failures: list[Any], restarts: int
) -> None:
    heard = Heard()
    with FakeOpenAI(failures=failures) as server:
        caller = patient(
            caller_of(server, journal), clock, max_retries=5, timeout=3.0 if "silence" in failures else 60.0
        )
        answer = await caller.call(ASKED, listener=heard)
    assert heard.restarts == restarts
    assert heard.text == answer.message.text
    assert server.calls() == len(failures) + 1
    assert (await journal.usage(RUN)).llm_calls == 1


async def test_a_stream_that_always_breaks_pauses_the_run_and_stores_nothing(
    journal: Journal, clock: FakeClock
) -> None:
    heard = Heard()
    with FakeOpenAI(failures=["cut"] * 9) as server, pytest.raises(EndpointBusyError):
        await patient(caller_of(server, journal), clock).call(ASKED, listener=heard)
    assert heard.text == ""  # the last it hears is that all was void
    assert server.calls() == heard.restarts == 4
    assert await journal.usage(RUN) == Usage()


async def test_a_refusal_is_reported_as_for_a_complete_answer(journal: Journal) -> None:
    with FakeOpenAI(api_key="right") as server, pytest.raises(EndpointRefusedError, match="CITELOOM_CHAT_API_KEY"):
        await caller_of(server, journal).call(ASKED, listener=Heard())
    assert server.calls() == 1


@pytest.mark.parametrize(
    ("refused", "asked"),
    [
        pytest.param("stream_options", [(True, True), (True, False), (True, False)], id="knows no stream_options"),
        pytest.param("stream", [(True, True), (False, False), (False, False)], id="knows no streams"),
    ],
)
async def test_a_server_that_refuses_a_streaming_option_is_asked_without_it(
    journal: Journal, refused: str, asked: list[tuple[bool, bool]]
) -> None:
    def picky(body: dict[str, Any]) -> Raw | None:
        if body.get(refused):
            return Raw(json.dumps({"error": {"message": f"'{refused}' is not supported"}}), status=400)
        return None

    heard = Heard()
    with FakeOpenAI(behaviour=picky) as server:
        answer = await caller_of(server, journal).call(ASKED, listener=heard)
        await caller_of(server, journal).call([HumanMessage("another question")], listener=Heard())
    assert [(body["stream"], "stream_options" in body) for body in server.requests] == asked
    assert heard.text == answer.message.text
    # Usage that no server reports is counted.
    assert (await journal.usage(RUN)).output_tokens > 0


async def test_a_server_that_ignores_streaming_is_accepted(journal: Journal) -> None:
    heard = Heard()
    with FakeOpenAI(streams=False) as server:
        answer = await caller_of(server, journal).call(ASKED, listener=heard)
        tools = await caller_of(server, journal).call(ASKED, tools=TOOLS, listener=Heard())
    assert heard.said == [answer.message.text]
    assert tools.message.tool_calls[0]["args"]["query"]


async def test_a_budget_applies_to_streamed_answers(journal: Journal, clock: FakeClock) -> None:
    budget = Budget(BudgetLimits(calls=3), {}, journal, RUN.run_id)
    with FakeOpenAI(failures=["cut"]) as server:
        caller = patient(caller_of(server, journal, budget=budget), clock)
        await caller.call(ASKED, listener=Heard())  # two requests: what was lost half way may have been paid for
        await caller.call([HumanMessage("the second")], listener=Heard())
        with pytest.raises(BudgetReachedError):
            await caller.call([HumanMessage("the third")], listener=Heard())
        await caller.call(ASKED, listener=Heard())  # what is in the journal costs nothing
    assert server.calls() == 3


async def test_terminal_control_characters_are_not_streamed(journal: Journal) -> None:
    heard = Heard()
    with FakeOpenAI(behaviour=lambda body: envelope(body, content="quiet \x1b[31mred\u202e ponds")) as server:
        answer = await caller_of(server, journal).call(ASKED, listener=heard)
    assert heard.text == answer.message.text == "quiet [31mred ponds"
    assert heard.restarts == 0


class HandedIn(BaseChatModel):
    """A LangChain model of some other provider."""

    @property
    def _llm_type(self) -> str:
        return "handed-in"

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any) -> Any:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("from elsewhere"))])


class Streaming(HandedIn):
    """One that streams."""

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **given: Any
    ) -> Iterator[ChatGenerationChunk]:
        for piece in ("from ", "else", "where"):
            yield ChatGenerationChunk(message=AIMessageChunk(piece))


@pytest.mark.parametrize(
    ("model", "said"), [(HandedIn(), ["from elsewhere"]), (Streaming(), ["from ", "else", "where"])]
)
async def test_any_langchain_model_can_stream(journal: Journal, model: BaseChatModel, said: list[str]) -> None:
    heard = Heard()
    caller = ChatCaller(Settings(), model, journal=journal, scope=RUN)
    answer = await caller.call(ASKED, listener=heard)
    assert answer.message.text == "from elsewhere"
    assert heard.said == said
    assert (await caller.call(ASKED)).key == answer.key
    assert await journal.usage(RUN) == Usage(1, 1, *await _tokens(journal))


async def _tokens(journal: Journal) -> tuple[int, int]:
    used = await journal.usage(RUN)
    assert used.input_tokens > 0
    assert used.output_tokens > 0
    return used.input_tokens, used.output_tokens


def test_a_kill_during_a_stream_repeats_only_that_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = Gate(after=0)
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.support.listener import ask_in_turn\n"
        "asyncio.run(ask_in_turn(sys.argv[1], Path(sys.argv[2]), ['one', 'two', 'three']))\n"
    )
    with FakeOpenAI(gate=gate) as server:

        def answers(journal: str) -> str:
            asyncio.run(ask_in_turn(server.base_url, tmp_path / journal, ["one", "two", "three"]))
            return capsys.readouterr().out

        gate.open()
        command = [sys.executable, "-c", code, server.base_url, str(tmp_path / "journal.sqlite")]
        undisturbed = answers("other.sqlite")
        assert server.calls() == 3
        held = Gate(after=6)
        server.behaviour = lambda body: setattr(server, "gate", held if "two" in str(body["messages"]) else gate)
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            assert held.reached.wait(300)
            os.kill(process.pid, signal.SIGKILL)
        assert server.calls() == 5
        held.open()
        resumed = answers("journal.sqlite")
    assert server.calls() == 7  # the second, which was being streamed, and the third
    assert resumed == undisturbed

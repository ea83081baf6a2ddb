"""What a hostile or broken server may do, and what is promised then: a row for each attack.

Kept: the answer that was paid for is the answer, asked for once, readable for ever. Given up: a bounded number of
requests, in bounded memory and time, one line that names what happened, and a run that can go on elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from citeloom.errors import CiteloomError
from citeloom.models.chat_caller import ChatCaller
from citeloom.models.embeddings.remote import JournaledEmbedding, endpoint_embedding
from citeloom.models.http import responses
from citeloom.models.http.limiter import Limiter
from citeloom.models.journal.budget import Budget, BudgetLimits, BudgetReachedError
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope
from citeloom.settings.config import Price, Settings
from tests.support.fake_clock import FakeClock
from tests.support.hostile_server import (
    HOLD,
    RESET,
    HostileServer,
    Part,
    asks_tool,
    events,
    packed,
    response,
    said,
    stream,
    without_end,
)
from tests.support.listener import Heard
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import envelope

pytestmark = pytest.mark.attack

RUN = RunScope("run")
ASKED = [HumanMessage("ducks swimming across quiet ponds")]
TOOLS = [{"type": "function", "function": {"name": "search_evidence", "parameters": {"type": "object"}}}]
MOST_MEMORY = 500_000  # kilobytes more than before, whatever a server sends
DEEP = "[" * 200_000 + "]" * 200_000
DEEP_OBJECT = '{"a":' * 200_000 + "1" + "}" * 200_000
COUNTS = {
    "a half": "1.5",
    "words": '"many"',
    "digits as text": '"12"',
    "10^24": "1" + "0" * 24,
    "5,000 digits": "9" * 5_000,
    "negative": "-7",
    "true": "true",
    "null": "null",
    "a list": "[3]",
    "an object": '{"a": 1}',
    "not a number": "NaN",
    "infinite": "1e999",
}


@pytest.fixture(autouse=True)
def _bounded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(responses, "TIMEOUT_AFTER_REASON", 0.3)
    monkeypatch.setattr(responses, "TIMEOUT_AFTER_DONE", 0.1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


def caller_of(
    base_url: str, journal: Journal, run: RunScope = RUN, *, timeout: float = 20.0, **given: Any
) -> ChatCaller:
    settings = Settings(chat_model="some-model", chat_base_url=base_url)
    caller = ChatCaller(settings, "writer", journal=journal, scope=run, **given)
    caller._limiter = Limiter(max_concurrency=20, max_retries=3, timeout=timeout, clock=FakeClock(), seed=1)
    return caller


def always(*parts: Part) -> Callable[[], Iterable[Part]]:
    return lambda: parts


async def kept(tmp_path: Path, script: Callable[[], Iterable[Part]], *, streamed: bool, tools: bool = False) -> Any:
    """The answer, which was asked for once, is read again by a later process, and cost something sensible."""
    heard = Heard() if streamed else None
    asked: dict[str, Any] = {"tools": TOOLS} if tools else {}
    path = tmp_path / "journal.sqlite"
    with HostileServer(script) as server:
        async with asyncio.timeout(300):
            with Journal(path) as journal:
                answer = await caller_of(server.base_url, journal).call(ASKED, listener=heard, **asked)
            with Journal(path) as journal:
                for run in (RUN, RunScope("later")):
                    assert await caller_of(server.base_url, journal, run).call(ASKED, **asked) == answer
                usage = await journal.usage(RUN)
        assert server.calls() == 1
    counts = (usage.input_tokens, usage.output_tokens)
    assert all(isinstance(count, int) and 0 < count < 10**9 for count in counts), counts
    if heard is not None:
        assert heard.text == answer.message.text
    return answer.message


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
async def test_an_answer_is_kept_whatever_its_usage_says(tmp_path: Path, count: str, streamed: bool) -> None:
    usage = f'{{"prompt_tokens": {count}, "completion_tokens": {count}, "total_tokens": {count}}}'
    sent = stream(events(usage=usage)) if streamed else response(said(usage=usage))
    answer = await kept(tmp_path, always(sent), streamed=streamed)
    assert answer.text == "quiet ponds"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "usage", ["[]", '"free"', "7", '{"prompt_tokens_details": "x", "completion_tokens_details": 3}']
)
async def test_an_answer_is_kept_whatever_type_its_usage_has(tmp_path: Path, usage: str, streamed: bool) -> None:
    sent = stream(events(usage=usage)) if streamed else response(said(usage=usage))
    assert (await kept(tmp_path, always(sent), streamed=streamed)).text == "quiet ponds"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(said([{"type": "text", "text": "quiet "}, {"odd": 1}, "ponds", None]), "quiet ponds", id="blocks"),
        pytest.param(said(None), "", id="nothing"),
        pytest.param(said(choice={"finish_reason": {"a": [1]}}), "quiet ponds", id="an object as reason"),
        pytest.param(said(choice={"finish_reason": "s" * 100_000}), "quiet ponds", id="a reason of 100 kB"),
        pytest.param(said(message={"role": None}, id=7, model=[], created="now"), "quiet ponds", id="odd envelope"),
        pytest.param(said(message={"refusal": 7, "tool_calls": {"a": 1}, "audio": 3}), "quiet ponds", id="odd message"),
        pytest.param(said("quiet \ud800ponds\x1b[2J\u202e"), "quiet \ufffdponds[2J", id="half a character"),
        pytest.param(said().replace(b"quiet", b"qui\xffet"), "qui\ufffdet ponds", id="bytes that are no text"),
        pytest.param(b"\xef\xbb\xbf" + said(), "quiet ponds", id="a byte order mark"),
        pytest.param(said(x=1).replace(b'"x": 1', b'"x": ' + b"9" * 9_000), "quiet ponds", id="9,000 digits"),
    ],
)
async def test_an_odd_answer_is_kept(tmp_path: Path, body: bytes, text: str) -> None:
    assert (await kept(tmp_path, always(response(body)), streamed=False)).text == text


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "application/octet-stream", ""])
async def test_an_answer_is_accepted_whatever_content_type_its_server_sends(tmp_path: Path, content_type: str) -> None:
    sent = response(said(), content_type=content_type)
    for streamed in (False, True):
        (tmp_path / f"{streamed}").mkdir()
        assert (await kept(tmp_path / f"{streamed}", always(sent), streamed=streamed)).text == "quiet ponds"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(DEEP_OBJECT[:40_000], "", id="40,000 characters that never close"),
        pytest.param(DEEP, "characters", id="200,000 levels"),
        pytest.param("[" * 20_000 + "]" * 20_000, "levels", id="20,000 levels"),
        pytest.param('{"a":' * 900 + "1" + "}" * 900, "levels", id="900 levels"),
        pytest.param("[1]", "no JSON object", id="a list"),
        pytest.param('{"query": ' + "9" * 5_000 + "}", "", id="5,000 digits"),
        pytest.param("{" * 45_000, "", id="45,000 braces"),
        pytest.param('"' + "\\" * 30_001, "", id="30,001 backslashes"),
        pytest.param("x" * 1_000_000, "characters", id="a megabyte of no JSON"),
    ],
)
async def test_invalid_arguments_are_reported_to_the_model(
    tmp_path: Path, arguments: str, error: str, streamed: bool
) -> None:
    """The call is answered as an invalid one, and what is kept of it is short."""
    message = asks_tool(arguments)
    if streamed:
        call = message["tool_calls"][0] | {"index": 0}
        sent = stream(events(json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]})))
    else:
        sent = response(said(message=message))
    answer = await kept(tmp_path, always(sent), streamed=streamed, tools=True)
    assert len(answer.tool_calls) + len(answer.invalid_tool_calls) == 1
    assert len(str(answer)) < 10_000
    for broken in answer.invalid_tool_calls:
        assert streamed or error in broken["error"]


async def test_thousands_of_tool_calls_are_cut_to_64(tmp_path: Path) -> None:
    message = asks_tool('{"query": "ducks"}', count=5_000)
    answer = await kept(tmp_path, always(response(said(message=message))), streamed=False, tools=True)
    assert len(answer.tool_calls) == 64


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(always(stream(events()), HOLD), id="left open after [DONE]"),
        pytest.param(always(stream(events(done=False)), HOLD), id="left open after its reason"),
        pytest.param(
            always(stream(events(done=False, usage='{"prompt_tokens": 9}')), HOLD), id="left open after usage"
        ),
        pytest.param(always(stream(events(finish=False)), HOLD), id="left open after [DONE] without a reason"),
        pytest.param(always(stream(events(done=False)), RESET), id="reset after its reason"),
        pytest.param(lambda: _then_for_ever(b": still here\n\n"), id="comments for ever after [DONE]"),
        pytest.param(lambda: _then_for_ever(b"data: {garbage\n\n"), id="garbage after [DONE]"),
        pytest.param(lambda: _then_for_ever(b'data: {"error": "no"}\n\n'), id="an error after [DONE]"),
    ],
)
async def test_a_complete_streamed_answer_is_kept_whatever_its_server_does_next(
    tmp_path: Path, script: Callable[[], Iterable[Part]]
) -> None:
    assert (await kept(tmp_path, script, streamed=True)).text == "quiet ponds"


def _then_for_ever(part: bytes) -> Iterator[Part]:
    yield stream(events())
    yield from without_end(part, 0.01)


async def test_usage_with_every_chunk_is_counted_once(journal: Journal) -> None:
    told = [
        json.dumps({"choices": [{"delta": {"content": "a "}}], "usage": {"prompt_tokens": 50, "completion_tokens": n}})
        for n in range(1, 41)
    ]
    with HostileServer(always(stream(events(*told)))) as server:
        await caller_of(server.base_url, journal).call(ASKED, listener=Heard())
    used = await journal.usage(RUN)
    assert (used.input_tokens, used.output_tokens) == (50, 40)


async def test_a_hundred_thousand_empty_chunks_take_little_memory(tmp_path: Path) -> None:
    sent = stream(b'data: {"choices": [{"delta": {"content": ""}}]}\n' * 100_000 + events())
    assert (await kept(tmp_path, always(sent), streamed=True)).text == "quiet ponds"


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
BUSY = "503 Service Unavailable"
# What a server does, whether it was asked for a stream, the requests it gets, and words of the error.
GIVEN_UP = [
    pytest.param(always(response(DEEP.encode())), False, 3, "nested too deep", id="JSON of 200,000 levels"),
    pytest.param(
        always(response(said(deep=1).replace(b'"deep": 1', b'"deep": ' + DEEP_OBJECT.encode()))),
        False,
        3,
        "nested too deep",
        id="200,000 levels beside the answer",
    ),
    pytest.param(
        always(stream(f"data: {DEEP}\n\n".encode())), True, 3, "nested too deep", id="200,000 levels in a chunk"
    ),
    pytest.param(always(response(DEEP.encode(), status=BUSY)), False, 4, "503", id="200,000 levels as refusal"),
    pytest.param(always(response(b"<script " * 100_000, status=BUSY)), False, 4, "503", id="800 kB of tags"),
    pytest.param(always(response(b"<" * 900_000, status=BUSY)), False, 4, "503", id="900 kB of <"),
    pytest.param(
        always(response(b'{"error": {"message": "\\u001b[2J\\u202eevil\\nline"}}', status="400 Bad")),
        False,
        1,
        "[2Jevil line",
        id="orders to a terminal",
    ),
    pytest.param(
        lambda: [response(packed(300), "Content-Encoding: gzip")], False, 3, "more than 4 MB", id="300 MB in 300 kB"
    ),
    pytest.param(
        lambda: [response(packed(300, 2), "Content-Encoding: gzip, gzip")], False, 3, "not requested", id="packed twice"
    ),
    pytest.param(
        lambda: [response(packed(300), "Content-Encoding: gzip", content_type="text/event-stream")],
        True,
        3,
        "more than",
        id="300 MB as a stream",
    ),
    pytest.param(
        lambda: [response(packed(300), "Content-Encoding: gzip", status=BUSY)], False, 4, "503", id="300 MB as refusal"
    ),
    pytest.param(always(response(said(), "Content-Encoding: br")), False, 3, "not requested", id="brotli"),
    pytest.param(always(response(said(), "Content-Encoding: zstd")), False, 3, "not requested", id="zstandard"),
    pytest.param(always(response(said(), "Content-Encoding: gzip")), False, 3, "cannot be decompressed", id="no gzip"),
    pytest.param(
        lambda: _after(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65_536), False, 3, "more than 4 MB", id="a body without end"
    ),
    pytest.param(lambda: _after(STREAM, b"data: " + b"x" * 65_536), True, 3, "more than 4 MB", id="a line without end"),
    pytest.param(lambda: _after(STREAM, b"\n" * 65_536), True, 3, "more than 32 MB", id="lines without end"),
    pytest.param(
        lambda: _after(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 60_000 + b"\r\n"),
        False,
        4,
        "could not answer",
        id="headers without end",
    ),
    pytest.param(
        lambda: _after(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
        False,
        2,
        "not answer in time",
        id="100 Continue for ever",
    ),
    pytest.param(
        lambda: _after(b"HTTP/1.1 200 OK\r\n\r\n", b" ", 0.01),
        False,
        2,
        "not answer in time",
        id="a body that trickles",
    ),
    pytest.param(lambda: _after(STREAM, b": \n", 0.01), True, 2, "not answer in time", id="a stream that trickles"),
    pytest.param(always(RESET), False, 4, "could not answer", id="reset"),
    pytest.param(always(b"\x00\xff\x00 nonsense\r\n\r\n"), False, 4, "could not answer", id="no HTTP"),
    pytest.param(
        always(response(b"[1, 2]", length=True).replace(b"6\r", b"-6\r")),
        False,
        4,
        "could not answer",
        id="a length below zero",
    ),
    pytest.param(always(response(said(7))), False, 3, "neither text nor blocks", id="a number as content"),
    pytest.param(
        always(response(said(message=asks_tool("{}", name=None)))), False, 3, "without a name", id="a nameless tool"
    ),
    *(
        pytest.param(
            always(response(b"no", f"Retry-After: {asked}", status=BUSY)), False, calls, "503", id=f"wait {asked[:6]}"
        )
        for asked, calls in [
            ("1e9", 4),
            ("nan", 4),
            ("-1", 4),
            ("inf", 4),
            ("9" * 24, 1),
            ("9" * 5_000, 1),
            ("999999999", 1),
        ]
    ),
    *(
        pytest.param(
            always(response(b"no", f"retry-after-ms: {asked}", status=BUSY)), False, calls, "503", id=f"wait {asked} ms"
        )
        for asked, calls in [("nan", 4), ("-5", 4), ("inf", 1), ("1e300", 1)]
    ),
]


def _after(head: bytes, part: bytes, pause: float = 0.0) -> Iterator[Part]:
    yield head
    yield from without_end(part, pause)


@pytest.mark.parametrize(("script", "streamed", "calls", "words"), GIVEN_UP)
async def test_an_invalid_answer_is_given_up_in_one_line(
    tmp_path: Path, script: Callable[[], Iterable[Part]], streamed: bool, calls: int, words: str
) -> None:
    with HostileServer(script) as server, Journal(tmp_path / "journal.sqlite") as journal:
        caller = caller_of(server.base_url, journal, timeout=1.5 if words == "not answer in time" else 120.0)
        async with asyncio.timeout(300):
            with pytest.raises(CiteloomError) as caught:
                await caller.call(ASKED, listener=Heard() if streamed else None)
        assert server.calls() == calls
        assert (await journal.usage(RUN)).llm_calls == 0
    message = str(caught.value)
    assert words in message
    assert len(message) < 900
    assert message.isprintable()
    assert caught.value.exit_code in (2, 3)


LOCATIONS = ["same", "other", "loop", "//evil.example/v1", "file:///etc/passwd", "/v2?key=sk-secret", "\x1b[2J", ""]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_no_redirect_sends_a_prompt_elsewhere(journal: Journal, status: str, streamed: bool) -> None:
    with FakeOpenAI() as other:
        moved = response(b"", f"Location: {other.base_url}/chat/completions?key=sk-secret", status=status)
        with HostileServer(always(moved)) as server:
            with pytest.raises(CiteloomError) as caught:
                await caller_of(server.base_url, journal).call(ASKED, listener=Heard() if streamed else None)
            assert server.calls() == 1
        assert other.calls() == 0
    message = str(caught.value)
    assert f"{other.base_url}/chat/completions" in message
    assert "redirects are not followed" in message and "CITELOOM_CHAT_BASE_URL" in message
    assert "sk-secret" not in message and "\n" not in message


@pytest.mark.parametrize("location", LOCATIONS)
async def test_no_redirect_is_followed_whatever_its_target(journal: Journal, location: str) -> None:
    script: list[Part] = []
    with HostileServer(lambda: script) as server:
        here = {"same": f"{server.base_url}/other", "loop": f"{server.base_url}/chat/completions"}.get(
            location, location
        )
        script.append(response(b"", f"Location: {here}", status="307 Temporary"))
        with pytest.raises(CiteloomError) as caught:
            await caller_of(server.base_url, journal).call(ASKED)
        assert server.calls() <= 4
        assert all(b"/v1/chat/completions" in request.splitlines()[0] for request in server.requests)
    assert str(caught.value).isprintable() and "sk-secret" not in str(caught.value)


def embedder(base_url: str, journal: Journal) -> JournaledEmbedding:
    settings = Settings(embedding_model="some-embedder", embedding_base_url=base_url)
    model = endpoint_embedding(settings, journal=journal, scope=RUN)
    model._limiter = Limiter(max_concurrency=8, max_retries=3, timeout=120, clock=FakeClock(), seed=1)
    return model


def vectors(rows: str, usage: str = "null") -> bytes:
    return response(f'{{"data": [{rows}], "usage": {usage}}}'.encode())


TWO = '{"index": 0, "embedding": [3.0, 4.0]}, {"index": 1, "embedding": [0.0, 2.0]}'


@pytest.mark.parametrize("count", [*COUNTS.values(), "{}"], ids=[*COUNTS, "nothing"])
async def test_vectors_are_kept_whatever_their_usage_says(journal: Journal, count: str) -> None:
    with HostileServer(always(vectors(TWO, f'{{"prompt_tokens": {count}}}'))) as server:
        rows = await embedder(server.base_url, journal).embed_documents(["a text", "another"])
        assert server.calls() == 1
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 1.0]]
    used = await journal.usage(RUN)
    assert isinstance(used.input_tokens, int) and 0 < used.input_tokens < 10**9


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param(TWO.replace('"index": 1', '"index": 5'), "indices", id="a place that is none"),
        pytest.param(TWO.replace('"index": 1', '"index": -1'), "indices", id="a place below zero"),
        pytest.param(TWO.replace("2.0", "1e300"), "not finite", id="a number too large"),
        pytest.param(TWO.replace("2.0", "NaN"), "not finite", id="not a number"),
        pytest.param(TWO.replace("2.0", "Infinity"), "not finite", id="infinite"),
        pytest.param(TWO.replace("[0.0, 2.0]", "[1.0, 2.0, 3.0]"), "cannot be read", id="another length"),
        pytest.param(TWO.replace("[0.0, 2.0]", "[[0.0], [2.0]]"), "cannot be read", id="nested"),
        pytest.param(TWO.replace("[0.0, 2.0]", DEEP), "nested too deep", id="200,000 levels"),
        pytest.param(f"{TWO}, {TWO}", "indices", id="every vector twice"),
        pytest.param('{"index": 0, "embedding": [' + "1.5," * 9_000_000 + "1]}", "more than 32 MB", id="36 MB"),
    ],
)
async def test_invalid_vectors_are_given_up(journal: Journal, rows: str, words: str) -> None:
    with HostileServer(always(vectors(rows))) as server:
        with pytest.raises(CiteloomError, match=words) as caught:
            await embedder(server.base_url, journal).embed_documents(["a text", "another"])
        assert server.calls() == 3
    assert (await journal.usage(RUN)).embedded_texts == 0
    assert len(str(caught.value)) < 900


async def test_an_embedder_does_not_follow_redirects(journal: Journal) -> None:
    with FakeOpenAI() as other:
        moved = response(b"", f"Location: {other.base_url}/embeddings", status="308 Permanent")
        with HostileServer(always(moved)) as server:
            with pytest.raises(CiteloomError, match="CITELOOM_EMBEDDING_BASE_URL"):
                await embedder(server.base_url, journal).embed_query("a text")
            assert server.calls() == 1
        assert other.calls() == 0


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("limits", [BudgetLimits(tokens=100_000), BudgetLimits(cost=3.0)], ids=["tokens", "cost"])
async def test_a_server_that_ignores_max_tokens_is_stopped_at_the_limit(
    journal: Journal, limits: BudgetLimits, streamed: bool
) -> None:
    """Every answer is billed with 28,000 tokens where 50 were asked for: only the first is more than was reserved."""

    def bill(body: dict[str, Any]) -> dict[str, Any]:
        answer = envelope(body, content="ponds")
        answer["usage"] = {"prompt_tokens": 60, "completion_tokens": 28_000, "total_tokens": 28_060}
        return answer

    prices = {"some-model": Price(input=10.0, output=30.0)}
    with FakeOpenAI(behaviour=bill) as server:
        budget = Budget(limits, prices, journal, RUN.run_id)
        caller = caller_of(server.base_url, journal, budget=budget)
        asked = [
            caller.call([HumanMessage(f"question {n}")], max_tokens=50, listener=Heard() if streamed else None)
            for n in range(40)
        ]
        async with asyncio.timeout(300):
            ends = await asyncio.gather(*asked, return_exceptions=True)
    used = await journal.usage(RUN)
    assert used.input_tokens + used.output_tokens <= 100_000
    assert used.output_tokens * 30 / 1e6 <= 3.0
    assert used.llm_calls == server.calls() == 3
    assert sum(isinstance(end, BudgetReachedError) for end in ends) == 37


async def test_a_server_that_overruns_after_its_first_answers_is_stopped_too(journal: Journal) -> None:
    """Calls in flight when the first overrun is seen cannot be cancelled; after it they go one by one."""
    answered = 0

    def bill(body: dict[str, Any]) -> dict[str, Any]:
        nonlocal answered
        answered += 1
        answer = envelope(body, content="ponds")
        answer["usage"] = {"prompt_tokens": 60, "completion_tokens": 40 if answered <= 10 else 9_000}
        return answer

    with FakeOpenAI(behaviour=bill) as server:
        budget = Budget(BudgetLimits(tokens=100_000), {}, journal, RUN.run_id)
        caller = caller_of(server.base_url, journal, budget=budget)
        caller._limiter = Limiter(max_concurrency=4, max_retries=3, timeout=120, clock=FakeClock(), seed=1)
        asked = [caller.call([HumanMessage(f"question {n}")], max_tokens=50) for n in range(60)]
        await asyncio.gather(*asked, return_exceptions=True)
    used = await journal.usage(RUN)
    assert 60_000 < used.input_tokens + used.output_tokens <= 100_000


async def test_an_embedder_that_bills_too_much_is_stopped_at_the_limit(journal: Journal) -> None:
    from citeloom.models.journal.budget import bill_to

    one = '{"index": 0, "embedding": [3.0, 4.0]}'
    with HostileServer(always(vectors(one, '{"prompt_tokens": 28000}'))) as server:
        model = embedder(server.base_url, journal)
        with bill_to("section", Budget(BudgetLimits(tokens=100_000), {}, journal, "section")):
            asked = [model.embed_query(f"text {n}") for n in range(20)]
            await asyncio.gather(*asked, return_exceptions=True)
        assert server.calls() == 3
    assert (await journal.usage(RunScope("section"))).input_tokens == 84_000

"""No limit is ever exceeded: a counting server at the socket, twenty calls at once, refusals, lost answers, kills."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from citeloom.errors import ConfigurationError
from citeloom.models import paid_call as prompt_tokens
from citeloom.models.chat_caller import ChatCaller
from citeloom.models.http.limiter import Limiter
from citeloom.models.journal.budget import Budget, BudgetLimits, BudgetReachedError
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope
from citeloom.settings.config import Price, Settings
from tests.support.fake_clock import FakeClock
from tests.support.openai_server import FakeOpenAI, Status
from tests.support.protocol_answers import envelope
from tests.unit.models.test_prompt_tokens import words_encoding

RUN = RunScope("run")
PRICES = {"some-model": Price(input=10.0, output=30.0)}
TOKENS_A_CALL = 140  # what the server below bills


def billed(body: dict[str, Any]) -> dict[str, Any]:
    """An answer that is billed with 100 tokens of the question and 40 of its own."""
    answer = envelope(body, content="quiet ponds")
    answer["usage"] = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": TOKENS_A_CALL}
    return answer


def caller(
    server: FakeOpenAI,
    journal: Journal,
    limits: BudgetLimits,
    *,
    clock: FakeClock | None = None,
    scope: RunScope = RUN,
    budget: Budget | None = None,
    timeout: float = 10.0,
) -> ChatCaller:
    given = Settings(chat_model="some-model", chat_base_url=server.base_url)
    budget = budget or Budget(limits, PRICES, journal, scope.run_id)
    made = ChatCaller(given, "reader", journal=journal, scope=scope, budget=budget)
    made._limiter = Limiter(max_concurrency=20, max_retries=3, timeout=timeout, clock=clock or FakeClock(), seed=1)
    return made


async def ask_many(chat: ChatCaller, count: int, label: str = "question") -> list[Any]:
    """All at once; answers and errors in order."""
    asked = [chat.call([HumanMessage(f"{label} {number}")], max_tokens=50) for number in range(count)]
    return await asyncio.gather(*asked, return_exceptions=True)


def errors(outcomes: list[Any]) -> list[BaseException]:
    return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]


@pytest.mark.parametrize("limit", [1, 7, 20, 33])
async def test_twenty_concurrent_calls_never_exceed_the_limit(journal: Journal, limit: int) -> None:
    with FakeOpenAI() as server:
        outcomes = await ask_many(caller(server, journal, BudgetLimits(calls=limit)), 60)
    assert server.calls() == limit
    assert len(errors(outcomes)) == 60 - limit
    assert all(isinstance(error, BudgetReachedError) and error.exit_code == 3 for error in errors(outcomes))
    assert (await journal.usage(RUN)).llm_calls == limit


@pytest.mark.parametrize("seed", range(6))
async def test_every_attempt_counts_as_a_call_whatever_its_outcome(journal: Journal, seed: int) -> None:
    dice = random.Random(seed)
    limit = dice.randint(5, 40)
    failures: list[Any] = [
        dice.choice([Status(429), Status(500), "drop", "truncated", "not-json", "empty-choices"]) for _ in range(30)
    ]
    with FakeOpenAI(failures=failures) as server:
        chat = caller(server, journal, BudgetLimits(calls=limit))
        for round_ in range(4):
            await ask_many(chat, 20, f"round {round_}")
            assert server.calls() <= limit
    assert server.calls() == limit


async def test_the_token_limit_holds_though_answers_cost_less_than_reserved(journal: Journal) -> None:
    limit = 30 * TOKENS_A_CALL + 60
    with FakeOpenAI(behaviour=billed) as server:
        outcomes = await ask_many(caller(server, journal, BudgetLimits(tokens=limit)), 60)
    used = await journal.usage(RUN)
    assert used.input_tokens + used.output_tokens == server.answered * TOKENS_A_CALL <= limit
    # A request reserves more than it takes; those that did not fit at first waited for the others.
    assert server.answered >= 28
    assert len(errors(outcomes)) == 60 - server.answered
    assert "--max-tokens" in str(errors(outcomes)[0])


async def test_the_cost_limit_is_never_exceeded(journal: Journal) -> None:
    one = (100 * 10 + 40 * 30) / 1_000_000
    with FakeOpenAI(behaviour=billed) as server:
        await ask_many(caller(server, journal, BudgetLimits(cost=25 * one)), 60)
    assert 22 <= server.answered <= 25


async def test_a_persons_budget_trusts_no_model_before_its_first_answer(journal: Journal) -> None:
    def dear(body: dict[str, Any]) -> dict[str, Any]:
        answer = envelope(body, content="quiet ponds")
        answer["usage"] = {"prompt_tokens": 100, "completion_tokens": 4000, "total_tokens": 4100}
        return answer

    budget = Budget(BudgetLimits(), PRICES, journal, RUN.run_id)
    budget.within = lambda: Budget(BudgetLimits(cost=0.1), PRICES, journal, RUN.run_id)
    with FakeOpenAI(behaviour=dear) as server:
        await ask_many(caller(server, journal, BudgetLimits(), budget=budget), 20)
    assert server.answered == 1  # the server ignored its output limit, and the excess is above the budget


async def test_roles_of_one_run_share_its_budget(journal: Journal) -> None:
    with FakeOpenAI() as server:
        budget = Budget(BudgetLimits(calls=15), PRICES, journal, RUN.run_id)
        one, two = (caller(server, journal, BudgetLimits(), budget=budget) for _ in range(2))
        await asyncio.gather(ask_many(one, 20, "one"), ask_many(two, 20, "two"))
    assert server.calls() == 15


async def test_a_raised_budget_resumes_and_cached_answers_are_free(journal: Journal) -> None:
    with FakeOpenAI() as server:
        await ask_many(caller(server, journal, BudgetLimits(calls=5)), 10)
        again = await ask_many(caller(server, journal, BudgetLimits(calls=5)), 10)
        assert server.calls() == 5
        assert len(errors(again)) == 5
        assert not errors(await ask_many(caller(server, journal, BudgetLimits(calls=10)), 10))
    assert server.calls() == 10


async def test_refused_calls_cost_no_tokens_and_lost_calls_may(journal: Journal) -> None:
    with FakeOpenAI(behaviour=billed) as server:
        server.failures = [Status(400, "odd field")]
        chat = caller(server, journal, BudgetLimits(tokens=10**9))
        await ask_many(chat, 1)
        [row] = await journal.spending(["run"])
        assert (row.reserved_calls, row.reserved_input, row.reserved_output) == (1, 0, 0)
        server.failures = ["truncated"]
        await ask_many(chat, 1)
        [row] = await journal.spending(["run"])
    assert row.paid == 1
    assert row.reserved_calls == 2
    assert row.reserved_output == 50 and row.reserved_input > 20


async def test_calls_in_flight_at_a_kill_stay_counted(journal: Journal) -> None:
    with FakeOpenAI(failures=["hang"] * 3) as server:
        tasks = [
            asyncio.create_task(
                caller(server, journal, BudgetLimits(calls=5)).call([HumanMessage(f"question {number}")])
            )
            for number in range(3)
        ]
        while server.calls() < 3:
            await asyncio.sleep(0.01)
        for task in tasks:  # to the journal, a process that dies here looks the same
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await ask_many(caller(server, journal, BudgetLimits(calls=5)), 10, "later")
        assert server.calls() == 5


async def test_an_unreachable_server_costs_nothing(journal: Journal) -> None:
    server = FakeOpenAI()
    server._socket.close()
    chat = caller(server, journal, BudgetLimits(calls=2))
    await ask_many(chat, 6)
    [row] = await journal.spending(["run"])
    assert (row.paid, row.reserved_calls, row.reserved_input) == (0, 0, 0)


async def test_requests_made_while_learning_a_dialect_are_counted(journal: Journal) -> None:
    from tests.support.openai_server import Raw

    def picky(body: dict[str, Any]) -> Raw | None:
        return Raw('{"error": "response_format is not supported"}', status=400) if "response_format" in body else None

    schema = {"title": "T", "type": "object", "properties": {"a": {"type": "string"}}}
    with FakeOpenAI(behaviour=picky) as server:
        chat = caller(server, journal, BudgetLimits(calls=2))
        with pytest.raises(BudgetReachedError):
            await chat.call([HumanMessage("ducks")], schema=schema)
        assert server.calls() == 2


def test_a_cost_limit_needs_a_price(journal: Journal) -> None:
    given = Settings(chat_model="other", max_cost=1.0)
    budget = Budget(BudgetLimits.of(given), given.prices, journal)
    with pytest.raises(ConfigurationError, match=r"CITELOOM_PRICES.*other"):
        ChatCaller(given, "reader", journal=journal, scope=RUN, budget=budget)


@pytest.mark.parametrize("seed", range(8))
async def test_no_limit_is_exceeded_whatever_answers_cost(journal: Journal, seed: int) -> None:
    """Random limits, bills and faults; what the server billed is never above what was allowed."""
    dice = random.Random(seed)
    sum_billed = 0

    def bill(body: dict[str, Any]) -> dict[str, Any]:
        nonlocal sum_billed
        asked, given = dice.randint(1, 60), dice.randint(1, 50)
        sum_billed += asked + given
        answer = envelope(body, content="ponds")
        answer["usage"] = {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given}
        return answer

    limits = BudgetLimits(calls=dice.choice([None, 35]), tokens=dice.randint(300, 4000))
    failures: list[Any] = [dice.choice([None, Status(503), "drop"]) for _ in range(20)]
    with FakeOpenAI(behaviour=bill, failures=failures) as server:
        chat = caller(server, journal, limits)
        async with asyncio.timeout(300):
            await ask_many(chat, 50)
        assert sum_billed <= (limits.tokens or 0)
        assert server.calls() <= (limits.calls or 10**6)


def counting_server(body: dict[str, Any]) -> dict[str, Any]:
    """An answer that is billed by the words of the question."""
    words = sum(str(message["content"]).count(" word") for message in body["messages"])
    answer = envelope(body, content="quiet ponds")
    answer["usage"] = {"prompt_tokens": words + 20, "completion_tokens": 10, "total_tokens": words + 30}
    return answer


def lying_server(body: dict[str, Any]) -> dict[str, Any]:
    """The same for the first answers; then two fifths more, as of a server with a tokenizer of its own."""
    answer = counting_server(body)
    if "unlike" in str(body["messages"]):
        size = answer["usage"]["prompt_tokens"] * 7 // 5
        answer["usage"] = {"prompt_tokens": size, "completion_tokens": 10, "total_tokens": size + 10}
    return answer


@pytest.mark.parametrize(("at_hand", "fewest", "most"), [(False, 1, 2), (True, 4, 6)])
async def test_a_small_budget_can_be_used_with_the_right_tokenizer(
    at_hand: bool, fewest: int, most: int, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_tokens, "_encoding_of", lambda _: words_encoding() if at_hand else None)
    limit = 10_000
    with FakeOpenAI(behaviour=counting_server) as server:
        chat = caller(server, journal, BudgetLimits(tokens=limit))
        for number in range(30):
            [outcome] = await asyncio.gather(
                chat.call([HumanMessage(" word" * 1500 + f" {number}")], max_tokens=50), return_exceptions=True
            )
            if isinstance(outcome, BudgetReachedError):
                break
    used = await journal.usage(RUN)
    assert used.input_tokens + used.output_tokens <= limit
    assert fewest <= server.answered <= most


async def test_a_server_that_counts_differently_does_not_break_the_budget(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_tokens, "_encoding_of", lambda _: words_encoding())
    with FakeOpenAI(behaviour=lying_server) as server:
        chat = caller(server, journal, BudgetLimits(tokens=5_000))
        await ask_many(chat, 1)
        outcomes = await ask_many(chat, 20, "unlike" + " word" * 400)
    used = await journal.usage(RUN)
    assert used.input_tokens + used.output_tokens <= 5_000
    assert server.answered < 20 and any(isinstance(error, BudgetReachedError) for error in outcomes)

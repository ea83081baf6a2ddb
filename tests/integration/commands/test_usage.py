"""A run's budget, its spending, reused answers, and what is kept of them."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI

PRICES = json.dumps({"fake": {"input": 2.0, "output": 8.0}})


def chat(server: FakeOpenAI, **settings: str) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "TOP_K_INITIAL": "3", **settings}


def test_a_budget_pauses_the_run_and_the_suggested_command_resumes_it(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    command = ("discussion", "--exp", exp, "--home", home, "--json")
    paused = citeloom(*command, "--max-calls", "7", **chat(server))
    assert paused.code == 3 and paused.out == ""
    assert server.calls() == 7
    said = paused.err.splitlines()[-1]
    assert said.startswith("Paused:") and "7 of 7 calls" in said
    (run,) = citeloom("runs", "list", "--json", "--home", home).json
    assert run["status"] == "paused"
    again = shlex.split(said.partition("To resume: ")[2])
    assert again[:2] == ["python", "cli.py"] and again[-2:] == ["--max-calls", "14"]
    while (done := citeloom(*again[2:], **chat(server))).code == 3:
        assert server.calls() == int(again[-1])
        again = shlex.split(done.err.splitlines()[-1].partition("To resume: ")[2])
    assert done.code == 0, done.err
    assert done.json["usage"]["llm_calls"] == server.calls() <= int(again[-1])


def test_limits_on_tokens_and_cost_are_respected_too(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    command = ("discussion", "--exp", exp, "--home", home)
    paused = citeloom(*command, "--max-tokens", "20000", **chat(server))
    assert paused.code == 3 and "--max-tokens" in paused.err
    costly = citeloom(*command, "--max-cost", "0.05", **chat(server, PRICES=PRICES))
    assert costly.code == 3 and "--max-cost" in costly.err
    spent = citeloom("usage", "--json", "--home", home, PRICES=PRICES).json["total"]
    assert 0 < spent["cost"] <= 0.05
    assert spent["input_tokens"] * 2 / 1e6 + spent["output_tokens"] * 8 / 1e6 == pytest.approx(spent["cost"])


def test_a_cost_limit_without_prices_is_refused_before_any_call(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    done = citeloom("discussion", "--exp", exp, "--home", home, "--max-cost", "1", **chat(server))
    assert done.code == 2
    assert "CITELOOM_PRICES" in done.errors[0] and "fake" in done.errors[0]
    assert server.calls() == 0


@pytest.mark.parametrize(
    "prices",
    ['{"fake": 2}', '{"fake": {"input": -1}}', '{"fake": {"in": 1}}', "2", "fake=2"],
    ids=["bare", "below", "name", "number", "not JSON"],
)
def test_invalid_prices_are_refused(citeloom: Citeloom, home: Path, prices: str) -> None:
    done = citeloom("usage", "--home", home, PRICES=prices)
    assert done.code == 2
    assert "PRICES" in done.errors[0].upper() and "citeloom.toml" not in done.errors[0]


@pytest.mark.long
def test_a_papers_budget_covers_all_its_sections(citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI) -> None:
    paused = citeloom("paper", "--exp", exp, "--home", home, "--max-calls", "40", **chat(server))
    assert paused.code == 3, paused.err
    assert server.calls() == 40
    usage = citeloom("usage", "--json", "--home", home).json
    assert usage["total"]["llm_calls"] == 40


def test_usage_separates_calls_made_from_answers_reused(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    section = ("discussion", "--exp", exp, "--home", home)
    assert citeloom(*section, **chat(server, PRICES=PRICES)).code == 0
    made = server.calls()
    # Another length is another run: its searches are answered by the journal, its text is not.
    second = citeloom(*section, "--words", "300", **chat(server, PRICES=PRICES))
    assert "reused" in second.err and "cost" in second.err
    usage = citeloom("usage", "--json", "--home", home, PRICES=PRICES).json
    first, later = sorted(usage["runs"], key=lambda row: row["journal_hits"])
    assert first["llm_calls"] == made
    assert later["llm_calls"] == server.calls() - made < made
    assert later["journal_hits"] >= 5  # the plan and all readings
    shown = citeloom("usage", first["run"], "--home", home).out
    assert first["run"] in shown and later["run"] not in shown and "price not known" in shown
    # What the runs themselves reported is the same.
    records = [citeloom("runs", "show", row["run"], "--json", "--home", home).json for row in (first, later)]
    assert [record["result"]["usage"]["llm_calls"] for record in records] == [first["llm_calls"], later["llm_calls"]]


def test_a_query_typed_differently_reads_no_passage_again(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    settings = chat(server, MAX_SEARCH_ITERATIONS="0", RETRIEVAL_MODE="bm25")
    assert citeloom("discussion", "--exp", exp, "--home", home, **settings).code == 0
    readings = reads(server)
    experiment = json.loads(exp.read_text(encoding="utf-8"))
    for name in ("reasoning", "results"):
        if isinstance(experiment.get(name), str):
            experiment[name] = f"  {experiment[name].upper().replace(' ', '  ')} !"
    exp.write_text(json.dumps(experiment), encoding="utf-8")
    assert citeloom("discussion", "--exp", exp, "--home", home, **settings).code == 0
    assert readings > 0
    assert reads(server) == readings


def reads(server: FakeOpenAI) -> int:
    """Requests that had a passage read."""
    names = [
        body.get("response_format", {}).get("json_schema", {}).get("name")
        for body in server.requests
        if body.get("response_format")
    ]
    return names.count("PassageReading")


def test_pruning_keeps_answers_of_paused_runs_and_the_cost_of_runs(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    assert citeloom("discussion", "--exp", exp, "--home", home, **chat(server)).code == 0
    finished = server.calls()
    paused = ("discussion", "--exp", exp, "--home", home, "--words", "300", "--fresh")
    assert citeloom(*paused, "--max-calls", "5", **chat(server)).code == 3
    before = citeloom("journal", "stats", "--json", "--home", home).json
    assert before["answers"] == before["made"] == finished + 5
    dry = citeloom("journal", "prune", "--older-than", "0", "--dry-run", "--json", "--home", home).json
    assert citeloom("journal", "stats", "--json", "--home", home).json["answers"] == before["answers"]
    gone = citeloom("journal", "prune", "--older-than", "0", "--json", "--home", home).json
    assert (gone["answers"], gone["kept_for_runs"]) == (dry["answers"], dry["kept_for_runs"]) == (finished, 5)
    after = citeloom("journal", "stats", "--json", "--home", home).json
    assert after["answers"] == 5 and after["made"] == before["made"]
    done = citeloom(*paused, "--json", **chat(server))
    assert done.code == 0, done.err
    # The five answers were not asked for again.
    assert done.json["usage"]["llm_calls"] == server.calls() - finished


def test_pruning_can_be_limited_to_rejected_answers(citeloom: Citeloom, home: Path) -> None:
    citeloom("journal", "stats", "--home", home)
    with closing(sqlite3.connect(home / "journal.sqlite")) as db, db:
        db.executemany(
            "INSERT INTO answers (key, kind, endpoint, model, made_at, rejected, input_tokens, output_tokens, payload)"
            " VALUES (?, 'chat', 'e', 'm', 1.0, ?, 0, 0, '{}')",
            [("good", 0), ("bad", 1), ("worse", 1)],
        )
    gone = citeloom("journal", "prune", "--rejected", "--json", "--home", home).json
    assert gone["answers"] == 2
    assert citeloom("journal", "stats", "--json", "--home", home).json["answers"] == 1


def test_pruning_requires_a_selection(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("journal", "prune", "--home", home)
    assert done.code == 2 and "--older-than" in done.errors[0]


def test_an_empty_journal_says_that_it_is_empty(citeloom: Citeloom, home: Path) -> None:
    stats = citeloom("journal", "stats", "--home", home)
    assert stats.code == 0 and "empty" in stats.out and "0 answers" not in stats.out


def test_usage_does_not_claim_that_nothing_was_embedded_if_the_bundled_model_did_it(
    citeloom: Citeloom, home: Path
) -> None:
    assert "remotely" in citeloom("usage", "--home", home).out

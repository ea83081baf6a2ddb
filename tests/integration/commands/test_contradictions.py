"""contradictions: from the library to the table and the JSON, with a judge on a real socket."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citeloom import Settings, contradictions, open_library
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.library import Library
from citeloom.stores.local.folder_home import FolderHome
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import envelope

TOPIC = ("contradictions", "--topic", "calibration error of ensembles after temperature scaling", "--pairs", "6")
SHOWN = re.compile(r"^([AB]\d+): (.*)$", re.MULTILINE)


def judging(pick: Callable[[dict[str, str]], tuple[str, str]]) -> Any:
    """A judge that finds a contradiction in every pair, in the sentences that `pick` names."""

    def behaviour(body: Any) -> Any:
        first, second = pick(dict(SHOWN.findall(body["messages"][1]["content"])))
        said = {"claim": "c", "reason": "r", "verdict": "contradict", "first": first, "second": second}
        return envelope(body, content=json.dumps(said))

    return behaviour


def chat(server: FakeOpenAI) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url}


def test_every_quote_is_the_sentence_that_the_judge_was_shown(
    citeloom: Citeloom, home: Path, server: FakeOpenAI
) -> None:
    shown: list[tuple[str, str]] = []

    def pick(sentences: dict[str, str]) -> tuple[str, str]:
        last = max(name for name in sentences if name.startswith("B"))
        shown.append((sentences["A1"], sentences[last]))
        return "A1", last

    server.behaviour = judging(pick)
    record = citeloom(*TOPIC, "--json", "--home", home, **chat(server)).json
    assert record["judged"] == len(record["contradictions"]) == server.calls() == 6
    assert record["usage"]["llm_calls"] == 6 and record["unjudged"] == 0
    quotes = set()
    library = Library.open(FolderHome(home), LocalEmbedding())
    try:
        for item in record["contradictions"]:
            one, other = item["passages"]
            assert one["key"] != other["key"]
            quotes.add(tuple(" ".join(side["quote"].split()) for side in (one, other)))
            for side in (one, other):
                (chunk,) = library.chunks([side["chunk_id"]])
                assert side["quote"] == chunk.text[side["start"] : side["end"]]
                assert (side["key"], side["section"]) == (chunk.key, chunk.section)
                assert side["page"] is None  # markdown has none
    finally:
        library.close()
    assert quotes == set(shown)


def test_given_again_it_calls_nothing(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    server.behaviour = judging(lambda _: ("A1", "B1"))
    first = citeloom(*TOPIC, "--json", "--home", home, **chat(server))
    calls = server.calls()
    again = citeloom(*TOPIC, "--json", "--home", home, **chat(server))
    assert again.code == 0 and server.calls() == calls
    assert again.json["contradictions"] == first.json["contradictions"] != []
    assert "0 model calls, 6 cached answers" in again.err


def test_the_table_has_both_sides(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    server.behaviour = judging(lambda _: ("A1", "B1"))
    done = citeloom("contradictions", "--pairs", "1", "--home", home, **chat(server))
    assert done.code == 0, done.err
    assert "1 contradiction\n" in done.out
    assert sum(key in done.out for key in ("obrien2019seeds", "okafor2022ensembles", "varga2021calibration")) == 2


@pytest.mark.parametrize(
    "pick",
    [lambda _: ("A99", "B1"), lambda _: ("B1", "A1"), lambda shown: (shown["A1"], shown["B1"])],
    ids=["unknown", "swapped", "quoted"],
)
def test_a_judge_that_names_what_it_was_not_shown_finds_nothing(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, pick: Any
) -> None:
    server.behaviour = judging(pick)
    done = citeloom(*TOPIC, "--json", "--home", home, **chat(server))
    assert done.code == 4, "nothing was judged"
    assert done.json["contradictions"] == []
    assert (done.json["pairs"], done.json["unjudged"], done.json["judged"]) == (6, 6, 0)
    assert "0 of 6 pairs of passages were judged" in done.json["warnings"][0]
    said = citeloom(*TOPIC, "--home", home, **chat(server))
    assert said.code == 4 and "No pair was judged" in said.err and "No contradiction" not in said.err
    assert "6 without a valid answer" in done.err


def test_nonsense_is_no_contradiction(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    server.behaviour = lambda body: envelope(body, content="Both contradict! [[{{")
    done = citeloom(*TOPIC, "--home", home, **chat(server))
    assert done.code == 4 and done.out == "", "nothing was judged"
    assert server.calls() == 12  # each pair twice, and no more


def test_a_budget_pauses_and_the_suggested_command_resumes(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    server.behaviour = judging(lambda _: ("A1", "B1"))
    paused = citeloom(*TOPIC, "--max-calls", "4", "--home", home, **chat(server))
    assert paused.code == 3 and server.calls() == 4
    again = shlex.split(paused.err.splitlines()[-1].partition("To resume: ")[2])
    done = citeloom(*again[2:], **chat(server))
    assert done.code == 0, done.err
    assert server.calls() == 6


def test_the_extractive_judge_says_that_it_cannot(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    done = citeloom(*TOPIC, "--home", home)
    assert (done.code, done.out) == (2, "")
    assert "cannot tell a claim from its contradiction" in done.errors[0] and "CITELOOM_JUDGE_MODEL" in done.errors[0]
    server.behaviour = judging(lambda _: ("A1", "B1"))
    judge = {"JUDGE_MODEL": "fake", "JUDGE_BASE_URL": server.base_url}
    assert citeloom(*TOPIC, "--json", "--home", home, **judge).json["judged"] == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--papers", "okafor2022ensemble,varga2021calibration"), "okafor2022ensembles"),
        (("--papers", "okafor2022ensembles"), "alone"),
        (("--topic", "?!"), "nothing to look for"),
    ],
    ids=["unknown key", "one paper", "no words"],
)
def test_wrong_input_is_refused_before_any_call(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, arguments: tuple[str, ...], said: str
) -> None:
    done = citeloom("contradictions", *arguments, "--home", home, **chat(server))
    assert done.code == 2 and said in done.errors[0]
    assert server.calls() == 0


def test_only_the_papers_named_are_compared(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    server.behaviour = judging(lambda _: ("A1", "B1"))
    keys = {"obrien2019seeds", "varga2021calibration"}
    for topic in ((), ("--topic", "temperature scaling")):
        given = ("contradictions", *topic, "--papers", ",".join(keys), "--json", "--home", home)
        found = citeloom(*given, **chat(server)).json["contradictions"]
        assert found and all({side["key"] for side in item["passages"]} == keys for item in found)


def test_python_gives_what_the_command_gave_and_pays_for_nothing(
    citeloom: Citeloom, home: Path, server: FakeOpenAI
) -> None:
    server.behaviour = judging(lambda sentences: ("A1", "B1"))
    told = citeloom(*TOPIC, "--json", "--home", home, **chat(server)).json
    calls = server.calls()
    settings = Settings(chat_model="fake", chat_base_url=server.base_url)
    with open_library(home, settings=settings) as library:
        found = contradictions(library, TOPIC[2], pairs=6)
    assert found["contradictions"] == told["contradictions"] != []
    assert server.calls() == calls

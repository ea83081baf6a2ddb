"""agree and contradictions: from the library to stances with their words, with a model on a real socket."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest

from citeloom import Settings, agree, contradictions, open_library
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import envelope

CLAIM = "Ensembles of networks are better calibrated than single networks"
OTHER = "Temperature scaling changes accuracy"
SENTENCE = re.compile(r"^(\d+): (.{40,})$", re.MULTILINE)
CARD = re.compile(r"^(\d+)\. ", re.MULTILINE)
TITLE = re.compile(r"^Title: (.*)$", re.MULTILINE)
COLUMN = re.compile(r"^(stance|direction|design|n|claim \d+) \(", re.MULTILINE)
STANCES = ("for", "against", "")


class Judge:
    """Screens all papers in, and gives each paper it reads the next stance; the last one says nothing on the claim."""

    def __init__(self, *stances: str) -> None:
        self.stances = dict[str, str]()
        self.left = list(stances or STANCES)

    def __call__(self, body: Any) -> Any:
        form = body["response_format"]["json_schema"]["name"]
        text = str(body["messages"][-1]["content"])
        if form == "Screening":
            numbers = [int(number) for number in CARD.findall(text)]
            needs = re.findall(r"^(N\d+) \(", text, re.MULTILINE)
            said: dict[str, Any] = {"screened": [{"need": need, "papers": numbers} for need in needs], "near": []}
        elif form == "DisputedClaims":
            said = {"claims": [CLAIM, OTHER]}
        else:
            (title, *_) = TITLE.findall(text)
            stance = self.stances.get(title) or self.stances.setdefault(title, self.left.pop(0) if self.left else "")
            number, _ = SENTENCE.findall(text)[0]
            values = {"stance": stance, "direction": "decreased", "claim 1": stance, "claim 2": stance and "for"}
            cells = [
                {
                    "column": name,
                    "value": value,
                    "condition": "of five" * (name != "direction"),
                    "sentences": [int(number)],
                }
                for name in COLUMN.findall(text)
                if (value := values.get(name))
            ]
            said = {"belongs": True, "reason": "it pools networks", "studies": [{"study": "", "cells": cells}]}
        return envelope(body, content=json.dumps(said))


@pytest.fixture
def chat(server: FakeOpenAI) -> dict[str, str]:
    server.behaviour = Judge()
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url}


def test_each_paper_has_a_stance_with_words_from_its_own_text(
    citeloom: Citeloom, home: Path, chat: dict[str, str]
) -> None:
    record = citeloom("agree", CLAIM, "--json", "--home", home, **chat).json
    assert (record["claim"], record["papers"], record["counts"]) == (CLAIM, 3, {"for": 1, "against": 1})
    assert [item["stance"] for item in record["studies"]] == ["for", "against"]
    assert len(record["silent"]) == 1 and record["silent"][0]["key"] not in {item["key"] for item in record["studies"]}
    library = Library.open(FolderHome(home), LocalEmbedding())
    try:
        for item in record["studies"]:
            assert (item["condition"], item["direction"]) == ("of five", "decreased")
            (chunk,) = library.chunks([item["chunk_id"]])
            assert chunk.key == item["key"] and item["spans"][0]["quote"] == chunk.text[item["start"] : item["end"]]
    finally:
        library.close()


def test_repeating_the_command_makes_no_call_and_after_a_pause_nothing_is_paid_twice(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    paused = citeloom("agree", CLAIM, "--max-calls", "3", "--home", home, **chat)
    assert paused.code == 3 and server.calls() == 3
    again = shlex.split(paused.err.splitlines()[-1].partition("To resume: ")[2])
    assert citeloom(*again[2:], **chat).code == 0
    calls = server.calls()
    bodies = [json.dumps(body, sort_keys=True) for body in server.requests]
    assert len(set(bodies)) == len(bodies) == calls > 3
    with open_library(home, settings=Settings(chat_model="fake", chat_base_url=server.base_url)) as library:
        assert agree(library, CLAIM)["counts"] == {"for": 1, "against": 1}
    assert server.calls() == calls


def test_the_result_is_printed_and_saved_with_its_plot(
    citeloom: Citeloom, home: Path, tmp_path: Path, chat: dict[str, str]
) -> None:
    done = citeloom("agree", CLAIM, "--out", tmp_path / "out", "--format", "html,svg,docx", "--home", home, **chat)
    assert done.code == 0, done.err
    assert "1 for, 1 against; 1 read without a result on the claim" in done.err and "Silent: " in done.err
    assert "against" in done.out and "of five" in done.out
    files = {path.suffix: path for path in (tmp_path / "out").iterdir()}
    assert set(files) == {".md", ".json", ".html", ".svg", ".docx"}
    picture = files[".svg"].read_text("utf-8")
    assert picture.count("<circle") == 2 and picture in files[".html"].read_text("utf-8")
    assert [name for name in zipfile.ZipFile(files[".docx"]).namelist() if name.endswith(".png")]


def test_a_result_under_other_conditions_is_not_a_contradiction(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    server.behaviour = Judge("for", "other condition", "")
    found = citeloom("contradictions", "--topic", "calibration", "--json", "--home", home, **chat).json
    assert found["contradictions"] == []
    assert [study["stance"] for study in found["claims"][0]["studies"]] == ["for", "other condition"]


def test_without_a_model_the_nearest_sentences_are_shown_unjudged(citeloom: Citeloom, home: Path) -> None:
    record = citeloom("agree", CLAIM, "--json", "--home", home).json
    assert record["studies"] and {item["stance"] for item in record["studies"]} == {"not judged"}
    assert all(item["quote"] for item in record["studies"]) and "nothing is judged" in record["notice"]


SURVEY = ("contradictions", "--topic", "calibration error of ensembles", "--claims", "2")


def test_a_survey_asks_about_all_claims_in_one_call_per_paper(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    record = citeloom(*SURVEY, "--json", "--home", home, **chat).json
    (found,) = record["contradictions"]
    assert found["claim"] == CLAIM and [item["stance"] for item in found["passages"]] == ["for", "against"]
    assert found["passages"][0]["key"] != found["passages"][1]["key"]
    assert [item["claim"] for item in record["claims"]] == [CLAIM, OTHER]
    calls = server.calls()
    assert calls <= 2 + 2 * 3, "the claims, the cards, and each paper at most twice"
    again = citeloom(*SURVEY, "--home", home, **chat)
    assert again.code == 0 and server.calls() == calls and "0 model calls" in again.err
    assert CLAIM in again.out and OTHER not in again.out
    with open_library(home, settings=Settings(chat_model="fake", chat_base_url=server.base_url)) as library:
        assert contradictions(library, SURVEY[2], claims=2)["contradictions"] == record["contradictions"]


def test_a_meaningless_answer_is_not_a_contradiction(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    server.behaviour = lambda body: envelope(body, content="Both contradict! [[{{")
    done = citeloom(*SURVEY, "--home", home, **chat)
    assert done.code == 4 and done.out == "", "nothing was judged"
    assert "No stance was judged" in done.err and "No contradiction" not in done.err


def test_a_survey_needs_a_judge(citeloom: Citeloom, home: Path, server: FakeOpenAI) -> None:
    done = citeloom(*SURVEY, "--home", home)
    assert (done.code, done.out) == (2, "")
    assert (
        "cannot be distinguished from its contradiction" in done.errors[0] and "CITELOOM_JUDGE_MODEL" in done.errors[0]
    )
    server.behaviour = Judge()
    judge = {"JUDGE_MODEL": "fake", "JUDGE_BASE_URL": server.base_url}
    assert citeloom(*SURVEY, "--json", "--home", home, **judge).json["judged"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--papers", "okafor2022ensemble,varga2021calibration"), "okafor2022ensembles"),
        (("--papers", "okafor2022ensembles"), "single paper"),
        (("--topic", "?!"), "nothing to look for"),
    ],
    ids=["unknown key", "one paper", "no words"],
)
def test_wrong_input_is_refused_before_any_call(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, chat: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    done = citeloom("contradictions", *arguments, "--home", home, **chat)
    assert done.code == 2 and said in done.errors[0]
    assert server.calls() == 0

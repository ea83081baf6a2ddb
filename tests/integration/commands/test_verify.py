"""verify: what was changed in a result, or in the library that it was made from, is named by its field."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citeloom import Conversation, open_library, research, write_section
from tests.integration.commands.conftest import Citeloom
from tests.support.sample_library import EXPERIMENT

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def discussion(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON file of a discussion; to be copied, never written to."""
    folder = tmp_path_factory.mktemp("discussion")
    with open_library(shutil.copytree(sample_home, folder / "home")) as library:
        write_section(library, "discussion", EXPERIMENT, out=folder)
    return folder / "discussion.json"


@pytest.fixture
def written(discussion: Path, tmp_path: Path) -> Path:
    """The JSON file of a discussion, to be changed."""
    return Path(shutil.copy(discussion, tmp_path))


def test_each_citation_can_be_checked_without_the_library(citeloom: Citeloom, written: Path, home: Path) -> None:
    record = json.loads(written.read_text("utf-8"))
    assert record["citations"]
    for citation in record["citations"]:
        assert citation["chunk_text"][citation["start"] : citation["end"]] == citation["quote"]
    done = citeloom("verify", written, "--home", home)
    assert done.code == 0 and "all hold" in done.err and not done.out
    of_sources = [trace for trace in record["numbers"] if "evidence_id" in (trace["found"] or {})]
    assert f"and {len(of_sources)} numbers were checked" in done.err
    assert f"{len(record['numbers']) - len(of_sources)} numbers of the experiment" in done.err


def _set(name: str, field: str, value: Any) -> Change:
    def change(record: dict[str, Any]) -> None:
        record[name][0][field] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_set("citations", "quote", "They never slept."), "citations[0].quote"),
        (_set("citations", "start", 1), "citations[0].quote"),
        (_set("citations", "start", "1"), "citations[0].quote"),
        (_set("citations", "key", "nobody2020"), "citations[0].key"),
        (_set("citations", "chunk_text", "Another text."), "citations[0].chunk_text"),
        (_set("citations", "chunk_id", "gone#1"), "citations[0].chunk_id"),
        (_set("references", "key", "nobody2020"), "references[0].key"),
        (_set("evidence", "quote", "Invented."), "evidence[0].quote"),
        (_set("numbers", "text", "123456"), "numbers[0].text"),
    ],
)
def test_what_does_not_hold_is_named_by_file_and_field(
    citeloom: Citeloom, written: Path, home: Path, change: Change, field: str
) -> None:
    record = json.loads(written.read_text("utf-8"))
    change(record)
    written.write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", written, "--home", home)
    assert done.code == 4 and f"{written}:{field}: " in done.out.replace("\n", "")
    listed = citeloom("verify", written, "--home", home, "--json").json
    assert field in {item["field"] for item in listed["mismatches"]}


def test_a_paper_that_left_the_library_is_named(citeloom: Citeloom, written: Path, home: Path) -> None:
    key = json.loads(written.read_text("utf-8"))["citations"][0]["key"]
    assert citeloom("papers", "remove", key, "--home", home).code == 0
    done = citeloom("verify", written, "--home", home)
    assert done.code == 4 and f"the library has no paper '{key}'" in done.out


def test_papers_answers_and_conversations_are_checked_too(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("paper", "--exp", exp, "--home", home, "--out", tmp_path).code == 0
    with open_library(home) as library:
        answer = research(library, "How well are scores calibrated?", out=tmp_path)
        talk = Conversation(library)
        talk.ask("How well are scores calibrated?")
        talk.export(tmp_path / "talk.json")
    for file in (tmp_path / "paper.json", Path(answer["files"]["json"]), tmp_path / "talk.json"):
        done = citeloom("verify", file, "--home", home)
        assert done.code == 0 and "all hold" in done.err, done.out
    record = json.loads((tmp_path / "paper.json").read_text("utf-8"))
    number = next(n for n, section in enumerate(record["sections"]) if section["citations"])
    record["sections"][number]["citations"][0]["quote"] = "Invented."
    (tmp_path / "paper.json").write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", tmp_path / "paper.json", "--home", home)
    assert done.code == 4 and f"paper.json:sections[{number}].citations[0].quote" in done.out.replace("\n", "")


def test_an_older_file_is_checked_and_says_what_it_lacks(citeloom: Citeloom, written: Path, home: Path) -> None:
    record = json.loads(written.read_text("utf-8"))
    for citation in record["citations"]:
        del citation["chunk_text"]
    written.write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", written, "--home", home)
    assert done.code == 0 and "citations without the text of their chunk" in done.err


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"citations": 3}', '{"text": "x"}', "\udcff"])
def test_what_is_no_result_is_wrong_input(citeloom: Citeloom, home: Path, tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content.encode("utf-8", errors="surrogateescape"))
    done = citeloom("verify", file, "--home", home)
    assert done.code == 2 and str(file) in done.err
    assert citeloom("verify", tmp_path / "none.json", "--home", home).code == 2

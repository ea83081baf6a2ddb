"""update: sentences, answers and tables affected by a changed library, and how they are updated."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.integration.commands.conftest import Citeloom
from tests.integration.commands.test_retractions import RETRACTED, enrich
from tests.support.cli_process import CLI, environment, start
from tests.support.judging_model import JudgingModel, answer_fields
from tests.support.metadata_server import MetadataServer
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.sample_library import SAMPLES

CLAIM = "Twelve pooled sensors calm the engines of small fishing boats through the night"
OTHER = "Ensembles of seeds were compared with single networks"
NEW = "# Calm engines\n\n## Results\n\nTwelve pooled sensors {} the engines of small fishing boats through the night.\n"


class Writer(JudgingModel):
    """Writes two sentences; `hang` is the number of judging requests after which no more are answered."""

    def __init__(self) -> None:
        super().__init__(f"{CLAIM} [E1]. {OTHER} [E2].")
        self.hang, self.hung = 99, threading.Event()

    def __call__(self, body: Json) -> Json:
        if "P1" in answer_fields(body) and len(self.judged) >= self.hang:
            self.hung.set()
            return "hang"  # type: ignore[return-value]
        return super().__call__(body)


@pytest.fixture
def model(server: FakeOpenAI) -> dict[str, str]:
    server.behaviour = Writer()
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "SCORE_THRESHOLD": "0", "MAX_REPAIRS": "0"}


def _write(citeloom: Citeloom, home: Path, exp: Path, out: Path, **settings: str) -> Any:
    done = citeloom("discussion", exp, "--home", home, "--out", out, "--max-searches", "0", "--json", **settings)
    assert done.code == 0, done.err
    return done.json


def _add(citeloom: Citeloom, home: Path, tmp_path: Path, verb: str = "calm", name: str = "boats2026") -> None:
    file = tmp_path / f"{name}.md"
    file.write_text(NEW.format(verb), "utf-8")
    assert citeloom("ingest", file, "--home", home).code == 0


def test_a_new_paper_is_reported_judged_once_and_accepted(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, server: FakeOpenAI, model: dict[str, str]
) -> None:
    run = _write(citeloom, home, exp, tmp_path / "out", **model)["thread_id"]
    wrote = server.calls()
    unchanged = citeloom("update", "--home", home, "--json", **model).json
    assert unchanged["items"] == [] and server.calls() == wrote
    _add(citeloom, home, tmp_path)
    done = citeloom("update", "--home", home, **model)
    (judged,) = [sentences for sentences in server.behaviour.judged[1:] if sentences]  # type: ignore[attr-defined]
    assert len(judged) == 1 and server.calls() == wrote + 1 and CLAIM in judged[0]
    assert " [better evidence] discussion" in done.out and f"boats2026: “{CLAIM}" in done.out, done.out
    again = citeloom("update", "--home", home, **model)
    assert again.out == done.out and "0 texts compared, 1 unchanged" in again.err and server.calls() == wrote + 1
    assert citeloom("update", "--home", home, "--accept", "2", **model).code == 2
    accepted = citeloom(
        "update", "--home", home, "--accept", done.out.split(" [")[0].split()[-1], "--json", **model
    ).json
    (item,) = accepted["accepted"]
    assert accepted["items"] == [] and "boats2026" in item["proposed"] and len(item["keys"]) == 1
    last = citeloom("update", "--home", home, "--json", **model).json
    assert last["items"] == [] and last["compared"] == 0 and server.calls() == wrote + 1
    # The text of the run stays, and its files can be made of the new one.
    shown = citeloom("runs", "show", run, "--home", home, "--json").json
    assert "boats2026" not in shown["result"]["text"]
    (tmp_path / "clone").mkdir()
    assert citeloom("sync-tex", tmp_path / "clone", "--run", run, "--home", home).code == 0
    text = (tmp_path / "clone" / "sections" / "discussion.tex").read_text("utf-8")
    assert "boats2026}" in text.partition(OTHER)[0] and "boats2026" in (tmp_path / "clone/references.bib").read_text()


@pytest.mark.parametrize("with_model", [True, False])
def test_a_contradicting_paper_is_reported_and_can_be_cited_after_the_sentence(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, model: dict[str, str], with_model: bool
) -> None:
    _write(citeloom, home, exp, tmp_path / "out", **model)
    _add(citeloom, home, tmp_path, "did not calm")
    settings = model if with_model else {}
    item = citeloom("update", "--home", home, "--json", **settings).json["items"][0]
    # The test's model calls everything without "never" supported, so only the words decide.
    assert item["reason"] == ("better evidence" if with_model else "opposite evidence")
    if not with_model:
        assert item["judged"] is False and "boats2026 denies it" in item["detail"]
        assert "In contrast, “Twelve pooled sensors did not calm" in item["proposed"]
        done = citeloom("update", "--home", home, "--accept-all")
        assert f"Accepted {item['id']}:" in done.out and "0 items" in citeloom("update", "--home", home).err


def test_edited_removed_and_retracted_papers_are_reported_and_replaced(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    record = _write(citeloom, home, exp, tmp_path / "out")
    quotes = {item["key"]: item["quote"] for item in record["citations"]}
    assert {"obrien2019seeds", "okafor2022ensembles", "varga2021calibration"} <= quotes.keys()
    edited = tmp_path / "varga2021calibration.md"
    text = (SAMPLES / edited.name).read_text("utf-8")
    assert quotes["varga2021calibration"] in text
    edited.write_text(text.replace(quotes["varga2021calibration"], "These words are new."), "utf-8")
    assert citeloom("ingest", edited, "--bib", SAMPLES / "library.bib", "--home", home).code == 0
    assert citeloom("papers", "remove", "okafor2022ensembles", "--home", home).code == 0
    with MetadataServer(RETRACTED) as services:
        services.found["seeds"] = [RETRACTED]
        enrich(citeloom, home, services)
    found = citeloom("update", "--home", home, "--json").json
    reasons = {item["reason"]: item for item in found["items"]}
    assert {"words gone", "removed", "retracted"} <= reasons.keys()
    assert quotes["varga2021calibration"][:30] in " ".join(item["detail"] for item in found["items"])
    assert reasons["removed"]["keys"] == ["okafor2022ensembles"] and reasons["retracted"]["detail"].startswith(
        "obrien2019seeds: Retracted"
    )
    for item in found["items"]:
        assert item["action"] in ("replace", "drop") and item["judged"] is False
        assert item["passage"] is None or item["passage"]["key"] not in ("okafor2022ensembles", "obrien2019seeds")
        if item["sentence"].startswith("\u201c") and item["passage"]:
            assert item["sentence"].split("\u201d")[0][1:40] in item["passage"]["shown"], "nobody else is quoted for it"
    assert any(". It quotes words" in item["detail"] for item in found["items"])
    removed = reasons["removed"]["id"]
    done = citeloom("update", "--home", home, "--accept", removed, "--json").json
    assert len(done["items"]) == len(found["items"]) - 1
    rest = citeloom("update", "--home", home, "--json").json
    assert rest["items"] == done["items"] and rest["compared"] == 0
    assert citeloom("update", "--home", home, "--accept", removed).code == 2
    citeloom("update", "--home", home, "--accept-all")
    assert citeloom("update", "--home", home, "--json").json["items"] == []
    run = record["thread_id"]
    assert citeloom("export", run, "--format", "html", "--home", home, "--out", tmp_path / "new").code == 0
    said = (tmp_path / "new" / "discussion.html").read_text("utf-8")
    for item in found["items"]:
        if item["action"] == "drop" and "It quotes words" in item["detail"]:
            assert item["sentence"].split("\u201d")[0][1:40] not in said, "no words without their source"
    assert " ," not in said.partition("<body")[2] and "<li></li>" not in said


@contextmanager
def _on_terminal(home: Path, settings: dict[str, str], *arguments: str) -> Iterator[Any]:
    command = [str(CLI), "update", "--home", str(home), *arguments]
    child = pexpect.spawn(
        sys.executable, command, env=environment(settings), dimensions=(24, 200), encoding="utf-8", timeout=120
    )
    try:
        yield child
        child.expect_exact(pexpect.EOF)
        assert "Traceback" not in child.before
    finally:
        child.close(force=True)


def test_on_a_terminal_the_command_asks_what_to_accept(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    _write(citeloom, home, exp, tmp_path / "out", **model)
    _add(citeloom, home, tmp_path)
    with _on_terminal(home, model) as child:
        child.expect_exact("Which to accept")
        child.sendline("")
    with _on_terminal(home, model) as child:
        child.expect_exact("Which to accept")
        child.sendline("12345678")
        child.expect_exact("there is no item 12345678")
        child.expect_exact("Which to accept")
        child.sendline("all")
        child.expect_exact("Accepted ")
    assert child.exitstatus == 0
    assert citeloom("update", "--home", home, "--json", **model).json["items"] == []


def test_watching_compares_again_when_the_library_changes_and_ctrl_c_stops_it(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    _write(citeloom, home, exp, tmp_path / "out", **model)
    with _on_terminal(home, model, "--watch") as child:
        child.expect_exact("0 items to look at")
        child.expect_exact("Watching the library")
        _add(citeloom, home, tmp_path)
        child.expect_exact("[better evidence] discussion")
        child.expect_exact("Watching the library")
        child.sendcontrol("c")
    assert child.exitstatus == 0


def test_a_killed_comparison_continues_without_paying_twice(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, server: FakeOpenAI, model: dict[str, str]
) -> None:
    writer: Any = server.behaviour
    _write(citeloom, home, exp, tmp_path / "a", **model)
    experiment = json.loads(exp.read_text("utf-8"))
    experiment["paper_concept"]["title"] = "Another paper"
    exp.write_text(json.dumps(experiment), "utf-8")
    _write(citeloom, home, exp, tmp_path / "b", **model)
    _add(citeloom, home, tmp_path)
    writer.hang = len(writer.judged)
    process = start("update", "--home", home, cwd=tmp_path, settings=model)
    assert writer.hung.wait(300)
    process.kill()
    process.communicate()
    writer.hang = 99
    before = server.calls()
    found = citeloom("update", "--home", home, "--json", **model).json
    assert len(found["items"]) == 2 and server.calls() - before == 1, "both texts have the same sentence"
    assert citeloom("update", "--home", home, "--json", **model).json["items"] == found["items"]


def test_a_limit_leaves_sentences_unjudged_and_a_higher_one_continues(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, model: dict[str, str]
) -> None:
    _write(citeloom, home, exp, tmp_path / "out", **model)
    _add(citeloom, home, tmp_path)
    stopped = citeloom("update", "--home", home, "--json", MAX_TOKENS="1", **model)
    assert stopped.code == 3 and [item["judged"] for item in stopped.json["items"]] == [False]
    done = citeloom("update", "--home", home, "--json", **model)
    assert done.code == 0 and [item["judged"] for item in done.json["items"]] == [True]


def test_tables_are_compared_and_questions_asked_again(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    question = "How many seeds does an ensemble need?"
    assert citeloom("research", question, "--home", home).code == 0
    table = citeloom("table", "Studies of ensembles", "--columns", "n", "--home", home, "--json").json
    (row,) = table["rows"]
    assert citeloom("update", "--home", home, "--json").json["items"] == []
    for key in {"obrien2019seeds", row["key"]}:
        edited = tmp_path / f"{key}.md"
        edited.write_text((SAMPLES / edited.name).read_text("utf-8").replace("seeds", "starting values"), "utf-8")
        assert citeloom("ingest", edited, "--bib", SAMPLES / "library.bib", "--home", home).code == 0
    found = citeloom("update", "--home", home, "--json").json
    kinds = {item["kind"] for item in found["items"]}
    assert kinds == {"research", "table"}, found
    citeloom("update", "--home", home, "--accept-all")
    assert citeloom("update", "--home", home, "--json").json["items"] == []

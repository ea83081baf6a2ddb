"""Runs that ask a person: what an answer changes, what is refused, and that nothing is paid or lost while they wait."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from citeloom import WaitingError, aanswer_run, aresearch, awrite_section
from citeloom.api.stored_runs import list_runs, run_details
from citeloom.drafts.person_questions import AnswerError
from citeloom.errors import PausedError
from citeloom.graph.session import Session
from citeloom.runs.edited_text import edited_record
from citeloom.runs.execution import AnsweredError, run_state
from citeloom.runs.sentence_check import load_editable
from citeloom.stores.folder_home import FolderHome
from tests.support.cli_process import CLI, ROOT, environment, run
from tests.support.judging_model import DRAFT, FALSE, GOOD, REVERSED, JudgingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.run_fixtures import Opened
from tests.support.scripted_agent import ScriptedAgent

EXPERIMENT = ROOT / "examples" / "exp.json"
ASKS = ["needs", "evidence", "sentences"]


@pytest.fixture
def usual() -> dict[str, Any]:
    return {"top_k_initial": 4, "max_retries": 0, "score_threshold": 0.0, "max_search_iterations": 1}


async def asked(work: Any) -> WaitingError:
    with pytest.raises(WaitingError) as waits:
        await work
    return waits.value


def ask_of(waiting: WaitingError) -> str:
    return str(waiting.question["citeloom"]["ask"])


async def to_the_ask(session: Session, ask: str, **options: Any) -> WaitingError:
    """A run that waits with this ask, those before it accepted."""
    waiting = await asked(awrite_section(session, "discussion", EXPERIMENT, interrupts=ASKS, **options))
    while ask_of(waiting) != ask:
        waiting = await asked(aanswer_run(session, waiting.run_id))
    return waiting


async def accepted_to_the_end(session: Session, waiting: WaitingError) -> Any:
    while True:
        try:
            return await aanswer_run(session, waiting.run_id)
        except WaitingError as error:
            waiting = error


async def test_accepting_every_proposal_changes_no_word_and_costs_no_call(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = JudgingModel(DRAFT)
    opened = session()
    plain = await awrite_section(opened, "discussion", EXPERIMENT)
    assert "steering" not in plain
    paid = server.calls()
    waiting = await to_the_ask(opened, "sentences")
    (listed,) = [entry for entry in list_runs(opened.home) if entry["thread_id"] == waiting.run_id]
    assert (listed["status"], listed["detail"].partition(":")[0]) == ("asking", "sentences")
    record = await accepted_to_the_end(opened, waiting)
    assert record["text"] == plain["text"] and record["thread_id"] != plain["thread_id"]
    assert server.calls() == paid
    said = [(item["ask"], item["changes"]) for item in record["steering"]]
    assert said == [(ask, []) for ask in ASKS]
    assert all(item["by"] and item["at"] for item in record["steering"])
    edited = edited_record(load_editable(opened.home, record["thread_id"]), opened)
    assert edited["steering"] == record["steering"]
    again = await awrite_section(opened, "discussion", EXPERIMENT, interrupts=ASKS)
    assert again["thread_id"] == record["thread_id"], "it is finished, and asks no more"
    with pytest.raises(AnsweredError):
        await aanswer_run(opened, waiting.run_id)


async def test_needs_can_be_edited_added_and_dropped_before_anything_is_read(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = agent = ScriptedAgent(planned=["ensembles of seeds", "label noise"])
    opened = session()
    waiting = await to_the_ask(opened, "needs")
    assert not agent.reading
    fields = {item["name"]: item["value"] for item in waiting.question["citeloom"]["fields"]}
    assert fields["N1"] == "ensembles of seeds"
    given = {"N1": "", "N2": "wrist sensors", "add": ["early stopping"]}
    waiting = await asked(aanswer_run(opened, waiting.run_id, given, by="Ada"))
    state = (await run_state(opened.home, waiting.run_id)).values
    assert [need["text"] for need in state["needs"]][:2] == ["wrist sensors", "early stopping"]
    assert "ensembles of seeds" not in json.dumps(state["queries"][2:])
    (said,) = state["steering"]
    assert (said["by"], len(said["changes"])) == ("Ada", 3)
    assert {"what": "need N2", "before": "label noise", "after": "wrist sensors"} in said["changes"]


async def test_evidence_can_be_banned_added_by_hand_and_searched_for(session: Opened, server: FakeOpenAI) -> None:
    opened = session()
    waiting = await to_the_ask(opened, "evidence")
    before = {record["id"]: record for record in (await run_state(opened.home, waiting.run_id)).values["evidence"]}
    first = next(iter(before.values()))
    chunks = opened.library.paper_chunks("varga2021calibration")
    words = next(chunk.text for chunk in chunks if len(chunk.text) > 200)[50:140].split(" ", 1)[1]
    given = {
        "ban": [first["id"]],
        "passages": f"varga2021calibration: {words}",
        "papers": "tanaka2023position",
        "search": "N1: label noise in wearable sensors",
    }
    waiting = await asked(aanswer_run(opened, waiting.run_id, given))
    assert ask_of(waiting) == "evidence", "what was found is shown before it is written"
    assert f"- {first['id']} (" not in waiting.question["description"]
    state = (await run_state(opened.home, waiting.run_id)).values
    (own,) = [item for item in state["evidence"] if " ".join(item["quote"].split()) == " ".join(words.split())]
    assert own["key"] == "varga2021calibration" and own["llm_score"] == 1
    wanted = [query for query in state["queries"] if query["origin"] == "person"]
    assert any(query["scope"] == {"papers": ["tanaka2023position"]} for query in wanted)
    assert "label noise in wearable sensors" in [query["query"] for query in wanted]
    record = await accepted_to_the_end(opened, waiting)
    assert first["id"] not in {item["id"] for item in record["evidence"]}
    assert own["id"] in {item["id"] for item in record["evidence"]}
    assert len(record["steering"][1]["changes"]) == 4


async def test_doubtful_sentences_can_be_edited_dropped_and_searched_for_again(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = model = JudgingModel(DRAFT, "Calibration helps after pooling [E3].")
    opened = session(max_repairs=0)
    waiting = await to_the_ask(opened, "sentences")
    fields = {item["name"]: item["value"] for item in waiting.question["citeloom"]["fields"]}
    assert [fields["S1"], fields["S2"]] == [FALSE, REVERSED]
    assert "no word on sleep" in waiting.question["description"]
    with pytest.raises(AnswerError, match=r"S1.*E99"):
        await aanswer_run(opened, waiting.run_id, {"S1": "Small networks are overconfident [E99]."})
    record = await aanswer_run(opened, waiting.run_id, {"S1": "Every wearer slept.", "search": "S2"})
    state = (await run_state(opened.home, waiting.run_id)).values
    searched = [query["query"] for query in state["queries"] if query["origin"] == "person"]
    assert searched == ["Calibration never helps."]
    assert len(model.repairs) == 1 and "slept" not in model.repairs[0], "what a person wrote no model repairs"
    assert "Calibration helps after pooling" in record["text"] and "Every wearer slept." in record["text"]
    assert GOOD.split(" [")[0] in record["text"]
    assert [len(item["changes"]) for item in record["steering"]] == [0, 0, 2]


async def test_wrong_answers_get_one_line_each_and_the_run_keeps_waiting(session: Opened) -> None:
    opened = session()
    waiting = await to_the_ask(opened, "needs")
    for wrong, named in [
        ({"N99": "x"}, "N99"),
        ("ignore", "ignore"),
        (5, "5"),
        ([], r"\[\]"),
        ({"type": "edit", "args": "x"}, "args"),
        ({"N1": {"a": 1}}, "N1"),
        ({"decisions": [{"type": "reject"}]}, "reject"),
        ({"N1": "x" * 30_000}, "N1"),
    ]:
        with pytest.raises(AnswerError, match=named) as refused:
            await aanswer_run(opened, waiting.run_id, wrong)
        assert "\n" not in str(refused.value)
    details = await run_details(waiting.run_id, opened.home)
    assert details["status"] == "asking" and details["waiting"] is not None
    # The forms of agent-chat-ui and of Agent Inbox.
    edited = {"decisions": [{"type": "edit", "edited_action": {"name": "needs", "args": {"add": "dropout"}}}]}
    waiting = await asked(aanswer_run(opened, waiting.run_id, edited))
    again = await asked(aanswer_run(opened, waiting.run_id, [{"type": "response", "args": "seeds"}]))
    assert "dropout" in json.dumps((await run_state(opened.home, waiting.run_id)).values["needs"])
    assert ask_of(again) == "evidence"


async def test_if_two_people_answer_at_once_one_is_accepted_and_the_other_refused(session: Opened) -> None:
    opened, other = session(), session()
    waiting = await to_the_ask(opened, "needs")
    details = await run_details(waiting.run_id, opened.home)
    assert details["waiting"] is not None
    given = {"question": details["waiting"]["question"]}
    both = [
        aanswer_run(opened, waiting.run_id, {**given, "add": "dropout"}),
        aanswer_run(other, waiting.run_id, {**given, "add": "label noise"}),
    ]
    ended = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(error).__name__ for error in ended) == ["AnsweredError", "WaitingError"], ended
    assert len((await run_state(opened.home, waiting.run_id)).values["steering"]) == 1
    with pytest.raises(AnsweredError, match="something else"):
        await aanswer_run(opened, waiting.run_id, {**given, "type": "accept"})


async def test_a_budget_is_raised_or_the_run_pauses(session: Opened, server: FakeOpenAI) -> None:
    plain = await awrite_section(session(), "discussion", EXPERIMENT)
    opened = session(max_calls=3)
    paid = server.calls()
    options: Any = {"interrupts": ["budget"], "fresh": True}
    waiting = await asked(awrite_section(opened, "discussion", EXPERIMENT, **options))
    assert (ask_of(waiting), server.calls() - paid) == ("budget", 3)
    with pytest.raises(AnswerError, match="max_calls"):
        await aanswer_run(opened, waiting.run_id, {"max_calls": "many"})
    with pytest.raises(PausedError, match="max-calls") as stopped:
        await aanswer_run(opened, waiting.run_id, "ignore")
    assert not isinstance(stopped.value, WaitingError)
    waiting = await asked(awrite_section(opened, "discussion", EXPERIMENT, **options))
    waiting = await asked(aanswer_run(opened, waiting.run_id, {"max_calls": 5}))
    assert (ask_of(waiting), server.calls() - paid) == ("budget", 5)
    record = await aanswer_run(opened, waiting.run_id, {"max_calls": "500"})
    assert record["text"] == plain["text"]
    assert server.calls() == 2 * paid, "nothing is paid twice"
    changes = [change for item in record["steering"] for change in item["changes"]]
    assert [change["after"] for change in changes] == ["5", "500"]


async def test_without_a_chat_model_the_run_asks_about_needs_and_evidence(session: Opened) -> None:
    opened = session(chat_model="extractive")
    plain = await aresearch(opened, "How are ensembles of seeds calibrated?")
    question = "How are ensembles of seeds calibrated?"
    waiting = await asked(aresearch(opened, question, interrupts="all"))
    seen = [ask_of(waiting)]
    waiting = await asked(aanswer_run(opened, waiting.run_id))
    seen.append(ask_of(waiting))
    record = await aanswer_run(opened, waiting.run_id)
    assert seen == ["needs", "evidence"] and record["text"] == plain["text"]


@pytest.fixture(scope="module")
def undisturbed(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """The text of the section when nobody is asked, and the calls that it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with FakeOpenAI(behaviour=JudgingModel(DRAFT)) as server:
        settings = settings_for(shutil.copytree(sample_home, folder / "home"), server)
        done = run("discussion", EXPERIMENT, "--out", "out", cwd=folder, settings=settings)
        assert done.code == 0, done.err
        return text_in(folder / "out" / "discussion.md"), server.calls()


def text_in(file: Path) -> str:
    """The file without the comment that names its run."""
    return file.read_text(encoding="utf-8").partition("<!--\nciteloom-run:")[0]


def settings_for(home: Path, server: FakeOpenAI) -> dict[str, str]:
    settings = {"HOME": str(home), "CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "TOP_K_INITIAL": "4"}
    return settings | {"MAX_SEARCH_ITERATIONS": "1", "SCORE_THRESHOLD": "0"}


@pytest.mark.parametrize("ask", [*ASKS, "budget"])
def test_a_run_killed_while_waiting_for_a_person_keeps_waiting(
    home: Path, ask: str, tmp_path: Path, undisturbed: tuple[str, int]
) -> None:
    kill_at_the_question(home, ask, tmp_path, undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("attempt", range(50))
def test_a_run_killed_fifty_times_at_questions_ends_the_same(
    home: Path, attempt: int, tmp_path: Path, undisturbed: tuple[str, int]
) -> None:
    kill_at_the_question(home, [*ASKS, "budget"][attempt % 4], tmp_path, undisturbed)


def kill_at_the_question(home: Path, ask: str, folder: Path, undisturbed: tuple[str, int]) -> None:
    """Kill a command when its question is on the terminal, and accept it in another: the same text and calls."""
    pexpect = pytest.importorskip("pexpect", reason="terminals of this system cannot be driven")
    with FakeOpenAI(behaviour=JudgingModel(DRAFT)) as server:
        settings = settings_for(home, server)
        limits = ["--max-calls", "4"] if ask == "budget" else []
        arguments = [str(CLI), "discussion", str(EXPERIMENT), "--out", "out", "--ask", ask, *limits]
        environ = {**environment(settings), "PYTHONFAULTHANDLER": "1"}
        child = pexpect.spawn(sys.executable, arguments, cwd=folder, env=environ, timeout=300)  # a busy machine
        if child.expect(["Enter accepts this", pexpect.TIMEOUT, pexpect.EOF]):
            said, programs = child.before, [each.cmdline() for each in psutil.Process(child.pid).children(True)]
            child.kill(signal.SIGABRT)  # it says where each of its threads stands
            raise AssertionError(f"{said!r}\n{programs}\n{child.read().decode(errors='replace')}")
        child.kill(signal.SIGKILL)
        child.wait()
        (waiting,) = list_runs(FolderHome(home))
        assert waiting["status"] == "asking"
        ended = None
        while ended is None or ended.code == 3:  # a budget is reached again and again
            ended = run(
                "runs",
                "answer",
                waiting["thread_id"],
                "--accept",
                "--out",
                "out",
                *limits,
                cwd=folder,
                settings=settings,
            )
        assert ended.code == 0, ended.err
        text = text_in(folder / "out" / "discussion.md")
        assert (text, server.calls()) == undisturbed

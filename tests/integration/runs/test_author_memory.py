"""The author's memory: proposed from edits, never learnt silently, given to planner and writer, and never evidence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from citeloom.api.remembering import aanswer_proposal, aforget, alist_memory, apropose_memory, aremember
from citeloom.api.run_texts import keep_edit
from citeloom.errors import InputError
from citeloom.experiment import parse_experiment
from citeloom.graph.session import open_session
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import ResearchRequest, SectionRequest
from citeloom.runs.sentence_check import load_editable
from citeloom.settings.config import Settings, load_settings
from citeloom.stores.folder_home import FolderHome
from tests.support.openai_server import FakeOpenAI

LINES = ("participants, not subjects", "British spelling", "our cohort is called PANGEO-2")
BANNED = "okafor2022ensembles"
READ = "obrien2019seeds"  # which the discussion rests on


def settings_for(server: FakeOpenAI | None = None, **changes: Any) -> Settings:
    model = {} if server is None else {"chat_model": "any", "chat_base_url": server.base_url, "chat_api_key": "k"}
    return load_settings(**{**model, "top_k_initial": 4, **changes})


async def write(
    server: FakeOpenAI, home: Path, experiment: dict[str, Any], **changes: Any
) -> tuple[list[Any], dict[str, Any]]:
    """A discussion written by a fake model: its requests, and the record without its usage."""
    before = len(server.requests)
    with open_session(settings_for(server, **changes), FolderHome(home)) as session:
        found = await run_request(SectionRequest("discussion", parse_experiment(experiment)), session)
    record: dict[str, Any] = dict(found.record)
    return server.requests[before:], {name: value for name, value in record.items() if name != "usage"}


async def test_memory_reaches_planner_and_writer_and_a_banned_paper_reaches_neither(
    home: Path, tmp_path: Path, experiment: dict[str, Any]
) -> None:
    with_memory = Path(shutil.copytree(home, tmp_path / "other"))
    settings = settings_for()
    for line in (*LINES, f"never cite {READ}"):
        await aremember(settings, FolderHome(with_memory), line, shared=line == LINES[1])
    with FakeOpenAI(tool_turns=0) as server:
        without = await write(server, home, experiment)
        ignored = await write(server, with_memory, experiment, use_memory=False)
        requests, record = await write(server, with_memory, experiment)
        again, same = await write(server, with_memory, experiment)
    assert sorted(map(json.dumps, ignored[0])) == sorted(map(json.dumps, without[0])), "not used, it changes nothing"
    assert json.dumps(ignored[1]) == json.dumps(without[1])
    given = [request["messages"] for request in requests if all(line in json.dumps(request) for line in LINES)]
    systems = {messages[0]["content"].splitlines()[0][:40] for messages in given}
    assert len(systems) == 3, "the planner of needs, that of searches, and the writer"
    assert record["thread_id"] != without[1]["thread_id"]
    readers = [r for r in requests if r["messages"][0]["content"].startswith("You read passages")]
    assert readers and "How Many Seeds?" not in json.dumps(readers)
    assert READ not in {item["key"] for item in record["evidence"]}
    assert READ in {item["key"] for item in without[1]["evidence"]}
    assert not again and same == record


async def test_an_answer_without_a_model_leaves_out_a_banned_paper(home: Path) -> None:
    request = ResearchRequest("Do ensembles of small networks calibrate better?")
    with open_session(settings_for(), FolderHome(home)) as session:
        assert BANNED in {item["key"] for item in (await run_request(request, session)).record["citations"]}
        await aremember(session.settings, session.home, f"never cite {BANNED}")
        assert BANNED not in {item["key"] for item in (await run_request(request, session)).record["citations"]}


async def test_edits_propose_preferences_and_nothing_is_learnt_before_it_is_accepted(
    home: Path, experiment: dict[str, Any]
) -> None:
    folder, settings = FolderHome(home), settings_for()
    with open_session(settings, folder) as session:
        run = (await run_request(SectionRequest("discussion", parse_experiment(experiment)), session)).record
        shown = load_editable(folder, run["thread_id"]).sections[0].as_shown()
        changed = [(place, words) for place, words in enumerate(shown) if "wearers" in words]
        for place, words in changed:
            keep_edit(folder, run["thread_id"], place, words.replace("wearers", "participants"))
        assert changed and not await alist_memory(settings, folder)
        assert not (home / "memory.sqlite").exists()
        (proposal,) = await apropose_memory(settings, folder)
        assert proposal["text"] == "participants, not wearers" and proposal["edits"] == len(changed)
        with pytest.raises(InputError, match="1 to 300 characters"):
            await aanswer_proposal(settings, folder, proposal["id"], accept=True, text="x" * 301)
        line = await aanswer_proposal(settings, folder, proposal["id"], accept=True)
        assert line and line["kind"] == "term" and await alist_memory(settings, folder) == [line]
        assert not await apropose_memory(settings, folder)
        await aforget(settings, folder, line["id"][:4])
        assert await apropose_memory(settings, folder) == [proposal]
        await aanswer_proposal(settings, folder, proposal["id"], accept=False)
        assert not await apropose_memory(settings, folder) and not await alist_memory(settings, folder)


async def test_memory_entries_are_private_or_shared(home: Path) -> None:
    folder, ada, bob = FolderHome(home), settings_for(user="ada.l"), settings_for(user="bob")
    own = await aremember(ada, folder, "  terse\n sentences ")
    assert await aremember(ada, folder, "terse sentences") == own, "once is enough"
    await aremember(bob, folder, "our cohort is called PANGEO-2", shared=True)
    assert [line["text"] for line in await alist_memory(ada, folder)] == [own["text"], "our cohort is called PANGEO-2"]
    assert [line["shared"] for line in await alist_memory(bob, folder)] == [True]
    assert (await aremember(ada, folder, own["text"], shared=True))["shared"], "an own line can be shared, too"
    assert own["text"] in [line["text"] for line in await alist_memory(bob, folder)]
    changed = await aremember(ada, folder, "long sentences", note_id=own["id"])
    assert changed["id"] == own["id"] and "long sentences" in {line["text"] for line in await alist_memory(ada, folder)}
    for wrong in ("", "x" * 301):
        with pytest.raises(InputError, match="1 to 300 characters"):
            await aremember(ada, folder, wrong)
    with pytest.raises(InputError, match="no line 'zz'"):
        await aforget(bob, folder, "zz")


async def test_a_damaged_memory_is_reported_with_its_remedy(home: Path) -> None:
    (home / "memory.sqlite").write_bytes(b"no database at all, but long enough to be one" * 100)
    with pytest.raises(InputError, match=r"memory\.sqlite: cannot be read.*Move it away"):
        await alist_memory(settings_for(), FolderHome(home))

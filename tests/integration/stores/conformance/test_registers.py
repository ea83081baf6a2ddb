"""The registers of runs, conversations and written files are the same on every backend."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from citeloom.evidence_tables.cells import TableCell
from citeloom.evidence_tables.extraction import Decision
from citeloom.runs.execution import delete_run
from citeloom.stores.accounts import AccountError, Accounts
from citeloom.stores.evidence_table_register import (
    CellChangedError,
    EvidenceTableRegister,
    StoredCell,
    StoredPaper,
    UnknownTableError,
)
from citeloom.stores.home import Home
from citeloom.stores.run_register import EditedSentence, RunRegister, UnknownConversationError, UnknownRunError
from citeloom.table_columns import TableConnection
from tests.support.stored_results import finished_text


def begin(runs: RunRegister, thread_id: str, fingerprint: str = "f", question: str = "Why?") -> None:
    runs.begin(
        thread_id=thread_id,
        fingerprint=fingerprint,
        section="research",
        title="A title with “quotes”",
        request={"question": question, "settings": {"max_calls": 3}},
        library_version="v1",
        fresh=False,
    )


def test_if_two_owners_leave_at_the_same_time_one_remains(backend: Home) -> None:
    first, second = backend.accounts(), backend.accounts()
    for name in ("ada", "bo"):
        first.accept(first.invite(name, "owner"), "hash")
    tables, changed, left = first._tables, Event(), Event()

    class SlowTables:
        """Commits when the other owner has left, or waits for this."""

        @contextmanager
        def transaction(self) -> Iterator[TableConnection]:
            with tables.transaction() as connection:
                yield connection
                changed.set()
                left.wait(1)

    def leave(accounts: Accounts, name: str) -> None:
        with suppress(AccountError):
            accounts._set_role(name, "reader")

    first._tables = SlowTables()  # type: ignore[assignment]
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(leave, first, "ada")
        changed.wait(5)
        pool.submit(leave, second, "bo").add_done_callback(lambda _: left.set())
        slow.result()
    assert sorted(person.role for person in second.people()) == ["owner", "reader"]


def test_a_run_is_registered_once_and_keeps_its_result(backend: Home) -> None:
    runs = backend.runs()
    begin(runs, "research-1")
    begin(runs, "research-1", fingerprint="another")
    run = runs.get("research-1")
    assert (run.status, run.fingerprint, run.result, run.fresh) == ("running", "f", None, False)
    assert run.request == {"question": "Why?", "settings": {"max_calls": 3}}
    runs.mark("research-1", "finished", result=finished_text("Because."))
    runs.mark("research-1", "paused", detail="later")
    run = backend.runs().get("research-1")
    assert (run.status, run.detail, run.result) == ("paused", "later", finished_text("Because."))
    assert run.updated_at >= run.started_at


def test_runs_are_found_by_prefix_fingerprint_and_question(backend: Home) -> None:
    runs = backend.runs()
    begin(runs, "run-10", fingerprint="a", question="Why?")
    begin(runs, "run-1", fingerprint="a", question="How?")
    begin(runs, "run-2", fingerprint="b", question="Why?")
    assert runs.get("run-1").thread_id == "run-1", "an exact id is no prefix"
    assert runs.get("run-2").fingerprint == "b"
    for unknown in ("", "run-3", "run-%", "run_1"):
        with pytest.raises(UnknownRunError):
            runs.get(unknown)
    with pytest.raises(UnknownRunError, match="More than one"):
        runs.get("run-")
    latest, about = runs.latest("a"), runs.latest_about("Why?")
    assert latest is not None and latest.thread_id == "run-1"
    assert about is not None and about.thread_id == "run-2"
    assert runs.latest("c") is runs.latest_about("When?") is runs.latest_about("") is None
    runs.delete("run-10")
    assert {run.thread_id for run in runs.all()} == {"run-1", "run-2"}


def test_a_conversation_keeps_its_turns(backend: Home) -> None:
    register = backend.conversations()
    register.begin("chat-1")
    register.begin("chat-1")
    register.begin("chat-2")
    register.keep("chat-1", 1, "Why?", "Why is it so?", finished_text(cited=("a",)))
    register.keep("chat-1", 2, "And?", "And then?", finished_text(""))
    register.keep("chat-1", 2, "And?", "And then?", finished_text("again"))
    assert [(turn.number, turn.answered) for turn in register.turns("chat-1")] == [(1, True), (2, False)]
    assert register.turns("chat-1")[1].record["text"] == "again"
    last, answered = register.last_turn("chat-1"), register.last_turn("chat-1", answered=True)
    assert last is not None and last.number == 2
    assert answered is not None and answered.question == "Why is it so?"
    entry = register.get("chat-1")
    assert (entry.title, entry.turns) == ("Why?", 2)
    assert [each.thread_id for each in register.all()] == ["chat-1", "chat-2"]
    with pytest.raises(UnknownConversationError, match="More than one"):
        register.get("chat-")
    register.delete("chat-1")
    with pytest.raises(UnknownConversationError):
        register.get("chat-1")
    assert register.turns("chat-1") == []


def test_a_conversation_answered_during_a_search_is_left_out(backend: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    register = backend.conversations()
    register.begin("chat-1")
    read = register._select

    def select(*asked: Any, **rows: Any) -> Any:
        found = read(*asked, **rows)
        register.begin("chat-2")
        register.keep("chat-2", 1, "Why?", "Why?", finished_text())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(register, "_select", select)
        assert register.all("why") == []
    assert [entry.thread_id for entry in register.all("why")] == ["chat-2"]


def test_runs_and_answers_that_cite_a_paper_are_found(backend: Home) -> None:
    runs, conversations = backend.runs(), backend.conversations()
    begin(runs, "research-1")
    begin(runs, "research-2")
    begin(runs, "research-3")
    runs.mark("research-1", "finished", result=finished_text(cited=("loom2020", "loom2020")))
    runs.mark("research-2", "finished", result=finished_text("loom2020", ("other",)))
    conversations.begin("chat-1")
    conversations.keep("chat-1", 1, "Why?", "Why?", finished_text(cited=("other",)))
    conversations.keep("chat-1", 2, "And?", "And?", finished_text(cited=("loom2020",)))
    assert [run.thread_id for run in runs.citing("loom2020")] == ["research-1"]
    assert [(turn.thread_id, turn.number, turn.asked) for turn in conversations.citing("loom2020")] == [
        ("chat-1", 2, "And?")
    ]
    assert runs.citing("nobody") == conversations.citing("nobody") == []
    runs.mark("research-1", "finished", result=finished_text(cited=("other",)))
    conversations.delete("chat-1")
    assert runs.citing("loom2020") == conversations.citing("loom2020") == []
    runs.delete("research-1")
    assert [run.thread_id for run in runs.citing("other")] == ["research-2"]


def test_long_questions_are_distinguished(backend: Home) -> None:
    runs, long = backend.runs(), "Why? " * 2000
    begin(runs, "run-1", question=f"{long}1")
    begin(runs, "run-2", question=f"{long}2")
    found = runs.latest_about(f"{long}1")
    assert found is not None and found.thread_id == "run-1" and runs.latest_about(long) is None


async def test_a_run_can_be_deleted(home: Home, backend: Home) -> None:
    begin(backend.runs(), "research-1")
    deleted = await delete_run(home, "research-1")
    assert deleted.title == "A title with “quotes”"
    with pytest.raises(UnknownRunError):
        backend.runs().get("research-1")


async def test_edited_sentences_are_stored_withdrawn_and_deleted_with_their_run(home: Home, backend: Home) -> None:
    begin(backend.runs(), "research-1")
    runs = backend.runs()
    assert runs.edits("research-1") == []
    runs.edit("research-1", EditedSentence(9, "Later words."))
    runs.edit("research-1", EditedSentence(4, "Words.", {"verdict": "supported"}))
    runs.edit("research-1", EditedSentence(4, "Other \x00 words ✓", {"verdict": "partly"}))
    first, second = backend.runs().edits("research-1")
    assert (first.position, first.checked, second.text, second.checked) == (
        4,
        {"verdict": "partly"},
        "Later words.",
        {},
    )
    assert first.text.endswith("words ✓") and first.updated_at > 0
    assert runs.withdraw_edit("research-1", 9) and not runs.withdraw_edit("research-1", 9)
    await delete_run(home, "research-1")
    assert runs.edits("research-1") == []


def test_comparisons_and_library_versions_are_deleted_with_the_last_text_that_uses_them(backend: Home) -> None:
    runs, tables = backend.runs(), backend.evidence_tables()
    for run in ("research-1", "research-2"):
        begin(runs, run)
    tables.save("table-1", "Which looms?", {"columns": [], "papers": []})
    for version in ("v1", "v2", "v3"):
        runs.note_library(version, {"ada2020": version})
    runs.keep_comparison("research-1", "s", {"items": [], "since": "v2"})
    runs.keep_comparison("table-1", "s", {"items": [], "since": "v3"})

    def left() -> list[str]:
        return [version for version in ("v1", "v2", "v3") if runs.library(version)]

    assert left() == ["v1", "v2", "v3"]
    runs.delete("research-1")
    assert (left(), list(runs.comparisons())) == (["v1", "v3"], ["table-1"]), "the other run is of v1"
    tables.delete("table-1")
    assert (left(), runs.comparisons()) == (["v1"], {})
    runs.delete("research-2")
    assert left() == []


def test_only_files_that_were_written_are_recognised(backend: Home, tmp_path: Path) -> None:
    files = backend.written_files()
    files.note([b"ours", b"also ours"])
    files.note([b"ours"])
    (tmp_path / "kept.md").write_bytes(b"ours")
    (tmp_path / "edited.md").write_bytes(b"ours, edited")
    (tmp_path / "link.md").symlink_to("kept.md")
    again = backend.written_files()
    known = [again.has(tmp_path / name) for name in ("kept.md", "edited.md", "link.md", "nowhere.md")]
    assert known == [True, False, False, False]


def test_uploaded_plots_named_by_runs_are_found(backend: Home) -> None:
    runs, sets = backend.runs(), [f"plots-{digit * 24}" for digit in "ab"]
    assert runs.plot_sets() == set()
    begin(runs, "research-1")
    for number, each in enumerate([*sets, sets[0]]):
        shown = [{"path": "my-plots-2/a.png", "_file": f"/home/ü/plots/{each}/{name}.png"} for name in "xy"]
        request = {"question": "q", "experiment": {"title": "Of plots-and more", "plots": shown}}
        runs.begin(f"results-{number}", "f", "results", "A title", request, "v1")
    assert runs.plot_sets() == set(sets)
    runs.delete("results-0")
    assert runs.plot_sets() == set(sets), "another run names it"
    runs.delete("results-2")
    assert runs.plot_sets() == {sets[1]}


def cell(key: str, value: str = "5") -> StoredCell:
    return StoredCell(key, "", "n", "v", TableCell(value, status="reported").as_dict())


def begun_table(backend: Home) -> EvidenceTableRegister:
    tables = backend.evidence_tables()
    tables.save("table-1", "Which looms?", {"columns": [], "papers": []})
    tables.save_row("table-1", StoredPaper("ada2020", "v", asdict(Decision("included"))), [cell("ada2020")])
    return tables


def test_two_people_who_edit_one_cell_lose_no_edit(backend: Home) -> None:
    mine, yours = begun_table(backend), backend.evidence_tables()
    assert mine.edit_cell("table-1", cell("ada2020", "6")).revision == 1
    with pytest.raises(CellChangedError, match="ada2020, n"):
        yours.edit_cell("table-1", cell("ada2020", "7"))
    (stored,) = yours.cells("table-1")
    assert (stored.cell["value"], stored.edited) == ("6", True)
    assert yours.edit_cell("table-1", replace(cell("ada2020", "7"), revision=stored.revision)).revision == 2


def test_concurrent_edits_of_one_cell_lose_none(backend: Home) -> None:
    begun_table(backend)

    def edit(value: int) -> bool:
        try:
            backend.evidence_tables().edit_cell("table-1", cell("ada2020", str(value)))
        except CellChangedError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(edit, range(4))) == 1, "of four edits of one revision, one is stored"


def test_reading_again_replaces_no_edit_and_deleting_a_table_leaves_nothing(backend: Home) -> None:
    tables = begun_table(backend)
    tables.edit_cell("table-1", cell("ada2020", "6"))
    tables.save_row("table-1", StoredPaper("ada2020", "v2", asdict(Decision("included"))), [cell("ada2020", "9")])
    assert [item.cell["value"] for item in tables.cells("table-1")] == ["6"]
    with pytest.raises(UnknownTableError):
        tables.get("table-2")
    tables.delete("table-1")
    assert (tables.all(), tables.cells("table-1"), tables.papers("table-1")) == ([], [], {})

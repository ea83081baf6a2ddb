"""Lists, shows, exports and deletes the runs and conversations of a home; reports costs, and prunes the journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..citations.html_escaping import inert
from ..errors import InputError
from ..models.journal.records import Spending, Usage, total_cost
from ..settings.config import Price, Settings
from ..stores.home import Home
from ..stores.run_register import (
    ConversationEntry,
    KeptTurn,
    RunHead,
    RunRecord,
    UnknownConversationError,
    UnknownRunError,
    new_thread_id,
)

if TYPE_CHECKING:
    from ..graph.session import Session
    from ..runs.result_record import ResultRecord, UsageRecord
    from ..runs.run_requests import RunRequest
    from .results import (
        ConversationDetails,
        ConversationSummary,
        RunDetails,
        RunQuery,
        RunSummary,
        SpendingRecord,
        UsageOfDay,
        WaitingQuestion,
    )


def run_summary(run: RunRecord | RunHead, home: Home) -> RunSummary:
    """Return a run's current status; a "running" run without a process was killed. Blocks."""
    killed = run.status == "running" and home.copy_of is None and not home.run_under_way(run.thread_id)
    record = {item.name: getattr(run, item.name) for item in fields(RunHead)}
    return cast("RunSummary", {**record, "status": "killed" if killed else run.status})  # the fields are the same


async def run_details(run_id: str, home: Home) -> RunDetails:
    """Return the JSON of `runs show`: status, searches, and the result once finished; raises `UnknownRunError`."""
    from ..drafts.written_draft import searches_of
    from ..runs.execution import run_state  # imports LangGraph, not needed for lists
    from ..runs.result_record import public_record, stored

    register = await asyncio.to_thread(home.runs)
    run = await asyncio.to_thread(register.get, run_id)
    summary = await asyncio.to_thread(run_summary, run, home)
    state = await run_state(home, run.thread_id)
    queries: list[RunQuery] = [
        {"query": record["query"], "origin": record["origin"], "evidence_ids": record["evidence_ids"]}
        for record in searches_of(state.values.get("queries", []))
    ]
    result = None if run.result is None else dict(public_record(stored(run.result)))
    asked = state.interrupts[0] if state.interrupts and run.status == "asking" else None
    waiting = cast("WaitingQuestion", {**asked.value["citeloom"], "question": asked.id}) if asked else None
    return {**summary, "queries": queries, "waiting": waiting, "result": result}


def list_runs(home: Home, limit: int | None = None, offset: int = 0) -> list[RunSummary]:
    """Return the runs as in `runs list --json`, the latest first; blocks."""
    return [run_summary(run, home) for run in home.runs().heads(limit, offset)]


async def delete_run(home: Home, run_id: str) -> RunRecord:
    """Delete a run, but not its cached answers; raises `UnknownRunError`, and `RunUnderWayError` while it runs."""
    from ..runs import execution  # imports LangGraph, not needed for lists

    return await execution.delete_run(home, run_id)


def load_resumable(
    run_id: str, home: Home, current: Settings, given: Mapping[str, Any]
) -> tuple[RunRecord, RunRequest, Settings]:
    """Load a run with the request and settings to resume it; `given` settings override the run's.

    Settings that do not affect the text come from `current`. Blocks. Raises `UnknownRunError`, and `ConfigurationError`
    if the run's endpoint differs from the one in `current`.
    """
    from ..runs.run_requests import request_to_resume, settings_to_resume

    run = home.runs().get(run_id)
    return run, request_to_resume(run), settings_to_resume(run, current, home, given)


async def read_spending(home: Home, run_ids: Sequence[str] = ()) -> list[Spending]:
    """Return what runs (all, or those with these ids or prefixes) spent by model.

    Raises `InputError` and `UnknownRunError`.
    """
    home.require_library()
    with home.open_journal() as journal:
        rows = await journal.spending()
    if not run_ids:
        return rows
    register = home.runs()
    chosen = {register.get(run_id).thread_id for run_id in run_ids}
    return [row for row in rows if row.run in chosen]


def survey_journal(home: Home) -> dict[str, Any]:
    """Return size, age, models and reuse of cached answers: the JSON of `journal stats --json`; blocks."""
    from ..models.journal.journal import survey

    return survey(home.journal_database())


def prune_journal(
    home: Home, *, older_than: float | None, rejected: bool, embeddings: bool, dry_run: bool
) -> dict[str, Any]:
    """Delete cached answers that no unfinished run needs; returns the JSON of `journal prune`. Blocks.

    `older_than` is in days; `rejected` selects answers that failed validation; `dry_run` only counts.
    """
    from ..models.journal.journal import prune

    home.require_library()
    home.prepare()
    unfinished = [run.thread_id for run in home.runs().heads() if run.status != "finished"]
    what: Any = {"older_than": older_than, "rejected": rejected, "embeddings": embeddings, "dry_run": dry_run}
    return prune(home.journal_database(), keep_of_runs=unfinished, **what)


def spending_record(row: Spending, prices: Mapping[str, Price]) -> SpendingRecord:
    about = {"run": row.run, "model": row.model, "endpoint": row.endpoint, "lost_calls": row.reserved_calls}
    return cast("SpendingRecord", {**about, **usage_total([row], prices)})


def usage_total(rows: Sequence[Spending], prices: Mapping[str, Price]) -> UsageRecord:
    return cast("UsageRecord", asdict(Usage.of(rows, total_cost(rows, prices))))  # the fields are the same


def usage_by_day(rows: Iterable[tuple[str, Spending]], prices: Mapping[str, Price]) -> list[UsageOfDay]:
    """Total per day; rows must be sorted by day."""
    days = groupby(rows, key=lambda item: item[0])
    return [{**usage_total([row for _, row in group], prices), "day": day} for day, group in days]


def list_conversations(home: Home, words: str = "", *, archived: bool = False) -> list[ConversationEntry]:
    """Return the conversations (or the archived ones) that contain the words, the latest first; blocks."""
    return [entry for entry in home.conversations().all(words) if entry.archived == archived]


def label_conversation(
    home: Home, thread_id: str, *, name: str | None = None, archived: bool | None = None
) -> ConversationEntry:
    """Name a conversation ("" restores its first question as its name), or archive it; None changes nothing. Blocks."""
    register = home.conversations()
    entry = register.get(thread_id)
    register.label(entry.thread_id, name=None if name is None else " ".join(name.split()), archived=archived)
    return register.get(entry.thread_id)


def begin_conversation(home: Home) -> ConversationEntry:
    """Register a new conversation; blocks."""
    register, thread_id = home.conversations(), new_thread_id()
    register.begin(thread_id)
    return register.get(thread_id)


def is_edited(home: Home, thread_id: str) -> bool:
    """Whether the user edited an answer of a conversation; blocks."""
    return any(text_id.startswith(f"{thread_id}.") for text_id in home.runs().edited())


def turns_as_shown(session: Session, thread_id: str) -> list[KeptTurn]:
    """Return the finished turns of a conversation with the user's edits of the answers, for files; blocks."""
    from ..runs.edited_text import answer_as_shown  # slow import, not needed for lists

    turns = session.home.conversations().turns(thread_id)
    return [replace(turn, record=dict(answer_as_shown(thread_id, turn, session))) for turn in turns]


def find_turn(home: Home, thread_id: str, number: int) -> KeptTurn | None:
    """Find a finished turn by its number, from 1; blocks."""
    return next((turn for turn in home.conversations().turns(thread_id) if turn.number == number), None)


def turn_record(turn: KeptTurn) -> ResultRecord:
    """Convert a finished turn to plain data: its number, the question, and the answer's JSON."""
    from ..runs.result_record import public_record, stored

    return {"number": turn.number, **public_record(stored(turn.record)), "asked": inert(turn.asked)}


def conversation_summary(entry: ConversationEntry) -> ConversationSummary:
    """A conversation as `conversations list` shows it."""
    return cast("ConversationSummary", asdict(entry))  # the fields are the same


def conversation_record(entry: ConversationEntry, turns: Sequence[KeptTurn]) -> ConversationDetails:
    """Return the JSON of `conversations show`: the conversation with its finished turns."""
    return cast("ConversationDetails", {**asdict(entry), "turns": [dict(turn_record(turn)) for turn in turns]})


def transcript_json(thread_id: str, turns: Sequence[KeptTurn]) -> str:
    """Return a conversation as the JSON of its export."""
    record = {"thread_id": thread_id, "turns": [turn_record(turn) for turn in turns]}
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def transcript(thread_id: str, turns: Sequence[KeptTurn]) -> str:
    """Return a conversation as markdown: its questions and answers in order, then the references without repeats."""
    from ..citations.references import places_line

    parts = [f"# {inert(turns[0].asked)}"]
    for turn in turns:
        asked = turn.asked if turn.asked == turn.question else f"{turn.asked} ({turn.question})"
        lines = inert(str(turn.record["text"]).strip()).splitlines()
        lowered = "\n".join(f"#{line}" if line.startswith("#") else line for line in lines)  # below the turn's heading
        parts += [f"## {turn.number}. {inert(asked)}", lowered]
    entries = [entry for turn in turns for entry in turn.record["references"]]
    references = {entry["key"]: entry for entry in entries}

    def order(entry: dict[str, Any]) -> tuple[int, str]:
        label = str(entry["label"])
        return (int(label), "") if label.isdigit() else (0, label.casefold())

    if references:
        lines = []
        for entry in sorted(references.values(), key=order):
            lines.append(inert(f"- **{entry['label']}**: {entry['text']}"))
            numbered = [other for other in entries if other["key"] == entry["key"] and str(other["label"]).isdigit()]
            places = places_line(place for other in numbered for place in other["places"])
            lines += [f"  - {inert(places)}"] if places else []
        parts.append("## References\n\n" + "\n".join(lines))
    parts.append(f"<!-- conversation {thread_id} -->")
    return "\n\n".join(parts) + "\n"


def require_turns(thread_id: str, turns: Sequence[KeptTurn]) -> None:
    """Raise `InputError` if the conversation has no answers yet."""
    if not turns:
        raise InputError(f"Conversation {thread_id}: no question has been answered yet.")


def write_transcript(
    path: Path, thread_id: str, turns: Sequence[KeptTurn], *, home: Home | None = None, force: bool = False
) -> tuple[Path, list[str]]:
    """Write a conversation as markdown, or JSON if the name ends in .json; returns its path and any warning.

    Unless `force` is given, a file edited or not written by Citeloom is kept and the new one numbered (`talk.2.md`).
    Blocks. Raises `InputError` if no question has been answered yet or the file cannot be written.
    """
    from ..runs.output_files import write_own_file

    require_turns(thread_id, turns)
    text = (transcript_json if path.suffix.lower() == ".json" else transcript)(thread_id, turns)
    return write_own_file(path, text, home=home, force=force)

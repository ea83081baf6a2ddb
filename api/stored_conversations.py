"""Lists, shows and exports the conversations stored in a home, as markdown for people or JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..citations.html_escaping import inert
from ..citations.references import places_line
from ..errors import InputError
from ..runs.output_files import public_record, write_own_file
from ..runs.result_record import ResultRecord, stored
from ..stores.home import Home
from ..stores.run_register import (
    ConversationEntry as ConversationEntry,
    KeptTurn as KeptTurn,
    UnknownConversationError as UnknownConversationError,
    new_thread_id as new_thread_id,
)

if TYPE_CHECKING:
    from ..graph.session import Session
    from .results import ConversationDetails, ConversationSummary


def list_conversations(home: Home, words: str = "", *, archived: bool = False) -> list[ConversationEntry]:
    """The conversations, or the archived ones, the latest first: all, or those with these words; blocks."""
    return [entry for entry in home.conversations().all(words) if entry.archived == archived]


def label_conversation(
    home: Home, thread_id: str, *, name: str | None = None, archived: bool | None = None
) -> ConversationEntry:
    """Name a conversation ("" for its first question again), or archive it; None changes nothing. Blocks."""
    register = home.conversations()
    entry = register.get(thread_id)
    register.label(entry.thread_id, name=None if name is None else " ".join(name.split()), archived=archived)
    return register.get(entry.thread_id)


def find_conversation(home: Home, thread_id: str) -> ConversationEntry:
    """Find a conversation by id or unique prefix; blocks. Raises `UnknownConversationError`."""
    return home.conversations().get(thread_id)


def begin_conversation(home: Home) -> ConversationEntry:
    """Register a new conversation; blocks."""
    register, thread_id = home.conversations(), new_thread_id()
    register.begin(thread_id)
    return register.get(thread_id)


def read_turns(home: Home, thread_id: str) -> list[KeptTurn]:
    """The finished turns of a conversation in order; blocks."""
    return home.conversations().turns(thread_id)


def is_edited(home: Home, thread_id: str) -> bool:
    """Whether an answer of a conversation has edits of the user's; blocks."""
    return any(text_id.startswith(f"{thread_id}.") for text_id in home.runs().edited())


def turns_as_shown(session: Session, thread_id: str) -> list[KeptTurn]:
    """The finished turns of a conversation with the user's edits of their answers, for files; blocks."""
    from ..runs.edited_text import answer_as_shown  # slow import, not needed for lists

    turns = read_turns(session.home, thread_id)
    return [replace(turn, record=dict(answer_as_shown(thread_id, turn, session))) for turn in turns]


def find_turn(home: Home, thread_id: str, number: int) -> KeptTurn | None:
    """A finished turn by its number, from 1; blocks."""
    return next((turn for turn in read_turns(home, thread_id) if turn.number == number), None)


def last_turn(home: Home, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
    """The last finished turn, or the last one that was `answered`; blocks."""
    return home.conversations().last_turn(thread_id, answered=answered)


def turn_record(turn: KeptTurn) -> ResultRecord:
    """A finished turn as plain data: its number, the question, and the answer's JSON."""
    return {"number": turn.number, **public_record(stored(turn.record)), "asked": inert(turn.asked)}


def conversation_summary(entry: ConversationEntry) -> ConversationSummary:
    """A conversation as `conversations list` shows it."""
    return cast("ConversationSummary", asdict(entry))  # which has the same fields


def conversation_record(entry: ConversationEntry, turns: Sequence[KeptTurn]) -> ConversationDetails:
    """The JSON of `conversations show`: the conversation with its finished turns."""
    return cast("ConversationDetails", {**asdict(entry), "turns": [dict(turn_record(turn)) for turn in turns]})


def transcript_json(thread_id: str, turns: Sequence[KeptTurn]) -> str:
    """A conversation as the JSON of its export."""
    record = {"thread_id": thread_id, "turns": [turn_record(turn) for turn in turns]}
    return json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def transcript(thread_id: str, turns: Sequence[KeptTurn]) -> str:
    """All questions and answers in order, then their references without repeats."""
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
            places = places_line(place for other in numbered for place in other["places"])  # else the label names them
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

    Unless `force` is given, an edited or foreign file is kept and the new one numbered (`talk.2.md`).
    Blocks. Raises `InputError` if no question has been answered yet or the file cannot be written.
    """
    require_turns(thread_id, turns)
    text = (transcript_json if path.suffix.lower() == ".json" else transcript)(thread_id, turns)
    return write_own_file(path, text, home=home, force=force)

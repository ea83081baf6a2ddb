"""The memory of a person or a project: lines that planner and writer respect, and proposals from edits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..citations.checks.preferences import LONGEST, preference_kind
from ..graph.session import memory_of
from ..runs.edit_proposals import EditProposal, propose_from_edits
from ..settings.config import Settings
from ..stores.author_memory import ROOT as ROOT, AuthorMemory, HomeStore as HomeStore, MemoryNote, UnknownNoteError
from ..stores.home import Home
from ..text.words import one_line
from .arguments import ArgumentError

if TYPE_CHECKING:
    from .results import MemoryLine, MemoryProposal

Result = TypeVar("Result")


async def alist_memory(settings: Settings, home: Home) -> list[MemoryLine]:
    """The user's own lines, then those shared by all users of the library."""
    return await _with_memory(settings, home, lambda memory: [_line(note) for note in memory.notes()])


async def aremember(
    settings: Settings, home: Home, text: str, *, shared: bool = False, note_id: str | None = None
) -> MemoryLine:
    """Add a line, for all users of the library if `shared`, or replace the one with an id.

    Raises `ArgumentError` for an empty or overlong line, and `UnknownNoteError`.
    """
    line = _valid_line(text)
    return await _with_memory(
        settings, home, lambda memory: _line(memory.put(line, shared=shared, note_id=note_id)), write=True
    )


async def aforget(settings: Settings, home: Home, note_id: str) -> MemoryLine:
    """Delete a line by its id or a prefix of it; raises `UnknownNoteError`."""
    return await _with_memory(settings, home, lambda memory: _line(memory.delete(note_id)), write=True)


async def apropose_memory(settings: Settings, home: Home) -> list[MemoryProposal]:
    """What the edits in finished texts suggest, without what is known or was declined; nothing is stored."""
    return [
        {"id": item.id, "text": item.text, "edits": item.edits, "examples": [list(pair) for pair in item.examples]}
        for item in await _with_memory(settings, home, lambda memory: _open_proposals(memory, home))
    ]


async def aanswer_proposal(
    settings: Settings, home: Home, proposal_id: str, *, accept: bool, text: str = "", shared: bool = False
) -> MemoryLine | None:
    """Accept a proposal, as another `text` if given, or decline it for good.

    Raises `UnknownNoteError`, and `ArgumentError` for an empty or overlong line.
    """

    def answer(memory: AuthorMemory) -> MemoryLine | None:
        found = [item for item in _open_proposals(memory, home) if proposal_id and item.id.startswith(proposal_id)]
        if len(found) != 1:
            raise UnknownNoteError(
                f"There is no proposal {proposal_id[:40]!r}.", help="See '{citeloom} memory proposals' for the ids."
            )
        if accept:
            return _line(memory.put(_valid_line(text or found[0].text), shared=shared))
        memory.decline(found[0].id)
        return None

    return await _with_memory(settings, home, answer, write=True)


def _valid_line(text: str) -> str:
    line = one_line(text)
    if not line or len(line) > LONGEST:
        raise ArgumentError(f"text: expected a line of 1 to {LONGEST} characters, got {len(line)}.")
    return line


def _open_proposals(memory: AuthorMemory, home: Home) -> list[EditProposal]:
    known, declined = {note.text.casefold() for note in memory.notes()}, memory.declined()
    return [item for item in propose_from_edits(home) if item.id not in declined and item.text.casefold() not in known]


def _line(note: MemoryNote) -> MemoryLine:
    return {
        "id": note.id,
        "text": note.text,
        "kind": preference_kind(note.text),
        "shared": note.shared,
        "added_at": note.added_at,
    }


async def _with_memory(
    settings: Settings, home: Home, work: Callable[[AuthorMemory], Result], *, write: bool = False
) -> Result:
    def run() -> Result:
        home.require_library()
        if write:
            home.prepare()
        return work(memory_of(settings, home))

    return await asyncio.to_thread(run)

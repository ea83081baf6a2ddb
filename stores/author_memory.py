"""The memory of a person or a project: lines that every text should respect, in a LangGraph store in the home.

A line belongs to one user of the library or is shared by all. Declined proposals are stored, so that they are not made
again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from langgraph.store.base import BaseStore, Item, Op

from ..errors import InputError
from .home import Home

ROOT: Final = "memory"  # of all namespaces
_MOST: Final = 1000  # entries of a namespace


class UnknownNoteError(InputError):
    """The memory has no line with the requested id."""

    default_help = "See '{citeloom} memory list' for the ids."


@dataclass(frozen=True, slots=True)
class MemoryNote:
    """A line of memory, `shared` by all users of the library or belonging to one."""

    id: str
    text: str
    shared: bool
    added_at: float


class HomeStore(BaseStore):
    """The store of a home, in SQLite or PostgreSQL, opened for each batch of operations; calling `home` may block."""

    def __init__(self, home: Callable[[], Home]) -> None:
        self._home = home

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        with self._home().open_memory() as store:
            return list(store.batch(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        return await asyncio.to_thread(self.batch, list(ops))


class AuthorMemory:
    """The memory of a user of a home; blocking; creates no file before the first line."""

    def __init__(self, home: Home, user: str) -> None:
        self._home = home
        self._store = HomeStore(lambda: home)
        label = user.replace(".", "_").strip() or "user"
        self._own, self._shared = (ROOT, "users", label), (ROOT, "everyone")
        self._declined = (ROOT, "declined", label)

    def notes(self) -> list[MemoryNote]:
        """The user's own lines, then the shared ones, each in the order in which they were added."""
        return [
            MemoryNote(item.key, text, namespace == self._shared, item.created_at.timestamp())
            for namespace in (self._own, self._shared)
            for item in sorted(self._items(namespace), key=lambda item: (item.created_at, item.key))
            if isinstance(text := item.value.get("text"), str)
        ]

    def put(self, text: str, *, shared: bool = False, note_id: str | None = None) -> MemoryNote:
        """Add a line unless it exists, or replace the line with this id; raises `UnknownNoteError`.

        A shared line is added even if the user has the same line.
        """
        if note_id is not None:
            before = self.get(note_id)
            note_id, shared = before.id, before.shared
        elif same := [note for note in self.notes() if note.text == text and note.shared >= shared]:
            return same[0]
        note_id = note_id or secrets.token_hex(4)
        self._store.put(self._shared if shared else self._own, note_id, {"text": text}, index=False)
        return self.get(note_id)

    def get(self, note_id: str) -> MemoryNote:
        """The line with this id or unique prefix; raises `UnknownNoteError`."""
        found = [note for note in self.notes() if note_id and note.id.startswith(note_id)]
        if len(found) != 1:
            raise UnknownNoteError(f"There is no line {note_id[:40]!r} in the memory.")
        return found[0]

    def delete(self, note_id: str) -> MemoryNote:
        """Forget a line; raises `UnknownNoteError`."""
        note = self.get(note_id)
        self._store.delete(self._shared if note.shared else self._own, note.id)
        return note

    def declined_proposals(self) -> set[str]:
        """The proposals that the user declined."""
        return {item.key for item in self._items(self._declined)}

    def decline(self, proposal: str) -> None:
        self._store.put(self._declined, proposal, {}, index=False)

    def _items(self, namespace: tuple[str, ...]) -> list[Item]:
        if not self._home.has_memory():
            return []
        return [item for item in self._store.search(namespace, limit=_MOST) if item.namespace == namespace]

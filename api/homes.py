"""Homes: found by the settings, read where they cannot be written, and looked at without opening the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..settings.config import Settings
from ..settings.key_trust import shown_address
from ..stores.backends import backend_of
from ..stores.home import Home, configured_home, find_home
from ..stores.local.read_only_copy import readable_home

if TYPE_CHECKING:
    from ..graph.session import Session

__all__ = [
    "Home",
    "LibraryContents",
    "Session",
    "complete_ids",
    "configured_home",
    "created_at",
    "library_contents",
    "open_home",
    "readable_home",
    "records_home",
    "require_writable_home",
    "shown_address",
]


@dataclass(frozen=True, slots=True)
class LibraryContents:
    """The keys and the number of passages of a library, read from its catalog alone: a tenth of a second, not two."""

    keys: tuple[str, ...]
    chunks: int


def records_home(home: Home, on_notice: Callable[[str], None]) -> Home:
    """The home to read runs, conversations and the journal from: a private copy if it is read-only. Blocks."""
    home.require_library()
    return readable_home(home, on_notice, library=False, records=True)


@contextmanager
def open_home(
    settings: Settings,
    home: Home,
    on_notice: Callable[[str], None],
    *,
    create: bool = True,
    reading: bool = False,
) -> Iterator[Session]:
    """Open library, models and journal of a home until the end of the block; raises `InputError`.

    `reading` is for what changes nothing: a read-only home is opened as a private copy.
    """
    from ..graph.session import open_session  # which loads what lists do without

    if reading:
        home = readable_home(home, on_notice, library=True)
    with open_session(settings, home, create=create, on_notice=on_notice) as session:
        yield session


def require_writable_home(home: Home) -> None:
    """Raise `InputError` if the home, or the original of a private copy, cannot be written; blocks."""
    (home if home.copy_of is None else find_home(home.copy_of)).prepare()


def library_contents(home: Home) -> LibraryContents:
    """The papers that are ready, none without a library; blocks. Raises `InputError` for an unreadable catalog."""
    home.require_place()
    if not home.exists():
        return LibraryContents((), 0)
    home.prepare()  # a conversation is kept: where nothing can be written, that is said first
    with closing(backend_of(home).open_catalog()) as catalog:
        records = catalog.records()
    return LibraryContents(tuple(records), sum(record.chunk_count for record in records.values()))


def complete_ids(home: Home, kind: str) -> list[str]:
    """All ids of a home that a shell completes: of "papers" (keys), "runs" or "conversations". Blocks."""
    if not home.exists():
        return []
    if kind == "runs":
        return [run.thread_id for run in backend_of(home).runs().heads()]
    if kind == "conversations":
        return [entry.thread_id for entry in backend_of(home).conversations().all()]
    with closing(backend_of(home).open_catalog()) as catalog:
        return sorted(catalog.records())


def created_at(home: Home) -> float:
    """When a home was created, in seconds since the epoch; blocks."""
    return backend_of(home).created_at()

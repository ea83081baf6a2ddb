"""What a sync is planned from, and what it will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..documents import Paper
from ..documents.bibliography import Refusal
from ..documents.paper_names import item_path
from ..metadata.citation_keys import KeyPattern
from .attachment_files import FilePlaces, ItemFile
from .sync_state import SyncedPaper, SyncState
from .zotero_records import ZoteroContent, ZoteroItem, ZoteroLibrary

_SHOWN_TITLE: Final = 80


@dataclass(frozen=True, slots=True)
class SyncInput:
    """Zotero's content, the scopes to sync, the papers of the library, and settings.

    Args:
        scopes: the keys of the collections to sync; an empty one is the whole library.
        members: the keys of the items in each scope of this sync and of earlier ones.
        foreign: keys of papers that did not come by a sync, or that the user replaced since.
        reading: stands for how files are read: with another reader or chunk size they are read again.
        prune: remove papers that only earlier syncs of other collections brought.
    """

    content: ZoteroContent
    library: ZoteroLibrary
    scopes: frozenset[str]
    members: Mapping[str, frozenset[str]]
    items: Sequence[ZoteroItem]
    papers: Mapping[str, Paper]
    foreign: frozenset[str]
    state: SyncState
    places: FilePlaces
    pattern: KeyPattern
    pages: Path
    reading: str
    prune: bool = False

    def path(self, item: ZoteroItem) -> str:
        """How links and the state name an item."""
        return f"{self.library.path}/items/{item.key}"


def foreign_keys(papers: Mapping[str, Paper], state: SyncState) -> frozenset[str]:
    """The papers that no sync may touch: their entry names no item that was synced."""
    items = state.items
    return frozenset(key for key, paper in papers.items() if item_path(paper.bibtex) not in items)


def recognized(
    papers: Mapping[str, Paper],
    items: Sequence[ZoteroItem],
    content: ZoteroContent,
    library: ZoteroLibrary,
    pages: Path,
) -> dict[str, SyncedPaper]:
    """Papers that came from these items, by their entry and their file, whatever the state says.

    A library that was copied has no state. An entry alone proves nothing: the user may have it from an export.
    """
    wanted = {f"{library.path}/items/{item.key}" for item in items}
    files = {attachment.key: f"{library.path}/items/{attachment.parent}" for attachment in content.attachments}
    found: dict[str, SyncedPaper] = {}
    for key, paper in papers.items():
        item, folder = item_path(paper.bibtex), Path(paper.source).parent
        if item in wanted and (files.get(folder.name) == item or folder == pages):
            found[key] = SyncedPaper(item, frozenset())
    return found


@dataclass(frozen=True, slots=True)
class WantedPaper:
    """An item as a paper: its BibTeX entry, the user's note, its file, and a page with its abstract.

    `page` is the text of that page, empty without an abstract, and `page_path` its file, which is ingested if the item
    has no file, or one that cannot be read.
    """

    item: str
    key: str
    entry: str
    note: str
    file: ItemFile | None
    page: str
    page_path: Path
    stamp: str

    @property
    def source(self) -> Path:
        """The file to ingest, if it can be read."""
        return self.file.path if self.file else self.page_path


@dataclass(frozen=True, slots=True)
class RemovedPaper:
    """A paper to remove, and why; `now` is its new key if it was renamed."""

    key: str
    why: str
    now: str = ""


@dataclass(slots=True)
class SyncPlan:
    """Everything that one sync will do; `state` is what is known before the first paper is ingested.

    `file_missing` says that a file may still appear without any change in Zotero.
    """

    changed: list[WantedPaper] = field(default_factory=list)
    unchanged: list[WantedPaper] = field(default_factory=list)
    removed: list[RemovedPaper] = field(default_factory=list)
    without_file: list[ZoteroItem] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    state: SyncState = field(default_factory=SyncState)
    file_missing: bool = False


def shown_item(item: ZoteroItem) -> str:
    """An item as messages name it."""
    title = item.title if len(item.title) <= _SHOWN_TITLE else f"{item.title[:_SHOWN_TITLE]}…"
    return f"Zotero item {item.key} ({title or 'without a title'})"

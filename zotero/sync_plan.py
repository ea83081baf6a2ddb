"""Compares Zotero's content with the library, before anything is read or written, and remembers what earlier syncs did.

A file of the home records which paper came from which item. It is written before ingestion, so that a killed sync knows
its own papers, and again afterwards with a stamp of the ingested content, so that nothing is read twice. A sync never
removes papers that are not recorded there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from ..documents import Paper, text_hash
from ..documents.bibliography import Refusal
from ..documents.paper_names import item_path
from ..documents.safe_files import FileRefusedError, read_regular, replace_file
from ..errors import InputError
from ..metadata.adding import abstract_page
from ..metadata.citation_keys import KeyPattern
from ..plurals import counted
from ..stores.home import Home
from .item_entry import (
    FilePlaces,
    ItemFile,
    bibtex_key,
    choose_file,
    is_paper,
    item_doi,
    item_entry,
    item_note,
    key_fields,
)
from .zotero_records import Annotation, Attachment, ItemNote, ZoteroContent, ZoteroItem, ZoteroLibrary

_NAME: Final = "sync.json"
_VERSION: Final = 1
_MOST_BYTES: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class SyncedPaper:
    """A paper that came from Zotero."""

    item: str  # its library and key, such as library/items/ABCD2345
    scopes: frozenset[str]  # the keys of the collections through which it came; an empty key is the whole library
    stamp: str = ""  # stands for everything that was ingested; empty until that is complete
    file: str = ""  # path, size and time of its file
    refused: str = ""  # why its file could not be ingested, if it could not


@dataclass(slots=True)
class SyncState:
    """The papers by citation key."""

    papers: dict[str, SyncedPaper] = field(default_factory=dict)

    @property
    def items(self) -> dict[str, str]:
        """The citation key of each item; for a paper being renamed, the new key."""
        return {paper.item: key for key, paper in self.papers.items()}

    def file_changed(self) -> bool:
        """Whether an ingested file is gone or has a different size or time."""
        for stamp in filter(None, (paper.file for paper in self.papers.values())):
            path = stamp.rsplit(":", 2)[0]
            try:
                state = Path(path).stat()
            except (OSError, ValueError):
                return True
            if stamp != f"{path}:{state.st_size}:{state.st_mtime_ns}":
                return True
        return False


def read_state(home: Home) -> SyncState:
    """The state of a home; empty before the first sync. Raises `InputError` for a damaged file."""
    path = home.zotero / _NAME
    try:
        given = json.loads(read_regular(path, _MOST_BYTES))
        if given["version"] != _VERSION:
            raise ValueError(f"version {given['version']!r:.20}")
        papers: dict[str, SyncedPaper] = {}
        for key, value in given["papers"].items():
            texts = [value["item"], value["stamp"], value["file"], value["refused"], *value["scopes"]]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("a paper that is not text")
            papers[str(key)] = SyncedPaper(texts[0], frozenset(value["scopes"]), *texts[1:4])
        return SyncState(papers)
    except FileNotFoundError:
        return SyncState()
    except (OSError, FileRefusedError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        remedy = "Move it away: the next sync recognizes papers by their entries and files."
        raise InputError(f"{path}: cannot be read ({type(error).__name__}: {error!s:.100}).", help=remedy) from error


def write_state(home: Home, state: SyncState) -> None:
    """Replace the state atomically; raises `InputError` if it cannot be written."""
    path = home.zotero / _NAME
    papers = {key: {**asdict(paper), "scopes": sorted(paper.scopes)} for key, paper in state.papers.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps({"version": _VERSION, "papers": papers}, indent=0).encode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from error


_SHOWN_TITLE: Final = 80


@dataclass(frozen=True, slots=True)
class WantedPaper:
    """An item as a paper: its BibTeX entry, the user's note, its file, and a page with its abstract."""

    item: str
    key: str
    entry: str
    note: str
    file: ItemFile | None
    page: str  # empty without an abstract
    page_path: Path  # ingested if the item has no file, or one that cannot be read
    stamp: str

    @property
    def source(self) -> Path:
        return self.file.path if self.file else self.page_path


@dataclass(frozen=True, slots=True)
class RemovedPaper:
    """A paper to remove, and why; `now` is its new key if it was renamed."""

    key: str
    why: str
    now: str = ""


@dataclass(slots=True)
class SyncPlan:
    """Everything that one sync will do."""

    changed: list[WantedPaper] = field(default_factory=list)
    unchanged: list[WantedPaper] = field(default_factory=list)
    removed: list[RemovedPaper] = field(default_factory=list)
    without_file: list[ZoteroItem] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    state: SyncState = field(default_factory=SyncState)  # as known before the first paper is ingested
    file_missing: bool = False  # and may still appear without any change in Zotero


def describe_item(item: ZoteroItem) -> str:
    title = item.title if len(item.title) <= _SHOWN_TITLE else f"{item.title[:_SHOWN_TITLE]}…"
    return f"Zotero item {item.key} ({title or 'without a title'})"


def recognize_papers(
    papers: Mapping[str, Paper],
    items: Sequence[ZoteroItem],
    content: ZoteroContent,
    library: ZoteroLibrary,
    pages: Path,
) -> dict[str, SyncedPaper]:
    """Papers from these items, by entry and file, in a library without state; an entry alone may be an export's."""
    wanted = {f"{library.path}/items/{item.key}" for item in items}
    files = {attachment.key: f"{library.path}/items/{attachment.parent}" for attachment in content.attachments}
    found: dict[str, SyncedPaper] = {}
    for key, paper in papers.items():
        item, folder = item_path(paper.bibtex), Path(paper.source).parent
        if item in wanted and (files.get(folder.name) == item or folder == pages):
            found[key] = SyncedPaper(item, frozenset())
    return found


Child = TypeVar("Child", Attachment, ItemNote, Annotation)
_BETWEEN: Final = "\x1f"


def _group_by_parent(children: Iterable[Child]) -> dict[str, list[Child]]:
    found: dict[str, list[Child]] = {}
    for child in children:
        found.setdefault(child.parent, []).append(child)
    return found


@dataclass
class SyncPlanning:
    """A comparison of Zotero's content with the library: the scopes to sync, the library's papers, and settings."""

    content: ZoteroContent
    library: ZoteroLibrary
    scopes: frozenset[str]  # the keys of the collections to sync; an empty one is the whole library
    members: Mapping[str, frozenset[str]]  # the keys of the items in each scope of this sync and of earlier ones
    items: Sequence[ZoteroItem]
    papers: Mapping[str, Paper]
    foreign: frozenset[str]  # keys of papers that did not come by a sync, or that the user replaced since
    state: SyncState
    places: FilePlaces
    pattern: KeyPattern
    pages: Path
    reading: str  # stands for how files are read: with another reader or chunk size they are read again
    prune: bool = False  # remove papers that only earlier syncs of other collections brought

    def __post_init__(self) -> None:
        self._plan = SyncPlan(warnings=list(self.content.damaged), state=SyncState(dict(self.state.papers)))
        self._files = _group_by_parent(self.content.attachments)
        self._notes = _group_by_parent(self.content.notes)
        self._marks = _group_by_parent(self.content.annotations)
        self._scopes: dict[str, frozenset[str]] = {}
        for paper in self.state.papers.values():
            self._scopes[paper.item] = self._scopes.get(paper.item, frozenset()) | paper.scopes

    def plan(self) -> SyncPlan:
        keys = self._assign_keys()
        kept = {key for item, key in keys if self._plan_item(item, key)}
        if orphans := sum(map(is_paper, self._files.get("", ()))):
            self._plan.warnings.append(
                f"{counted(orphans, 'file')} without an item in Zotero left out; 'Create Parent Item' makes one."
            )
        self._plan_removals({self._path(item): key for item, key in keys}, kept)
        return self._plan

    def _path(self, item: ZoteroItem) -> str:
        return f"{self.library.path}/items/{item.key}"

    def _plan_item(self, item: ZoteroItem, key: str) -> bool:
        """Plan one item; true if it is a paper of the library after the sync."""
        plan, old, files = self._plan, self.state.papers.get(key), self._files.get(item.key, ())
        file, problems = choose_file(files, self.places)
        plan.file_missing |= bool(problems)
        if file is None and any(map(is_paper, files)):
            known = old is not None and old.file and old.item == self._path(item) and key in self.papers
            left = "; the paper is left as it is" if known else ""
            plan.refused.append(Refusal(describe_item(item), f"{'; '.join(problems)}{left}"))
            if old is not None and known:
                plan.state.papers[key] = replace(old, scopes=self._current_scopes(old.item))
                return True
        elif problems:
            plan.warnings.append(f"{describe_item(item)}: {'; '.join(problems)}; another of its files is used.")
        wanted = self._make_paper(item, key, file)
        if wanted is None:
            if not problems:
                plan.without_file.append(item)
            return False
        self._compare(wanted, old)
        return True

    def _make_paper(self, item: ZoteroItem, key: str, file: ItemFile | None) -> WantedPaper | None:
        abstract = item.fields.get("abstractNote", "").strip()
        if file is None and not abstract:
            return None
        page = abstract_page(item.title or key, abstract) if abstract else ""
        page_path = self.pages / f"{self.library.path.replace('/', '-')}-{item.key}.md"
        entry = item_entry(item, key, self.library, file.pdf if file else "")
        marks = [mark for attachment in self._files.get(item.key, ()) for mark in self._marks.get(attachment.key, ())]
        note = item_note(self._notes.get(item.key, ()), marks)
        stamp = text_hash(_BETWEEN.join((entry, note, file.stamp if file else page, self.reading)))
        return WantedPaper(self._path(item), key, entry, note, file, page, page_path, stamp)

    def _compare(self, wanted: WantedPaper, old: SyncedPaper | None) -> None:
        """Classify and record a paper; one whose file was refused may be there with its abstract or an earlier file."""
        plan, scopes = self._plan, self._current_scopes(wanted.item)
        if old is None or (old.item, old.stamp) != (wanted.item, wanted.stamp):
            plan.changed.append(wanted)
            plan.state.papers[wanted.key] = SyncedPaper(wanted.item, scopes)
            return
        plan.state.papers[wanted.key] = replace(old, scopes=scopes)
        if old.refused:
            plan.refused.append(Refusal(str(wanted.source), old.refused))
        if wanted.key in self.papers:
            plan.unchanged.append(wanted)
        elif not old.refused:  # the user removed it from the library, but not from Zotero
            plan.changed.append(wanted)

    def _current_scopes(self, item: str) -> frozenset[str]:
        """The scopes of this sync and, unless pruning, of earlier ones that contain an item now."""
        key = item.rpartition("/")[2]
        asked = self.scopes if self.prune else self.scopes | self._scopes.get(item, frozenset())
        return frozenset(scope for scope in asked if key in self.members.get(scope, ()))

    def _plan_removals(self, keys: dict[str, str], kept: set[str]) -> None:
        """Plan the removals; papers that the user replaced are dropped from the state but stay in the library."""
        plan, there = self._plan, {self._path(item) for item in self.content.items}
        for key, paper in self.state.papers.items():
            if not paper.item.startswith(f"{self.library.path}/items/") or key in kept:
                continue
            now = keys.get(paper.item, "")
            scopes = self._current_scopes(paper.item) if paper.item in there else frozenset()
            if not now and scopes:  # another collection contains it, or it was refused
                plan.state.papers[key] = replace(paper, scopes=scopes)
                continue
            if key in self.foreign or key not in self.papers:
                del plan.state.papers[key]
            elif now and now != key:
                plan.removed.append(RemovedPaper(key, f"its key is now {now}", now))
            elif now:
                plan.removed.append(RemovedPaper(key, "its item has neither a file nor an abstract any more"))
            elif paper.item in there:
                plan.removed.append(RemovedPaper(key, "its item is no longer in any of the collections"))
            else:
                plan.removed.append(RemovedPaper(key, "its item was deleted in Zotero"))

    def _assign_keys(self) -> list[tuple[ZoteroItem, str]]:
        """Assign keys to the items; those whose key is taken, or that the library has already, are reported."""
        better = {item.key: bibtex_key(item, self.content.citation_keys.get(item.key, "")) for item in self.items}
        dois = {self.papers[key].doi: key for key in self.foreign if self.papers[key].doi}
        items: list[ZoteroItem] = []
        for item in self.items:
            key, doi = better[item.key], item_doi(item)
            there = key if key in self.foreign else dois.get(doi, "") if doi else ""
            if not there:
                items.append(item)
                continue
            self._plan.warnings.append(
                f"{describe_item(item)}: the library already has {there}, but not from a sync; it was left unchanged. "
                f"To have it from Zotero, remove it first ('papers remove {there}')."
            )
        owners: dict[str, ZoteroItem] = {}
        chosen: dict[str, str] = {}
        for item in items:
            key = better[item.key]
            if key and key in owners:
                reason = f"has the same citation key, {key}, as {describe_item(owners[key])}; change one in Zotero"
                self._plan.refused.append(Refusal(describe_item(item), reason))
            elif key:
                owners[key], chosen[item.key] = item, key
        plain = [item for item in items if not better[item.key]]
        earlier = self.state.items
        for item in plain:
            key = earlier.get(self._path(item), "")
            if key and key not in owners and key not in self.foreign:
                owners[key], chosen[item.key] = item, key
        taken = {*owners, *self.papers, *self.state.papers}
        for item in plain:
            if item.key not in chosen:
                key = self.pattern.key(key_fields(item), taken)
                taken.add(key)
                chosen[item.key] = key
        return [(item, chosen[item.key]) for item in items if item.key in chosen]

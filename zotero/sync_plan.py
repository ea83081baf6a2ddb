"""Compares Zotero's content with the library, before anything is read or written, and remembers what earlier syncs did.

A file in the home records which paper came from which item. It is written before ingestion, so that a killed sync knows
its own papers, and afterwards with a stamp of the ingested content, so that nothing is read twice. A sync never removes
papers that are not recorded there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ValidationError

from ..documents import text_hash
from ..documents.bibliography import Refusal
from ..documents.chunking import CHUNKING_VERSION
from ..documents.figures import FIGURES_VERSION
from ..documents.paper_names import item_path
from ..documents.safe_files import FileRefusedError, read_regular, replace_file
from ..errors import InputError
from ..ingestion.reading import READING_VERSION
from ..invalid_values import describe_invalid, field_path
from ..metadata.adding import abstract_page
from ..metadata.bib_entry import KeyPattern
from ..plurals import counted
from ..settings.config import Settings
from ..stores.home import Home
from ..stores.library import Library
from . import item_entry
from .item_entry import FilePlaces, ItemFile
from .zotero_records import ZoteroItem
from .zotero_source import ZoteroReading, ZoteroRequest, collection_paths, find_scopes, scope_members

_NAME: Final = "sync.json"
_MOST_BYTES: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class SyncedPaper:
    """A paper that came from Zotero."""

    item: str  # its library and key, such as library/items/ABCD2345
    scopes: frozenset[str]  # the keys of the collections through which it came; an empty key is the whole library
    stamp: str = ""  # identifies everything that was ingested; empty until that is complete
    file: str = ""  # path, size and time of its file
    refused: str = ""  # why its file could not be ingested, if it could not


SyncState = dict[str, SyncedPaper]  # by citation key; a paper that is being renamed has both keys, the new one last


class _StateFile(BaseModel, strict=True):
    version: Literal[1] = 1
    papers: SyncState


def file_changed(state: SyncState) -> bool:
    """Whether an ingested file is gone or has a different size or time; blocks."""
    for stamp in filter(None, (paper.file for paper in state.values())):
        path = stamp.rsplit(":", 2)[0]
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            return True
        if stamp != f"{path}:{found.st_size}:{found.st_mtime_ns}":
            return True
    return False


def read_state(home: Home) -> SyncState:
    """The state of a home; empty before the first sync. Raises `InputError` for a damaged file."""
    path = home.zotero / _NAME
    try:
        return _StateFile.model_validate_json(read_regular(path, _MOST_BYTES)).papers
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        reason = f"{field_path(first['loc'])}: {describe_invalid(first)}".removeprefix(": ")
    except (OSError, FileRefusedError) as error:
        reason = str(error)
    remedy = "Move it away: the next sync recognizes papers by their entries and files."
    raise InputError(f"{path}: cannot be read ({reason:.100}).", help=remedy)


def write_state(home: Home, state: SyncState) -> None:
    """Replace the state atomically; raises `InputError` if it cannot be written."""
    path = home.zotero / _NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, _StateFile(papers=state).model_dump_json().encode())
    except (OSError, ValueError) as error:  # a path that is not text
        raise InputError(f"{path}: cannot be written ({getattr(error, 'strerror', '') or error!s:.100}).") from error


_SHOWN_TITLE: Final = 80


@dataclass(frozen=True, slots=True)
class WantedPaper:
    """An item as a paper: its BibTeX entry, the user's note, its file, and a page with its abstract."""

    item: str
    key: str
    entry: str
    note: str
    file: ItemFile | None
    page: str  # empty if there is no abstract
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
    state: SyncState = field(default_factory=dict)  # as known before the first paper is ingested
    file_missing: bool = False  # and may still appear without any change in Zotero


def describe_item(item: ZoteroItem) -> str:
    title = item.title if len(item.title) <= _SHOWN_TITLE else f"{item.title[:_SHOWN_TITLE]}…"
    return f"Zotero item {item.key} ({title or 'without a title'})"


_BETWEEN: Final = "\x1f"


class SyncPlanning:
    """Compares the content read from Zotero with the library and the `state` after earlier syncs; blocks.

    `linked` is the folder of linked files. Raises `InputError` for an unknown collection or an invalid setting.
    """

    def __init__(
        self,
        library: Library,
        settings: Settings,
        reading: ZoteroReading,
        request: ZoteroRequest,
        state: SyncState,
        linked: Path | None,
    ) -> None:
        content = self._content = reading.content
        self._library, self._prune = reading.library, request.prune
        self._paths = collection_paths(content.collections)
        self._scopes = find_scopes(request.collections, content)
        earlier = frozenset().union(*(paper.scopes for paper in state.values()))
        # The keys of the items in each scope of this sync and of earlier ones.
        self._members = scope_members(self._scopes | earlier, content)
        keys = frozenset().union(*(self._members[scope] for scope in self._scopes))
        # Oldest first, so that an earlier item keeps its key when two have the same.
        chosen = (item for item in content.items if item.key in keys)
        self.items = sorted(chosen, key=lambda item: (item.added, item.key))
        self.papers = {paper.key: paper for paper in library.papers()}
        self._pages = library.home.zotero.resolve()
        self._state = self._recognize_papers() | state
        synced = {paper.item for paper in self._state.values()}
        # Their entries name no synced item, so no sync may touch them.
        self._foreign = {key for key, paper in self.papers.items() if item_path(paper.bibtex) not in synced}
        self._places = FilePlaces(content.storage, linked, bool(reading.library.group))
        self._pattern = KeyPattern(settings.citation_key)
        # With another reader or chunk size, files are read again.
        versions = f"{READING_VERSION}:{CHUNKING_VERSION}:{FIGURES_VERSION}"
        sizes = f"{settings.chunk_tokens}:{settings.chunk_overlap}"
        self._reading = f"{settings.ocr}:{settings.ocr_languages}:{versions}:{sizes}"
        self._plan = SyncPlan(warnings=list(content.damaged), state=dict(self._state))
        self._earlier_scopes: dict[str, frozenset[str]] = {}
        for paper in self._state.values():
            self._earlier_scopes[paper.item] = self._earlier_scopes.get(paper.item, frozenset()) | paper.scopes

    def _recognize_papers(self) -> SyncState:
        """Find papers that came from these items without a state, by entry and file; an entry alone may be exported."""
        wanted = set(map(self._path, self.items))
        files = {
            attachment.key: f"{self._library.path}/items/{parent}"
            for parent, attachments in self._content.attachments.items()
            for attachment in attachments
        }
        found: SyncState = {}
        for key, paper in self.papers.items():
            item, folder = item_path(paper.bibtex), Path(paper.source).parent
            if item in wanted and (files.get(folder.name) == item or folder == self._pages):
                found[key] = SyncedPaper(item, frozenset())
        return found

    def plan(self) -> SyncPlan:
        keys = self._assign_keys()
        kept = {key for item, key in keys if self._plan_item(item, key)}
        if orphans := sum(map(item_entry.is_paper, self._content.attachments.get("", ()))):
            self._plan.warnings.append(
                f"{counted(orphans, 'file')} without an item in Zotero left out; 'Create Parent Item' makes one."
            )
        self._plan_removals({self._path(item): key for item, key in keys}, kept)
        return self._plan

    def _path(self, item: ZoteroItem) -> str:
        return f"{self._library.path}/items/{item.key}"

    def _plan_item(self, item: ZoteroItem, key: str) -> bool:
        """Plan one item; returns whether it is a paper of the library after the sync."""
        plan, old, files = self._plan, self._state.get(key), self._content.attachments.get(item.key, ())
        file, problems = item_entry.choose_file(files, self._places)
        plan.file_missing |= bool(problems)
        if file is None and any(map(item_entry.is_paper, files)):
            known = old is not None and old.file and old.item == self._path(item) and key in self.papers
            left = "; the paper is left as it is" if known else ""
            plan.refused.append(Refusal(describe_item(item), f"{'; '.join(problems)}{left}"))
            if old is not None and known:
                plan.state[key] = replace(old, scopes=self._current_scopes(old.item))
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
        page_path = self._pages / f"{self._library.path.replace('/', '-')}-{item.key}.md"
        collections = sorted(self._paths[shelf] for shelf in item.collections if shelf in self._paths)
        entry = item_entry.item_entry(item, key, self._library, file.pdf if file else "", collections)
        content = self._content
        files = content.attachments.get(item.key, ())
        marks = [mark for attachment in files for mark in content.annotations.get(attachment.key, ())]
        note = item_entry.item_note(content.notes.get(item.key, ()), marks)
        stamp = text_hash(_BETWEEN.join((entry, note, file.stamp if file else page, self._reading)))
        return WantedPaper(self._path(item), key, entry, note, file, page, page_path, stamp)

    def _compare(self, wanted: WantedPaper, old: SyncedPaper | None) -> None:
        """Classify and record a paper; with a refused file, the library may have its abstract or an earlier file."""
        plan, scopes = self._plan, self._current_scopes(wanted.item)
        if old is None or (old.item, old.stamp) != (wanted.item, wanted.stamp):
            plan.changed.append(wanted)
            plan.state[wanted.key] = SyncedPaper(wanted.item, scopes)
            return
        plan.state[wanted.key] = replace(old, scopes=scopes)
        if old.refused:
            plan.refused.append(Refusal(str(wanted.source), old.refused))
        if wanted.key in self.papers:
            plan.unchanged.append(wanted)
        elif not old.refused:  # the user removed it from the library, but not from Zotero
            plan.changed.append(wanted)

    def _current_scopes(self, item: str) -> frozenset[str]:
        """The scopes of this sync and, unless pruning, of earlier ones that contain an item now."""
        key = item.rpartition("/")[2]
        asked = self._scopes if self._prune else self._scopes | self._earlier_scopes.get(item, frozenset())
        return frozenset(scope for scope in asked if key in self._members.get(scope, ()))

    def _plan_removals(self, keys: dict[str, str], kept: set[str]) -> None:
        """Plan the removals; papers that the user replaced are dropped from the state but stay in the library."""
        plan, there = self._plan, {self._path(item) for item in self._content.items}
        for key, paper in self._state.items():
            if not paper.item.startswith(f"{self._library.path}/items/") or key in kept:
                continue
            now = keys.get(paper.item, "")
            scopes = self._current_scopes(paper.item) if paper.item in there else frozenset()
            if not now and scopes:  # another collection contains it, or it was refused
                plan.state[key] = replace(paper, scopes=scopes)
                continue
            if key in self._foreign or key not in self.papers:
                del plan.state[key]
            elif now and now != key:
                plan.removed.append(RemovedPaper(key, f"its key is now {now}", now))
            elif now:
                plan.removed.append(RemovedPaper(key, "its item has neither a file nor an abstract any more"))
            elif paper.item in there:
                plan.removed.append(RemovedPaper(key, "its item is no longer in any of the collections"))
            else:
                plan.removed.append(RemovedPaper(key, "its item was deleted in Zotero"))

    def _assign_keys(self) -> list[tuple[ZoteroItem, str]]:
        """Assign keys to the items; reports items whose key is taken, or that the library already has."""
        better = {
            item.key: item_entry.bibtex_key(item, self._content.citation_keys.get(item.key, "")) for item in self.items
        }
        dois = {self.papers[key].doi: key for key in self._foreign if self.papers[key].doi}
        owners: dict[str, ZoteroItem] = {}
        chosen: dict[str, str] = {}
        plain: list[ZoteroItem] = []
        for item in self.items:
            key, doi = better[item.key], item_entry.item_doi(item)
            if there := key if key in self._foreign else dois.get(doi, "") if doi else "":
                self._plan.warnings.append(
                    f"{describe_item(item)}: the library already has {there}, but not from a sync; it was left "
                    f"unchanged. To have it from Zotero, remove it first ('papers remove {there}')."
                )
            elif not key:
                plain.append(item)
            elif key in owners:
                reason = f"has the same citation key, {key}, as {describe_item(owners[key])}; change one in Zotero"
                self._plan.refused.append(Refusal(describe_item(item), reason))
            else:
                owners[key], chosen[item.key] = item, key
        earlier = {paper.item: key for key, paper in self._state.items()}
        for item in plain:
            key = earlier.get(self._path(item), "")
            if key and key not in owners and key not in self._foreign:
                owners[key], chosen[item.key] = item, key
        taken = {*owners, *self.papers, *self._state}
        for item in plain:
            if item.key not in chosen:
                chosen[item.key] = self._pattern.key(item_entry.key_fields(item), taken)
                taken.add(chosen[item.key])
        return [(item, chosen[item.key]) for item in self.items if item.key in chosen]

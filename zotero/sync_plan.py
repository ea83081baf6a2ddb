"""Compares what Zotero holds with the library, before anything is read or written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeVar

from ..documents import text_hash
from ..documents.bibliography import Refusal
from ..metadata.adding import abstract_page
from ..plurals import counted
from .attachment_files import ItemFile, choose_file, is_paper
from .item_entry import item_entry
from .item_notes import item_note
from .sync_input import RemovedPaper, SyncInput, SyncPlan, WantedPaper, shown_item
from .sync_keys import keys_of_items
from .sync_state import SyncedPaper
from .zotero_records import Annotation, Attachment, ItemNote, ZoteroItem

Child = TypeVar("Child", Attachment, ItemNote, Annotation)
_BETWEEN: Final = "\x1f"


def make_sync_plan(given: SyncInput) -> SyncPlan:
    """Plan a sync; looks for the files, but reads none of them. Blocks."""
    return _Planning(given).plan()


class _Planning:
    """One comparison of all items with the library."""

    def __init__(self, given: SyncInput) -> None:
        self._given = given
        self._plan = SyncPlan(warnings=list(given.content.damaged))
        self._plan.state.papers = dict(given.state.papers)
        self._files = _by_parent(given.content.attachments)
        self._notes = _by_parent(given.content.notes)
        self._marks = _by_parent(given.content.annotations)
        self._scopes: dict[str, frozenset[str]] = {}
        for paper in given.state.papers.values():
            self._scopes[paper.item] = self._scopes.get(paper.item, frozenset()) | paper.scopes

    def plan(self) -> SyncPlan:
        """The plan for all items."""
        given, plan = self._given, self._plan
        keys = keys_of_items(given, plan)
        kept = {key for item, key in keys if self._is_kept(item, key)}
        orphans = sum(map(is_paper, self._files.get("", ())))
        if orphans:
            plan.warnings.append(
                f"{counted(orphans, 'file')} without an item in Zotero left out; 'Create Parent Item' makes one."
            )
        self._remove({given.path(item): key for item, key in keys}, kept)
        return plan

    def _is_kept(self, item: ZoteroItem, key: str) -> bool:
        """Plan one item; whether it is a paper of the library after the sync."""
        given, plan = self._given, self._plan
        old = given.state.papers.get(key)
        files = self._files.get(item.key, ())
        file, problems = choose_file(files, given.places)
        plan.file_missing |= bool(problems)
        if file is None and any(map(is_paper, files)):
            known = old is not None and old.file and old.item == given.path(item) and key in given.papers
            left = "; the paper is left as it is" if known else ""
            plan.refused.append(Refusal(shown_item(item), f"{'; '.join(problems)}{left}"))
            if old is not None and known:
                plan.state.papers[key] = replace(old, scopes=self._scopes_now(old.item))
                return True
        elif problems:
            plan.warnings.append(f"{shown_item(item)}: {'; '.join(problems)}; another of its files is used.")
        wanted = self._wanted(item, key, file)
        if wanted is None:
            if not problems:
                plan.without_file.append(item)
            return False
        self._compare(wanted, old)
        return True

    def _wanted(self, item: ZoteroItem, key: str, file: ItemFile | None) -> WantedPaper | None:
        """The item as a paper; None if there is nothing to index."""
        given = self._given
        abstract = item.fields.get("abstractNote", "").strip()
        if file is None and not abstract:
            return None
        page = abstract_page(item.title or key, abstract) if abstract else ""
        page_path = given.pages / f"{given.library.path.replace('/', '-')}-{item.key}.md"
        entry = item_entry(item, key, given.library, file.pdf if file else "")
        marks = [mark for attachment in self._files.get(item.key, ()) for mark in self._marks.get(attachment.key, ())]
        note = item_note(self._notes.get(item.key, ()), marks)
        stamp = text_hash(_BETWEEN.join((entry, note, file.stamp if file else page, given.reading)))
        return WantedPaper(given.path(item), key, entry, note, file, page, page_path, stamp)

    def _compare(self, wanted: WantedPaper, old: SyncedPaper | None) -> None:
        """Sort a paper into changed, unchanged and refused as before, and note it in the state.

        A paper whose file was refused may be there by its abstract, or by an earlier file.
        """
        plan = self._plan
        scopes = self._scopes_now(wanted.item)
        if old is None or (old.item, old.stamp) != (wanted.item, wanted.stamp):
            plan.changed.append(wanted)
            plan.state.papers[wanted.key] = SyncedPaper(wanted.item, scopes)
            return
        plan.state.papers[wanted.key] = replace(old, scopes=scopes)
        if old.refused:
            plan.refused.append(Refusal(str(wanted.source), old.refused))
        if wanted.key in self._given.papers:
            plan.unchanged.append(wanted)
        elif not old.refused:  # the user removed it from the library, but not from Zotero
            plan.changed.append(wanted)

    def _scopes_now(self, item: str) -> frozenset[str]:
        """Those scopes of this sync and, unless pruning, of earlier ones that hold an item now."""
        given, key = self._given, item.rpartition("/")[2]
        asked = given.scopes if given.prune else given.scopes | self._scopes.get(item, frozenset())
        return frozenset(scope for scope in asked if key in given.members.get(scope, ()))

    def _remove(self, keys: dict[str, str], kept: set[str]) -> None:
        """Plan what is to go from this library; papers that the user replaced are forgotten, but stay."""
        given, plan = self._given, self._plan
        there = {given.path(item) for item in given.content.items}
        for key, paper in given.state.papers.items():
            if not paper.item.startswith(f"{given.library.path}/items/") or key in kept:
                continue
            now = keys.get(paper.item, "")
            scopes = self._scopes_now(paper.item) if paper.item in there else frozenset()
            if not now and scopes:  # another collection holds it, or it was refused
                plan.state.papers[key] = replace(paper, scopes=scopes)
                continue
            if key in given.foreign or key not in given.papers:
                del plan.state.papers[key]
            elif now and now != key:
                plan.removed.append(RemovedPaper(key, f"its key is now {now}", now))
            elif now:
                plan.removed.append(RemovedPaper(key, "its item has neither a file nor an abstract any more"))
            elif paper.item in there:
                plan.removed.append(RemovedPaper(key, "its item is in none of the collections any more"))
            else:
                plan.removed.append(RemovedPaper(key, "its item was deleted in Zotero"))


def _by_parent(children: Iterable[Child]) -> dict[str, list[Child]]:
    found: dict[str, list[Child]] = {}
    for child in children:
        found.setdefault(child.parent, []).append(child)
    return found

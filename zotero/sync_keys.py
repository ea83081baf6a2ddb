"""Gives each item its citation key: Better BibTeX's, else that of an earlier sync, else one by the pattern."""

from __future__ import annotations

from collections.abc import Mapping

from ..documents.bibliography import Refusal
from .item_entry import bibtex_key, item_doi, key_fields
from .sync_input import SyncInput, SyncPlan, shown_item
from .zotero_records import ZoteroItem


def keys_of_items(given: SyncInput, plan: SyncPlan) -> list[tuple[ZoteroItem, str]]:
    """The items with their keys; what cannot have its key, or is in the library already, is named in the plan."""
    better = {item.key: bibtex_key(item, given.content.citation_keys.get(item.key, "")) for item in given.items}
    dois = {given.papers[key].doi: key for key in given.foreign if given.papers[key].doi}
    items = [item for item in given.items if not _is_foreign(item, better[item.key], dois, given, plan)]
    owners: dict[str, ZoteroItem] = {}
    chosen: dict[str, str] = {}
    for item in items:
        key = better[item.key]
        if key and key in owners:
            reason = f"has the same citation key, {key}, as {shown_item(owners[key])}; change one in Zotero"
            plan.refused.append(Refusal(shown_item(item), reason))
        elif key:
            owners[key], chosen[item.key] = item, key
    plain = [item for item in items if not better[item.key]]
    earlier = given.state.items
    for item in plain:
        key = earlier.get(given.path(item), "")
        if key and key not in owners and key not in given.foreign:
            owners[key], chosen[item.key] = item, key
    taken = {*owners, *given.papers, *given.state.papers}
    for item in plain:
        if item.key not in chosen:
            key = given.pattern.key(key_fields(item), taken)
            taken.add(key)
            chosen[item.key] = key
    return [(item, chosen[item.key]) for item in items if item.key in chosen]


def _is_foreign(item: ZoteroItem, key: str, dois: Mapping[str, str], given: SyncInput, plan: SyncPlan) -> bool:
    """Whether the library has the item as a paper that did not come by a sync; says so in a warning."""
    doi = item_doi(item)
    there = key if key in given.foreign else dois.get(doi, "") if doi else ""
    if there:
        plan.warnings.append(
            f"{shown_item(item)}: the library has {there} already, not by a sync; it was left alone. "
            f"To have it from Zotero, remove it first ('papers remove {there}')."
        )
    return bool(there)

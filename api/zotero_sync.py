"""Zotero's items into a library from Python, sync and async."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.session import Session
from ..zotero.zotero_source import ZoteroRequest, read_zotero
from ..zotero.zotero_sync import sync_reading
from .arguments import library_first, one_or_more, require_writable
from .blocking import blocking

__all__ = ["async_zotero", "sync_zotero"]


@library_first
async def async_zotero(
    library: Session,
    collections: Sequence[str] | str = (),
    *,
    group: str = "",
    prune: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Bring Zotero's items into the library, and remove what was deleted there; the JSON of `sync zotero --json`.

    Args:
        library: an open library.
        collections: names, paths or keys of collections, each with those below it; the whole library if omitted.
        group: name or id of a group, to sync its library instead of your own.
        prune: also remove papers that only earlier syncs of other collections brought.
        dry_run: change nothing, and return what would be done.

    Raises `ZoteroError` when neither Zotero's local API nor its database can be read, `InputError` for an unknown
    collection or group and for a damaged state, and any error of the embedding model, with finished papers kept.
    """
    require_writable(library)
    request = ZoteroRequest(group, one_or_more(collections), prune)
    reading = await read_zotero(library.settings, request)
    assert reading is not None  # no version was given that it could be equal to
    report = await sync_reading(library.library, library.settings, reading, request, dry_run=dry_run)
    return report.as_dict()


sync_zotero = library_first(blocking(async_zotero))

"""Chooses how to read Zotero: through the local API of a running Zotero, or from its data folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ..errors import ConfigurationError, InputError
from ..settings.config import Settings
from ..settings.key_trust import is_own
from .local_api import ADDRESS, LocalApi, NotAvailableError
from .zotero_database import DATABASE, ZoteroDatabase
from .zotero_records import ZoteroCollection, ZoteroContent, ZoteroLibrary

_DEFAULT_FOLDER: Final = "~/Zotero"

OnNotice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ZoteroRequest:
    """What to sync: a group's library (empty: the user's own) and the names of collections (none: all of it)."""

    group: str = ""
    collections: Sequence[str] = ()
    prune: bool = False


@dataclass(frozen=True, slots=True)
class ZoteroReading:
    """The content read from a library, and its source."""

    source: str
    library: ZoteroLibrary
    content: ZoteroContent


async def open_source(settings: Settings, on_notice: OnNotice) -> LocalApi | ZoteroDatabase:
    """The source of the settings, else the local API or default folder; raises `ConfigurationError`, `ZoteroError`."""
    if settings.zotero.startswith(("http://", "https://")):
        return LocalApi(settings.zotero)
    if settings.zotero:
        folder = await asyncio.to_thread(Path(settings.zotero).expanduser)
        if folder.name == DATABASE:
            folder = folder.parent
        problem = "no such folder"
        if await asyncio.to_thread(folder.is_dir):
            if await asyncio.to_thread((folder / DATABASE).is_file):
                return ZoteroDatabase(folder)
            problem = f"holds no {DATABASE}"
        raise ConfigurationError(
            f"Setting zotero (CITELOOM_ZOTERO): {folder}: {problem}.",
            help="In Zotero: Settings, Advanced, Files and Folders, Show Data Directory.",
        )
    api = LocalApi(ADDRESS)
    try:
        await api.require_available()
    except NotAvailableError as error:
        folder = await asyncio.to_thread(Path(_DEFAULT_FOLDER).expanduser)
        if not await asyncio.to_thread((folder / DATABASE).is_file):
            missing = f"{error.message.rstrip('.')}; and there is no database in {_DEFAULT_FOLDER}."
            raise NotAvailableError(missing, help=error.help) from error
        on_notice(f"{error.message} Reading its database in {folder} instead.")
        return ZoteroDatabase(folder)
    return api


async def read_zotero(
    settings: Settings, request: ZoteroRequest, *, known: str = "", on_notice: OnNotice = lambda _: None
) -> ZoteroReading | None:
    """Read a library; None if it is at version `known`. Raises `ZoteroError`; `InputError` for an unknown group."""
    source = await open_source(settings, on_notice)
    library = choose_library(await source.groups(), request.group) if request.group else ZoteroLibrary()
    content = await source.content(library, known)
    return None if content is None else ZoteroReading(source.name, library, content)


async def linked_folder(settings: Settings) -> Path | None:
    """The folder of linked files; raises `InputError` if it is missing, or set by a file in the working folder."""
    folder = settings.zotero_linked
    if folder is None:
        return None
    name, origin = "Setting zotero_linked (CITELOOM_ZOTERO_LINKED)", settings.origin("zotero_linked")
    if not is_own(origin):
        remedy = "Set it in the environment, since it says which of your files may be read."
        raise InputError(f"{name}: {origin} of this folder may not set it.", help=remedy)
    if not await asyncio.to_thread(folder.expanduser().is_dir):
        raise InputError(f"{name}: {folder}: no such folder.", help="Connect the disk that holds it.")
    return folder


WHOLE = ""  # the scope of a whole library, next to collection keys


def choose_library(groups: Sequence[ZoteroLibrary], wanted: str) -> ZoteroLibrary:
    """The group with this name or id; raises `InputError` that names similar ones."""
    found = [group for group in groups if wanted.casefold() == group.name.casefold() or wanted == str(group.group)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(group.group) for group in found)
        raise InputError(f"--group {wanted}: several groups have this name.", help=f"Give its id: {ids}.")
    raise InputError(
        f"--group {wanted}: Zotero has no such group.", help=_suggest(wanted, [one.name for one in groups])
    )


def find_scopes(names: Sequence[str], content: ZoteroContent) -> frozenset[str]:
    """The keys of the named collections; `WHOLE` if none is named.

    A collection is named by its name, its path (`Thesis/Methods`) or its key. Raises `InputError` for an unknown or
    ambiguous one.
    """
    paths = collection_paths(content.collections) if names else {}
    scopes: set[str] = set()
    for wanted in names:
        name = wanted.strip().strip("/").casefold()
        whole = [key for key, path in paths.items() if key == wanted or path.casefold() == name]
        found = whole or [key for key, path in paths.items() if path.casefold().endswith(f"/{name}")]
        if len(found) > 1:
            listed = "; ".join(f"{paths[key]} ({key})" for key in sorted(found, key=lambda key: paths[key]))
            raise InputError(
                f"--collection {wanted}: several collections have this name.", help=f"Give the path or key: {listed}."
            )
        if not found:
            known = [*paths.values(), *(path.rpartition("/")[2] for path in paths.values())]
            raise InputError(f"--collection {wanted}: Zotero has no such collection.", help=_suggest(wanted, known))
        scopes |= {*found}
    return frozenset(scopes) or frozenset({WHOLE})


def scope_members(scopes: Iterable[str], content: ZoteroContent) -> dict[str, frozenset[str]]:
    """The keys of the items in each scope; a collection includes the collections below it."""
    lines = _lineages(content.collections)
    members: dict[str, frozenset[str]] = {}
    for scope in scopes:
        below = {scope, *(key for key, line in lines.items() if scope in {one.key for one in line})}
        members[scope] = frozenset(item.key for item in content.items if not scope or item.collections & below)
    return members


def collection_paths(collections: Sequence[ZoteroCollection]) -> dict[str, str]:
    """The paths of collections by key, such as Thesis/Methods."""
    return {key: "/".join(one.name for one in line) for key, line in _lineages(collections).items()}


def _lineages(collections: Sequence[ZoteroCollection]) -> dict[str, list[ZoteroCollection]]:
    by_key = {collection.key: collection for collection in collections}
    lineages: dict[str, list[ZoteroCollection]] = {}
    for collection in collections:
        line, above = list[ZoteroCollection](), by_key.get(collection.key)
        while above is not None and above not in line:  # a damaged database may have a cycle
            line.insert(0, above)
            above = by_key.get(above.parent)
        lineages[collection.key] = line
    return lineages


def _suggest(wanted: str, names: Sequence[str]) -> str:
    by_form = {name.casefold(): name for name in names}
    near = [by_form[form] for form in get_close_matches(wanted.casefold(), by_form, n=3, cutoff=0.6)]
    listed = near or sorted(dict.fromkeys(names))[:10]
    shown = ", ".join(repr(name) for name in listed)
    return f"Did you mean {shown}?" if near else f"There are {shown}." if listed else "There is none."

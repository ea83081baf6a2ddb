"""Chooses where Zotero is read: the local API of a running Zotero, or its data folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import ConfigurationError, InputError
from ..settings.config import Settings
from ..settings.key_trust import is_own
from .collection_choice import choose_library
from .local_api import ADDRESS, LocalApi, NotAvailableError
from .zotero_database import DATABASE, ZoteroDatabase
from .zotero_records import ZoteroContent, ZoteroLibrary, ZoteroSource

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
    """What was read of a library, and where."""

    source: str
    library: ZoteroLibrary
    content: ZoteroContent


async def open_source(settings: Settings, on_notice: OnNotice) -> ZoteroSource:
    """The source that the settings name, else the local API, else the default folder.

    Raises `ConfigurationError` for a folder or address that cannot be one, and `ZoteroError` if there is neither.
    """
    if settings.zotero.startswith(("http://", "https://")):
        return LocalApi(settings.zotero)
    if settings.zotero:
        return _database(settings.zotero)
    api = LocalApi(ADDRESS)
    try:
        await api.require_available()
    except NotAvailableError as error:
        folder = await asyncio.to_thread(_default_folder)
        if folder is None:
            missing = f"{error.message.rstrip('.')}; and there is no database in {_DEFAULT_FOLDER}."
            raise NotAvailableError(missing, help=error.help) from error
        on_notice(f"{error.message} Reading its database in {folder} instead.")
        return ZoteroDatabase(folder)
    return api


def _default_folder() -> Path | None:
    folder = Path(_DEFAULT_FOLDER).expanduser()
    return folder if (folder / DATABASE).is_file() else None


def _database(setting: str) -> ZoteroDatabase:
    folder = Path(setting).expanduser()
    if folder.name == DATABASE:
        folder = folder.parent
    if not folder.is_dir():
        problem = "no such folder"
    elif not (folder / DATABASE).is_file():
        problem = f"holds no {DATABASE}"
    else:
        return ZoteroDatabase(folder)
    raise ConfigurationError(
        f"Setting zotero (CITELOOM_ZOTERO): {folder}: {problem}.",
        help="In Zotero: Settings, Advanced, Files and Folders, Show Data Directory.",
    )


async def read_zotero(
    settings: Settings, request: ZoteroRequest, *, known: str = "", on_notice: OnNotice = lambda _: None
) -> ZoteroReading | None:
    """Read a library; None if it is as it was at the version `known`.

    Raises `ZoteroError` if it cannot be read, and `InputError` for an unknown group.
    """
    source = await open_source(settings, on_notice)
    library = ZoteroLibrary()
    if request.group:
        library = choose_library(await source.groups(), request.group)
    content = await source.content(library, known)
    return None if content is None else ZoteroReading(source.name, library, content)


async def linked_folder(settings: Settings) -> Path | None:
    """The folder of linked files; raises `InputError` if it is missing, or named by a file of the working folder."""
    folder = settings.zotero_linked
    if folder is None:
        return None
    name, origin = "Setting zotero_linked (CITELOOM_ZOTERO_LINKED)", settings.origin("zotero_linked")
    if not is_own(origin):
        remedy = "Set it in the environment, since it says which of your files may be read."
        raise InputError(f"{name}: {origin} of this folder names it.", help=remedy)
    if not await asyncio.to_thread(folder.expanduser().is_dir):
        raise InputError(f"{name}: {folder}: no such folder.", help="Connect the disk that holds it.")
    return folder

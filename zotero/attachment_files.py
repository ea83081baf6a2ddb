"""Finds the best file among an item's attachments that exists and may be read.

Names and paths come from a database that others may write to (such as a group's). Stored files are read only from their
own folder in Zotero's storage, linked files only from the folder that the user configured for them.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..ingestion.reading import ENDINGS
from .zotero_records import Attachment

STORAGE_NAME: Final = "storage"
_RELATIVE: Final = "attachments:"  # prefix of a path in Zotero's base folder for linked files
# Zotero's own order first (PDF), then what has a structure, and saved web pages last, since many show only an abstract.
_PREFERRED: Final = (".pdf", ".epub", ".docx", ".tex", ".latex", ".nxml", ".jats", ".xml", ".md", ".markdown")
_BESIDE: Final = ("supplement", "supporting info", "appendix", "erratum", "slides", "poster")
_LINKED_HELP: Final = "name the folder of your linked files in CITELOOM_ZOTERO_LINKED"


@dataclass(frozen=True, slots=True)
class ItemFile:
    """The file to ingest for an item, with the size and time that show whether it changed."""

    attachment: str
    path: Path
    size: int
    modified: int

    @property
    def stamp(self) -> str:
        """Path, size and time of the file."""
        return f"{self.path}:{self.size}:{self.modified}"

    @property
    def pdf(self) -> str:
        """The key of the attachment if it is a PDF; empty otherwise."""
        return self.attachment if self.path.suffix.lower() == ".pdf" else ""


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Where attachments may be located: `storage` (None: where the API says), and the folder of `linked` files."""

    storage: Path | None
    linked: Path | None
    group: bool = False


def choose_file(attachments: Iterable[Attachment], places: FilePlaces) -> tuple[ItemFile | None, list[str]]:
    """The first usable file of an item's attachments, best first, and why better ones were not used."""
    problems: list[str] = []
    for attachment in sorted(filter(is_paper, attachments), key=_rank):
        found = _locate(attachment, places)
        if isinstance(found, ItemFile):
            return found, problems
        name = " ".join(attachment.name.split())[-80:] or "without a name"
        problems.append(f"attachment {attachment.key} ({name}): {found}")
    return None, problems


def is_paper(attachment: Attachment) -> bool:
    """Whether an attachment is of a readable file type."""
    return attachment.mode != "other" and _ending(attachment) in ENDINGS


def _rank(attachment: Attachment) -> tuple[int, bool, str, str]:
    ending = _ending(attachment)
    place = _PREFERRED.index(ending) if ending in _PREFERRED else len(_PREFERRED)
    named = f"{attachment.title} {attachment.name}".casefold()
    return place, any(word in named for word in _BESIDE), attachment.added, attachment.key


def _ending(attachment: Attachment) -> str:
    return PurePosixPath(attachment.name.replace("\\", "/")).suffix.lower()


def _locate(attachment: Attachment, places: FilePlaces) -> ItemFile | str:
    """The file of an attachment, or why it is not read."""
    try:
        found = _stored(attachment, places) if attachment.mode == "stored" else _linked(attachment, places)
        if isinstance(found, str):
            return found
        state = found.stat()
    except (OSError, ValueError, RuntimeError) as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        return "its file is missing" if missing else "its file cannot be read"
    if not stat.S_ISREG(state.st_mode):
        return "is not a regular file"
    return ItemFile(attachment.key, found, state.st_size, state.st_mtime_ns)


def _stored(attachment: Attachment, places: FilePlaces) -> Path | str:
    """The path of a stored file, without links on the way from the storage folder; raises OSError."""
    if places.storage is not None:
        name, storage = attachment.name, places.storage
    else:
        parts = urlsplit(attachment.url)
        path = Path(url2pathname(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None
        if path is None:
            return "Zotero does not say where its file is; name its data folder in CITELOOM_ZOTERO"
        name, storage = path.name, path.parent.parent
        if path.parent.name != attachment.key or storage.name != STORAGE_NAME:
            return "its file lies outside of Zotero's storage"
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        return "its name leads out of its folder"
    file = storage.resolve(strict=True) / attachment.key / name
    return file if file.resolve(strict=True) == file else "is a link out of Zotero's storage"


def _linked(attachment: Attachment, places: FilePlaces) -> Path | str:
    """The path of a linked file inside the folder that the user named; raises OSError."""
    if places.group:
        return "is a linked file in a group's library, which Zotero does not allow"
    if places.linked is None:
        return f"is a linked file; {_LINKED_HELP}"
    base = places.linked.expanduser().resolve(strict=True)
    named = attachment.name
    path = base / named.removeprefix(_RELATIVE) if named.startswith(_RELATIVE) else Path(named)
    if not path.is_absolute():
        return "its path is not absolute"
    file = path.resolve(strict=True)
    return file if file.is_relative_to(base) else f"is a linked file outside of {base}; {_LINKED_HELP}"

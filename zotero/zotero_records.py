"""Zotero's content in one form, whether read from the local API or the database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from ..errors import CiteloomError

ITEM_KEY: Final = re.compile(r"[A-Z0-9]{8}")
LinkMode = Literal["stored", "linked", "other"]
# By Zotero's numeric types and by its API's names.
LINK_MODES: Final[Mapping[int | str, LinkMode]] = {
    **{0: "stored", 1: "stored", 2: "linked"},
    **{"imported_file": "stored", "imported_url": "stored", "linked_file": "linked"},
}
ANNOTATION_KINDS: Final = dict(enumerate("highlight note image ink underline text".split(), 1))
_MOST_TEXT: Final = 2_000_000  # characters of one value


def plain_text(value: str) -> str:
    """A value as text that can be stored: bounded, without NUL characters and lone surrogates."""
    return value[:_MOST_TEXT].replace("\0", "").encode("utf-8", "replace").decode("utf-8")


class ZoteroError(CiteloomError):
    """Zotero could not be read; the library is as it was."""

    default_help = "Nothing was changed; run the same command again when Zotero can be read."


@dataclass(frozen=True, slots=True)
class ZoteroLibrary:
    """The user's own library, or a group's library with its `group` id."""

    group: int = 0
    name: str = "My Library"

    @property
    def path(self) -> str:
        """The library's path in links to Zotero."""
        return f"groups/{self.group}" if self.group else "library"


@dataclass(frozen=True, slots=True)
class Creator:
    """An author, editor ... of an item; `given` is empty for a name of one part."""

    role: str
    family: str
    given: str = ""

    @classmethod
    def of(cls, role: str, family: str, given: str) -> Creator | None:
        """The creator with these names; None if both are empty."""
        if not family and not given:
            return None
        return cls(role, family or given, given if family else "")


@dataclass(frozen=True, slots=True)
class ZoteroItem:
    """A regular item with its non-empty fields, under Zotero's names; `collections` are keys."""

    key: str
    kind: str
    fields: Mapping[str, str]
    creators: tuple[Creator, ...] = ()
    collections: frozenset[str] = frozenset()
    added: str = ""

    @property
    def title(self) -> str:
        """Its title, on one line."""
        name = {"case": "caseName", "statute": "nameOfAct", "email": "subject"}.get(self.kind, "title")
        return " ".join((self.fields.get(name) or self.fields.get("title", "")).split())


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of an item: `name` is the name of a stored file, the path of a linked one; `url` is the API's."""

    key: str
    parent: str
    mode: LinkMode
    name: str
    title: str = ""
    added: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class ItemNote:
    """A note on an item, as HTML."""

    key: str
    parent: str
    html: str
    added: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A user's annotation in a PDF: the marked words and the comment. `parent` is the attachment."""

    key: str
    parent: str
    kind: str
    text: str
    comment: str
    page: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class ZoteroCollection:
    """A collection; `parent` is the key of the one that holds it, empty at the top."""

    key: str
    name: str
    parent: str = ""


@dataclass(frozen=True, slots=True)
class ZoteroContent:
    """The content of a library, except the trash.

    Args:
        storage: the folder of stored files; None if only the API's addresses say where they are.
        citation_keys: Better BibTeX's keys by item, where they are no field of the item.
        damaged: what was left out since it could not be read, one line each.
        version: stands for this state of the library; empty if nothing does.
    """

    items: tuple[ZoteroItem, ...]
    attachments: tuple[Attachment, ...] = ()
    notes: tuple[ItemNote, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    collections: tuple[ZoteroCollection, ...] = ()
    storage: Path | None = None
    citation_keys: Mapping[str, str] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()
    version: str = ""


class ZoteroSource(Protocol):
    """Where Zotero's items are read from."""

    @property
    def name(self) -> str:
        """The address or file, as messages name it."""

    async def groups(self) -> list[ZoteroLibrary]:
        """The libraries of the user's groups; raises `ZoteroError`."""

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        """The content of a library; None if it is unchanged since version `known`. Raises `ZoteroError`."""

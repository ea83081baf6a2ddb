"""Zotero's content in one form, whether read from the local API or the database."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ..errors import CiteloomError
from ..metadata.service_works import objects

ITEM_KEY: Final = re.compile(r"[A-Z0-9]{8}")
LinkMode = Literal["stored", "linked", "other"]
# By Zotero's numeric types and by its API's names.
_LINK_MODES: Final[Mapping[Any, LinkMode]] = {
    **{0: "stored", 1: "stored", 2: "linked"},
    **{"imported_file": "stored", "imported_url": "stored", "linked_file": "linked"},
}
FILE_URL: Final = "url of the file"  # added to the data of an attachment from its links
CHILD_KINDS: Final = ("attachment", "note", "annotation")
_NOT_FIELDS: Final = frozenset("key version itemType dateAdded dateModified".split())
_CREATOR: Final = ("creatorType", "firstName", "lastName", "name")
_MOST_CREATORS: Final = 100_000
_MOST_TAGS: Final = 1_000
_MOST_TEXT: Final = 2_000_000  # characters of one value

Record = Mapping[str, Any]
Texts = Mapping[str, str]  # the texts of a record by the names of the API; missing ones are empty


def text_value(value: Any) -> str:
    """A value as storable text: bounded, without NUL and lone surrogates; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value)[:_MOST_TEXT].replace("\0", "").encode("utf-8", "replace").decode("utf-8")


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
        return f"groups/{self.group}" if self.group else "library"


@dataclass(frozen=True, slots=True)
class Creator:
    """An author, editor or other creator of an item; `given` is empty for a name of one part."""

    role: str
    family: str
    given: str = ""


@dataclass(frozen=True, slots=True)
class ZoteroItem:
    """A regular item with its non-empty fields, under Zotero's names; `collections` are keys, `tags` names."""

    key: str
    kind: str
    fields: Mapping[str, str]
    creators: tuple[Creator, ...] = ()
    collections: frozenset[str] = frozenset()
    added: str = ""
    tags: tuple[str, ...] = ()

    @property
    def title(self) -> str:
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
class ZoteroCollection:
    """A collection; `parent` is the key of the one that holds it, empty at the top."""

    key: str
    name: str
    parent: str = ""


@dataclass(frozen=True, slots=True)
class ZoteroContent:
    """The content of a library, except the trash."""

    items: tuple[ZoteroItem, ...]
    attachments: Mapping[str, Sequence[Attachment]] = field(default_factory=dict)  # by the key of their item
    notes: Mapping[str, Sequence[Texts]] = field(default_factory=dict)  # the same; their HTML is in `note`
    annotations: Mapping[str, Sequence[Texts]] = field(default_factory=dict)  # by the key of their attachment
    collections: tuple[ZoteroCollection, ...] = ()
    storage: Path | None = None  # the folder of stored files; None if only the API's addresses say where they are
    citation_keys: Mapping[str, str] = field(default_factory=dict)  # by item, if not a field of the item
    damaged: tuple[str, ...] = ()  # a line for each record that was unreadable and left out
    version: str = ""  # identifies this state of the library; empty if nothing can


def build_content(records: Mapping[str, Record]) -> ZoteroContent:
    """The content of `records` by key; any field may be wrong, and children of missing items are left out."""
    items: list[ZoteroItem] = []
    attachments = defaultdict[str, list[Attachment]](list)
    notes, annotations = defaultdict[str, list[Texts]](list), defaultdict[str, list[Texts]](list)
    for key, data in records.items():
        kind, parent = text_value(data.get("itemType")), text_value(data.get("parentItem"))
        added = text_value(data.get("dateAdded")).replace("T", " ").removesuffix("Z")  # as in the database
        if not kind or (kind in CHILD_KINDS and parent and parent not in records):
            continue
        if kind == "attachment":
            link_mode = data.get("linkMode")
            mode = _LINK_MODES.get(link_mode, "other") if isinstance(link_mode, str | int) else "other"
            name = text_value(data.get("path"))
            if mode == "stored":
                name = text_value(data.get("filename")) or name.removeprefix("storage:")
            title, url = text_value(data.get("title")), text_value(data.get(FILE_URL))
            attachments[parent].append(Attachment(key, parent, mode, name, title, added, url))
        elif kind in ("note", "annotation"):
            texts = defaultdict(str, {name: text_value(value) for name, value in data.items()})
            texts |= {"key": key, "parentItem": parent, "dateAdded": added}
            (notes if kind == "note" else annotations)[parent].append(texts)
        else:
            fields = {name: text for name in data if name not in _NOT_FIELDS and (text := text_value(data[name]))}
            shelves = data.get("collections")
            collections = frozenset(map(text_value, shelves if isinstance(shelves, list) else ()))
            creators: list[Creator] = []
            for person in objects(data.get("creators"), _MOST_CREATORS):
                role, first, last, whole = (text_value(person.get(name)) for name in _CREATOR)
                family, given = (last or whole, first) if last or whole else (first, "")
                creators += [Creator(role, family, given)] if family else []
            tags = tuple(sorted(text_value(tag.get("tag")) for tag in objects(data.get("tags"), _MOST_TAGS)))
            items.append(ZoteroItem(key, kind, fields, tuple(creators), collections, added, tags))
    return ZoteroContent(tuple(items), attachments, notes, annotations)

"""Turns the JSON of Zotero's local API into records; any field may be missing or in another form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .zotero_records import (
    LINK_MODES,
    Annotation,
    Attachment,
    Creator,
    ItemNote,
    ZoteroCollection,
    ZoteroContent,
    ZoteroItem,
    plain_text,
)

OTHER_KINDS: Final = ("attachment", "note", "annotation")

Record = Mapping[str, Any]


@dataclass(slots=True)
class Listing:
    """The records of a list by key, what was left out, and the version of the library."""

    records: dict[str, Record] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    version: str = ""


def content_of(items: Listing, collections: Listing, keys: Mapping[str, str]) -> ZoteroContent:
    live = {key: data for key, record in items.records.items() if not (data := data_of(record)).get("deleted")}
    kinds: dict[str, list[str]] = {}
    for key, data in live.items():
        kinds.setdefault(as_string(data.get("itemType")), []).append(key)
    regular = [key for kind, named in kinds.items() if kind and kind not in OTHER_KINDS for key in named]
    return ZoteroContent(
        tuple(_item(key, live[key]) for key in regular),
        tuple(
            _attachment(key, live[key], items.records[key])
            for key in kinds.get("attachment", ())
            if _has_parent(live[key], live)
        ),
        tuple(_note(key, live[key]) for key in kinds.get("note", ()) if _has_parent(live[key], live)),
        tuple(_annotation(key, live[key]) for key in kinds.get("annotation", ()) if _has_parent(live[key], live)),
        tuple(_collections(collections)),
        citation_keys=keys,
        damaged=(*items.damaged, *collections.damaged),
        version=items.version,
    )


def _has_parent(data: Record, live: Mapping[str, Record]) -> bool:
    """Whether the parent is there, or none is named: what is below an item in the trash is in the trash."""
    parent = as_string(data.get("parentItem"))
    return not parent or parent in live


def _item(key: str, data: Record) -> ZoteroItem:
    not_fields = ("key", "version", "itemType", "dateAdded", "dateModified")
    fields = {name: value for name in data if name not in not_fields and (value := as_string(data[name]))}
    creators = tuple(made for creator in _array(data.get("creators")) if (made := _creator(as_object(creator))))
    collections = frozenset(map(as_string, _array(data.get("collections"))))
    return ZoteroItem(key, as_string(data["itemType"]), fields, creators, collections, _date(data))


def _creator(given: Record) -> Creator | None:
    role, name = as_string(given.get("creatorType")), as_string(given.get("name"))
    family, first = as_string(given.get("lastName")) or name, as_string(given.get("firstName"))
    if not family and not first:
        return None
    return Creator(role, family or first, first if family else "")


def _attachment(key: str, data: Record, record: Record) -> Attachment:
    mode = LINK_MODES.get(as_string(data.get("linkMode")), "other")
    url = as_string(as_object(as_object(record.get("links")).get("enclosure")).get("href"))
    name = as_string(data.get("filename")) if mode == "stored" else as_string(data.get("path"))
    return Attachment(
        key, as_string(data.get("parentItem")), mode, name, as_string(data.get("title")), _date(data), url
    )


def _note(key: str, data: Record) -> ItemNote:
    return ItemNote(key, as_string(data.get("parentItem")), as_string(data.get("note")), _date(data))


def _annotation(key: str, data: Record) -> Annotation:
    names = ("parentItem", "annotationType", "annotationText", "annotationComment", "annotationPageLabel")
    return Annotation(key, *(as_string(data.get(name)) for name in (*names, "annotationSortIndex")))


def _collections(listing: Listing) -> Iterator[ZoteroCollection]:
    for key, record in listing.records.items():
        data = data_of(record)
        if not data.get("deleted"):
            yield ZoteroCollection(key, as_string(data.get("name")), as_string(data.get("parentCollection")))


def _date(data: Record) -> str:
    """The moment of adding in the database's form."""
    return as_string(data.get("dateAdded")).replace("T", " ").removesuffix("Z")


def data_of(record: Record) -> Record:
    return as_object(record.get("data"))


def as_object(value: Any) -> Record:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_string(value: Any) -> str:
    return plain_text(value) if isinstance(value, str) else ""

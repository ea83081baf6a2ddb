"""Reads Zotero through its local API, which a running Zotero serves on this computer to programs that it allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

from ..errors import WRONG_INPUT, ConfigurationError
from ..models.http.failures import BrokenAnswerError
from ..models.http.response_body import ACCEPTED_ENCODING, parse_json, read_body
from .zotero_records import (
    ITEM_KEY,
    LINK_MODES,
    Annotation,
    Attachment,
    Creator,
    ItemNote,
    ZoteroCollection,
    ZoteroContent,
    ZoteroError,
    ZoteroItem,
    ZoteroLibrary,
    plain_text,
)

ADDRESS: Final = "http://localhost:23119"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PAGE: Final = 500  # items of one answer
_MOST_BYTES: Final = 100_000_000  # of one answer
_MOST_ITEMS: Final = 1_000_000
_TRIES: Final = 3
_OTHER_KINDS: Final = ("attachment", "note", "annotation")
_NOT_FIELDS: Final = ("key", "version", "itemType", "dateAdded", "dateModified")
_SECONDS: Final = 60.0
_ALLOW: Final = (
    "In Zotero's settings, under Advanced, allow other applications on this computer to communicate with Zotero."
)

_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": ACCEPTED_ENCODING,
    "Zotero-API-Version": "3",
    "Content-Type": "application/json",
}


class NotAvailableError(ZoteroError):
    """Zotero is not running, or does not allow use of its local API."""

    exit_code = WRONG_INPUT
    default_help = "Start Zotero, or name its data folder in CITELOOM_ZOTERO to read its database instead."


class _ChangedMeanwhileError(Exception):
    """The library changed between two pages of one listing."""


Record = Mapping[str, Any]


@dataclass(slots=True)
class _Listing:
    """The records of a list by key, the omitted ones, and the version of the library."""

    records: dict[str, Record] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    version: str = ""


class LocalApi:
    """The local API at an address on this computer; raises `ConfigurationError` for any other address."""

    def __init__(self, address: str = ADDRESS, *, seconds: float = _SECONDS) -> None:
        if not _is_local(address):
            raise ConfigurationError(
                f"Setting zotero (CITELOOM_ZOTERO): {address!r:.100}: is not an address on this computer.",
                help=f"Zotero answers only on its own computer, at {ADDRESS}; or name its data folder.",
            )
        self._base = f"{address.rstrip('/').removesuffix('/api')}/api"
        self._seconds = seconds
        self.name = self._base

    async def require_available(self) -> None:
        """Raise `ZoteroError` unless the API answers."""
        async with self._client() as http:
            await self._get(http, "/users/0/items", {"limit": "1"})

    async def groups(self) -> list[ZoteroLibrary]:
        """The libraries of the user's groups; raises `ZoteroError`."""
        async with self._client() as http:
            listed, _ = await self._get(http, "/users/0/groups", {})
        if not isinstance(listed, list):
            raise self._broken("its list of groups is not a list")
        return [
            ZoteroLibrary(number, _string(_data(record).get("name")))
            for record in map(_object, listed)
            if isinstance(number := record.get("id"), int) and 0 < number < 10**12
        ]

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        """The content of a library; None if Zotero says that it is unchanged since the version `known`.

        This is only trusted if Zotero identifies itself: earlier versions count only changes synced with zotero.org.
        """
        prefix = f"/groups/{library.group}" if library.group else "/users/0"
        async with self._client() as http:
            if known and await self._is_unchanged(http, prefix, known):
                return None
            for _ in range(_TRIES):
                try:
                    collections = await self._list(http, f"{prefix}/collections")
                    items = await self._list(http, f"{prefix}/items")
                except _ChangedMeanwhileError:
                    continue
                if collections.version == items.version:
                    keys = await self._citation_keys(http, library, items.records)
                    return _build_content(items, collections, keys)
        raise ZoteroError(f"{self._base}: the library changes while it is read.", help="Run the same command again.")

    async def _is_unchanged(self, http: httpx.AsyncClient, prefix: str, known: str) -> bool:
        server, _, version = known.partition(":")
        if not version.isdigit():
            return False  # it stands for a state of the database
        asked = {"If-Modified-Since-Version": version}
        body, headers = await self._get(http, f"{prefix}/items", {"limit": "1"}, asked)
        return body is None and headers.get("zotero-server-id") == server

    async def _list(self, http: httpx.AsyncClient, path: str) -> _Listing:
        """All records of a list by key, from as many pages as it has."""
        listing = _Listing()
        total, seen = 1, 0
        order = {"sort": "dateAdded", "direction": "asc"} if path.endswith("/items") else {}
        while seen < total:
            page, headers = await self._get(http, path, {"limit": str(_PAGE), "start": str(seen), **order})
            if not isinstance(page, list):
                raise self._broken(f"the answer to {path} is not a list")
            count = headers.get("total-results", "")
            total = int(count) if count.isdigit() and len(count) < 10 else len(page)
            if total > _MOST_ITEMS or (not page and seen < total):
                raise self._broken(f"the answer to {path} names {total:,} records and does not give them")
            server, number = headers.get("zotero-server-id", ""), headers.get("last-modified-version", "")
            version = f"{server}:{number}" if server and number.isdigit() else ""
            if seen and version != listing.version:
                raise _ChangedMeanwhileError
            listing.version = version
            seen += len(page)
            for record in page:
                key = _string(_data(_object(record)).get("key"))
                if ITEM_KEY.fullmatch(key):
                    listing.records[key] = record
                else:
                    listing.damaged.append(f"{self._base}: a record without a valid key was left out ({key!r:.40}).")
        if len(listing.records) + len(listing.damaged) != seen:
            raise _ChangedMeanwhileError
        return listing

    async def _citation_keys(
        self, http: httpx.AsyncClient, library: ZoteroLibrary, records: Mapping[str, Record]
    ) -> dict[str, str]:
        """Better BibTeX's keys, if it is installed and they are not a field of the item; blank keys are left out."""
        data = {key: _data(record) for key, record in records.items()}
        regular = [key for key in data if _string(data[key].get("itemType")) not in _OTHER_KINDS]
        wanted = [key for key in regular if not _string(data[key].get("citationKey"))]
        if library.group or not wanted:
            return {}  # it numbers groups as in the database, which the API does not show
        question = {"jsonrpc": "2.0", "method": "item.citationkey", "params": [wanted], "id": 1}
        address = f"{self._base.removesuffix('/api')}/better-bibtex/json-rpc"
        try:
            response = await http.post(address, content=json.dumps(question), headers=_HEADERS)
            answer = parse_json(response.content) if response.status_code == 200 else {}
            found = _object(_object(answer).get("result"))
        except (httpx.HTTPError, ValueError, BrokenAnswerError):
            return {}
        keys = {name.rpartition(":")[2]: _string(value) for name, value in found.items()}
        return {key: value for key, value in keys.items() if key in records and value}

    def _client(self) -> httpx.AsyncClient:
        # Without the environment's proxies: the address is on this computer.
        return httpx.AsyncClient(timeout=self._seconds, follow_redirects=False, trust_env=False)

    async def _get(
        self, http: httpx.AsyncClient, path: str, query: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """The JSON of an answer, None if it is unchanged, and its headers; raises `ZoteroError`."""
        address = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            async with (
                asyncio.timeout(self._seconds),
                http.stream("GET", address, headers={**_HEADERS, **(headers or {})}) as response,
            ):
                if response.status_code == 304:
                    return None, response.headers
                size = _MOST_BYTES if response.status_code == 200 else 2_000
                try:
                    body = await read_body(response, size)
                except BrokenAnswerError:
                    if response.status_code == 200:
                        raise
                    body = b""
                if response.status_code != 200:
                    raise self._refused(response.status_code, body)
            return parse_json(body), response.headers
        except httpx.ConnectError as error:
            raise NotAvailableError(f"{self._base}: Zotero does not answer; it is not running.") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            message = f"{self._base}: no answer within {self._seconds:.0f} s."
            raise ZoteroError(
                message, help="Wait until Zotero is idle, or restart it, and run the command again."
            ) from error
        except httpx.HTTPError as error:
            raise self._broken(f"the connection broke off ({type(error).__name__})") from error
        except (BrokenAnswerError, ValueError) as error:
            reason = str(error) if isinstance(error, BrokenAnswerError) else "it is not JSON"
            raise self._broken(reason) from error

    def _refused(self, status: int, body: bytes) -> ZoteroError:
        if status == 403:
            return NotAvailableError(f"{self._base}: Zotero does not allow its local API (403).", help=_ALLOW)
        if status == 404:
            remedy = "Update Zotero to 7 or later, or name its data folder in CITELOOM_ZOTERO."
            return ZoteroError(f"{self._base}: there is no local API at this address (404).", help=remedy)
        said = " ".join(body.decode("utf-8", "replace").split())[:200]
        return ZoteroError(f"{self._base}: Zotero answered {status}{f' ({said})' if said else ''}.")

    def _broken(self, reason: str) -> ZoteroError:
        remedy = "Check that Zotero is what answers at this address, and update it."
        return ZoteroError(f"{self._base}: sent an answer that cannot be used: {reason}.", help=remedy)


def _is_local(address: str) -> bool:
    """Whether an address is on this computer and contains only the API's path."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    path = parts.path.rstrip("/") in ("", "/api")
    return parts.scheme == "http" and parts.hostname in _HERE and port != 0 and path and not parts.username


def _build_content(items: _Listing, collections: _Listing, keys: Mapping[str, str]) -> ZoteroContent:
    """Convert the API's records to a library's content; any field may be missing or malformed."""
    live = {key: data for key, record in items.records.items() if not (data := _data(record)).get("deleted")}
    kinds: dict[str, list[str]] = {}
    for key, data in live.items():
        kind, parent = _string(data.get("itemType")), _string(data.get("parentItem"))
        # Children of an item in the trash are in the trash too.
        if kind and (kind not in _OTHER_KINDS or not parent or parent in live):
            kinds.setdefault(kind, []).append(key)
    regular = [key for kind, found in kinds.items() if kind not in _OTHER_KINDS for key in found]
    shelves = {key: _data(record) for key, record in collections.records.items()}
    return ZoteroContent(
        tuple(_item(key, live[key]) for key in regular),
        tuple(_attachment(key, live[key], items.records[key]) for key in kinds.get("attachment", ())),
        tuple(
            ItemNote(key, _string(live[key].get("parentItem")), _string(live[key].get("note")), _date(live[key]))
            for key in kinds.get("note", ())
        ),
        tuple(_annotation(key, live[key]) for key in kinds.get("annotation", ())),
        tuple(
            ZoteroCollection(key, _string(data.get("name")), _string(data.get("parentCollection")))
            for key, data in shelves.items()
            if not data.get("deleted")
        ),
        citation_keys=keys,
        damaged=(*items.damaged, *collections.damaged),
        version=items.version,
    )


def _item(key: str, data: Record) -> ZoteroItem:
    fields = {name: value for name in data if name not in _NOT_FIELDS and (value := _string(data[name]))}
    creators = (
        Creator.of(
            _string(person.get("creatorType")),
            _string(person.get("lastName")) or _string(person.get("name")),
            _string(person.get("firstName")),
        )
        for person in map(_object, _array(data.get("creators")))
    )
    collections = frozenset(map(_string, _array(data.get("collections"))))
    return ZoteroItem(key, _string(data["itemType"]), fields, tuple(filter(None, creators)), collections, _date(data))


def _attachment(key: str, data: Record, record: Record) -> Attachment:
    mode = LINK_MODES.get(_string(data.get("linkMode")), "other")
    name = _string(data.get("filename" if mode == "stored" else "path"))
    url = _string(_object(_object(record.get("links")).get("enclosure")).get("href"))
    return Attachment(key, _string(data.get("parentItem")), mode, name, _string(data.get("title")), _date(data), url)


def _annotation(key: str, data: Record) -> Annotation:
    names = ("parentItem", "annotationType", "annotationText", "annotationComment", "annotationPageLabel")
    return Annotation(key, *(_string(data.get(name)) for name in (*names, "annotationSortIndex")))


def _date(data: Record) -> str:
    """The time when the item was added, in the database's format."""
    return _string(data.get("dateAdded")).replace("T", " ").removesuffix("Z")


def _data(record: Record) -> Record:
    return _object(record.get("data"))


def _object(value: Any) -> Record:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: Any) -> str:
    return plain_text(value) if isinstance(value, str) else ""

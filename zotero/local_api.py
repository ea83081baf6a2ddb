"""Reads Zotero through its local API, which a running Zotero serves on this computer to programs that it allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

from ..errors import WRONG_INPUT, ConfigurationError
from ..metadata.service_works import mapping
from ..models.http.failures import BrokenAnswerError, ServerRefusalError
from ..models.http.response_body import ACCEPTED_ENCODING, parse_json, read_body, read_refusal
from .zotero_records import (
    CHILD_KINDS,
    FILE_URL,
    ITEM_KEY,
    Record,
    ZoteroCollection,
    ZoteroContent,
    ZoteroError,
    ZoteroLibrary,
    build_content,
    text_value,
)

ADDRESS: Final = "http://localhost:23119"
_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PAGE: Final = 500  # items of one answer
_MOST_BYTES: Final = 100_000_000  # of one answer
_MOST_ITEMS: Final = 1_000_000
_TRIES: Final = 3
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


@dataclass(slots=True)
class _Listing:
    """The records of a list by key, the omitted ones, and the version of the library."""

    records: dict[str, Record] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    version: str = ""


class LocalApi:
    """The local API at an address on this computer; raises `ConfigurationError` for any other address."""

    def __init__(self, address: str = ADDRESS, *, seconds: float = _SECONDS) -> None:
        try:
            parts = urlsplit(address)
            is_here = parts.scheme == "http" and parts.hostname in _HERE and parts.port != 0
        except ValueError:
            is_here = False
        if not is_here or parts.path.rstrip("/") not in ("", "/api") or parts.username:
            raise ConfigurationError(
                f"Setting zotero (CITELOOM_ZOTERO): {address!r:.100}: is not an address on this computer.",
                help=f"Zotero answers only on its own computer, at {ADDRESS}; or name its data folder.",
            )
        self._base = f"{address.rstrip('/').removesuffix('/api')}/api"
        self._seconds = seconds
        self.name = self._base

    async def require_available(self) -> None:
        async with self._client() as http:
            await self._get(http, "/users/0/items", {"limit": "1"})

    async def groups(self) -> list[ZoteroLibrary]:
        async with self._client() as http:
            listed, _ = await self._get(http, "/users/0/groups", {})
        if not isinstance(listed, list):
            raise self._broken("its list of groups is not a list")
        return [
            ZoteroLibrary(number, text_value(_data(record).get("name")))
            for record in map(mapping, listed)
            if isinstance(number := record.get("id"), int) and 0 < number < 10**12
        ]

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        """The content of a library; None if it is unchanged since the version `known`.

        The version is trusted only if Zotero identifies itself, since earlier releases count only changes synced with
        zotero.org.
        """
        prefix = f"/groups/{library.group}" if library.group else "/users/0"
        async with self._client() as http:
            server, _, version = known.partition(":")
            if version.isdigit():  # otherwise it identifies a state of the database
                since = {"If-Modified-Since-Version": version}
                body, headers = await self._get(http, f"{prefix}/items", {"limit": "1"}, since)
                if body is None and headers.get("zotero-server-id") == server:
                    return None
            for _ in range(_TRIES):
                try:
                    collections = await self._list(http, f"{prefix}/collections")
                    items = await self._list(http, f"{prefix}/items")
                except _ChangedMeanwhileError:
                    continue
                if collections.version == items.version:
                    return _build_content(items, collections, await self._citation_keys(http, library, items.records))
        raise ZoteroError(f"{self._base}: the library changes while it is read.", help="Run the same command again.")

    async def _list(self, http: httpx.AsyncClient, path: str) -> _Listing:
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
                key = text_value(_data(mapping(record)).get("key"))
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
        regular = [key for key in data if text_value(data[key].get("itemType")) not in CHILD_KINDS]
        wanted = [key for key in regular if not text_value(data[key].get("citationKey"))]
        if library.group or not wanted:
            return {}  # Better BibTeX numbers groups as in the database, which the API does not show
        question = {"jsonrpc": "2.0", "method": "item.citationkey", "params": [wanted], "id": 1}
        address = f"{self._base.removesuffix('/api')}/better-bibtex/json-rpc"
        try:
            response = await http.post(address, content=json.dumps(question), headers=_HEADERS)
            answer = parse_json(response.content) if response.status_code == 200 else {}
            found = mapping(mapping(answer).get("result"))
        except (httpx.HTTPError, ValueError, BrokenAnswerError):
            return {}
        keys = {name.rpartition(":")[2]: text_value(value) for name, value in found.items()}
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
                if response.status_code != 200:
                    raise await read_refusal(response)
                body = await read_body(response, _MOST_BYTES)
            return parse_json(body), response.headers
        except ServerRefusalError as error:
            if error.status_code == 403:
                raise NotAvailableError(
                    f"{self._base}: Zotero does not allow its local API (403).", help=_ALLOW
                ) from error
            if error.status_code == 404:
                remedy = "Update Zotero to 7 or later, or name its data folder in CITELOOM_ZOTERO."
                raise ZoteroError(f"{self._base}: there is no local API at this address (404).", help=remedy) from error
            raise ZoteroError(f"{self._base}: Zotero answered {error.status_code} ({error.message}).") from error
        except httpx.ConnectError as error:
            raise NotAvailableError(f"{self._base}: Zotero does not answer; it is not running.") from error
        except (httpx.TimeoutException, TimeoutError) as error:
            remedy = "Wait until Zotero is idle, or restart it, and run the command again."
            raise ZoteroError(f"{self._base}: no answer within {self._seconds:.0f} s.", help=remedy) from error
        except httpx.HTTPError as error:
            raise self._broken(f"the connection broke off ({type(error).__name__})") from error
        except (BrokenAnswerError, ValueError) as error:
            raise self._broken(str(error) if isinstance(error, BrokenAnswerError) else "it is not JSON") from error

    def _broken(self, reason: str) -> ZoteroError:
        remedy = "Check that Zotero is what answers at this address, and update it."
        return ZoteroError(f"{self._base}: sent an answer that cannot be used: {reason}.", help=remedy)


def _build_content(items: _Listing, collections: _Listing, keys: Mapping[str, str]) -> ZoteroContent:
    live: dict[str, Record] = {}
    for key, record in items.records.items():
        if not (data := _data(record)).get("deleted"):
            file = mapping(mapping(record.get("links")).get("enclosure")).get("href")
            live[key] = {**data, FILE_URL: file} if data.get("itemType") == "attachment" else data
    shelves = {key: _data(record) for key, record in collections.records.items()}
    return replace(
        build_content(live),
        collections=tuple(
            ZoteroCollection(key, text_value(data.get("name")), text_value(data.get("parentCollection")))
            for key, data in shelves.items()
            if not data.get("deleted")
        ),
        citation_keys=keys,
        damaged=(*items.damaged, *collections.damaged),
        version=items.version,
    )


def _data(record: Record) -> Record:
    return mapping(record.get("data"))

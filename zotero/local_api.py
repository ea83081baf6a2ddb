"""Reads Zotero through its local API, which a running Zotero serves on this computer to programs that it allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

from ..errors import WRONG_INPUT, ConfigurationError
from ..models.http.failures import BrokenAnswerError
from ..models.http.response_body import ACCEPTED_ENCODING, body_parts, parse_json
from .api_records import OTHER_KINDS, Listing, Record, as_object, as_string, content_of, data_of
from .zotero_records import ITEM_KEY, ZoteroContent, ZoteroError, ZoteroLibrary

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


class NotAvailableError(ZoteroError):
    """Zotero does not run, or does not allow its local API to be used."""

    exit_code = WRONG_INPUT
    default_help = "Start Zotero, or name its data folder in CITELOOM_ZOTERO to read its database instead."


class _ChangedMeanwhileError(Exception):
    """The library was changed between two pages of one listing."""


@dataclass(frozen=True, slots=True)
class _Answer:
    body: Any
    headers: Mapping[str, str]


class LocalApi:
    """The local API at an address on this computer; raises `ConfigurationError` for another computer's."""

    def __init__(self, address: str = ADDRESS, *, seconds: float = _SECONDS) -> None:
        if not _is_here(address):
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
            listed = (await self._get(http, "/users/0/groups", {})).body
        if not isinstance(listed, list):
            raise self._broken("its list of groups is no list")
        found = [(record, as_object(record).get("id")) for record in listed]
        return [
            ZoteroLibrary(number, as_string(as_object(as_object(record).get("data")).get("name")))
            for record, number in found
            if isinstance(number, int) and 0 < number < 10**12
        ]

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        """All that a library holds; None if Zotero says that it is as it was at the version `known`.

        Only a Zotero that names itself is believed: earlier ones count only what was synchronized with zotero.org.
        """
        prefix = f"/groups/{library.group}" if library.group else "/users/0"
        async with self._client() as http:
            if known and await self._is_unchanged(http, prefix, known):
                return None
            for _ in range(_TRIES):
                try:
                    collections = await self._listing(http, f"{prefix}/collections")
                    items = await self._listing(http, f"{prefix}/items")
                except _ChangedMeanwhileError:
                    continue
                if collections.version == items.version:
                    keys = await self._citation_keys(http, library, items.records)
                    return content_of(items, collections, keys)
        raise ZoteroError(f"{self._base}: the library changes while it is read.", help="Run the same command again.")

    async def _is_unchanged(self, http: httpx.AsyncClient, prefix: str, known: str) -> bool:
        server, _, version = known.partition(":")
        if not version.isdigit():
            return False  # it stands for a state of the database
        headers = {"If-Modified-Since-Version": version}
        answer = await self._get(http, f"{prefix}/items", {"limit": "1"}, headers)
        return answer.body is None and answer.headers.get("zotero-server-id") == server

    async def _listing(self, http: httpx.AsyncClient, path: str) -> Listing:
        """All records of a list by key, from as many pages as it has."""
        listing = Listing()
        total, seen = 1, 0
        while seen < total:
            order = {"sort": "dateAdded", "direction": "asc"} if path.endswith("/items") else {}
            answer = await self._get(http, path, {"limit": str(_PAGE), "start": str(seen), **order})
            if not isinstance(answer.body, list):
                raise self._broken(f"the answer to {path} is no list")
            version = _version(answer.headers)
            total = _number(answer.headers.get("total-results"), len(answer.body))
            if total > _MOST_ITEMS or (not answer.body and seen < total):
                raise self._broken(f"the answer to {path} names {total:,} records and does not give them")
            if seen and version != listing.version:
                raise _ChangedMeanwhileError
            listing.version = version
            seen += len(answer.body)
            for record in answer.body:
                data = as_object(as_object(record).get("data"))
                key = as_string(data.get("key"))
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
        """The keys of Better BibTeX, where it is installed and they are no field of the item; blank keys left out."""
        wanted = [key for key, record in records.items() if not as_string(data_of(record).get("citationKey"))]
        wanted = [key for key in wanted if as_string(data_of(records[key]).get("itemType")) not in OTHER_KINDS]
        if library.group or not wanted:
            return {}  # it numbers groups by the database, which the API does not show
        question = {"jsonrpc": "2.0", "method": "item.citationkey", "params": [wanted], "id": 1}
        address = f"{self._base.removesuffix('/api')}/better-bibtex/json-rpc"
        try:
            response = await http.post(address, content=json.dumps(question), headers=_HEADERS)
            found = (
                as_object(as_object(parse_json(response.content)).get("result")) if response.status_code == 200 else {}
            )
        except (httpx.HTTPError, ValueError, BrokenAnswerError):
            return {}
        keys = {name.rpartition(":")[2]: as_string(value) for name, value in found.items()}
        return {key: value for key, value in keys.items() if key in records and value}

    def _client(self) -> httpx.AsyncClient:
        # Without the environment's proxies: the address is on this computer.
        return httpx.AsyncClient(timeout=self._seconds, follow_redirects=False, trust_env=False)

    async def _get(
        self, http: httpx.AsyncClient, path: str, query: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> _Answer:
        """The JSON of an answer, None if it is unchanged; raises `ZoteroError`."""
        address = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            async with (
                asyncio.timeout(self._seconds),
                http.stream("GET", address, headers={**_HEADERS, **(headers or {})}) as response,
            ):
                if response.status_code == 304:
                    return _Answer(None, response.headers)
                size = _MOST_BYTES if response.status_code == 200 else 2_000
                try:
                    body = b"".join([part async for part in body_parts(response, size)])
                except BrokenAnswerError:
                    if response.status_code == 200:
                        raise
                    body = b""
                if response.status_code != 200:
                    raise self._refused(response.status_code, body)
            return _Answer(parse_json(body), response.headers)
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


_HEADERS: Final = {
    "Accept": "application/json",
    "Accept-Encoding": ACCEPTED_ENCODING,
    "Zotero-API-Version": "3",
    "Content-Type": "application/json",
}


def _is_here(address: str) -> bool:
    """Whether it is an address of this computer, with nothing behind it but the API's path."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    path = parts.path.rstrip("/") in ("", "/api")
    return parts.scheme == "http" and parts.hostname in _HERE and port != 0 and path and not parts.username


def _version(headers: Mapping[str, str]) -> str:
    server, version = headers.get("zotero-server-id", ""), headers.get("last-modified-version", "")
    return f"{server}:{version}" if server and version.isdigit() else ""


def _number(value: str | None, otherwise: int) -> int:
    return int(value) if value is not None and value.isdigit() and len(value) < 10 else otherwise

"""Zotero's local API over a made data folder, in the form that Zotero answers, with faults.

It reads the same database, so that both ways into Zotero can be compared. `requests` are the paths that were asked for.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.support.made_zotero import ANNOTATIONS, GROUP, GROUP_ID, LINK_MODES, OWN, MadeZotero

_MODES: Final = {number: name for name, number in LINK_MODES.items()}
_KINDS: Final = {number: name for name, number in ANNOTATIONS.items()}


@dataclass(frozen=True)
class ApiFault:
    """An answer instead of the next one; `hangs` until the server stops."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False


class ZoteroServer:
    """The API; `server_id` is empty for a Zotero that does not count local changes."""

    def __init__(self, made: MadeZotero, server_id: str = "Serv3rIdAbcd") -> None:
        self.made = made
        self.server_id = server_id
        self.faults: list[ApiFault] = []
        self.requests: list[str] = []
        self.methods: set[str] = set()
        self.better_bibtex: dict[str, str] = {}
        self._stopped = threading.Event()
        self._seen: list[str] = []

    def __enter__(self) -> Self:
        serving = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                serving.answer(self)

            def do_POST(self) -> None:
                serving.call(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address, as for CITELOOM_ZOTERO."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        self.methods.add(handler.command)
        if self.faults:
            self._play(handler, self.faults.pop(0))
            return
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        records = self._records(parts.path)
        if records is None:
            self._play(handler, ApiFault(404, b"Not found", {"Content-Type": "text/plain"}))
            return
        version = self._version()
        headers = {"Content-Type": "application/json", "Total-Results": str(len(records)), "Zotero-API-Version": "3"}
        headers["Last-Modified-Version"] = str(version)
        if self.server_id:
            headers["Zotero-Server-ID"] = self.server_id
        since = handler.headers.get("If-Modified-Since-Version", "")
        if since.isdigit() and int(since) and version <= int(since):
            self._play(handler, ApiFault(304, b"", headers))
            return
        start = int(query.get("start", 0))
        page = records[start : start + int(query.get("limit", len(records)) or 0)]
        self._play(handler, ApiFault(200, json.dumps(page, indent=4).encode(), headers))

    def call(self, handler: BaseHTTPRequestHandler) -> None:
        """Better BibTeX's JSON-RPC, if it is installed."""
        self.requests.append(handler.path)
        asked = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        if not self.better_bibtex or handler.path != "/better-bibtex/json-rpc":
            self._play(handler, ApiFault(404, b"No endpoint found"))
            return
        assert asked["method"] == "item.citationkey"
        found = {key: self.better_bibtex.get(key, "") for key in asked["params"][0]}
        self._play(handler, ApiFault(200, json.dumps({"jsonrpc": "2.0", "result": found, "id": asked["id"]}).encode()))

    def _version(self) -> int:
        """A number that grows with every change of the database, as a new Zotero counts; 0 in an old one."""
        if not self.server_id:
            return 0
        with closing(sqlite3.connect(self.made.folder / "zotero.sqlite")) as db:
            state = "\n".join(db.iterdump())
        if state not in self._seen:
            self._seen.append(state)
        return self._seen.index(state) + 1

    def _records(self, path: str) -> list[dict[str, Any]] | None:
        libraries = {"/api/users/0": OWN, f"/api/groups/{GROUP_ID}": GROUP}
        if path == "/api/users/0/groups":
            return [{"id": GROUP_ID, "version": 1, "data": {"id": GROUP_ID, "name": "Weavers"}}]
        prefix, _, what = path.rpartition("/")
        library = libraries.get(prefix)
        if library is None or what not in ("items", "collections"):
            return None
        with closing(sqlite3.connect(self.made.folder / "zotero.sqlite")) as db:
            db.row_factory = sqlite3.Row
            return self._items(db, library) if what == "items" else self._collections(db, library)

    def _items(self, db: sqlite3.Connection, library: int) -> list[dict[str, Any]]:
        keys = {row["itemID"]: row["key"] for row in db.execute("SELECT itemID, key FROM items")}
        rows = db.execute(
            "SELECT * FROM items JOIN itemTypes USING (itemTypeID) WHERE libraryID = ? AND itemID NOT IN "
            "(SELECT itemID FROM deletedItems) ORDER BY dateAdded",
            (library,),
        )
        return [self._item(db, dict(row), keys) for row in rows]

    def _item(self, db: sqlite3.Connection, row: dict[str, Any], keys: Mapping[int, str]) -> dict[str, Any]:
        number, key, kind = row["itemID"], row["key"], row["typeName"]
        added = f"{row['dateAdded'].replace(' ', 'T')}Z"
        data: dict[str, Any] = {"key": key, "version": row["version"], "itemType": kind, "dateAdded": added}
        for name, value in db.execute(
            "SELECT fieldName, value FROM itemData JOIN fieldsCombined USING (fieldID) "
            "JOIN itemDataValues USING (valueID) WHERE itemID = ?",
            (number,),
        ):
            data[name] = value
        links: dict[str, Any] = {"self": {"href": f"{self.url}/api/users/0/items/{key}", "type": "application/json"}}
        if kind in ("attachment", "note", "annotation"):
            self._child(db, number, kind, keys, data, links)
        else:
            data["creators"] = [
                {"creatorType": role, **({"name": last} if mode else {"firstName": first, "lastName": last})}
                for role, first, last, mode in db.execute(
                    "SELECT creatorType, firstName, lastName, fieldMode FROM itemCreators JOIN creators "
                    "USING (creatorID) JOIN creatorTypes USING (creatorTypeID) WHERE itemID = ? ORDER BY orderIndex",
                    (number,),
                )
            ]
            data["collections"] = [
                name
                for (name,) in db.execute(
                    "SELECT key FROM collectionItems JOIN collections USING (collectionID) WHERE itemID = ?", (number,)
                )
            ]
        labels = "SELECT name, type FROM itemTags JOIN tags USING (tagID) WHERE itemID = ?"
        data["tags"] = [{"tag": name, "type": how} for name, how in db.execute(labels, (number,))]
        data |= {"relations": {}, "dateModified": added}
        return {
            "key": key,
            "version": row["version"],
            "library": {"type": "user", "id": 1},
            "links": links,
            "meta": {},
            "data": data,
        }

    def _child(
        self,
        db: sqlite3.Connection,
        number: int,
        kind: str,
        keys: Mapping[int, str],
        data: dict[str, Any],
        links: dict[str, Any],
    ) -> None:
        table = {"attachment": "itemAttachments", "note": "itemNotes", "annotation": "itemAnnotations"}[kind]
        row = db.execute(f"SELECT * FROM {table} WHERE itemID = ?", (number,)).fetchone()
        if row["parentItemID"] is not None:
            data["parentItem"] = keys[row["parentItemID"]]
        if kind == "note":
            data["note"] = row["note"]
        elif kind == "annotation":
            data |= {"annotationType": _KINDS[row["type"]], "annotationText": row["text"]}
            data |= {"annotationComment": row["comment"], "annotationPageLabel": row["pageLabel"]}
            data["annotationSortIndex"] = row["sortIndex"]
        else:
            data["linkMode"] = _MODES[row["linkMode"]]
            if data["linkMode"].startswith("imported"):
                data["filename"] = row["path"].removeprefix("storage:")
                path = self.made.folder.resolve() / "storage" / data["key"] / data["filename"]
                links["enclosure"] = {"href": path.as_uri(), "type": "", "title": data["filename"]}
            else:
                data["path"] = row["path"]

    def _collections(self, db: sqlite3.Connection, library: int) -> list[dict[str, Any]]:
        rows = db.execute(
            "SELECT one.key, one.collectionName, above.key FROM collections AS one LEFT JOIN collections AS above "
            "ON above.collectionID = one.parentCollectionID WHERE one.libraryID = ?",
            (library,),
        )
        return [
            {"key": key, "version": 0, "data": {"key": key, "name": name, "parentCollection": parent or False}}
            for key, name, parent in rows
        ]

    def _play(self, handler: BaseHTTPRequestHandler, fault: ApiFault) -> None:
        if fault.hangs:
            self._stopped.wait(30)
            handler.close_connection = True
            return
        handler.send_response(fault.status)
        for name, value in fault.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(fault.body)))
        handler.end_headers()
        handler.wfile.write(fault.body)

"""What metadata services said of the papers, by DOI: answers, statements, retractions, and which paper has which DOI.

In a folder it is a file of its own. Nothing here is part of the library or its version: a paper that is removed and
ingested again is found retracted again, and a retraction leaves paused runs as they are. An answer is committed before
it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ..documents import Paper
from ..documents.publication_status import (
    NOTICE_KINDS,
    VERSION_KINDS,
    Notice,
    NoticeKind,
    PublicationStatus,
    Version,
    VersionKind,
)
from ..table_columns import JSON, NUMBER, TEXT, Column, TypedTable, dump_json, integer
from .metadata_records import ServiceAnswer, ServiceStatement, title_mark
from .register_tables import RegisterTables, TableConnection, rows_of

METADATA_REMEDY: Final = "Move it away and run '{citeloom} papers enrich': it holds only what services said."
METADATA_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (
    service TEXT NOT NULL, request TEXT NOT NULL, status INTEGER NOT NULL, body TEXT NOT NULL,
    answered_at REAL NOT NULL, PRIMARY KEY (service, request)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identities (
    title TEXT NOT NULL, key TEXT NOT NULL, year INTEGER NOT NULL, doi TEXT NOT NULL, similarity REAL NOT NULL,
    service TEXT NOT NULL, decided_at REAL NOT NULL, PRIMARY KEY (title, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS statements (
    doi TEXT NOT NULL, field TEXT NOT NULL, service TEXT NOT NULL, said_at REAL NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (doi, field, service, said_at)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notices (
    doi TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, notice TEXT NOT NULL, date TEXT NOT NULL,
    reason TEXT NOT NULL, PRIMARY KEY (doi, kind, source, notice, date)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
    doi TEXT NOT NULL, kind TEXT NOT NULL, other TEXT NOT NULL, source TEXT NOT NULL,
    PRIMARY KEY (doi, kind, other, source)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, stamp TEXT NOT NULL) WITHOUT ROWID;
"""
_ENTRIES: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, Column]]]] = {
    "answers": (
        ("service", "request"),
        {"service": TEXT, "request": TEXT, "status": integer(), "body": JSON, "answered_at": NUMBER},
    ),
    "identities": (
        ("title", "key"),
        {"title": TEXT, "key": TEXT, "year": integer(), "doi": TEXT},
    ),
    "statements": (
        ("doi", "field", "service"),
        {"doi": TEXT, "field": TEXT, "service": TEXT, "said_at": NUMBER, "value": JSON},
    ),
    "notices": (
        ("doi", "kind", "source", "notice", "date"),
        {"doi": TEXT, "kind": TEXT, "source": TEXT, "notice": TEXT, "date": TEXT, "reason": TEXT},
    ),
    "versions": (("doi", "kind", "other", "source"), {"doi": TEXT, "kind": TEXT, "other": TEXT, "source": TEXT}),
    "files": (("name",), {"name": TEXT, "stamp": TEXT}),
}
_AT_ONCE: Final = 500  # parameters of one statement
_LONGEST: Final = 200  # characters of a key, of which PostgreSQL indexes some 2,700 bytes


class MetadataStore:
    """The metadata in `tables`, whose names begin with `prefix`; blocking and thread-safe.

    All methods raise `DamagedFileError` for an entry that cannot be read.
    """

    def __init__(self, tables: RegisterTables, prefix: str = "") -> None:
        self._tables = tables
        self._prefix = prefix

    def is_empty(self) -> bool:
        """Whether nothing was ever stored, as far as that is known without reading."""
        return not self._tables.exist()

    def answer(self, service: str, request: str) -> ServiceAnswer | None:
        """The stored answer to a request; None if there is none."""
        query = f"SELECT * FROM {self._prefix}answers WHERE service = ? AND request = ?"
        rows = self._rows("answers", query, (service, _key(request)))
        return ServiceAnswer(rows[0]["status"], rows[0]["body"], rows[0]["answered_at"]) if rows else None

    def keep_answer(self, service: str, request: str, answer: ServiceAnswer) -> None:
        """Commit an answer; it replaces an earlier one to the same request."""
        row = (service, _key(request), answer.status, dump_json(answer.body), answer.answered_at)
        with self._tables.transaction() as db:
            db.execute(
                f"INSERT INTO {self._prefix}answers VALUES (?, ?, ?, ?, ?) ON CONFLICT (service, request)"
                " DO UPDATE SET status = excluded.status, body = excluded.body, answered_at = excluded.answered_at",
                row,
            )

    def keep_identity(self, paper: Paper, doi: str, similarity: float, service: str, now: float) -> None:
        """Commit the DOI that was found for a paper without one."""
        row = (_key(title_mark(paper)), paper.key, paper.year or 0, doi, similarity, service, now)
        with self._tables.transaction() as db:
            db.execute(f"DELETE FROM {self._prefix}identities WHERE title = ? AND key = ?", row[:2])
            db.execute(f"INSERT INTO {self._prefix}identities VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def dois(self, papers: Iterable[Paper]) -> dict[str, str]:
        """The DOIs of these papers by key: their own, else the one found for the same title and first author.

        A found DOI still counts after the paper got another key, but not for a paper of another year.
        """
        listed = list(papers)
        wanted = {_key(title_mark(paper)) for paper in listed if not paper.doi}
        found: dict[str, list[dict[str, Any]]] = {}
        query = f"SELECT title, key, year, doi FROM {self._prefix}identities WHERE title IN ({{}}) ORDER BY key"
        for row in self._each("identities", query, sorted(wanted)):
            found.setdefault(row["title"], []).append(row)
        dois: dict[str, str] = {}
        for paper in listed:
            rows = found.get(_key(title_mark(paper)), []) if not paper.doi else []
            same = [row for row in rows if row["key"] == paper.key] or [
                row for row in rows if row["year"] == (paper.year or 0)
            ]
            if doi := paper.doi or next((row["doi"] for row in same), ""):
                dois[paper.key] = doi
        return dois

    def keep_work(
        self,
        doi: str,
        service: str,
        said: Mapping[str, Any],
        notices: Sequence[Notice],
        versions: Sequence[Version],
        now: float,
    ) -> None:
        """Commit what a service said of a paper; an earlier statement stays, and so does every notice."""
        with self._tables.transaction() as db:
            before = dict(
                db.execute(
                    f"SELECT field, value FROM {self._prefix}statements WHERE doi = ? AND service = ? ORDER BY said_at",
                    (doi, service),
                ).fetchall()
            )
            new = {field: dump_json(value) for field, value in said.items()}
            db.executemany(
                f"INSERT INTO {self._prefix}statements VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (doi, field, service, said_at) DO UPDATE SET value = excluded.value",
                [(doi, field, service, now, value) for field, value in new.items() if before.get(field) != value],
            )
            self._insert_notices(db, [(doi, notice) for notice in notices])
            db.executemany(
                f"INSERT INTO {self._prefix}versions VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [(doi, version.kind, version.doi, version.source) for version in versions],
            )

    def statements(self, doi: str) -> list[ServiceStatement]:
        """The latest statement of every service on every field, by field and service."""
        rows = self._rows(
            "statements",
            f"SELECT * FROM {self._prefix}statements WHERE doi = ? ORDER BY field, service, said_at",
            (doi,),
        )
        latest = {(row["field"], row["service"]): row for row in rows}
        return [ServiceStatement(row["field"], row["service"], row["value"], row["said_at"]) for row in latest.values()]

    def statuses(self, papers: Iterable[Paper]) -> dict[str, PublicationStatus]:
        """The status of each paper on which there is a notice or of which another version is known, by key."""
        dois = self.dois(papers)
        wanted = sorted(set(dois.values()))
        notices: dict[str, list[Notice]] = {}
        query = f"SELECT * FROM {self._prefix}notices WHERE doi IN ({{}}) ORDER BY doi, kind, source, notice, date"
        for row in self._each("notices", query, wanted):
            if row["kind"] in NOTICE_KINDS:
                kind = cast(NoticeKind, row["kind"])
                notice = Notice(kind, row["source"], row["notice"], row["date"], row["reason"])
                notices.setdefault(row["doi"], []).append(notice)
        versions: dict[str, list[Version]] = {}
        query = f"SELECT * FROM {self._prefix}versions WHERE doi IN ({{}}) ORDER BY doi, kind, other, source"
        for row in self._each("versions", query, wanted):
            if row["kind"] in VERSION_KINDS:
                version = Version(cast(VersionKind, row["kind"]), row["other"], row["source"])
                versions.setdefault(row["doi"], []).append(version)
        return {
            key: PublicationStatus(tuple(notices.get(doi, ())), tuple(versions.get(doi, ())))
            for key, doi in dois.items()
            if doi in notices or doi in versions
        }

    def file_stamp(self, name: str) -> str:
        """The stamp of the file that was imported under this name; empty if there was none."""
        rows = self._rows("files", f"SELECT * FROM {self._prefix}files WHERE name = ?", (name,))
        return rows[0]["stamp"] if rows else ""

    def replace_notices(self, source: str, notices: Iterable[tuple[str, Notice]], stamp: str) -> None:
        """Replace all notices of a source by those of its new file, in one transaction."""
        with self._tables.transaction() as db:
            db.execute(f"DELETE FROM {self._prefix}notices WHERE source = ?", (source,))
            self._insert_notices(db, notices)
            db.execute(
                f"INSERT INTO {self._prefix}files VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET stamp = excluded.stamp",
                (source, stamp),
            )

    def _insert_notices(self, db: TableConnection, notices: Iterable[tuple[str, Notice]]) -> None:
        db.executemany(
            f"INSERT INTO {self._prefix}notices VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (doi, kind, source, notice, date) DO UPDATE SET reason = excluded.reason",
            ((doi, notice.kind, notice.source, notice.doi, notice.date, notice.reason) for doi, notice in notices),
        )

    def _rows(self, name: str, query: str, parameters: Sequence[Any]) -> list[dict[str, Any]]:
        table = TypedTable(f"{self._prefix}{name}", *_ENTRIES[name])
        return rows_of(self._tables, table, query, parameters)

    def _each(self, name: str, query: str, values: Sequence[str]) -> Iterator[dict[str, Any]]:
        for start in range(0, len(values), _AT_ONCE):
            part = values[start : start + _AT_ONCE]
            yield from self._rows(name, query.format(", ".join("?" * len(part))), part)


def _key(text: str) -> str:
    """The text as a key: a long one ends in a hash."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 64]}{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"

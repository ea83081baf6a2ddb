"""What metadata services said of the papers, by DOI: answers, statements, retractions, and which paper has which DOI.

It is a file of its own in the home. Nothing here is part of the library or its version: a paper that is removed and
ingested again is found retracted again, and a retraction leaves paused runs as they are. An answer is committed before
it is used.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from ...documents import Paper
from ...documents.publication_status import (
    NOTICE_KINDS,
    VERSION_KINDS,
    Notice,
    NoticeKind,
    PublicationStatus,
    Version,
    VersionKind,
)
from ...sqlite import DamagedFileError, RegisterFile
from ..metadata_records import Answer, Statement, title_mark

_REMEDY: Final = "Move it away and run '{citeloom} papers enrich': it holds only what services said."
_SCHEMA: Final = """
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
_AT_ONCE: Final = 500  # parameters of one statement


class MetadataStore:
    """The metadata in the file at `path`, created with the first entry; blocking and thread-safe.

    All methods raise `DamagedFileError` for a file that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: RegisterFile | None = None

    def answer(self, service: str, request: str) -> Answer | None:
        """The stored answer to a request; None if there is none."""
        rows = self._rows(
            "SELECT status, body, answered_at FROM answers WHERE service = ? AND request = ?", (service, request)
        )
        if not rows:
            return None
        return Answer(int(rows[0]["status"]), self._value(rows[0]["body"]), float(rows[0]["answered_at"]))

    def keep_answer(self, service: str, request: str, answer: Answer) -> None:
        """Commit an answer; it replaces an earlier one to the same request."""
        row = (service, request, answer.status, json.dumps(answer.body), answer.answered_at)
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", row)

    def keep_identity(self, paper: Paper, doi: str, similarity: float, service: str, now: float) -> None:
        """Commit the DOI that was found for a paper without one."""
        row = (title_mark(paper), paper.key, paper.year or 0, doi, similarity, service, now)
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO identities VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def dois(self, papers: Iterable[Paper]) -> dict[str, str]:
        """The DOIs of these papers by key: their own, else the one found for the same title and first author.

        A found DOI still counts after the paper got another key, but not for a paper of another year.
        """
        listed = list(papers)
        wanted = {title_mark(paper) for paper in listed if not paper.doi}
        found: dict[str, list[sqlite3.Row]] = {}
        for row in self._each("SELECT title, key, year, doi FROM identities WHERE title IN ({})", sorted(wanted)):
            found.setdefault(row["title"], []).append(row)
        dois: dict[str, str] = {}
        for paper in listed:
            rows = found.get(title_mark(paper), []) if not paper.doi else []
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
        with self._writing() as db:
            rows = db.execute(
                "SELECT field, value FROM statements WHERE doi = ? AND service = ? ORDER BY said_at", (doi, service)
            )
            before = {row["field"]: row["value"] for row in rows}
            new = {field: json.dumps(value) for field, value in said.items()}
            db.executemany(
                "INSERT OR REPLACE INTO statements VALUES (?, ?, ?, ?, ?)",
                [(doi, field, service, now, value) for field, value in new.items() if before.get(field) != value],
            )
            _insert_notices(db, [(doi, notice) for notice in notices])
            db.executemany(
                "INSERT OR IGNORE INTO versions VALUES (?, ?, ?, ?)",
                [(doi, version.kind, version.doi, version.source) for version in versions],
            )

    def statements(self, doi: str) -> list[Statement]:
        """The latest statement of every service on every field, by field and service."""
        rows = self._rows(
            "SELECT field, service, value, said_at FROM statements WHERE doi = ? ORDER BY field, service, said_at",
            (doi,),
        )
        latest = {(row["field"], row["service"]): row for row in rows}
        return [
            Statement(row["field"], row["service"], self._value(row["value"]), float(row["said_at"]))
            for row in latest.values()
        ]

    def statuses(self, papers: Iterable[Paper]) -> dict[str, PublicationStatus]:
        """The status of each paper on which there is a notice or of which another version is known, by key."""
        dois = self.dois(papers)
        wanted = sorted(set(dois.values()))
        notices: dict[str, list[Notice]] = {}
        for row in self._each("SELECT * FROM notices WHERE doi IN ({})", wanted):
            if row["kind"] in NOTICE_KINDS:
                kind = cast(NoticeKind, row["kind"])
                notice = Notice(kind, row["source"], row["notice"], row["date"], row["reason"])
                notices.setdefault(row["doi"], []).append(notice)
        versions: dict[str, list[Version]] = {}
        for row in self._each("SELECT * FROM versions WHERE doi IN ({})", wanted):
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
        rows = self._rows("SELECT stamp FROM files WHERE name = ?", (name,))
        return str(rows[0]["stamp"]) if rows else ""

    def replace_notices(self, source: str, notices: Iterable[tuple[str, Notice]], stamp: str) -> None:
        """Replace all notices of a source by those of its new file, in one transaction."""
        with self._writing() as db:
            db.execute("DELETE FROM notices WHERE source = ?", (source,))
            _insert_notices(db, notices)
            db.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", (source, stamp))

    def _file(self) -> RegisterFile:
        if self._opened is None:
            self._opened = RegisterFile(self._path, _SCHEMA, _REMEDY)
        return self._opened

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._file().connection() as db:
            yield db

    def _rows(self, query: str, parameters: Sequence[Any]) -> list[sqlite3.Row]:
        """The rows of a query, all of whose text columns hold text; none while there is no file."""
        if not self._path.is_file():
            return []
        with self._file().connection() as db:
            rows = db.execute(query, parameters).fetchall()
        for row in rows:
            for name in row.keys():  # noqa: SIM118 - a row iterates over its values
                wanted = (int, float) if name in _NUMBERS else str
                if not isinstance(row[name], wanted):
                    raise DamagedFileError(f"{self._path}: {name} of an entry cannot be read.", help=_REMEDY)
        return rows

    def _each(self, query: str, values: Sequence[str]) -> Iterator[sqlite3.Row]:
        for start in range(0, len(values), _AT_ONCE):
            part = values[start : start + _AT_ONCE]
            yield from self._rows(query.format(", ".join("?" * len(part))), part)

    def _value(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"{self._path}: an answer cannot be read ({error}).", help=_REMEDY) from error


_NUMBERS: Final = frozenset({"status", "year", "answered_at", "similarity", "decided_at", "said_at"})


def _insert_notices(db: sqlite3.Connection, notices: Iterable[tuple[str, Notice]]) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO notices VALUES (?, ?, ?, ?, ?, ?)",
        ((doi, notice.kind, notice.source, notice.doi, notice.date, notice.reason) for doi, notice in notices),
    )

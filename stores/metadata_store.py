"""Metadata about papers from online services, by DOI: answers, statements, retractions, and each paper's DOI.

In a folder it is a separate file. It is not part of the library or its version, so a retraction stays known when its
paper is removed and ingested again, and does not affect paused runs. An answer is committed before it is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from ..documents import Paper
from ..documents.publication_status import NOTICE_KINDS, VERSION_KINDS, Notice, PublicationStatus, Version
from ..table_columns import JSON, NUMBER, TEXT, TypedTable, choice, dump_json, integer
from ..text.words import letters_of
from .tables import Register, TableConnection, columns_of, index_key, split_parts

METADATA_REMEDY: Final = "Move it away and run '{citeloom} papers enrich': it holds only what services said."
IDENTITIES: Final = TypedTable(
    "metadata_identities",
    ("title", "key"),
    {"title": TEXT, "key": TEXT, "year": integer(), "doi": TEXT, "similarity": NUMBER, "service": TEXT}
    | {"decided_at": NUMBER},
)
NOTICES: Final = TypedTable(
    "metadata_notices",
    ("doi", "kind", "source", "notice", "date"),
    {"doi": TEXT, "kind": choice(*NOTICE_KINDS), "source": TEXT, "notice": TEXT, "date": TEXT, "reason": TEXT},
)
VERSIONS: Final = TypedTable(
    "metadata_versions",
    ("doi", "kind", "other", "source"),
    {"doi": TEXT, "kind": choice(*VERSION_KINDS), "other": TEXT, "source": TEXT},
)
IMPORTED_FILES: Final = TypedTable("metadata_files", ("name",), {"name": TEXT, "stamp": TEXT})
_NOTICE: Final = ("kind", "source", "notice", "date", "reason")  # in the order of the fields of `Notice`
_AT_ONCE: Final = 500  # parameters of one statement
RETRACTION_WATCH: Final = "Retraction Watch"


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """A stored answer of a service."""

    status: Annotated[int, integer()]
    body: Annotated[Any, JSON]
    answered_at: Annotated[float, NUMBER]


@dataclass(frozen=True, slots=True)
class ServiceStatement:
    """A service's value for one field of a paper, and when it was first received."""

    field: Annotated[str, TEXT]
    service: Annotated[str, TEXT]
    value: Annotated[Any, JSON]
    said_at: Annotated[float, NUMBER]


METADATA_ANSWERS: Final = TypedTable(
    "metadata_answers", ("service", "request"), {"service": TEXT, "request": TEXT} | columns_of(ServiceAnswer)
)
STATEMENTS: Final = TypedTable(
    "metadata_statements", ("doi", "field", "service", "said_at"), {"doi": TEXT} | columns_of(ServiceStatement)
)
METADATA_TABLES: Final = (METADATA_ANSWERS, IDENTITIES, STATEMENTS, NOTICES, VERSIONS, IMPORTED_FILES)


def title_fingerprint(paper: Paper) -> str:
    """Title and first author's family name without case, accents and punctuation, which identify a paper."""
    families = paper.family_names or tuple(author.split()[-1] for author in paper.authors if author.split())
    return f"{letters_of(paper.title)}|{letters_of(families[0]) if families else ''}"


class MetadataStore(Register):
    """The metadata of a home; all methods raise `DamagedFileError` for an entry that cannot be read."""

    def is_empty(self) -> bool:
        """Whether no table of metadata exists yet; reads no entry."""
        return not self._tables.exist()

    def answer(self, service: str, request: str) -> ServiceAnswer | None:
        """The stored answer to a request; None if there is none."""
        condition = "WHERE service = ? AND request = ?"
        return next(iter(self._select(ServiceAnswer, METADATA_ANSWERS, condition, service, index_key(request))), None)

    def keep_answer(self, service: str, request: str, answer: ServiceAnswer) -> None:
        """Commit an answer in place of an earlier one to the same request."""
        row = (service, index_key(request), answer.status, dump_json(answer.body), answer.answered_at)
        self._write(METADATA_ANSWERS.insert("update"), *row)

    def keep_identity(self, paper: Paper, doi: str, similarity: float, service: str, now: float) -> None:
        """Commit the DOI found for a paper without one."""
        row = (index_key(title_fingerprint(paper)), paper.key, paper.year or 0, doi, similarity, service, now)
        self._write(IDENTITIES.insert("update"), *row)

    def dois(self, papers: Iterable[Paper]) -> dict[str, str]:
        """The DOIs of these papers by key: their own, else the one found for the same title and first author.

        A found DOI remains valid if the paper's key changes, but not for a paper of another year.
        """
        listed = list(papers)
        wanted = {index_key(title_fingerprint(paper)) for paper in listed if not paper.doi}
        found = self._group_rows(IDENTITIES, "title", sorted(wanted))
        dois: dict[str, str] = {}
        for paper in listed:
            rows = found[index_key(title_fingerprint(paper))] if not paper.doi else []
            same = [row for row in rows if row["key"] == paper.key]
            same += [row for row in rows if row["year"] == (paper.year or 0)]
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
        """Commit a service's statements about a paper; keeps earlier statements and all notices."""
        with self._tables.transaction() as db:
            query = "SELECT field, value FROM metadata_statements WHERE doi = ? AND service = ? ORDER BY said_at"
            before = dict(db.execute(query, (doi, service)).fetchall())
            new = {field: dump_json(value) for field, value in said.items()}
            rows = [(doi, field, service, value, now) for field, value in new.items() if before.get(field) != value]
            db.executemany(STATEMENTS.insert("update"), rows)
            self._insert_notices(db, [(doi, notice) for notice in notices])
            found = [(doi, version.kind, version.doi, version.source) for version in versions]
            db.executemany(VERSIONS.insert("ignore"), found)

    def statements(self, doi: str) -> list[ServiceStatement]:
        """The latest statement of every service on every field, by field and service."""
        statements = self._select(ServiceStatement, STATEMENTS, "WHERE doi = ? ORDER BY field, service, said_at", doi)
        return list({(each.field, each.service): each for each in statements}.values())

    def statuses(self, papers: Iterable[Paper]) -> dict[str, PublicationStatus]:
        """The status of each paper with a notice or another known version, by key."""
        dois = self.dois(papers)
        wanted = sorted(set(dois.values()))
        notices, versions = self._group_rows(NOTICES, "doi", wanted), self._group_rows(VERSIONS, "doi", wanted)
        return {
            key: PublicationStatus(
                tuple(Notice(*(row[name] for name in _NOTICE)) for row in said),
                tuple(Version(row["kind"], row["other"], row["source"]) for row in known),
            )
            for key, doi in dois.items()
            if (said := notices[doi]) + (known := versions[doi])
        }

    def file_stamp(self, name: str) -> str:
        """The stamp of the file that was imported under this name; empty if there was none."""
        rows = self._read(IMPORTED_FILES, "SELECT * FROM metadata_files WHERE name = ?", name)
        return rows[0]["stamp"] if rows else ""

    def replace_notices(self, source: str, notices: Iterable[tuple[str, Notice]], stamp: str) -> None:
        """Replace all notices of a source with those in its new file, in one transaction."""
        with self._tables.transaction() as db:
            db.execute("DELETE FROM metadata_notices WHERE source = ?", (source,))
            self._insert_notices(db, notices)
            db.execute(IMPORTED_FILES.insert("update"), (source, stamp))

    def _insert_notices(self, db: TableConnection, notices: Iterable[tuple[str, Notice]]) -> None:
        db.executemany(
            NOTICES.insert("update"),
            ((doi, notice.kind, notice.source, notice.doi, notice.date, notice.reason) for doi, notice in notices),
        )

    def _group_rows(self, table: TypedTable, column: str, values: Sequence[str]) -> Mapping[str, list[dict[str, Any]]]:
        """The rows with one of these values in a column, grouped by the value, in the order of the table's key."""
        grouped: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for part in split_parts(values, _AT_ONCE):
            condition = f"{column} IN ({', '.join('?' * len(part))}) ORDER BY {', '.join(table.key)}"
            for row in self._read(table, f"SELECT * FROM {table.name} WHERE {condition}", *part):
                grouped[row[column]].append(row)
        return grouped

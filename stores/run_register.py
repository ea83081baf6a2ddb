"""The registers of runs and of conversations.

A run is stored with its request, status, result and edited sentences; a conversation with one answer per turn, so that
checkpoints stay small and exports do not depend on them.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..documents.safe_files import hash_regular_file
from ..errors import InputError
from ..section_kinds import SECTION_KINDS
from ..table_columns import (
    FLAG,
    MOMENT,
    NAME,
    OBJECT,
    TEXT,
    TypedTable,
    choice,
    dump_json,
    integer,
    json_column,
    optional,
    strip_nul,
)
from .tables import ALL_ROWS, Register, TableConnection, Tables, columns_of, index_key, note_owner, visible_rows

RunStatus = Literal["running", "asking", "paused", "failed", "finished"]  # asking: it waits for a person
PLOT_SET: Final = re.compile(r"plots-[0-9a-f]{24}")  # a set of uploaded plots, as named in run requests
PLOTS_KEPT: Final = 86_400.0  # seconds that a set without a run is kept


class _Citation(TypedDict):
    key: str
    quote: str
    evidence_id: str


class _Result(TypedDict):
    """The fields that every reader of a finished text relies on; there may be others."""

    text: str
    citations: list[_Citation]
    evidence: list[dict[str, Any]]
    references: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    usage: dict[str, Any]
    warnings: list[str]


RESULT: Final = json_column("the record of a finished text", _Result, as_record=False)
# The papers cited by a finished run (number 0) or by a conversation turn (its number).
CITED_PAPERS: Final = TypedTable(
    "cited_papers",
    ("thread_id", "number", "key"),
    {"thread_id": TEXT, "number": integer(), "key": TEXT},
    indexes={"cited_papers_by_key": "(key)"},
)


# The owner of a run or conversation, on a server with accounts.
OWNED: Final = TypedTable(
    "owned", ("thread_id",), {"thread_id": TEXT, "person": TEXT}, indexes={"owned_by_person": "(person)"}
)

# Who may read a conversation besides its owner: a person, or `EVERYBODY` with an account.
SHARED: Final = TypedTable("shared", ("thread_id", "person"), {"thread_id": TEXT, "person": TEXT})
EVERYBODY: Final = "*"
# What others share with a reader: the ids of conversations in `owned`.
_SHARED_WITH: Final = "person <> ? AND thread_id IN (SELECT thread_id FROM shared WHERE person IN (?, ?))"


class UnknownRunError(InputError):
    """No run has the requested id."""

    default_help = "See '{citeloom} runs list' for the ids."


@dataclass(frozen=True, slots=True)
class RunHead:
    """A run as shown in lists."""

    thread_id: Annotated[str, NAME]
    section: Annotated[str, choice(*SECTION_KINDS, "paper", "research")]
    title: Annotated[str, TEXT]
    status: Annotated[RunStatus, choice(*get_args(RunStatus))]
    detail: Annotated[str, TEXT]
    library_version: Annotated[str, TEXT]
    fresh: Annotated[bool, FLAG]
    started_at: Annotated[float, MOMENT]
    updated_at: Annotated[float, MOMENT]


@dataclass(frozen=True, slots=True)
class RunRecord(RunHead):
    """A whole run; `request` holds everything needed to repeat it."""

    fingerprint: Annotated[str, TEXT]
    request: Annotated[dict[str, Any], OBJECT]
    result: Annotated[dict[str, Any] | None, optional(RESULT)]


RUNS: Final = TypedTable(
    "runs",
    ("thread_id",),
    columns_of(RunRecord) | {"question": TEXT, "plot_sets": TEXT},
    number="number",
    indexes={
        "runs_by_fingerprint": "(fingerprint, number)",
        "runs_by_question": "(question, number) WHERE question <> ''",
        "runs_with_plots": "(number) WHERE plot_sets <> ''",
    },
)


@dataclass(frozen=True, slots=True)
class EditedSentence:
    """The user's words in place of the sentence at `position`; empty words remove it.

    `checked` is the result of checking these words; empty if they were not checked. Position -1 holds the whole first
    section of an imported text, with markers, -2 the second, and so on.
    """

    position: Annotated[int, integer(-100)]
    text: Annotated[str, TEXT]
    checked: Annotated[dict[str, Any], OBJECT] = field(default_factory=dict)
    updated_at: Annotated[float, MOMENT] = 0.0


EDITS: Final = TypedTable("edits", ("thread_id", "position"), {"thread_id": TEXT} | columns_of(EditedSentence))

# The last comparison of each text or table with the library, and the papers of versions of the library.
UPDATES: Final = TypedTable("updates", ("name",), {"name": TEXT, "stamp": TEXT, "record": OBJECT})


class RunRegister(Register):
    """The runs of a home, with edits and comparisons of their texts; blocking and thread-safe."""

    def begin(
        self,
        thread_id: str,
        fingerprint: str,
        section: str,
        title: str,
        request: Mapping[str, Any],  # everything needed to repeat the run
        library_version: str,
        *,
        fresh: bool = False,
    ) -> RunRecord:
        """Register a run, or return the existing one with this id."""
        now = time.time()
        written, question = dump_json(request), _lookup_key(request.get("question"))
        plots = " ".join(sorted(set(PLOT_SET.findall(written))))
        head = (thread_id, section, title, "running", "", library_version, int(fresh), now, now)
        with self._tables.transaction() as connection:
            connection.execute(RUNS.insert("ignore"), (*head, fingerprint, written, None, question, plots))
            note_owner(connection, thread_id)
        return self.get(thread_id)

    def mark(
        self, thread_id: str, status: RunStatus, *, detail: str = "", result: dict[str, Any] | None = None
    ) -> None:
        """Update the status of a run; None leaves the result unchanged."""
        written = None if result is None else dump_json(result)
        with self._tables.transaction() as connection:
            connection.execute(
                "UPDATE runs SET status = ?, detail = ?, updated_at = ?, result = coalesce(?, result)"
                " WHERE thread_id = ?",
                (status, detail, time.time(), written, thread_id),
            )
            if result is not None:
                register_citations(connection, thread_id, 0, result)

    def get(self, thread_id: str) -> RunRecord:
        """The run with this id or unique id prefix; raises `UnknownRunError`."""
        return self._find(RunRecord, RUNS, thread_id, "run", UnknownRunError)

    def latest(self, fingerprint: str) -> RunRecord | None:
        """The most recently started run with this fingerprint."""
        condition = "WHERE fingerprint = ? ORDER BY number DESC LIMIT 1"
        return next(iter(self._select(RunRecord, RUNS, condition, fingerprint)), None)

    def latest_about(self, question: str) -> RunRecord | None:
        """The most recently started run of a question, with any library and settings."""
        if not (wanted := _lookup_key(question)):
            return None
        condition = "WHERE question = ? AND question <> '' ORDER BY number DESC LIMIT 1"
        return next(iter(self._select(RunRecord, RUNS, condition, wanted)), None)

    def heads(self, limit: int | None = None, offset: int = 0) -> list[RunHead]:
        """The runs without their requests and results, most recent first; all runs without a limit."""
        most = ALL_ROWS if limit is None else limit
        return self._select(RunHead, RUNS, "ORDER BY updated_at DESC LIMIT ? OFFSET ?", most, offset)

    def count(self) -> int:
        if not self._tables.exist():
            return 0
        source, person = visible_rows(RUNS)
        with self._tables.transaction() as connection:
            return int(connection.execute(f"SELECT count(*) FROM {source}", person).fetchone()[0])

    def all(self) -> list[RunRecord]:
        """All runs with their results, most recent first."""
        return self._select(RunRecord, RUNS, "ORDER BY updated_at DESC")

    def latest_finished(self) -> list[RunHead]:
        """The most recently started finished run of each question or experiment, in the order in which they began."""
        source, person = visible_rows(RUNS)
        latest = f"SELECT max(number) FROM {source} WHERE status = 'finished' GROUP BY question"
        return self._select(RunHead, RUNS, f"WHERE number IN ({latest}) ORDER BY number", *person)

    def citing(self, key: str) -> list[RunHead]:
        """The finished runs whose text cites a paper, most recent first."""
        cited = "SELECT thread_id FROM cited_papers WHERE key = ?"
        return self._select(RunHead, RUNS, f"WHERE thread_id IN ({cited}) ORDER BY updated_at DESC", key)

    def plot_sets(self) -> set[str]:
        """The sets of uploaded plots that runs use, read from an index."""
        rows = self._read(RUNS, "SELECT plot_sets FROM runs WHERE plot_sets <> ''")
        return {name for row in rows for name in PLOT_SET.findall(row["plot_sets"])}

    def edits(self, thread_id: str) -> list[EditedSentence]:
        """The sentences that a user rewrote in a finished run, in order; its stored text never changes."""
        return self._select(EditedSentence, EDITS, "WHERE thread_id = ? ORDER BY position", thread_id)

    def edited_ids(self) -> list[str]:
        """The ids of the runs and answers with edits."""
        source, person = visible_rows(EDITS)
        rows = self._read(EDITS, f"SELECT DISTINCT thread_id FROM {source} ORDER BY thread_id", *person)
        return [row["thread_id"] for row in rows]

    def find_edited_sibling(self, thread_id: str) -> str:
        """For a run without edits, the last edited run of the same question or experiment; empty if there is none."""
        source, person = visible_rows(RUNS)
        same = "question <> '' AND question = (SELECT question FROM runs WHERE thread_id = ?)"
        edited = f"{same} AND thread_id IN (SELECT thread_id FROM edits) ORDER BY number DESC"
        rows = self._read(RUNS, f"SELECT thread_id FROM {source} WHERE {edited}", *person, thread_id)
        found = [row["thread_id"] for row in rows]
        return found[0] if found and thread_id not in found else ""

    def edit(self, thread_id: str, edit: EditedSentence) -> None:
        """Store an edited sentence in place of an earlier one at its position."""
        row = (thread_id, edit.position, edit.text, dump_json(edit.checked), time.time())
        with self._tables.transaction() as connection:
            connection.execute(EDITS.insert("update"), row)
            note_owner(connection, thread_id)  # an answer has a separate id

    def withdraw_edit(self, thread_id: str, position: int) -> bool:
        """Restore the run's original sentence; false if it was not edited."""
        return self._write("DELETE FROM edits WHERE thread_id = ? AND position = ?", thread_id, position) > 0

    def comparisons(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The last comparison of each run or table with the library: a stamp of the compared state, and the record."""
        source, person = visible_rows(RUNS)
        seen = f"name IN (SELECT thread_id FROM {source}) OR name NOT IN (SELECT thread_id FROM runs)"
        condition = f"substr(name, 1, 8) <> 'library-' AND ({seen}) ORDER BY name"
        rows = self._read(UPDATES, f"SELECT * FROM updates WHERE {condition}", *person)
        return {row["name"]: (row["stamp"], row["record"]) for row in rows}

    def keep_comparison(self, name: str, stamp: str, record: Mapping[str, Any]) -> None:
        self._write(UPDATES.insert("update"), name, stamp, dump_json(record))

    def note_library(self, version: str, papers: Mapping[str, str]) -> None:
        """Store the hashes of the papers of a version, by key."""
        self._write(UPDATES.insert("ignore"), f"library-{version}", version, dump_json(papers))

    def library(self, version: str) -> dict[str, str] | None:
        """The hashes of the papers of a version; None if they were not stored."""
        rows = self._read(UPDATES, "SELECT * FROM updates WHERE name = ?", f"library-{version}")
        return rows[0]["record"] if rows else None

    def note_owner(self, thread_id: str) -> None:
        """Store the acting person as the owner, if there is none yet, so that the costs count towards their budget."""
        with self._tables.transaction() as connection:
            note_owner(connection, thread_id)

    def give_unowned(self, person: str) -> None:
        """Make a person the owner of all runs and conversations without an owner."""
        with self._tables.transaction() as connection:
            for table in (RUNS, CONVERSATIONS, EDITS):
                unowned = f"SELECT thread_id, ? FROM {table.name} WHERE true"
                connection.execute(
                    f"INSERT INTO owned (thread_id, person) {unowned} ON CONFLICT (thread_id) DO NOTHING", (person,)
                )

    def owned_ids(self, person: str) -> list[str]:
        """The ids of the runs, conversations, tables and checks of a person."""
        rows = self._read(OWNED, "SELECT thread_id FROM owned WHERE person = ?", person)
        return [row["thread_id"] for row in rows]

    def has_owner(self, thread_id: str) -> bool:
        return bool(self._read(OWNED, "SELECT thread_id FROM owned WHERE thread_id = ?", thread_id))

    def delete(self, thread_id: str) -> None:
        """Delete a run with its edits; its checkpoints are left to the caller."""
        with self._tables.transaction() as connection:
            for table in ("cited_papers", "edits", "runs"):
                connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))
            forget_comparison(connection, thread_id)


def _lookup_key(question: Any) -> str:
    return index_key(strip_nul(question)) if isinstance(question, str) else ""


def register_citations(connection: TableConnection, thread_id: str, number: int, record: Mapping[str, Any]) -> None:
    """Store which papers a finished text cites, replacing earlier citations."""
    connection.execute("DELETE FROM cited_papers WHERE thread_id = ? AND number = ?", (thread_id, number))
    keys = dict.fromkeys(strip_nul(citation["key"]) for citation in record.get("citations", ()))
    connection.executemany(CITED_PAPERS.insert(), [(thread_id, number, key) for key in keys])


def forget_comparison(connection: TableConnection, name: str) -> None:
    """Delete the comparison of a run or table, and the papers of versions that no run or comparison refers to."""
    connection.execute("DELETE FROM updates WHERE name = ?", (name,))
    compared = "substr(other.name, 1, 8) <> 'library-' AND replace(other.record, updates.stamp, '') <> other.record"
    connection.execute(
        "DELETE FROM updates WHERE substr(name, 1, 8) = 'library-'"
        " AND stamp NOT IN (SELECT library_version FROM runs)"
        f" AND NOT EXISTS (SELECT 1 FROM updates AS other WHERE {compared})"
    )


WRITTEN: Final = TypedTable("written", ("hash",), {"hash": TEXT, "noted_at": MOMENT})


class WrittenFiles:
    """The hashes of the files that a home has written; empty if it has no tables. Blocking and thread-safe."""

    def __init__(self, tables: Tables | None = None) -> None:
        self._tables = tables

    def note(self, contents: Collection[bytes]) -> None:
        """Store the hashes of contents that are about to be written."""
        if self._tables is None:
            return
        rows = [(hashlib.sha256(content).hexdigest(), time.time()) for content in contents]
        with self._tables.transaction() as connection:
            connection.executemany(WRITTEN.insert("ignore"), rows)

    def has(self, file: Path) -> bool:
        """Whether a file holds exactly what Citeloom wrote; false for a link or an unreadable file."""
        if self._tables is None or not self._tables.exist() or (found := hash_regular_file(file)) is None:
            return False
        with self._tables.transaction() as connection:
            return connection.execute("SELECT 1 FROM written WHERE hash = ?", (found,)).fetchone() is not None


# The name that a user gave a conversation, and whether it is archived.
LABELS: Final = TypedTable("conversation_labels", ("thread_id",), {"thread_id": TEXT, "name": TEXT, "archived": FLAG})
_OF_THREAD: Final = "FROM turns WHERE turns.thread_id = conversations.thread_id"
_LABEL: Final = f"FROM {LABELS.name} AS label WHERE label.thread_id = conversations.thread_id"


class UnknownConversationError(InputError):
    """No conversation has the requested id."""

    default_help = "See '{citeloom} conversations list' for the ids."


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation in a list; `title` is its name or first question, empty before the first answer."""

    thread_id: Annotated[str, NAME]
    title: Annotated[str, replace(TEXT, source="turns.asked")]
    archived: Annotated[bool, replace(FLAG, source="conversation_labels.archived")]
    turns: Annotated[int, replace(integer(), source="turns.number")]
    begun_at: Annotated[float, MOMENT]
    updated_at: Annotated[float, MOMENT]


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A finished turn; `record` is the answer's full JSON record, in the form of a run's result.

    `answered` is true if the answer cites anything, even only possibly relevant passages.
    """

    number: Annotated[int, integer()]
    asked: Annotated[str, TEXT]
    question: Annotated[str, TEXT]
    answered: Annotated[bool, FLAG]
    answered_at: Annotated[float, MOMENT]
    record: Annotated[dict[str, Any], RESULT]


CONVERSATIONS: Final = TypedTable("conversations", ("thread_id",), columns_of(ConversationEntry))
TURNS: Final = TypedTable("turns", ("thread_id", "number"), {"thread_id": NAME} | columns_of(KeptTurn))
REGISTER_TABLES: Final = (RUNS, CITED_PAPERS, EDITS, UPDATES, CONVERSATIONS, LABELS, TURNS, WRITTEN, OWNED, SHARED)


@dataclass(frozen=True, slots=True)
class CitingTurn:
    """A turn whose answer cites a given paper."""

    thread_id: str
    number: int
    asked: str
    answered_at: float


def new_thread_id() -> str:
    return f"chat-{secrets.token_hex(6)}"


def _shared_rows(reader: str, table: TypedTable) -> tuple[str, tuple[str, ...]]:
    """SQL for the rows of a table that others share with a reader, with its values (`visible_rows`)."""
    shared = f"SELECT thread_id FROM owned WHERE {_SHARED_WITH}"
    return f"(SELECT * FROM {table.name} WHERE thread_id IN ({shared})) AS {table.name}", (reader, reader, EVERYBODY)


class ConversationRegister(Register):
    """The conversations of a home; blocking and thread-safe."""

    _computed: ClassVar = {
        "turns": f"(SELECT count(*) {_OF_THREAD})",
        "title": f"coalesce((SELECT name {_LABEL} AND name <> ''), (SELECT asked {_OF_THREAD}"
        " ORDER BY number LIMIT 1), '')",
        "archived": f"coalesce((SELECT archived {_LABEL}), 0)",
    }

    def begin(self, thread_id: str) -> None:
        """Register a conversation; does nothing if it exists."""
        now = time.time()
        with self._tables.transaction() as connection:
            connection.execute(CONVERSATIONS.insert("ignore"), (thread_id, now, now))
            note_owner(connection, thread_id)

    def keep(self, thread_id: str, number: int, asked: str, question: str, record: dict[str, Any]) -> None:
        """Store a finished turn; idempotent."""
        now = time.time()
        row = (thread_id, number, asked, question, int(bool(record["citations"])), now, dump_json(record))
        with self._tables.transaction() as connection:
            connection.execute(TURNS.insert("update"), row)
            register_citations(connection, thread_id, number, record)
            connection.execute("UPDATE conversations SET updated_at = ? WHERE thread_id = ?", (now, thread_id))
            connection.execute(f"UPDATE {LABELS.name} SET archived = 0 WHERE thread_id = ?", (thread_id,))

    def get(self, thread_id: str) -> ConversationEntry:
        """The conversation with this id or unique id prefix; raises `UnknownConversationError`."""
        return self._find(ConversationEntry, CONVERSATIONS, thread_id, "conversation", UnknownConversationError)

    def all(self, words: str = "", reader: str = "") -> list[ConversationEntry]:
        """The conversations with all of these words in name, questions or answers, most recent first: with a `reader`
        those that others share with them."""
        rows = partial(_shared_rows, reader) if reader else visible_rows
        order = "ORDER BY updated_at DESC"
        entries = self._select(ConversationEntry, CONVERSATIONS, order, rows=rows(CONVERSATIONS))
        if not (wanted := words.casefold().split()):
            return entries
        said = defaultdict(str, {entry.thread_id: entry.title.casefold() for entry in entries})  # more begin meanwhile
        # Only turns that may hold a word are read: SQLite folds the case of ASCII letters only.
        plain = [f"%{word}%" for word in wanted] if all(word.isascii() and word.isalnum() for word in wanted) else []
        condition = "WHERE " * bool(plain) + " OR ".join(["lower(asked || question || record) LIKE ?"] * len(plain))
        source, person = rows(TURNS)
        read = f"SELECT thread_id, number, asked, question, record FROM {source} {condition}"
        for turn in self._read(TURNS, read, *person, *plain):
            said[turn["thread_id"]] += f" {turn['asked']} {turn['question']} {turn['record']['text']}".casefold()
        return [entry for entry in entries if all(word in said[entry.thread_id] for word in wanted)]

    def label(self, thread_id: str, *, name: str | None = None, archived: bool | None = None) -> None:
        """Name a conversation ("": after its first question), archive or restore it; None changes nothing."""
        with self._tables.transaction() as connection:
            connection.execute(LABELS.insert("ignore"), (thread_id, "", 0))
            stored = None if archived is None else int(archived)
            change = f"UPDATE {LABELS.name} SET name = coalesce(?, name), archived = coalesce(?, archived)"
            connection.execute(f"{change} WHERE thread_id = ?", (name, stored, thread_id))

    def turns(self, thread_id: str) -> list[KeptTurn]:
        """The finished turns of a conversation, in order."""
        return self._select(KeptTurn, TURNS, "WHERE thread_id = ? ORDER BY number", thread_id)

    def last_turn(self, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
        """The latest finished turn, or the latest that was `answered`."""
        only = " AND answered = 1" if answered else ""
        condition = f"WHERE thread_id = ?{only} ORDER BY number DESC LIMIT 1"
        return next(iter(self._select(KeptTurn, TURNS, condition, thread_id)), None)

    def readers(self, thread_id: str) -> list[str]:
        """The people with whom a conversation is shared; `EVERYBODY` stands for all of them."""
        rows = self._read(SHARED, "SELECT * FROM shared WHERE thread_id = ? ORDER BY person", thread_id)
        return [row["person"] for row in rows]

    def share(self, thread_id: str, readers: Collection[str]) -> None:
        """Share a conversation with exactly these people."""
        with self._tables.transaction() as connection:
            connection.execute("DELETE FROM shared WHERE thread_id = ?", (thread_id,))
            connection.executemany(SHARED.insert(), [(thread_id, person) for person in readers])

    def sharing_owners(self, reader: str, thread_id: str = "") -> dict[str, str]:
        """Who shares each conversation, or the one with exactly this id, with a reader."""
        query = f"SELECT * FROM owned WHERE {_SHARED_WITH} AND ? IN ('', thread_id)"
        rows = self._read(OWNED, query, reader, reader, EVERYBODY, thread_id)
        return {row["thread_id"]: row["person"] for row in rows}

    def citing(self, key: str) -> list[CitingTurn]:
        """The turns whose answers cite a paper, most recent first."""
        condition = "JOIN cited_papers USING (thread_id, number) WHERE key = ? ORDER BY answered_at DESC"
        return self._select(CitingTurn, TURNS, condition, key)

    def delete(self, thread_id: str) -> None:
        """Delete a conversation; its checkpoints are left to the caller."""
        with self._tables.transaction() as connection:
            for table in ("cited_papers", "turns", LABELS.name, SHARED.name, "conversations"):
                connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))
            for table in ("edits", "owned"):  # of its answers
                of_answers = f"DELETE FROM {table} WHERE substr(thread_id, 1, ?) = ?"
                connection.execute(of_answers, (len(thread_id) + 1, f"{thread_id}."))

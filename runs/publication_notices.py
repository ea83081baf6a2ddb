"""Warns of retracted papers in finished texts: on completion, whenever shown again, and in `doctor`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..documents import Paper
from ..documents.publication_status import PublicationStatus
from ..graph.session import Session
from ..stores.home import Home
from ..stores.library import Library
from .result_record import StoredRecord, stored

if TYPE_CHECKING:
    from ..ingestion.doctor import DoctorFinding, Level

_TOPIC: Final = "retractions"
_SHOWN: Final = 60


def with_notices(record: StoredRecord, session: Session) -> StoredRecord:
    """Update a record with its papers' current status, and a warning for each unreliable one; blocks."""
    papers = _papers_of(record, session.library)
    statuses = session.library.metadata.statuses(papers.values())
    return stored(_with_statuses(record, papers, statuses))


def _with_statuses(
    record: Mapping[str, Any], papers: Mapping[str, Paper], statuses: Mapping[str, PublicationStatus]
) -> dict[str, Any]:
    warnings = []
    for key in sorted(_cited_keys(record)):
        status = statuses.get(key, PublicationStatus())
        if status.retracted:
            warnings.append(f"Cites a retracted paper: {key}. {status.retraction_line()}")
        elif status.label == "expression of concern":
            warnings.append(f"Cites a paper with an expression of concern: {key}. {status.lines()[-1]}")
    changed = {**record, "warnings": list(dict.fromkeys([*record.get("warnings", ()), *warnings]))}
    if "sections" in record:
        changed["sections"] = [_with_statuses(section, papers, statuses) for section in record["sections"]]
    report = record.get("report")
    if isinstance(report, dict) and "papers" in report:
        shown = {
            key: {**paper, **statuses.get(key, PublicationStatus()).as_dict()} if paper else paper
            for key, paper in report["papers"].items()
        }
        changed["report"] = {**report, "papers": shown}
    return changed


def _cited_keys(record: Mapping[str, Any]) -> set[str]:
    """The keys that a text cites, including the user's own citations."""
    own = (key for citation in record.get("own_citations", ()) for key in citation.get("keys", ()))
    return {citation["key"] for citation in record.get("citations", ())} | set(own)


def _papers_of(record: Mapping[str, Any], library: Library) -> dict[str, Paper]:
    """A record's papers: from the library, else from its references."""
    papers = {
        entry["key"]: Paper(
            entry["key"],
            str(entry.get("title", "")),
            tuple(entry.get("authors", ())),
            entry.get("year"),
            doi=str(entry.get("doi", "")),
        )
        for entry in record.get("references", ())
    }
    listed = {item["key"] for item in record.get("evidence", ())} | _cited_keys(record)
    known = library.records()
    return papers | {key: known[key].paper for key in listed | set(papers) if key in known}


def retraction_problems(home: Home, library: Library, *, allowed: bool) -> list[DoctorFinding]:
    """Find retracted papers in the library and finished texts that cite any; blocks.

    Only the latest run of a request counts. If citing is `allowed`, such texts are fine.
    """
    from ..ingestion.doctor import DoctorFinding  # imports paper readers, not needed in runs

    store = library.metadata
    found = [
        DoctorFinding(
            "notice", _TOPIC, f"{key}: {status.retraction_line()}", "It is read, but cited only if you allow it."
        )
        for key, status in sorted(store.statuses(library.papers()).items())
        if status.retracted
    ]
    if store.is_empty():
        return found
    level: Level = "notice" if allowed else "problem"
    for name, remedy, record in _finished(home):
        statuses = store.statuses(_papers_of(record, library).values())
        for key in sorted(_cited_keys(record)):
            if key in statuses and statuses[key].retracted:
                message = f"{name} cites {key}: {statuses[key].retraction_line()}"
                found.append(DoctorFinding(level, _TOPIC, message, remedy))
    return found


def _finished(home: Home) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each request's latest finished text, its name, and how to replace it."""
    seen: set[str] = set()
    for run in home.runs().all():
        question = str(run.request.get("question") or run.fingerprint)
        if run.status == "finished" and run.result is not None and question not in seen:
            seen.add(question)
            what = "answer" if run.section == "research" else run.section
            name = f"the {what} of run {run.thread_id} ({run.title[:_SHOWN]})"
            yield name, "Write it again with --fresh, or delete the run.", run.result
    conversations = home.conversations()
    for entry in conversations.all():
        for turn in conversations.turns(entry.thread_id):
            name = f"answer {turn.number} of conversation {entry.thread_id}"
            yield name, "Ask again, or delete the conversation.", turn.record

"""The record of a finished run: its public JSON, and what the register stores in addition.

Searches, full cited passages and their papers are stored with the run, so that the report can be rebuilt without the
library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired, cast

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..citations.html_escaping import inert_record
from ..documents import Evidence, Paper
from ..documents.paper_names import zotero_links
from ..documents.plain_text import format_quote
from ..documents.publication_status import PublicationStatus
from ..drafts.person_questions import SteeringRecord
from ..drafts.written_draft import searches_of, sources_for
from ..experiment import SectionKind
from ..graph.session import Session
from ..settings.config import CitationStyle
from ..stores.home import Home
from ..stores.library import Library

if TYPE_CHECKING:
    from ..citations.checks.findings import FindingRecord
    from ..drafts.finished_text import Outcome
    from ..drafts.page_record import Coverage
    from ..ingestion.doctor import DoctorFinding, Level


# Fields that only the register stores, from which the other files are made.
_FILE_CONTENTS: Final = frozenset({"markdown", "bibliography", "report", "manuscript", "with_markers", "numbering"})


class UsageRecord(TypedDict):
    """The usage of a run; `cost` is None if a price is unknown."""

    llm_calls: int
    journal_hits: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    embedded_texts: NotRequired[int]


class ResultRecord(TypedDict):
    """The public JSON of a section, a paper or an answer."""

    thread_id: str
    text: str
    citations: list[dict[str, Any]]  # of `Citation`, with `chunk_text` and perhaps `ocr`
    evidence: list[dict[str, Any]]
    references: list[dict[str, Any]]  # of `Reference`
    findings: list[FindingRecord]
    numbers: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    own_citations: list[dict[str, Any]]
    figures: list[dict[str, Any]]
    usage: UsageRecord
    warnings: list[str]
    files: dict[str, str]
    suspicious: list[dict[str, Any]]
    coverage: Coverage
    cite_style: CitationStyle
    csl: str
    strict: bool
    steering: NotRequired[list[SteeringRecord]]  # what people said to the run's questions
    # of a section or a paper
    section: NotRequired[SectionKind | Literal["paper"]]
    title: NotRequired[str]
    sections: NotRequired[list[Any]]  # records of the same type
    # of an answer
    question: NotRequired[str]
    route: NotRequired[dict[str, Any]]
    answered: NotRequired[bool | None]  # None: passages found but not judged
    outcome: NotRequired[Outcome]
    # of an answer in a conversation
    asked: NotRequired[str]
    number: NotRequired[int]


class StoredRecord(ResultRecord):
    """A record with the contents of its files, to rewrite them without the library; `sections` are such records too."""

    markdown: str
    bibliography: str
    manuscript: str
    with_markers: str
    numbering: list[str]
    report: dict[str, Any]


def stored(record: Mapping[str, Any]) -> StoredRecord:
    """Return the register's plain data as the record that it is; nothing is copied."""
    return cast(StoredRecord, record)


def public_record(
    record: StoredRecord, files: Mapping[str, str] | None = None, *, passages: Mapping[str, str] | None = None
) -> ResultRecord:
    """The public JSON of a section or paper: the record without contents of other files or live HTML."""
    public: dict[str, Any] = {name: value for name, value in record.items() if name not in _FILE_CONTENTS}
    texts = {**(passages or {}), **record.get("report", {}).get("passages", {})}
    # Lets readers check `chunk_text[start:end] == quote` without the library; None if the paper was removed during the
    # run.
    public["citations"] = [
        {**citation, "chunk_text": texts.get(citation["evidence_id"], citation.get("chunk_text"))}
        for citation in record["citations"]
    ]
    papers = record.get("report", {}).get("papers", {})
    for name in ("citations", "evidence") if papers else ():
        by_ocr = {key: paper.get("ocr_pages", ()) for key, paper in papers.items()}
        public[name] = [
            {**item, "ocr": True} if item["page"] in by_ocr.get(item["key"], ()) else item for item in public[name]
        ]
    public["files"] = dict(files or record.get("files") or {})
    if "sections" in record:
        public["sections"] = [public_record(section, passages=texts) for section in record["sections"]]
    return cast(ResultRecord, inert_record(public))


def complete_record(
    result: Mapping[str, Any], values: Mapping[str, Any], library: Library, title: str, version: str, **more: Any
) -> StoredRecord:
    """Return the record to store: the result, `more` fields of the whole run, and a completed report.

    The texts of the report come from the library, now at `version`, since the state's `values` have none. `passages`
    has the cited evidence by id, `quotes` all evidence as shown to readers, with an ellipsis where a sentence is cut.
    Passages that no longer exist are left out; their quotes stay in the record. Blocks.
    """
    evidence = [Evidence.from_dict(record) for record in values.get("evidence", [])]
    cited = {citation["evidence_id"] for citation in result["citations"]}
    sources, _ = sources_for(library, evidence)
    known = library.records()
    report = {
        **result["report"],
        "title": title,
        "library_version": version,
        "searches": searches_of(values.get("queries", [])),
        "passages": {source.evidence.id: source.text for source in sources if source.evidence.id in cited},
        "quotes": {
            item.id: format_quote(source.text, item.start, item.end) for source in sources for item in [source.evidence]
        },
        "papers": {
            key: _paper_data(known[key].paper) for key in sorted({item.key for item in evidence}) if key in known
        },
    }
    sections = [{**section, "thread_id": more["thread_id"]} for section in result.get("sections", ())]
    return stored({**result, **({"sections": sections} if sections else {}), **more, "report": report})


def _paper_data(paper: Paper) -> dict[str, Any]:
    """Return a paper's data for the report."""
    own = {"title": paper.title, "authors": list(paper.authors), "year": paper.year, "venue": paper.venue}
    return {**own, "doi": paper.doi, **zotero_links(paper.bibtex), "ocr_pages": list(paper.ocr_pages)}


_TOPIC: Final = "retractions"
_SHOWN: Final = 60


_EDITED_INSTEAD: Final = "has sentences that you edited, which this text lacks:"


def edit_lost_warning(run_id: str) -> str:
    """Return the warning for a text that lacks the user's edits because they were made in another run."""
    return f"Run {run_id} {_EDITED_INSTEAD} 'export {run_id}' exports them."


def add_status_warnings(record: StoredRecord, session: Session) -> StoredRecord:
    """Update a record with its papers' status, and warnings on unreliable papers and missing edits; blocks."""
    statuses = session.library.metadata.statuses(_papers_of(record, session.library).values())

    def update(record: Mapping[str, Any]) -> dict[str, Any]:
        warnings = []
        for key in sorted(_cited_keys(record)):
            status = statuses.get(key, PublicationStatus())
            if status.retracted:
                warnings.append(f"Cites a retracted paper: {key}. {status.retraction_line()}")
            elif status.label == "expression of concern":
                warnings.append(f"Cites a paper with an expression of concern: {key}. {status.lines()[-1]}")
        changed = {**record, "warnings": list(dict.fromkeys([*record.get("warnings", ()), *warnings]))}
        if "sections" in record:
            changed["sections"] = [update(section) for section in record["sections"]]
        if "papers" in (report := record.get("report") or {}):
            shown = {
                key: {**paper, **statuses.get(key, PublicationStatus()).as_dict()} if paper else paper
                for key, paper in report["papers"].items()
            }
            changed["report"] = {**report, "papers": shown}
        return changed

    earlier = session.home.runs().find_edited_sibling(record["thread_id"])
    warnings = [line for line in record["warnings"] if _EDITED_INSTEAD not in line]
    return stored(update({**record, "warnings": [*([edit_lost_warning(earlier)] if earlier else []), *warnings]}))


def _cited_keys(record: Mapping[str, Any]) -> set[str]:
    """Return the keys that a text cites, including the user's own citations."""
    own = (key for citation in record.get("own_citations", ()) for key in citation.get("keys", ()))
    return {citation["key"] for citation in record.get("citations", ())} | set(own)


def _papers_of(record: Mapping[str, Any], library: Library) -> dict[str, Paper]:
    """Return a record's papers by key: from the library, else from its references."""
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
    """Find retracted papers in the library, and finished texts that cite one; blocks.

    Only the latest run of a request counts. If citing them is `allowed`, such texts only cause a notice.
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
    for name, remedy, record in _finished_texts(home):
        statuses = store.statuses(_papers_of(record, library).values())
        for key in sorted(_cited_keys(record)):
            if key in statuses and statuses[key].retracted:
                message = f"{name} cites {key}: {statuses[key].retraction_line()}"
                found.append(DoctorFinding(level, _TOPIC, message, remedy))
    return found


def _finished_texts(home: Home) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each request's latest finished text: its name, how to replace it, and its record."""
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

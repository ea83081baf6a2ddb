"""The record of a finished run: its public JSON, and what the register stores in addition.

Searches, full cited passages and their papers are stored with the run, so that repeating the command gives the same
report without the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NotRequired, cast

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..citations.html_escaping import inert_record
from ..documents import Evidence
from ..documents.paper_names import zotero_links
from ..documents.plain_text import format_quote
from ..drafts.person_questions import SteeringRecord
from ..drafts.written_draft import searches_of, sources_for
from ..errors import InputError
from ..experiment import SectionKind
from ..settings.config import CitationStyle
from ..stores.library import Library

if TYPE_CHECKING:
    from ..citations.checks.findings import FindingRecord
    from ..drafts.completeness import Coverage
    from ..drafts.finished_text import Outcome
    from ..roles.protocols import VerdictLabel

# Fields only in the register: contents of the other files.
_FILE_CONTENTS: Final = frozenset({"markdown", "bibliography", "report", "manuscript", "with_markers", "numbering"})


class UsageRecord(TypedDict):
    """The usage of a run; `cost` is None if a price is unknown."""

    llm_calls: int
    journal_hits: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    embedded_texts: NotRequired[int]


class CitationRecord(TypedDict):
    """A citation in the text: `chunk_text[start:end] == quote`."""

    key: str
    page: int | None
    section: str
    evidence_id: str
    chunk_id: str
    quote: str
    start: int
    end: int
    sentence: str
    verdict: VerdictLabel
    reason: str
    number: int | None
    decided_by: tuple[int, int] | None
    decided_by_spans: list[dict[str, Any]]
    chunk_text: NotRequired[str | None]
    ocr: NotRequired[bool]


class ReferenceRecord(TypedDict):
    """An entry of the reference list."""

    key: str
    label: str
    text: str
    title: str
    authors: list[str]
    year: int | None
    doi: str
    url: str
    places: NotRequired[list[dict[str, Any]]]


class _ResultRecord(TypedDict):
    """The common fields."""

    thread_id: str
    text: str
    citations: list[CitationRecord]
    evidence: list[dict[str, Any]]
    references: list[ReferenceRecord]
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
    # of an answer
    question: NotRequired[str]
    route: NotRequired[dict[str, Any]]
    answered: NotRequired[bool | None]  # None: passages found but not judged
    outcome: NotRequired[Outcome]
    # of an answer in a conversation
    asked: NotRequired[str]
    number: NotRequired[int]


class ResultRecord(_ResultRecord):
    """The public JSON of a section, a paper or an answer."""

    sections: NotRequired[list[ResultRecord]]


class StoredRecord(_ResultRecord):
    """A record with the contents of its files, to rewrite them without the library."""

    sections: NotRequired[list[StoredRecord]]
    markdown: str
    bibliography: str
    manuscript: str
    with_markers: str
    numbering: list[str]
    report: dict[str, Any]


def stored(record: Mapping[str, Any]) -> StoredRecord:
    """Cast the register's plain data to its record type."""
    return cast(StoredRecord, record)


def public_record(
    record: StoredRecord, files: Mapping[str, str] | None = None, *, passages: Mapping[str, str] | None = None
) -> ResultRecord:
    """The public JSON of a section or paper: the record without contents of other files or live HTML."""
    public: dict[str, Any] = {name: value for name, value in record.items() if name not in _FILE_CONTENTS}
    texts = {**(passages or {}), **record.get("report", {}).get("passages", {})}
    # So that `chunk_text[start:end] == quote` can be checked without the library; None if the paper was removed before
    # the run finished.
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
    """The record to store: `more` fields of the whole run, and in the report searches, passages, quotes and papers.

    It is made from the `result` as rendered and the state's `values`, which hold no texts: the library, now of this
    `version`, provides them. Blocks.

    `passages` holds the cited evidence by id, `quotes` all evidence as shown to readers, with an ellipsis where a
    sentence is cut. Passages that no longer exist are left out; their quotes stay in the record.
    """
    evidence = [Evidence.from_dict(record) for record in values.get("evidence", [])]
    cited = {citation["evidence_id"] for citation in result["citations"]}
    sources, _ = sources_for(library, evidence)
    report = {
        **result["report"],
        "title": title,
        "library_version": version,
        "searches": searches_of(values.get("queries", [])),
        "passages": {source.evidence.id: source.text for source in sources if source.evidence.id in cited},
        "quotes": {
            item.id: format_quote(source.text, item.start, item.end) for source in sources for item in [source.evidence]
        },
        "papers": {key: found for key in sorted({item.key for item in evidence}) if (found := _paper(library, key))},
    }
    sections = [{**section, "thread_id": more["thread_id"]} for section in result.get("sections", ())]
    return stored({**result, **({"sections": sections} if sections else {}), **more, "report": report})


def _paper(library: Library, key: str) -> dict[str, Any]:
    """A paper's data for the report; empty if no longer in the library."""
    try:
        paper = library.paper(key)
    except InputError:
        return {}
    return {
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "venue": paper.venue,
        "doi": paper.doi,
        **zotero_links(paper.bibtex),
        "ocr_pages": list(paper.ocr_pages),
    }

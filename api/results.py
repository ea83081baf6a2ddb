"""The records that calls return: the JSON of commands, HTTP API and MCP tools, whose schemas come from these classes.

Nothing here imports pydantic, so that a short command starts fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..documents.figures import FigureKind
from ..drafts.person_questions import QuestionDetail, QuestionField
from ..runs.imported_text import ImportedSentence
from ..runs.result_record import UsageRecord
from ..stores.evidence_table_register import TableColumnRecord
from ..tools.paper_search import FigureOfPassage


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a key holds, as its description in JSON schemas."""

    text: str

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Add the text to the JSON schema; called by pydantic."""
        return {**handler(core_schema), "description": self.text}


Status = Annotated[str, Meaning("retracted, expression of concern, reinstated or corrected; else empty.")]
Notices = Annotated[list[str], Meaning("Sources of the status, and other versions of the paper.")]
Key = Annotated[str, Meaning("Citation key of the paper.")]
ByOcr = Annotated[bool, Meaning("True if that page is a scan whose text was read by OCR.")]


class TitledPaper(TypedDict):
    """A paper's key, title and year."""

    key: Key
    title: str
    year: int | None


class PaperSummary(TitledPaper):
    """A paper in a list, with its number of chunks."""

    authors: list[str]
    venue: str
    kind: Annotated[str, Meaning("Type of the BibTeX entry, such as article or phdthesis.")]
    tags: Annotated[list[str], Meaning("Keywords of the paper: in Zotero, its tags.")]
    collections: Annotated[list[str], Meaning("Zotero collections of the paper, such as Thesis/Methods.")]
    chunks: int
    source: str
    status: Status
    notices: Notices


class PaperList(TypedDict):
    """A page of papers."""

    papers: list[PaperSummary]
    total: int
    in_text: Annotated[bool, Meaning("True if the words are only in the full text of these papers.")]


class FigureRecord(TypedDict):
    """A figure or table of a paper."""

    number: Annotated[int, Meaning("Position in the paper, from 0; part of the address of the image.")]
    kind: FigureKind
    label: Annotated[str, Meaning("As printed, such as Figure 2; empty if there is none.")]
    name: str
    caption: Annotated[str, Meaning("The paper's words, which can be quoted.")]
    page: int | None
    start: Annotated[int | None, Meaning("The span of the caption in the paper's text; null if it is not there.")]
    end: int | None
    body: Annotated[tuple[int, int] | None, Meaning("The span of a table's rows in that text.")]
    image_hash: str | None
    media_type: Annotated[str, Meaning("Media type of the image; empty if there is none.")]
    no_image: Annotated[str, Meaning("Why there is no image, if that is known.")]
    width: int
    height: int
    description: Annotated[
        str, Meaning("A vision model's description: not the paper's words, not to be quoted or cited.")
    ]
    described_by: Annotated[str, Meaning("The model that wrote the description; empty if there is none.")]


class FigureWithImage(FigureRecord):
    """A figure or table with its image as PNG or JPEG, if requested; None if missing."""

    image: NotRequired[bytes | None]


class PaperFigures(TypedDict):
    """The figures and tables of a paper, in reading order."""

    key: Key
    figures: Sequence[FigureRecord]


class SectionRecord(TypedDict):
    """A section of a paper's tree; the ranges are null if the section itself has no chunks or pages."""

    title: str
    level: int
    category: str
    searchable: bool
    chunks: int
    chunk_range: list[int] | None
    page_range: list[int] | None


class TextRecord(TypedDict):
    """Neighbouring chunks of one section as one text."""

    section: str
    page: int | None
    chunk_ids: list[str]
    text: str


class PaperText(TypedDict):
    """The searchable text of a paper, in reading order."""

    key: Key
    text: list[TextRecord]


class PaperDetails(TitledPaper):
    """A paper with its metadata, summary, note and section tree."""

    authors: list[str]
    family_names: list[str]
    venue: str
    doi: str
    url: str
    abstract: str
    bibtex: Annotated[str, Meaning("The BibTeX entry, as given or made from the file.")]
    source: str
    content_hash: str
    pages: int | None
    ocr_pages: list[int]
    zotero: str
    zotero_pdf: str
    summary: str
    note: str
    chunks: int
    sections: list[SectionRecord]
    figures: list[FigureRecord]
    metadata: Annotated[dict[str, Any], Meaning("What services know: DOI, notices, missing fields, differences.")]
    text: NotRequired[list[TextRecord]]


class DescribedFigure(TypedDict):
    """A vision model's description of a figure: helps to understand the caption, cannot be quoted or cited."""

    figure: str
    description: Annotated[str, Meaning("The model's words, not the paper's.")]
    described_by: str


class FoundPassage(TitledPaper):
    """A passage of a paper, verbatim."""

    chunk_id: Annotated[str, Meaning("Id of the passage, for get_context_window.")]
    page: Annotated[int | None, Meaning("Page on which the passage begins; null for a source without pages.")]
    ocr: ByOcr
    section: str
    category: str
    score: Annotated[float, Meaning("Orders the passages of one search; not comparable between searches.")]
    vector_score: float
    near: Annotated[bool, Meaning("Whether the words or meaning match the query; if false, it is only the nearest.")]
    figure: FigureOfPassage | None
    sentence: Annotated[str, Meaning("The sentence that fits the query best.")]
    text: str
    status: Status
    notices: Notices
    described_figures: Annotated[list[DescribedFigure], Meaning("Figures whose captions are in the passage.")]


class FoundPassages(TypedDict):
    """Passages, best first."""

    passages: list[FoundPassage]


class FoundPaper(TypedDict):
    """A paper with the sentence that fits the query best."""

    key: Annotated[str, Meaning("Citation key; its text is the resource citeloom://papers/{key}.")]
    year: int | None
    title: str
    score: float
    matched: NotRequired[Annotated[str, Meaning("note or summary, in a search of notes and summaries.")]]
    chunk_id: NotRequired[
        Annotated[str | None, Meaning("The passage with the sentence, in a search of the full text.")]
    ]
    page: NotRequired[int | None]
    section: NotRequired[str | None]
    sentence: str
    status: Status
    notices: Notices


class FoundPapers(TypedDict):
    """A page of papers, best first."""

    papers: list[FoundPaper]
    total: int
    next_page: Annotated[int | None, Meaning("Null on the last page.")]


class NeighbourPassage(TypedDict):
    """A passage in reading order."""

    chunk_id: str
    section: str
    page: int | None
    text: str


class PassageWindow(TypedDict):
    """A passage with its neighbours, which overlap by some words."""

    key: Key
    title: str
    passages: list[NeighbourPassage]


class MemoryLine(TypedDict):
    """A line of the author's memory."""

    id: str
    text: str
    kind: Annotated[
        Literal["ban", "term", "spelling", "note"],
        Meaning(
            "ban: the paper is never cited; term, spelling: checked in each draft; note: only shown to the writer."
        ),
    ]
    shared: Annotated[bool, Meaning("True if the line applies to all users of the library.")]
    added_at: float


class MemoryProposal(TypedDict):
    """A line that edits suggest for the memory."""

    id: str
    text: str
    edits: Annotated[int, Meaning("Number of edited sentences that suggest it.")]
    examples: Annotated[list[list[str]], Meaning("Some of these sentences, before and after the edit.")]


class MemoryLines(TypedDict):
    """Lines of the author's memory."""

    lines: list[MemoryLine]


class MemoryProposals(TypedDict):
    """Lines that edits suggest."""

    proposals: list[MemoryProposal]


class CitedSource(TitledPaper):
    """A paper that an answer cites."""

    label: Annotated[str, Meaning("Number in the answer, or key if the citation style has no numbers.")]
    authors: list[str]
    doi: str
    url: str
    places: Annotated[list[dict[str, Any]], Meaning("The cited pages and sections.")]


class CheckedCitation(TypedDict):
    """A citation of an answer, the words that it rests on, and the verdict of the check on its sentence."""

    number: int | None
    key: Key
    page: int | None
    ocr: ByOcr
    section: str
    chunk_id: str
    sentence: Annotated[str, Meaning("The sentence of the answer.")]
    quote: Annotated[str, Meaning("The words of the paper.")]
    verdict: str


class AnswerRecord(TypedDict):
    """An answer from the library, as agents and chat programs get it."""

    run_id: str
    question: str
    answered: Annotated[bool | None, Meaning("False if nothing was found; null if passages were found but not judged.")]
    outcome: Annotated[str, Meaning("answered, passages (near to the question, not judged) or nothing.")]
    text: str
    sources: list[CitedSource]
    citations: list[CheckedCitation]
    warnings: list[str]
    cost: Annotated[UsageRecord, Meaning("What the run has cost; asking again costs nothing.")]


class LibraryCounts(TypedDict):
    """The size of a library."""

    papers: int
    chunks: int
    embedding: str
    version: Annotated[str, Meaning("Changes whenever papers do.")]


class LibraryStatus(TypedDict):
    """What the library holds and what is wrong with it."""

    home: str
    papers: int
    passages: int
    first_year: int | None
    last_year: int | None
    embedding: str
    version: Annotated[str, Meaning("Changes whenever papers do.")]
    chat_models: Annotated[bool, Meaning("False when answers are quoted passages, since no chat model is configured.")]
    problems: list[str]


class FindingOfDoctor(TypedDict):
    """A result of `doctor`: a problem with its remedy, or what is fine."""

    level: str
    topic: str
    message: str
    remedy: str


class DoctorRecord(TypedDict):
    """The state of the library."""

    home: str
    library: LibraryCounts
    findings: list[FindingOfDoctor]


class SpendingRecord(TypedDict):
    """What one run spent on one model; `cost` is null where a price is not known."""

    run: str
    model: str
    endpoint: str
    llm_calls: int
    journal_hits: int
    embedded_texts: int
    input_tokens: int
    output_tokens: int
    lost_calls: int
    cost: float | None


class UsageOfDay(UsageRecord):
    """What all runs spent on one day."""

    day: str


class UsageRecords(TypedDict):
    """What runs cost: by run and model, by day, and in total. A cost is null where a price is not known."""

    runs: list[SpendingRecord]
    days: list[UsageOfDay]
    total: UsageRecord


class RunSummary(TypedDict):
    """A run as `runs list` shows it."""

    thread_id: str
    section: str
    title: str
    status: str
    detail: str
    library_version: str
    fresh: bool
    started_at: float
    updated_at: float


class RunQuery(TypedDict):
    """A search of a run, with the evidence that it found."""

    query: str
    origin: str
    evidence_ids: list[str]


class WaitingQuestion(QuestionDetail):
    """What a run asks a person, and the fields that an answer can change."""

    question: Annotated[str, Meaning("Id of the question; an answer that names it is refused for any other.")]


class RunDetails(RunSummary):
    """A run with its searches, the question it is waiting on, and its result once finished."""

    queries: list[RunQuery]
    waiting: WaitingQuestion | None
    result: dict[str, Any] | None


class ConversationSummary(TypedDict):
    """A conversation as `conversations list` shows it."""

    thread_id: str
    title: Annotated[str, Meaning("Its name, or its first question.")]
    archived: Annotated[bool, Meaning("Whether the conversation is archived; the next question brings it back.")]
    turns: int
    begun_at: float
    updated_at: float


class ConversationDetails(TypedDict):
    """A conversation with its finished turns."""

    thread_id: str
    title: Annotated[str, Meaning("Its name, or its first question.")]
    archived: bool
    turns: list[dict[str, Any]]
    begun_at: float
    updated_at: float


class PlacedWords(TypedDict):
    """A statement about a study in a table, with the words that it rests on and their place."""

    condition: Annotated[str, Meaning("Condition under which the value or result holds.")]
    quote: Annotated[str, Meaning("The words of the paper.")]
    page: int | None
    chunk_id: str
    start: int | None
    end: int | None
    spans: list[dict[str, Any]]
    edited: bool


class CellRecord(PlacedWords):
    """A cell of an evidence table: a value with the words that it rests on."""

    value: Annotated[str, Meaning("As printed.")]
    unit: str
    formula: Annotated[str, Meaning("How a computed value follows from printed numbers.")]
    converted: Annotated[str, Meaning("The value in the column's unit; empty if it is printed in that unit.")]
    status: Annotated[str, Meaning("reported, computed, conflicting, not_reported, not_judged, unread or edited.")]
    alternatives: Annotated[list[dict[str, Any]], Meaning("Further values that the paper states for the same thing.")]
    searched: Annotated[list[str], Meaning("The searches in the paper that found nothing.")]
    revision: Annotated[int, Meaning("Send this with an edit; the edit is refused if the cell has changed since.")]


class StudyRow(TitledPaper):
    """A study of an evidence table."""

    study: Annotated[str, Meaning("The name of the study; empty if the paper has only one.")]
    reason: Annotated[str, Meaning("Why the paper belongs in the table.")]
    changed: Annotated[bool, Meaning("True if the paper has changed since it was read.")]
    cells: dict[str, CellRecord]


class LeftOutPaper(TitledPaper):
    """A paper that is close to the question but has no row."""

    reason: str


class ColumnSum(TypedDict):
    """Count, median and range of a column's numbers in one unit."""

    unit: str
    count: int
    median: float
    low: float
    high: float


class TableRecord(TypedDict):
    """An evidence table with the words behind each cell."""

    table_id: str
    question: str
    papers: Annotated[int, Meaning("Papers in scope.")]
    columns: list[TableColumnRecord]
    sums: Annotated[dict[str, list[ColumnSum]], Meaning("Count, median and range per unit, by name of the column.")]
    screened: int
    included: int
    rows: list[StudyRow]
    left_out: list[LeftOutPaper]
    removed: Annotated[list[str], Meaning("Keys of papers that the library no longer has.")]
    notice: str


class StudyStance(TitledPaper, PlacedWords):
    """What a study finds on a claim, with the words that decide."""

    study: Annotated[str, Meaning("The name of the study; empty if the paper has only one.")]
    changed: bool
    stance: Annotated[str, Meaning("for, mixed, other condition, no difference, against, or not judged.")]
    direction: str
    design: str
    n: str


class AgreementRecord(TypedDict):
    """Which papers are for a claim, which against it, and which are silent."""

    claim: str
    table_id: Annotated[str, Meaning("Id of the evidence table that stores the result.")]
    papers: Annotated[int, Meaning("Papers in scope.")]
    screened: int
    removed: Annotated[list[str], Meaning("Keys of papers that the library no longer has.")]
    notice: str
    counts: Annotated[dict[str, int], Meaning("Number of papers by stance.")]
    studies: list[StudyStance]
    silent: Annotated[list[LeftOutPaper], Meaning("Papers that were read and say nothing on the claim.")]


class TableSummary(TypedDict):
    """An evidence table as `tables list` shows it."""

    table_id: str
    question: str
    plan: Annotated[dict[str, Any], Meaning("Columns of the table, and keys of the papers in scope.")]
    begun_at: float
    updated_at: float


class ExportedFiles(TypedDict):
    """The files that an export wrote."""

    files: Annotated[dict[str, str], Meaning("Path by format.")]
    failed: Annotated[list[str], Meaning("Why a format could not be written.")]
    warnings: list[str]


class SuggestedCitation(TitledPaper):
    """A paper to cite for a sentence, with the words that bear on it."""

    authors: Annotated[str, Meaning("As named in running text.")]
    score: Annotated[float, Meaning("Orders the papers of one answer; not comparable between answers.")]
    chunk_id: Annotated[str, Meaning("Id of the passage, for get_context_window.")]
    section: str
    page: int | None
    quote: Annotated[str, Meaning("The nearest sentence of the passage, verbatim.")]


class SuggestedCitations(TypedDict):
    """Papers to cite, best first."""

    papers: list[SuggestedCitation]


class ImportedText(TypedDict):
    """What became of each sentence of a text that was edited elsewhere."""

    file: str
    run: str
    counts: Annotated[dict[str, int], Meaning("Number of sentences by state.")]
    sentences: Annotated[
        list[ImportedSentence], Meaning("Kept, edited, moved, split, merged, new or gone, with the previous words.")
    ]
    comments: Annotated[list[dict[str, str]], Meaning("Author and text of the comments in the document.")]
    tracked_changes: Annotated[int, Meaning("Number of tracked changes accepted or rejected.")]
    warnings: list[str]

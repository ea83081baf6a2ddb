"""The responses of the API as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ..documents.figures import FigureKind
from .problems import MEDIA_TYPE

Responses = dict[int | str, dict[str, Any]]


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class FieldProblem(BaseModel):
    """What is wrong with one field of a request."""

    field: str
    message: str


class Problem(_Open):
    """An error (RFC 9457), with the help line of the command line."""

    type: str
    title: str
    status: int
    detail: str
    help: str = ""
    errors: list[FieldProblem] = Field(default_factory=list)
    paused: bool = Field(False, description="True when the same request resumes the run.")


class JobState(_Open):
    """A piece of work; its events are at the path of its run, conversation or ingest plus `/events`."""

    id: str
    kind: str
    state: str
    events: int
    problem: Problem | None = None


class RunSummary(_Open):
    """A run as `runs list` shows it; `active` is its job while it waits or works here."""

    thread_id: str
    section: str
    title: str
    status: str
    detail: str
    started_at: float
    updated_at: float
    active: JobState | None = None


class RunList(BaseModel):
    """A page of runs, the latest first."""

    runs: list[RunSummary]
    total: int


class RunDetails(RunSummary):
    """A run with its searches, and its result once it is finished."""

    queries: list[dict[str, Any]]
    result: dict[str, Any] | None


class ConversationSummary(_Open):
    """A conversation as `conversations list` shows it; `active` is its turn while it waits or works here."""

    thread_id: str
    title: str
    turns: int | list[dict[str, Any]]
    begun_at: float
    updated_at: float
    active: JobState | None = None


class ConversationList(BaseModel):
    """A page of conversations, the latest first."""

    conversations: list[ConversationSummary]
    total: int


class PausedQuestion(BaseModel):
    """A question that was stopped; asking it again resumes it."""

    asked: str
    kind: str


class ConversationDetails(_Open):
    """A conversation with its finished turns."""

    thread_id: str
    title: str
    turns: list[dict[str, Any]]
    begun_at: float
    updated_at: float
    active: JobState | None = None
    paused: PausedQuestion | None = None


class Stopped(BaseModel):
    """Whether there was anything to stop."""

    id: str
    stopped: bool


class PaperList(BaseModel):
    """A page of papers."""

    papers: list[dict[str, Any]]
    total: int
    in_text: bool = Field(False, description="True if the words are only in the full text of these papers.")


class PaperDetails(_Open):
    """A paper with its metadata, summary, note and section tree."""

    key: str
    title: str
    sections: list[dict[str, Any]]
    bibtex: str = Field(description="Its entry, as given or made from the file.")
    added_here: bool = Field(description="True when its file was uploaded; removing the paper removes that file too.")


class FigureRecord(BaseModel):
    """A figure or table of a paper."""

    number: int = Field(description="Its place in the paper, from 0; part of the address of its image.")
    kind: FigureKind
    label: str = Field(description="As printed, such as Figure 2; empty without one.")
    name: str
    caption: str = Field(description="The paper's words.")
    page: int | None
    media_type: str = Field(description="That of its image; empty without one.")
    no_image: str = Field(description="Why it has no image, if that is known.")
    width: int
    height: int
    description: str = Field(description="What a vision model says about it; never the paper's words.")
    described_by: str = Field(description="The model of the description; empty without one.")


class PaperFigures(BaseModel):
    """The figures and tables of a paper, in reading order."""

    key: str
    figures: list[FigureRecord]


class PaperText(BaseModel):
    """The searchable text of a paper, in reading order."""

    key: str
    text: list[dict[str, Any]]


class Passages(BaseModel):
    """Passages for a query, best first."""

    passages: list[dict[str, Any]]


class FoundPapers(BaseModel):
    """A page of papers for a query, best first."""

    papers: list[dict[str, Any]]
    total: int
    next_page: int | None


class Health(BaseModel):
    """The server answers."""

    status: str


class Readiness(Health):
    """The library can be used."""

    papers: int


class SettingRecord(BaseModel):
    """A setting as text, and where it comes from."""

    value: str
    origin: str


class UsageRecords(BaseModel):
    """What runs cost: by run and model, by day, and in all. A cost is null where a price is not known."""

    runs: list[dict[str, Any]]
    days: list[dict[str, Any]]
    total: dict[str, Any]


class DoctorRecord(BaseModel):
    """The state of the library."""

    home: str
    library: dict[str, Any]
    findings: list[dict[str, Any]]


class PlotUpload(BaseModel):
    """Stored images; `id` stands for all `files` in a request to write."""

    id: str
    files: list[str]
    refused: list[dict[str, Any]]


class ResultFile(BaseModel):
    """A file of a finished run; `version` is "edited" for the user's version."""

    name: str
    format: str
    version: str
    media_type: str
    href: str


class FileList(BaseModel):
    """The files of a finished run."""

    files: list[ResultFile]


class EditOfSentence(BaseModel):
    """The user's wording of a sentence; `checked` is the result of its last check, null if it was never checked."""

    text: str
    updated_at: float
    checked: dict[str, Any] | None


class TextSentence(BaseModel):
    """A sentence; `start` and `end` are its place in the text of its section."""

    position: int
    section: str
    text: str
    start: int
    end: int
    verdict: str
    keys: list[str]
    findings: list[dict[str, Any]]
    edited: EditOfSentence | None


class SentenceList(BaseModel):
    """The sentences of a finished section or paper, in order."""

    thread_id: str
    sentences: list[TextSentence]


class CheckedSentence(BaseModel):
    """What the check of an edited sentence found; spans of findings and numbers are in `text`.

    `verdict` is the worst of its citations, "uncited" without any, or "removed"; null if it was not checked.
    """

    position: int
    kept: bool
    section: str = ""
    text: str = ""
    verdict: str | None = None
    ok: bool = False
    citations: list[dict[str, Any]] = Field(default_factory=list)
    findings: list[dict[str, Any]] = Field(default_factory=list)
    numbers: list[dict[str, Any]] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    usage: dict[str, Any] = Field(default_factory=dict)


class ExperimentReport(BaseModel):
    """What is wrong with an experiment.

    `problems` block every section; `missing` lists, for each section, the groups of fields of which one is needed.
    """

    problems: list[FieldProblem]
    missing: dict[str, list[list[str]]]
    warnings: list[str]
    ready: list[str]


_PROBLEMS: Final = {
    400: "The request cannot be read.",
    401: "A token is needed.",
    403: "The request comes from a page of another site.",
    404: "There is nothing with this id.",
    405: "The path does not have this method.",
    409: "Something else is under way, or the library cannot be written.",
    411: "The request has a body of unknown length.",
    413: "The request is too large.",
    415: "The body has another media type.",
    421: "The server is not reached under this host name.",
    422: "The request is invalid.",
    429: "Too many requests, streams or jobs.",
    500: "An unexpected error; the server's log has the details.",
    502: "A model or service failed.",
    503: "The run is paused with everything saved, or the server is shutting down.",
    507: "The file cannot be stored.",
}
_ALWAYS: Final = (400, 401, 403, 413, 421, 422, 429, 500)
_EVENTS: Final = {"schema": {"type": "string"}, "description": "Server-sent events; see docs/events.md."}
METRICS: Final = {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}


def problems(*statuses: int) -> Responses:
    """These problems plus those common to all routes."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _PROBLEMS[status], "content": content} for status in sorted({*_ALWAYS, *statuses})}


def job_answers(*statuses: int) -> Responses:
    """A job as result, events or reference, and its problems."""
    result = {"application/json": {"schema": {"type": "object"}}, "text/event-stream": _EVENTS}
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/JobState"}}}
    return {
        200: {"description": "The result, or its events as they come.", "content": result},
        202: {"description": "The job, which works in the background (Prefer: respond-async).", "content": reference},
        **problems(409, 502, 503, *statuses),
    }


def reference_answers(*statuses: int) -> Responses:
    """A background job, and the problems of starting it."""
    answers = job_answers(*statuses)
    return {**answers, 200: {"description": "Its events as they come.", "content": {"text/event-stream": _EVENTS}}}


def event_answers() -> Responses:
    """An event stream, 204 for a client that has seen it all, and problems."""
    return {
        200: {"description": "The events.", "content": {"text/event-stream": _EVENTS}},
        204: {"description": "The client has seen all events, and no more will come."},
        **problems(404, 409),
    }

"""What the server's responses add to the records of `api/results.py`, and how its OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote

from typing_extensions import TypedDict

from ..api import results, run_texts
from .job import JobRecord
from .problems import MEDIA_TYPE, STATUSES
from .uploaded_files import RefusedFile

Responses = dict[int | str, dict[str, Any]]


class _WithJob(TypedDict):
    active: JobRecord | None


class ListedRun(results.RunSummary, _WithJob):
    """A run as `runs list` shows it; `active` is its job while queued or running."""


class RunList(TypedDict):
    """A page of runs, the latest first."""

    runs: list[ListedRun]
    total: int


class RunWithJob(results.RunDetails, _WithJob):
    """A run with its searches, and its result once it is finished; `active` is its job while queued or running."""


class ListedConversation(results.ConversationSummary, _WithJob):
    """A conversation as `conversations list` shows it; `active` is its turn while it waits or works here."""


class ConversationList(TypedDict):
    """A page of conversations, the latest first."""

    conversations: list[ListedConversation]
    total: int


class OfferedModels(TypedDict):
    """The models that may be chosen for a question."""

    models: list[str]


class PausedQuestion(TypedDict):
    """A question that was stopped; asking it again resumes it."""

    asked: str
    kind: str


class ConversationWithJob(results.ConversationDetails, _WithJob):
    """A conversation with its finished turns, and the one that is active or paused."""

    paused: PausedQuestion | None


class Readers(TypedDict):
    """Who may read a conversation besides its owner; `*` is everybody."""

    readers: list[str]


class ListedTable(results.TableSummary, _WithJob):
    """An evidence table as `tables list` shows it; `active` is the job that makes it while it waits or works."""


class ListedTables(TypedDict):
    """The evidence tables, the latest first."""

    tables: list[ListedTable]


class Stopped(TypedDict):
    """Whether there was anything to stop."""

    id: str
    stopped: bool


class PaperOnServer(results.PaperDetails):
    """A paper with its metadata, summary, note and section tree."""

    added_here: Annotated[
        bool, results.Meaning("True when its file was uploaded; removing the paper removes that file too.")
    ]


class Health(TypedDict):
    """The server answers."""

    status: str


class Readiness(Health):
    """The library can be used."""

    papers: int


class SettingRecord(TypedDict):
    """A setting as text, and where it comes from."""

    value: str
    origin: str


class PlotUpload(TypedDict):
    """Stored images; `id` stands for all `files` in a request to write."""

    id: str
    files: list[str]
    refused: list[RefusedFile]


class ResultFile(TypedDict):
    """A file of a finished run; `version` is "edited" for the user's version."""

    name: str
    format: str
    version: str
    media_type: str
    href: str


class FileList(TypedDict):
    """The files of a finished run."""

    files: list[ResultFile]


class SentenceList(TypedDict):
    """The sentences of a finished section or paper, in order."""

    thread_id: str
    sentences: list[run_texts.TextSentence]


class KeptSentence(run_texts.CheckedSentence):
    """What the check of an edited sentence found, and whether the edit was kept."""

    kept: bool


class RewrittenSentence(TypedDict):
    """A new wording of a sentence, which is not stored."""

    text: str


_ALWAYS: Final = (400, 401, 403, 413, 421, 422, 429, 500)
_EVENTS: Final = {"schema": {"type": "string"}, "description": "Server-sent events; see docs/events.md."}
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
MEDIA_TYPES: Final = {
    "md": "text/markdown; charset=utf-8",
    "bib": "application/x-bibtex; charset=utf-8",
    "evidence.html": "text/html; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "tex": "application/x-tex; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "odt": "application/vnd.oasis.opendocument.text",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
}
METRICS: Final = {"description": "Prometheus text.", "content": {"text/plain": {"schema": {"type": "string"}}}}


def attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}


def problems(*statuses: int) -> Responses:
    """These problems plus those common to all routes."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    known = sorted({*_ALWAYS, *statuses})
    return {status: {"description": STATUSES[status][1], "content": content} for status in known}


def file_answers(*statuses: int) -> Responses:
    return {200: {"description": "The file.", "content": {"application/octet-stream": {}}}, **problems(*statuses)}


def job_answers(*statuses: int) -> Responses:
    result = {"application/json": {"schema": {"type": "object"}}, "text/event-stream": _EVENTS}
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/JobRecord"}}}
    return {
        200: {"description": "The result, or its events as they come.", "content": result},
        202: {"description": "The job, which works in the background (Prefer: respond-async).", "content": reference},
        **problems(409, 502, 503, *statuses),
    }


def reference_answers(*statuses: int) -> Responses:
    answers = job_answers(*statuses)
    return {**answers, 200: {"description": "Its events as they come.", "content": {"text/event-stream": _EVENTS}}}


def event_answers() -> Responses:
    return {
        200: {"description": "The events.", "content": {"text/event-stream": _EVENTS}},
        204: {"description": "The client has seen all events, and no more will come."},
        **problems(404, 409),
    }

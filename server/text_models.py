"""Requests and responses about the text of a run: its files, its sentences, and the experiment it is written from."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from .request_models import LimitedBody
from .response_models import FieldProblem


class SentenceBody(LimitedBody):
    """An edited sentence of a finished run."""

    position: int = Field(ge=0, le=10**6, description="Its place in the list of sentences, from 0.")
    text: str = Field(
        max_length=4000, description="The sentence as the user wants it, citing as the text does; empty removes it."
    )
    check: bool = Field(True, description="Check it; this may ask the judge, once for the same words.")
    keep: bool = Field(False, description="Keep it as a part of the user's version of the text.")


class ExperimentBody(BaseModel):
    """An experiment to check."""

    experiment: Any = Field(description="The content of exp.json.")
    plot_upload: str = Field("", max_length=30, description="Id of the uploaded images that its plots name.")


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
    """The user's words in place of a sentence; `checked` is what their last check found, null if there was none."""

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
    """`problems` prevent all sections; `missing` has for each section the groups of fields of which it needs one."""

    problems: list[FieldProblem]
    missing: dict[str, list[list[str]]]
    warnings: list[str]
    ready: list[str]

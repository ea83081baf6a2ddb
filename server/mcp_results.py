"""What the tools of the MCP server return; the schemas show agents what the fields mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field


class DescribedFigure(BaseModel):
    """What a vision model says about a figure: helps to understand its caption, and cannot be quoted or cited."""

    figure: str
    description: str = Field(description="The model's words, not the paper's.")
    described_by: str


class FoundPassage(BaseModel):
    """A passage of a paper, word for word."""

    chunk_id: str = Field(description="Id of the passage, for get_context_window.")
    key: str = Field(description="Citation key of the paper.")
    title: str
    year: int | None
    page: int | None = Field(description="Page on which it begins; null for a source without pages.")
    ocr: bool = Field(False, description="True if that page is a scan whose text was read by OCR.")
    section: str
    category: str
    score: float = Field(description="Orders the passages of one search; not comparable between searches.")
    sentence: str = Field(description="The sentence that fits the query best.")
    text: str
    status: str = Field("", description="retracted, expression of concern, reinstated or corrected; else empty.")
    notices: list[str] = Field(default_factory=list, description="What says so, and other versions of the paper.")
    described_figures: list[DescribedFigure] = Field([], description="Figures whose captions are in the passage.")


class FoundPassages(BaseModel):
    """Passages, best first."""

    passages: list[FoundPassage]


class ListedFigure(BaseModel):
    """A figure or table of a paper."""

    kind: str
    name: str = Field(description="Its label, as printed.")
    caption: str = Field(description="The paper's words, which can be quoted.")
    page: int | None
    description: str = Field(description="What a vision model says about it: not the paper's words, not to be quoted.")
    described_by: str


class ListedFigures(BaseModel):
    """The figures and tables of a paper, in reading order."""

    key: str
    figures: list[ListedFigure]


class FoundPaper(BaseModel):
    """A paper with the sentence that fits the query best."""

    key: str = Field(description="Citation key; its text is the resource citeloom://papers/{key}.")
    title: str
    year: int | None
    score: float
    sentence: str
    chunk_id: str | None = Field(None, description="The passage with the sentence, in a search of the full text.")
    page: int | None = None
    section: str | None = None
    status: str = Field("", description="retracted, expression of concern, reinstated or corrected; else empty.")
    notices: list[str] = Field(default_factory=list, description="What says so, and other versions of the paper.")


class FoundPaperPage(BaseModel):
    """A page of papers, best first."""

    papers: list[FoundPaper]
    total: int
    next_page: int | None = Field(description="Null on the last page.")


class NeighbourPassage(BaseModel):
    """A passage in reading order."""

    chunk_id: str
    section: str
    page: int | None
    text: str


class PassageWindow(BaseModel):
    """A passage with its neighbours; neighbours share some words."""

    key: str
    title: str
    passages: list[NeighbourPassage]


class CitedSource(BaseModel):
    """A paper that an answer cites."""

    label: str = Field(description="Its number in the answer, or its key in a citation style without numbers.")
    key: str
    title: str
    authors: list[str]
    year: int | None
    doi: str
    url: str
    places: list[dict[str, Any]] = Field(description="The cited pages and sections.")


class CheckedCitation(BaseModel):
    """A citation of an answer, the words that it rests on, and the verdict of the check on its sentence."""

    key: str
    page: int | None
    ocr: bool = Field(False, description="True if that page is a scan whose text was read by OCR.")
    section: str
    chunk_id: str
    sentence: str = Field(description="The sentence of the answer.")
    quote: str = Field(description="The words of the paper.")
    verdict: str


class ResearchAnswer(BaseModel):
    """An answer from the library."""

    run_id: str
    question: str
    answered: bool | None = Field(description="False when nothing was found; null when passages were, but not judged.")
    outcome: str = Field(description="answered, passages (near to the question, not judged) or nothing.")
    text: str
    sources: list[CitedSource]
    citations: list[CheckedCitation]
    warnings: list[str]
    cost: dict[str, Any] = Field(description="What the run has cost; asking again costs nothing.")

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ResearchAnswer:
        """The answer of a finished run."""
        sources = [{**entry, "places": entry.get("places", [])} for entry in record["references"]]
        same = {name: record[name] for name in ("question", "answered", "outcome", "text", "citations", "warnings")}
        return cls.model_validate({**same, "run_id": record["thread_id"], "sources": sources, "cost": record["usage"]})


class LibraryStatus(BaseModel):
    """What the library holds and what is wrong with it."""

    home: str
    papers: int
    passages: int
    first_year: int | None
    last_year: int | None
    embedding: str
    version: str = Field(description="Changes whenever papers do.")
    chat_models: bool = Field(description="False when answers are quoted passages, since no chat model is configured.")
    problems: list[str]

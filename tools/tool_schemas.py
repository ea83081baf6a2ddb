"""The schemas of the agent's five tools: tool calls are validated before anything is done.

Models send strings for lists and single years for pairs; that is normalised only here. Other mistakes are explained
to the model in the answer, never raised to the user. The docstring of a tool is its description for the model."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..documents import Category, Paper
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..invalid_values import describe_invalid, field_path
from ..plurals import counted
from ..stores.library import Library
from .paper_search import publication_statuses, search_papers
from .scope import CategoryName, Scope, as_list, as_years


class ToolRequestError(Exception):
    """A tool call that cannot be carried out; the message is for the model."""


class _ToolArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


SUMMARIES = 5


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A line for the model, and the chunks whose texts follow it."""

    lead: str
    chunk_ids: tuple[str, ...] = ()


class Reading(_ToolArguments, ABC):
    """A tool that only reads, without adding evidence; unknown ids are reported to the model."""

    @abstractmethod
    async def answer(self, library: Library) -> ToolAnswer: ...


class SearchEvidence(_ToolArguments):
    """Search the papers for passages not read yet, and read them; what they say becomes evidence that can be cited.

    Counts against the search budget.
    """

    query: str = Field(
        min_length=3, max_length=2000, description="A statement as it might stand in the paper that has it."
    )
    need: str = Field("", max_length=300, description="Id of the need it is for, such as N2; empty for something new.")
    papers: Annotated[list[str], BeforeValidator(as_list)] = Field(
        default_factory=list, description="Citation keys to search within; empty for the whole library."
    )
    categories: Annotated[list[CategoryName], BeforeValidator(as_list)] = Field(
        default_factory=list, description="Kinds of paper section to search within; empty for all."
    )
    years: Annotated[list[int] | None, BeforeValidator(as_years)] = Field(
        None, min_length=2, max_length=2, description="First and last year of publication."
    )

    def scope(self) -> Scope:
        """Return the requested part of the library."""
        return Scope(
            tuple(self.papers),
            tuple(Category[name.upper()] for name in self.categories),
            (min(self.years), max(self.years)) if self.years else None,
        )


class ContextWindow(Reading):
    """Read the passages before and after one, to understand it; it adds no evidence."""

    chunk_id: str = Field(min_length=1, max_length=500, description="Id of the passage, as search_evidence gave it.")
    window: int = Field(1, ge=1, le=3, description="Passages on either side.")

    async def answer(self, library: Library) -> ToolAnswer:
        try:
            chunks = await asyncio.to_thread(library.window, self.chunk_id, self.window)
        except (InputError, ValueError):
            chunks = []
        if not chunks:
            return ToolAnswer(f"There is no chunk {self.chunk_id!r} in the library.")
        return ToolAnswer(f"The passages around {self.chunk_id}:", tuple(chunk.id for chunk in chunks))


class SearchSummaries(Reading):
    """Find the papers that are about a query, by their summaries and the user's notes on them; it adds no evidence.

    Counts against the search budget.
    """

    query: str = Field(min_length=3, max_length=2000, description="What the papers should be about.")

    async def answer(self, library: Library) -> ToolAnswer:
        vector = await library.embedding.embed_query(self.query)
        near = await asyncio.to_thread(library.nearest_papers, vector, SUMMARIES)
        if not near:
            return ToolAnswer("The library has no summaries.")
        statuses = await asyncio.to_thread(publication_statuses, library, [item.paper for item in near])
        lines: list[str] = []
        for item in near:
            named = _name_paper(item.paper, statuses[item.paper.key])
            lines.append(f"- {named}: {' '.join(item.summary.split())}")
            if item.note:
                lines.append(f"  The user's own note on it, not the paper's words: {' '.join(item.note.split())}")
        return ToolAnswer("\n".join(["Papers whose summaries are nearest to the query:", *lines]))


class SearchPapers(Reading):
    """Find the papers whose full text has the words of a query, a page at a time; it adds no evidence.

    Counts against the search budget.
    """

    query: str = Field(min_length=3, max_length=2000, description="Words that the papers should have.")
    min_year: int | None = Field(None, ge=0, le=9999, description="First year of publication.")
    max_year: int | None = Field(None, ge=0, le=9999, description="Last year of publication.")
    page: int = Field(1, ge=1, le=1000, description="Page of the answer; ask for the next one to see more.")

    async def answer(self, library: Library) -> ToolAnswer:
        asked = (self.query, self.min_year, self.max_year, self.page)
        try:
            found = await asyncio.to_thread(search_papers, library, *asked)
        except InputError as error:
            return ToolAnswer(error.message)
        if not found.hits:
            return ToolAnswer("No paper has these words." if self.page == 1 else f"There is no page {self.page}.")
        statuses = await asyncio.to_thread(publication_statuses, library, [hit.paper for hit in found.hits])
        lines = [
            f"- {_name_paper(hit.paper, statuses[hit.paper.key])}; chunk {hit.chunk.id}: {hit.sentence}"
            for hit in found.hits
        ]
        lines += [f"There are more on page {found.next_page}."] if found.next_page else []
        total = counted(found.total, "paper")
        return ToolAnswer("\n".join([f"Page {self.page} of {total} with words of the query:", *lines]))


class PaperIntroduction(Reading):
    """Read how a paper introduces itself; it adds no evidence."""

    key: str = Field(min_length=1, max_length=500, description="Citation key of the paper.")

    async def answer(self, library: Library) -> ToolAnswer:
        try:
            paper = await asyncio.to_thread(library.paper, self.key)
        except InputError:
            return ToolAnswer(f"There is no paper with the key {self.key!r} in the library.")
        chunks = await asyncio.to_thread(library.introduction, self.key)
        if not chunks:
            return ToolAnswer(f"{self.key} ({paper.title}) has no introduction.")
        return ToolAnswer(f"The introduction of {self.key} ({paper.title}):", tuple(chunk.id for chunk in chunks))


ToolRequest = SearchEvidence | Reading

_REQUESTS: dict[str, type[ToolRequest]] = {
    "search_evidence": SearchEvidence,
    "get_context_window": ContextWindow,
    "search_summaries": SearchSummaries,
    "search_papers": SearchPapers,
    "get_paper_introduction": PaperIntroduction,
}

# Searches count against the budget; reading around results does not.
COUNTED = frozenset({"search_evidence", "search_summaries", "search_papers"})


TOOL_SPECS: tuple[dict[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": " ".join((request.__doc__ or "").split()),
            "parameters": {
                key: part for key, part in request.model_json_schema().items() if key not in ("title", "description")
            },
        },
    }
    for name, request in _REQUESTS.items()
)


def parse_request(name: str, arguments: Any) -> ToolRequest:
    """Validate a tool call; raises `ToolRequestError` for an unknown tool or invalid arguments."""
    kind = _REQUESTS.get(name)
    if kind is None:
        raise ToolRequestError(f"There is no tool {name!r}; there are {', '.join(_REQUESTS)}.")
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        problems = "; ".join(
            f"{field_path(item['loc']) or 'arguments'}: {describe_invalid(item, show=True)}" for item in error.errors()
        )
        raise ToolRequestError(f"{name} was not carried out: {problems}.") from error


def _name_paper(paper: Paper, status: PublicationStatus) -> str:
    """Format key, year and title, with a status such as RETRACTED."""
    mark = f" [{status.label.upper()}]" if status.label else ""
    return f"{paper.key} ({paper.year or 'no year'}), {paper.title}{mark}"

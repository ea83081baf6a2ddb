"""The arguments of the tools that other agents call over MCP; the schemas show them what they mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ..stores.library import Library
from ..tools.paper_search import year_range
from ..tools.scope import Scope
from ..tools.tool_schemas import CategoryName, as_list, as_years

Keys = Annotated[list[str], BeforeValidator(as_list), Field(max_length=200)]
Categories = Annotated[list[CategoryName], BeforeValidator(as_list)]
Years = Annotated[list[int] | None, BeforeValidator(as_years)]


class AgentArguments(BaseModel):
    """The base: an unknown argument is an error, since a limit that is ignored gives wrong answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EvidenceQuery(AgentArguments):
    """The arguments of `search_evidence`."""

    query: str = Field(
        min_length=1, max_length=2000, description="What the passages should say, in words or a sentence."
    )
    limit: int = Field(10, ge=1, le=50, description="Number of passages.")
    papers: Keys = Field(
        default_factory=list, description="Citation keys to search within; empty for the whole library."
    )
    categories: Categories = Field(
        default_factory=list, description="Kinds of paper section to search within; empty for all."
    )
    years: Years = Field(None, min_length=2, max_length=2, description="First and last year of publication.")
    venue: str = Field("", max_length=200, description="A part of the journal's or book's name.")

    def scope(self, library: Library) -> Scope:
        """The requested part of the library; raises `InputError` for what it does not have."""
        years = year_range(*self.years) if self.years else None
        return Scope.within(library, self.papers, self.categories, years, self.venue)


class PaperQuery(AgentArguments):
    """The arguments of `search_papers`."""

    query: str = Field(min_length=1, max_length=2000, description="Words of the papers, or what they are about.")
    by: Literal["text", "summary"] = Field(
        "text", description="text: papers whose full text has the words; summary: papers that are about the query."
    )
    min_year: int | None = Field(None, ge=0, le=9999, description="First year of publication.")
    max_year: int | None = Field(None, ge=0, le=9999, description="Last year of publication.")
    page: int = Field(1, ge=1, le=1000, description="Page of the answer, ten papers each.")


class WindowQuery(AgentArguments):
    """The arguments of `get_context_window`."""

    chunk_id: str = Field(min_length=1, max_length=500, description="Id of a passage, as search_evidence gives it.")
    window: int = Field(1, ge=1, le=10, description="Number of passages on either side.")


class FigureQuery(AgentArguments):
    """The arguments of `list_figures`."""

    key: str = Field(min_length=1, max_length=500, description="Citation key of the paper.")


class StatusQuery(AgentArguments):
    """The arguments of `library_status`: none."""

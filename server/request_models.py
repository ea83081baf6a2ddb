"""The bodies of requests."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from .run_jobs import Limits

Text = Annotated[str, Field(min_length=1, max_length=4000)]
PaperKey = Annotated[str, Field(min_length=1, max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of entries.")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="Entries to skip.")]
Year = Annotated[int | None, Query(ge=0, le=9999, description="Year of publication.")]


# The fields of a question, for its route and its MCP tool.
MaxSources = Annotated[int | None, Field(ge=1, le=50, description="Maximum number of papers that the answer may cite.")]
Length = Annotated[int | None, Field(ge=50, le=5000, description="Target length in words.")]
FromYear = Annotated[
    int | None,
    Field(ge=0, le=9999, description="First year.", validation_alias=AliasChoices("from_year", "min_year")),
]
ToYear = Annotated[
    int | None, Field(ge=0, le=9999, description="Last year.", validation_alias=AliasChoices("to_year", "max_year"))
]
Venue = Annotated[str, Field(max_length=200, description="A part of the journal's or book's name.")]
OnlyPapers = Annotated[list[PaperKey], Field(max_length=200, description="Keys of the only papers to use.")]
SingleShot = Annotated[bool, Field(description="Search once, without the agent.")]
Fresh = Annotated[bool, Field(description="Answer again, without reusing cached answers.")]
Strict = Annotated[bool | None, Field(description="Remove sentences that fail a check instead of marking them.")]
MaxCalls = Annotated[int | None, Field(ge=1, le=10**9, description="Total requests to models that the run may make.")]
MaxTokens = Annotated[int | None, Field(ge=1, le=10**12, description="Total tokens that the run may spend.")]
MaxCost = Annotated[
    float | None,
    Field(gt=0, le=1e9, allow_inf_nan=False, description="Total cost of the run, by the configured prices."),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitedBody(_Body):
    """The limits that every request for a run may set."""

    strict: Strict = None
    max_calls: MaxCalls = None
    max_tokens: MaxTokens = None
    max_cost: MaxCost = None

    def limits(self) -> Limits:
        """The limits that were given."""
        given: Limits = self.model_dump(include=set(Limits.__annotations__), exclude_none=True)  # type: ignore[assignment]  # its keys are those
        return given


class ResearchBody(LimitedBody):
    """A question to answer from the library."""

    question: Text
    sources: MaxSources = None
    length: Length = None
    from_year: FromYear = None
    to_year: ToYear = None
    venue: Venue = ""
    papers: OnlyPapers = []
    single_shot: SingleShot = False
    fresh: Fresh = False


class IdentifierBody(_Body):
    """Papers to add by identifier."""

    identifiers: list[Annotated[str, Field(min_length=1, max_length=300)]] = Field(
        min_length=1, max_length=100, description="DOIs or arXiv ids, bare or as links."
    )
    download: bool = Field(False, description="Get the free PDF where a service names one.")
    anyway: bool = Field(False, description="Also add a paper whose title and authors are in the library already.")


class EnrichBody(_Body):
    """Papers to look up at the metadata services."""

    keys: list[PaperKey] = Field(default_factory=list, max_length=10_000, description="All papers if none is given.")
    refresh: bool = Field(False, description="Ask again for what is in the cache.")


class EntryBody(_Body):
    """The metadata of a paper."""

    bibtex: str = Field(min_length=1, max_length=20_000, description="One BibTeX entry; the paper keeps its key.")


class QuestionBody(LimitedBody):
    """The next question of a conversation."""

    question: Text
    alone: bool = Field(False, description="The question does not refer to earlier ones; do not rewrite it.")


class ImproveBody(LimitedBody):
    """Feedback on the last answer of a conversation."""

    feedback: Text


class WritingBody(LimitedBody):
    """A section or a paper to write from an experiment."""

    experiment: dict[str, Any] = Field(description="The experiment, as in exp.json.")
    plot_upload: str = Field("", max_length=30, description="Id of the uploaded images that its plots name.")
    fresh: bool = Field(False, description="Write again, without reusing cached answers.")

"""The bodies of requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from ..api.checking import CheckPart
from ..api.run_options import QuestionLimits, RunLimits, TextOptions, find_option
from ..api.running import ResearchRequest
from ..settings.config import Depth

Text = Annotated[str, Field(min_length=1, max_length=4000)]
PaperKey = Annotated[str, Field(min_length=1, max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of entries.")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="Entries to skip.")]
Year = Annotated[int | None, Query(ge=0, le=9999, description="Year of publication.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _described(group: type, name: str, default: Any = None, **limits: Any) -> Any:
    """The body field for an option of `api/run_options.py`."""
    option = find_option(group, name)
    return Field(default, description=option.help, ge=option.least, le=option.most, **limits)


class LimitedBody(_Body):
    """The limits that every request for a run may set."""

    strict: bool | None = _described(RunLimits, "strict")
    max_calls: Annotated[int | None, Le(10**9)] = _described(RunLimits, "max_calls")
    max_tokens: Annotated[int | None, Le(10**12)] = _described(RunLimits, "max_tokens")
    max_cost: Annotated[float | None, Gt(0), Le(1e9)] = _described(RunLimits, "max_cost", allow_inf_nan=False)

    def limits(self) -> RunLimits:
        """The limits that were given."""
        return RunLimits(
            strict=self.strict, max_calls=self.max_calls, max_tokens=self.max_tokens, max_cost=self.max_cost
        )


class TextBody(LimitedBody):
    """The limits that every request for a text may set."""

    depth: Depth | None = _described(TextOptions, "depth")

    def limits(self) -> TextOptions:
        """The limits that were given."""
        return TextOptions(**super().limits().changes(), depth=self.depth)


class ResearchBody(TextBody):
    """A question to answer from the library."""

    question: Text
    sources: int | None = _described(QuestionLimits, "sources")
    length: int | None = _described(QuestionLimits, "length")
    from_year: Annotated[int | None, Ge(0), Le(9999)] = _described(QuestionLimits, "from_year")
    to_year: Annotated[int | None, Ge(0), Le(9999)] = _described(QuestionLimits, "to_year")
    venue: str = _described(QuestionLimits, "venue", "", max_length=200)
    papers: list[PaperKey] = Field(default_factory=list, max_length=200, description="Keys of the only papers to use.")
    single_shot: bool = _described(QuestionLimits, "single_shot", False)
    fresh: bool = _described(QuestionLimits, "fresh", False)

    def request(self) -> ResearchRequest:
        """The question with its limits."""
        years = (self.from_year, self.to_year)
        limits = (self.question, self.sources, self.length, *years, self.venue, tuple(self.papers))
        return ResearchRequest(*limits, single_shot=self.single_shot, fresh=self.fresh)


class CheckBody(_Body):
    """A text of the user's own to check against the library."""

    text: str = Field(min_length=1, max_length=2_000_000, description="The text.")
    format: Literal["md", "tex", "typ"] = Field("md", description="Markdown, LaTeX or Typst.")
    bib: str = Field("", max_length=5_000_000, description="The content of its .bib; else its keys are the library's.")
    experiment: dict[str, Any] | None = Field(None, description="The exp.json whose numbers it may state.")
    only: list[CheckPart] = Field(default_factory=list, max_length=4, description="Parts to check; all if empty.")
    max_calls: Annotated[int | None, Le(10**9)] = _described(RunLimits, "max_calls")
    fresh: bool = Field(False, description="Judge again, without reusing answers.")


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
    refresh: bool = Field(False, description="Ask the services again instead of using cached answers.")


class EntryBody(_Body):
    """The metadata of a paper."""

    bibtex: str = Field(min_length=1, max_length=20_000, description="One BibTeX entry; the paper keeps its key.")


class QuestionBody(TextBody):
    """The next question of a conversation."""

    question: Text
    alone: bool = Field(False, description="The question does not refer to earlier ones; do not rewrite it.")


class ImproveBody(TextBody):
    """Feedback on the last answer of a conversation."""

    feedback: Text


class WritingBody(TextBody):
    """A section or a paper to write from an experiment."""

    experiment: dict[str, Any] = Field(description="The experiment, as in exp.json.")
    plot_upload: str = Field("", max_length=30, description="Id of the uploaded images that its plots name.")
    fresh: bool = Field(False, description="Write again, without reusing cached answers.")


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

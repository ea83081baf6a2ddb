"""The bodies of requests; those with options of runs are dataclasses that extend `api/run_options.py`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ..api import run_options, run_texts
from ..api.checking import CheckPart
from ..settings.config import CitationStyle

Text = Annotated[str, Field(min_length=1, max_length=4000)]
PaperKey = Annotated[str, Field(min_length=1, max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of entries.")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="Entries to skip.")]
Year = Annotated[
    Annotated[int, Field(ge=0, le=9999)] | None,
    BeforeValidator(lambda given: None if given == "" else given),  # a form's empty field
    Query(description="Year of publication."),
]
Words = Annotated[str, Query(max_length=200, description="Words that must all occur, ignoring case.")]

_UPLOADED_PLOTS = "Id of the uploaded images that its plots name."


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Strict(run_options.OptionGroup):
    __pydantic_config__ = ConfigDict(extra="forbid")


class LimitsBody(run_options.RunLimits, _Strict):
    """The limits that every request for a run may set."""


class AnswerBody(_Body):
    """The answer to what a run asks."""

    type: Literal["accept", "edit", "ignore"] = Field(
        "edit", description="Ignoring a budget's question pauses the run."
    )
    args: dict[str, str | list[str]] = Field(default_factory=dict, description="The fields to change, by name.")
    question: str = Field("", max_length=100, description="Id of the question; an answer to another is refused.")
    by: str = Field("", max_length=200, description="Who answers.")


class ResearchBody(run_options.QuestionOptions, run_options.SteeredOptions, _Strict):
    """A question to answer from the library."""

    question: Text
    papers: tuple[PaperKey, ...] = run_options.option(
        "Search only these papers, by their keys.", value=(), max_length=200
    )


class TurnOptions(run_options.ModelOption, run_options.TextOptions, _Strict):
    """What a question of a conversation may set for its own answer only; `GET /models` lists the models."""

    cite_style: CitationStyle | None = run_options.option("How it cites; numeric if the settings do not say.")


class QuestionBody(run_options.LabelLimits, TurnOptions):
    """The next question of a conversation, and the papers that it may draw on."""

    question: Text
    papers: tuple[PaperKey, ...] = run_options.option(
        "Search only these papers, by their keys.", value=(), max_length=200
    )
    without: tuple[PaperKey, ...] = run_options.option("Leave these papers out.", value=(), max_length=200)
    alone: bool = run_options.option("The question does not refer to earlier ones; do not rewrite it.", value=False)


class ImproveBody(TurnOptions):
    """Feedback on the last answer of a conversation."""

    feedback: Text


class LabelBody(_Body):
    """A conversation's name, and whether it is archived; omitted fields stay as they are."""

    name: str | None = Field(None, max_length=200, description="Empty restores the first question as the name.")
    archived: bool | None = None


class ReadersBody(_Body):
    """Who may read a conversation besides its owner."""

    readers: list[Annotated[str, Field(max_length=40)]] = Field(
        max_length=200, description="Names of accounts, or `*` for everybody on this server."
    )


class WritingBody(run_options.TableSources, run_options.SteeredOptions, _Strict):
    """A section or a paper to write from an experiment."""

    experiment: dict[str, Any] = run_options.required("The experiment, as in exp.json.")
    plot_upload: str = run_options.option(_UPLOADED_PLOTS, value="", max_length=30)
    fresh: bool = run_options.option("Write again, without reusing cached answers.", value=False)


class AgreementBody(run_options.AgreementOptions, run_options.BudgetOptions, _Strict):
    """A claim to ask papers about."""

    claim: Annotated[str, Field(min_length=1, max_length=2000, description="One sentence.")]


class TableBody(run_options.TableOptions, run_options.BudgetOptions, _Strict):
    """An evidence table to make or to complete."""

    question: Annotated[str, Field(min_length=1, max_length=2000, description="What the rows are.")]


class CellBody(_Strict):
    """The user's own value for a cell of an evidence table."""

    key: str = run_options.required("Citation key of the paper.", min_length=1, max_length=500)
    column: str = run_options.required("Name of the column.", min_length=1, max_length=200)
    value: str = run_options.required("The value.", max_length=2000)
    study: str = run_options.option("Name of the study, if the paper reports several.", value="", max_length=500)
    revision: int | None = run_options.option(
        "That of the cell as it was shown; without it, the edit always wins.", ge=0
    )


class SentenceBody(run_options.RunLimits, _Strict):
    """An edited sentence of a finished run."""

    position: int = run_options.required("Its place in the list of sentences, from 0.", ge=0, le=10**6)
    text: str = run_options.required(
        "The sentence as the user wants it, citing as the text does; empty removes it.", max_length=4000
    )
    check: bool = run_options.option("Check it; this may ask the judge, once for the same words.", value=True)
    keep: bool = run_options.option("Keep it as a part of the user's version of the text.", value=False)
    before: str | None = run_options.option(
        "The words that it replaces in the user's version, by whose numbers it then cites; 409 if they are others now.",
        value=None,
        max_length=20_000,
    )


class RewriteBody(run_options.RunLimits, _Strict):
    """A sentence of a finished run to reword."""

    text: str = run_options.required("The sentence as it stands in the user's version.", min_length=1, max_length=4000)
    how: run_texts.Rewriting = run_options.required("Shorter, more careful, or based on another source.")


class CheckBody(_Body):
    """The user's own text to check against the library."""

    text: str = Field(min_length=1, max_length=2_000_000, description="The text.")
    format: Literal["md", "tex", "typ"] = Field("md", description="Markdown, LaTeX or Typst.")
    bib: str = Field("", max_length=5_000_000, description="The content of its .bib; else its keys are the library's.")
    experiment: dict[str, Any] | None = Field(None, description="The exp.json whose numbers it may state.")
    only: list[CheckPart] = Field(default_factory=list, max_length=4, description="Parts to check; all if empty.")
    max_calls: int | None = Field(None, ge=1, le=10**9, description="Limit on model requests; the rest stays unjudged.")
    fresh: bool = Field(False, description="Judge again, without reusing answers.")
    look_up: bool = Field(False, description="Ask metadata services whether entries that the library lacks exist.")


class MemoryBody(_Body):
    """A line of the author's memory."""

    text: str = Field(min_length=1, max_length=300, description="'participants, not subjects', 'never cite KEY' ...")
    shared: bool = Field(False, description="For all users of the library.")


class ProposalBody(_Body):
    """The answer to a proposal."""

    accept: bool = Field(description="False declines it for good.")
    text: str = Field("", max_length=300, description="Another wording of the line.")
    shared: bool = Field(False, description="For all users of the library.")


class IdentifierBody(_Body):
    """Papers to add by identifier."""

    identifiers: list[Annotated[str, Field(min_length=1, max_length=300)]] = Field(
        min_length=1, max_length=100, description="DOIs or arXiv ids, bare or as links."
    )
    download: bool = Field(False, description="Fetch the free PDF if a service names one.")
    anyway: bool = Field(False, description="Also add a paper whose title and authors are in the library already.")


class EnrichBody(_Body):
    """Papers to look up at the metadata services."""

    keys: list[PaperKey] = Field(default_factory=list, max_length=10_000, description="All papers if none is given.")
    refresh: bool = Field(False, description="Ask the services again instead of using cached answers.")


class NoteBody(_Body):
    """The user's note on a paper."""

    text: Annotated[str, Field(max_length=100_000, description="Markdown; empty removes the note.")]
    before: Annotated[str | None, Field(max_length=100_000, description="The note as it was before the edit.")] = None


class EntryBody(_Body):
    """The metadata of a paper."""

    bibtex: str = Field(min_length=1, max_length=20_000, description="One BibTeX entry; the paper keeps its key.")


class ExperimentBody(BaseModel):
    """An experiment to check."""

    experiment: Any = Field(description="The content of exp.json.")
    plot_upload: str = Field("", max_length=30, description=_UPLOADED_PLOTS)

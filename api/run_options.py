"""Options, each declared once with help and limits for the command line, Python, HTTP and MCP.

A field's metadata are the arguments of pydantic's `Field`; `Shown` holds what only the command line needs.
`commands/options.py` turns these classes into command options, `server/request_models.py` into request bodies, and
`server/mcp_server.py` into the arguments of tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, dataclass_transform, get_type_hints

from ..section_kinds import PAPER_ORDER, SECTION_KINDS, SECTIONS, Ask, CitationFields, Depth, SectionKind

if TYPE_CHECKING:
    from ..citations.export.word_fields import DocumentOptions
    from ..graph.session import Session
    from ..runs.run_requests import ResearchRequest
    from ..tools.scope import Labels

RunKind = SectionKind | Literal["paper"]
Tracked = Literal["ask", "accept", "reject"]


@dataclass(frozen=True, slots=True)
class Shown:
    """How the command line shows an option."""

    flag: str = ""  # its name, if not the field's
    default: str = ""  # as displayed
    completes: str = ""  # the kind of ids that shell completion offers: "papers"
    by_comma: bool = True  # whether commas separate values; titles contain commas


def option(description: str, *, value: Any = None, **limits: Any) -> Any:
    """Declare a field with its help, default and limits (`ge`, `le`, `max_length`)."""
    return field(default=value, metadata={"description": description, **limits})


def required(description: str, **limits: Any) -> Any:
    """Declare a field without a default, like `option`."""
    return field(metadata={"description": description, **limits})


def spread_options(
    call: Callable[..., Any],
    parameters_of: Callable[[type], Iterable[inspect.Parameter]],
    convert: Callable[[type, Field[Any], Any], Any] = lambda _, __, value: value,
) -> Callable[..., Any]:
    """Replace each parameter of `call` that is an option group by the group's fields, for Typer and MCP.

    `parameters_of` makes the parameters of a group, and `convert` converts an argument to the value of its field.
    """
    signature = inspect.signature(call, eval_str=True)
    kinds = {item.name: item.annotation for item in signature.parameters.values()}
    groups: dict[str, type] = {
        name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, OptionGroup)
    }
    if not groups:
        return call
    own = [item for item in signature.parameters.values() if item.name not in groups]
    added = [parameter for group in groups.values() for parameter in parameters_of(group)]

    def made(given: dict[str, Any]) -> dict[str, Any]:
        options = {
            name: group(**{item.name: convert(group, item, given.pop(item.name)) for item in fields(group)})
            for name, group in groups.items()
        }
        return {**given, **options}

    def spread(**given: Any) -> Any:
        return call(**made(given))

    async def spread_async(**given: Any) -> Any:
        return await call(**made(given))

    result: Callable[..., Any] = spread_async if inspect.iscoroutinefunction(call) else spread
    everywhere = [item for item in own if item.name == "as_json"]
    ordered = (*(item for item in own if item not in everywhere), *added, *everywhere)
    parameters = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in ordered]
    result.__name__, result.__doc__ = call.__name__, call.__doc__
    result.__annotations__ = {item.name: item.annotation for item in parameters}
    result.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # for Typer and MCP
    return result


@dataclass_transform(kw_only_default=True, frozen_default=True)
class OptionGroup:
    """Base of option groups; subclasses become frozen dataclasses."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class SettingOptions(OptionGroup):
    """Base of dataclasses with fields that override the settings of the same name."""

    def changes(self) -> dict[str, Any]:
        """Return the given settings by name."""
        from ..settings.config import Settings  # slow import

        given = {name: value for name, value in vars(self).items() if name in Settings.model_fields}
        changed = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        return {name: value for name, value in changed.items() if value not in (None, [])}


class BudgetOptions(SettingOptions):
    """What a run may spend before it pauses."""

    max_calls: int | None = option("Limit on model requests; the run pauses before it exceeds it.", ge=1, le=10**9)
    max_tokens: int | None = option("Limit on tokens; the run pauses before it exceeds it.", ge=1, le=10**12)
    max_cost: float | None = option(
        "Limit on cost, by the prices in the settings; the run pauses before it exceeds it.", gt=0, allow_inf_nan=False
    )


class RunLimits(BudgetOptions):
    """Limits that a request may set for its run, on a server or when resuming."""

    strict: Annotated[bool | None, Shown(default="marked")] = option(
        "Leave out sentences that fail a check (they are listed) instead of marking them."
    )


class DepthOption(SettingOptions):
    """How much a text says."""

    depth: Annotated[Depth | None, Shown(default="standard")] = option(
        "How much the text says: brief, standard or thorough."
    )


class TextOptions(DepthOption, RunLimits):
    """What a request for a text may set."""

    use_memory: Annotated[bool | None, Shown("--memory/--no-memory", "used")] = option(
        "Respect what 'citeloom memory' holds."
    )


class SteeredOptions(TextOptions):
    """What a request for a run may set, including what the run asks a person."""

    interrupts: Annotated[tuple[Ask, ...], Shown("--ask", "nothing")] = option(
        "What it asks you before it continues: needs, evidence, sentences, budget, or all", value=(), max_length=5
    )


class ModelOption(SettingOptions):
    """Which chat model is used."""

    chat_model: Annotated[str | None, Shown("--model")] = option(
        "Chat model, or 'extractive'. Default: CITELOOM_CHAT_MODEL."
    )


class ModelSettings(ModelOption, BudgetOptions):
    """The chat model, and what it may cost."""

    chat_base_url: Annotated[str | None, Shown("--base-url")] = option(
        "OpenAI-compatible endpoint. Default: CITELOOM_CHAT_BASE_URL."
    )


class ChatSettings(DepthOption, ModelSettings):
    """How answers cite, and which model writes them."""

    cite_style: Annotated[str | None, Shown(default="numeric")] = option(
        "numeric [3], key (smith2024), key-page [smith2024, page 4], pandoc [@smith2024, p. 4], "
        "or latex \\cite[p.~4]{smith2024}."
    )


class StyleSettings(SettingOptions):
    """The style of exported references."""

    csl: Annotated[str | None, Shown(default="Chicago author-date, and plainnat in tex")] = option(
        "Style of the references, and of citations in tex, docx and html: a .csl file or, with the extra "
        "'styles', a name such as apa, ieee or nature."
    )


class WordOptions(OptionGroup):
    """How Word and LibreOffice files are written."""

    citations: Annotated[CitationFields | None, Shown(default="zotero if a cited paper came from Zotero")] = option(
        "Citations in docx and odt: zotero (fields that its plugin refreshes and renumbers) or text."
    )
    evidence_comments: bool = option("Put the words behind each citation into docx and odt as comments.", value=False)
    reference_doc: Path | None = option("A .docx or .odt template whose styles are applied to output in that format.")

    def document(self) -> DocumentOptions:
        """Convert to the options of the export."""
        from ..citations.export.word_fields import DocumentOptions

        return DocumentOptions(*(getattr(self, item.name) for item in fields(WordOptions)))


class AnswerSettings(ChatSettings, StyleSettings, SteeredOptions):
    """How an answer is written."""

    cite_retracted: Annotated[bool | None, Shown(default="not cited")] = option(
        "Let the text cite retracted papers; otherwise they are read, with a warning, but not cited."
    )


class PaperSettings(AnswerSettings):
    """How a paper is written."""

    cite_style: Annotated[str | None, Shown(default="key")] = option(
        "key (smith2024), pandoc [@smith2024, p. 4], latex \\cite[p.~4]{smith2024}, numeric [3], "
        "or key-page [smith2024, page 4]."
    )
    section_words: Annotated[int | None, Shown("--words", "by depth")] = option(
        "Target length of the section, in words."
    )


class SectionSettings(PaperSettings):
    """How a section is written."""

    max_search_iterations: Annotated[int | None, Shown("--max-searches", "5")] = option(
        "Searches that the agent may add."
    )


class YearLimits(OptionGroup):
    """Papers published from one year to another."""

    from_year: int | None = option("First year of publication.", ge=0, le=9999)
    to_year: int | None = option("Last year of publication.", ge=0, le=9999)


class LabelLimits(YearLimits):
    """Papers of some years with some labels."""

    kind: str = option("BibTeX type of the papers, such as article or phdthesis.", value="", max_length=50)
    tag: str = option("Tag of the papers, in Zotero or as a keyword of their entry.", value="", max_length=200)
    collection: str = option("Zotero collection of the papers, such as Thesis/Methods.", value="", max_length=500)

    def labels(self) -> Labels:
        return {"kind": self.kind, "tag": self.tag, "collection": self.collection}


class PaperLimits(LabelLimits):
    """Which papers to search."""

    venue: str = option("Part of the journal's or book's name, in any case.", value="", max_length=200)
    papers: Annotated[tuple[str, ...], Shown(completes="papers")] = option(
        "Search only these papers, by their keys.", value=(), max_length=200
    )


class QuestionOptions(PaperLimits):
    """Which papers to search for an answer, and its length."""

    sources: Annotated[int | None, Shown(default="8")] = option(
        "Maximum number of papers that the answer may draw on.", ge=1, le=50
    )
    length: Annotated[int | None, Shown(default="by depth")] = option(
        "Target length of the answer, in words.", ge=50, le=5000
    )
    single_shot: bool = option("Search once, without the agent's further searches.", value=False)
    fresh: bool = option("Answer again, without reusing cached answers.", value=False)

    def request(self, question: str, session: Session) -> ResearchRequest:
        """Build the request for an answer to a question; raises `InputError` if no paper has the labels. Blocks."""
        from ..runs.run_requests import ResearchRequest  # slow imports
        from ..tools.scope import Scope

        papers = Scope.within(session.library, self.papers, **self.labels()).papers
        limits = (self.sources, self.length, self.from_year, self.to_year, self.venue, papers)
        return ResearchRequest(question, *limits, single_shot=self.single_shot, fresh=self.fresh)


class SearchOptions(PaperLimits):
    """Which passages to find, and how they are ranked."""

    categories: Annotated[tuple[str, ...], Shown("--category")] = option(
        "Kind of section: abstract, introduction, method, evaluation, conclusion, other or related_work.", value=()
    )
    mode: Annotated[str | None, Shown(default="hybrid")] = option(
        "dense (by meaning), bm25 (by words) or hybrid. Default: CITELOOM_RETRIEVAL_MODE."
    )
    rerank: bool = option("Rerank with the bundled cross-encoder (weight: CITELOOM_RERANK or 0.5).", value=False)
    limit: int = option("Number of passages to show.", value=10, ge=1, le=200)


class AgreementOptions(OptionGroup):
    """Which papers are asked for their stance."""

    papers: Annotated[tuple[str, ...], Shown(completes="papers")] = option(
        "Citation keys of the papers.", value=(), max_length=10_000
    )


class ContradictionOptions(AgreementOptions):
    """What papers are compared on."""

    topic: str = option("What to compare papers on. Default: whatever they find.", value="")
    claims: int = option("Number of claims on which to compare papers.", value=6, ge=1, le=20)


class TableOptions(AgreementOptions):
    """The columns of a table, and the papers that it may hold."""

    columns: tuple[str, ...] = option(
        "What to read from each study: n, 'effect:number[%]', blinded:yes/no, 'design:RCT|cohort'. Default: proposed",
        value=(),
        max_length=50,
    )


class TableSources(OptionGroup):
    """The evidence tables that an introduction, a discussion or a paper is based on."""

    tables: Annotated[tuple[str, ...], Shown("--table", by_comma=False)] = option(
        "Evidence table whose cells the text may cite, by its id or its title", value=(), max_length=20
    )
    show_tables: bool = option("Put these tables into the text.", value=False)


class IngestOptions(OptionGroup):
    """How papers are ingested; `describe` has no effect unless a vision model is configured."""

    bib: Path | None = option("BibTeX file; its keys are kept verbatim. Default: the only .bib in the folder.")
    prune: bool = option("Remove papers whose files are gone.", value=False)
    follow_links: bool = option("Also follow links that lead out of a folder.", value=False)
    ocr: bool = option("Read PDF pages without text by OCR; needs tesseract.", value=False)
    summarize: bool = option("Summarize each new paper with the summarizer model (costs calls).", value=False)
    describe: bool = option(
        "Have the vision model, if one is configured, describe the figures of new papers (costs calls).", value=True
    )


@cache
def shown_options(group: type) -> Mapping[str, Shown]:
    """Return how the command line shows each field of a dataclass."""
    types = get_type_hints(group, include_extras=True)
    marks = {name: getattr(kind, "__metadata__", ()) for name, kind in types.items()}
    return {name: next((mark for mark in found if isinstance(mark, Shown)), Shown()) for name, found in marks.items()}


# Options named differently from the settings they override.
FLAGS: Final[Mapping[str, str]] = {
    name: shown.flag for name, shown in shown_options(SectionSettings).items() if shown.flag
}

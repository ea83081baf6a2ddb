"""The tools of agents, over MCP and as LangChain tools: one function each, whose docstring the agents read."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, create_model

from ..errors import CiteloomError
from ..graph.session import Session
from .arguments import require_open
from .blocking import run_async
from .checking import ClaimRecord, RemarkedText, acheck_claims, acheck_prose, remarks_of
from .conversation import answer_with_sources, short_answer
from .evidence_tables import aagree, aload_table, amake_table
from .library_search import CategoryName, afind_papers, apassage_window, as_list, as_years, asearch, year_range
from .library_upkeep import alibrary_status
from .messages import describe_invalid, field_path
from .results import (
    AgreementRecord,
    AnswerRecord,
    FoundPapers,
    FoundPassages,
    LibraryStatus,
    PassageWindow,
    TableRecord,
)
from .run_options import AgreementOptions, BudgetOptions, QuestionOptions, TableOptions, TextOptions, spread_options
from .running import run

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

Call = Callable[..., Awaitable[Any]]

Keys = Annotated[list[str], BeforeValidator(as_list), Field(max_length=200)]
Categories = Annotated[list[CategoryName], BeforeValidator(as_list)]
YearSpan = Annotated[Annotated[list[int], Field(min_length=2, max_length=2)] | None, BeforeValidator(as_years)]
Year = Annotated[int | None, Field(ge=0, le=9999)]


async def search_evidence(
    session: Session,
    query: Annotated[
        str, Field(min_length=1, max_length=2000, description="What the passages should say, in words or a sentence.")
    ],
    limit: Annotated[int, Field(ge=1, le=50, description="Number of passages.")] = 10,
    papers: Annotated[Keys, Field(description="Citation keys to search within; empty for the whole library.")] = [],  # noqa: B006 - pydantic copies it
    categories: Annotated[
        Categories, Field(description="Kinds of paper section to search within; empty for all.")
    ] = [],  # noqa: B006
    years: Annotated[YearSpan, Field(description="First and last year of publication.")] = None,
    venue: Annotated[str, Field(max_length=200, description="Part of the journal's or book's name, in any case.")] = "",
    kind: Annotated[str, Field(max_length=50, description="BibTeX type of the papers, such as article.")] = "",
    tag: Annotated[str, Field(max_length=200, description="Tag of the papers.")] = "",
    collection: Annotated[str, Field(max_length=500, description="Zotero collection of the papers.")] = "",
) -> FoundPassages:
    """Find passages of the user's papers by meaning and by words; they are returned verbatim.

    Free and fast. Cite what you use by key and page.
    """
    settings = session.settings
    span = year_range(*years) if years else None
    mode, rerank = settings.retrieval_mode, settings.rerank
    found = await asearch(
        session, query, limit, mode, papers, categories, span, venue, rerank, kind=kind, tag=tag, collection=collection
    )
    return {"passages": found}


async def search_papers(
    session: Session,
    query: Annotated[str, Field(min_length=1, max_length=2000, description="Words in the papers, or their subject.")],
    by: Annotated[
        Literal["text", "summary"],
        Field(description="text: papers whose full text has the words; summary: papers that are about the query."),
    ] = "text",
    min_year: Annotated[Year, Field(description="First year of publication.")] = None,
    max_year: Annotated[Year, Field(description="Last year of publication.")] = None,
    page: Annotated[int, Field(ge=1, le=1000, description="Page of the answer, ten papers each.")] = 1,
) -> FoundPapers:
    """Find papers of the user's library by the words of their text, or by what they are about. Free and fast."""
    return await afind_papers(session, query, by, min_year, max_year, page)


async def check_claim(
    session: Session,
    claim: Annotated[str, Field(min_length=1, max_length=4000, description="One sentence, without citations.")],
    papers: Annotated[Keys, Field(description="Keys of the papers it cites; empty to search all papers.")] = [],  # noqa: B006
    context: Annotated[str, Field(max_length=4000, description="The sentence before it, if it depends on it.")] = "",
) -> ClaimRecord:
    """Check one sentence against papers of the user's library: supported, overstated, contradicted, not_found,
    indirect, or unjudged without a chat model, with the words that decide.

    May cost the user a model call; the same claim again is free.
    """
    found = await acheck_claims(session, [{"claim": claim, "papers": papers, "context": context}])
    return found["claims"][0]


async def check_text(
    session: Session,
    text: Annotated[str, Field(min_length=1, max_length=400_000, description="The user's own text.")],
    format: Annotated[Literal["md", "tex", "typ"], Field(description="Markdown, LaTeX or Typst.")] = "md",
    bib: Annotated[
        str, Field(max_length=2_000_000, description="The text's .bib; empty if it cites the library's keys.")
    ] = "",
    max_calls: Annotated[int | None, Field(ge=1, description="Limit on model requests.")] = None,
) -> RemarkedText:
    """Check the user's text: citations, numbers, references, and sentences that need a citation. Returns only what
    needs attention; the text is not changed.

    May take minutes and cost the user money; a second check costs only what changed.
    """
    found = await acheck_prose(session, text, format=format, bib=bib, max_calls=max_calls)
    return remarks_of(found)


async def library_status(session: Session) -> LibraryStatus:
    """Return how many papers and passages the library holds, from which years, and its problems."""
    return await alibrary_status(session)


# Each with its title, and whether it is free.
AGENT_TOOLS: Final[tuple[tuple[Call, str, bool], ...]] = (
    (search_evidence, "Search passages", True),
    (search_papers, "Search papers", True),
    (check_claim, "Check a sentence", False),
    (check_text, "Check a text", False),
    (library_status, "Library status", True),
)


async def get_context_window(
    session: Session,
    chunk_id: Annotated[str, Field(min_length=1, max_length=500, description="Id of a passage, as a search gives it.")],
    window: Annotated[int, Field(ge=1, le=10, description="Number of passages on either side.")] = 1,
) -> PassageWindow:
    """Read the passages before and after one that search_evidence or search_papers returned. Free and fast."""
    return await apassage_window(session, chunk_id, window)


async def get_table(session: Session, table_id: Annotated[str, Field(min_length=1, max_length=200)]) -> TableRecord:
    """Get a table by its id or a prefix of it: every cell with its words, status and revision. Free and fast."""
    return cast("TableRecord", await aload_table(session, table_id))


async def research(
    session: Session,
    question: Annotated[str, Field(min_length=1, max_length=4000)],
    options: QuestionOptions,
    limits: TextOptions,
) -> tuple[str, AnswerRecord]:
    """Answer a question from the user's papers alone; each cited sentence is checked against its source.

    Takes a minute or more and may cost the user money; the same question again is free.
    """
    request = await asyncio.to_thread(options.request, question, session)
    record = await run(request, session.with_settings(**limits.changes()), None)
    return answer_with_sources(record), short_answer(record)


async def make_table(
    session: Session,
    question: Annotated[str, Field(min_length=1, max_length=2000, description="What the rows are.")],
    options: TableOptions,
    limits: BudgetOptions,
) -> TableRecord:
    """Make a table of the user's papers that answer a question: a row for each study, a cell for each column.

    Every paper is screened. May take many minutes and cost the user money; the same question again is free.
    """
    limited = session.with_settings(**limits.changes())
    return cast("TableRecord", await amake_table(limited, question, columns=options.columns, papers=options.papers))


async def agree(
    session: Session,
    claim: Annotated[str, Field(min_length=1, max_length=2000, description="One sentence.")],
    options: AgreementOptions,
    limits: BudgetOptions,
) -> AgreementRecord:
    """Find out which of the user's papers are for a claim, which against it, and which are silent, with the words.

    Every paper is screened. May take many minutes and cost the user money; the same claim again is free.
    """
    limited = session.with_settings(**limits.changes())
    return cast("AgreementRecord", await aagree(limited, claim, papers=options.papers))


def with_fields(call: Call) -> Call:
    """Return the tool with the fields of its option groups as its parameters."""

    def arguments(group: type) -> Iterator[inspect.Parameter]:
        types = get_type_hints(group, include_extras=True)
        for item in fields(group):
            annotation: Any = Annotated[types[item.name], Field(**item.metadata)]
            default = inspect.Parameter.empty if item.default is MISSING else item.default
            yield inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    return spread_options(call, arguments)


def describe_arguments(name: str, error: ValidationError, known: list[str]) -> str:
    """Describe a tool's invalid arguments in one line."""
    wrong = "; ".join(
        f"{field_path(item['loc']) or 'arguments'}: {describe_invalid(item, show=True)}" for item in error.errors()
    )
    return f"{name}: {wrong}. It takes {', '.join(known)}."


def langchain_tools(library: Session) -> list[StructuredTool]:
    """Return an open library's tools for LangChain: `bind_tools`, `ToolNode`, or any agent, sync and async.

    Each returns text for the model and, as artifact, the record (`api/results.py`); errors are returned as one line
    with the remedy. Raises `ArgumentError` if `library` is not an open library.
    """
    require_open(library)
    more_tools = (get_context_window, get_table, research, make_table, agree)
    calls = (*(call for call, _, _ in AGENT_TOOLS), *more_tools)
    return [_langchain_tool(library, with_fields(call)) for call in calls]


def _langchain_tool(session: Session, call: Call) -> StructuredTool:
    from langchain_core.tools import StructuredTool, ToolException

    parameters = inspect.signature(call, eval_str=True).parameters.values()
    named: dict[str, Any] = {
        item.name: (item.annotation, ... if item.default is item.empty else item.default)
        for item in parameters
        if item.name != "session"
    }

    async def answer(**given: Any) -> tuple[str, Any]:
        try:
            require_open(session)
            record = await call(session=session, **given)
        except CiteloomError as error:
            raise ToolException(str(error)) from error
        return record if isinstance(record, tuple) else (json.dumps(record, ensure_ascii=False), record)

    def explain(error: Any) -> str:
        return describe_arguments(call.__name__, error, list(named))

    return StructuredTool.from_function(
        lambda **given: run_async(answer(**given)),
        answer,
        call.__name__,
        " ".join((call.__doc__ or "").split()),
        args_schema=create_model(call.__name__, __config__=ConfigDict(extra="forbid"), **named),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=explain,
    )

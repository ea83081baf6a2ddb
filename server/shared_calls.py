"""Calls that are both a route and an MCP tool: one function, whose docstring and limits describe both.

The first parameter of such a function is the session: FastAPI gives it to the route, `mcp_server.py` to the tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from ..api import citing, evidence_tables, files, library_search, serving, text_updating
from ..api.results import ImportedText, PassageWindow, SuggestedCitations, TableRecord
from .response_models import problems
from .server_state import StateOf

Call = Callable[..., Awaitable[Any]]
T = TypeVar("T", bound=Call)
SHARED_TOOLS: Final[list[tuple[Call, str, bool]]] = []  # with titles, and whether they only read
router = APIRouter()


def _session_of(state: StateOf) -> serving.Session:
    return state.session


SessionOf = Annotated[serving.Session, Depends(_session_of)]


def shared_tool(title: str, *, read_only: bool = True) -> Callable[[T], T]:
    def add(call: T) -> T:
        SHARED_TOOLS.append((call, title, read_only))
        return call

    return add


@router.get("/search/window", tags=["search"], responses=problems(404))
@shared_tool("Read around a passage")
async def get_context_window(
    session: SessionOf,
    chunk_id: Annotated[str, Query(min_length=1, max_length=500, description="Id of a passage, as a search gives it.")],
    window: Annotated[int, Query(ge=1, le=10, description="Number of passages on either side.")] = 1,
) -> PassageWindow:
    """Read the passages before and after one that search_evidence or search_papers returned. Free and fast."""
    return await library_search.apassage_window(session, chunk_id, window)


@router.get("/search/citations", tags=["search"], responses=problems())
@shared_tool("Papers to cite for a sentence")
async def suggest_citations(
    session: SessionOf,
    sentence: Annotated[
        str, Query(min_length=1, max_length=2000, description="The sentence that needs a citation, without citations.")
    ],
    before: Annotated[str, Query(max_length=2000, description="The sentence before it.")] = "",
    prefix: Annotated[str, Query(max_length=200, description="Beginning of a key, name, year or title word.")] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="Number of papers.")] = 5,
) -> SuggestedCitations:
    """Find the user's papers that a sentence can cite, each with the words that bear on it. Free and fast."""
    return await citing.asuggest_citations(session, sentence, before=before, prefix=prefix, most=limit)


@router.get("/tables/{table_id}", tags=["tables"], responses=problems(404))
@shared_tool("An evidence table")
async def get_table(
    session: SessionOf, table_id: Annotated[str, Path(min_length=1, max_length=200, description="Id of the table.")]
) -> TableRecord:
    """Get a table by its id or a prefix of it: every cell with its words, status and revision."""
    return cast("TableRecord", await evidence_tables.aload_table(session, table_id))


@router.post("/updates", tags=["runs"], responses=problems(404))
@shared_tool("Texts that a changed library concerns", read_only=False)
async def update_texts(
    session: SessionOf,
    runs: Annotated[list[str], Query(max_length=200, description="Ids of runs or tables; the latest if none.")] = [],  # noqa: B006
    accept: Annotated[
        list[str], Query(max_length=1000, description="Ids of items to accept; one accepted before is refused.")
    ] = [],  # noqa: B006
    max_calls: Annotated[int | None, Query(ge=1, le=10**9, description="Limit on model requests.")] = None,
) -> text_updating.UpdateRecord:
    """Find texts and tables that are based on changed papers, or for which new papers have nearer or opposite words.

    Free if nothing changed since the last call. Accepting changes a text: ask the user first.
    """
    return await text_updating.aupdate_texts(session, runs, accept=accept, max_calls=max_calls)


@shared_tool("Take back an edited text", read_only=False)
async def import_text(
    session: serving.Session,
    run_id: Annotated[str, Field(min_length=1, max_length=200, description="Id of the run that wrote the text.")],
    text: Annotated[str, Field(min_length=1, max_length=2_000_000, description="The whole text, with its citations.")],
    format: Annotated[Literal["md", "tex"], Field(description="The text's format.")] = "md",
) -> ImportedText:
    """Import a run's text that was edited elsewhere as the user's version; returns what became of each sentence.

    Free. A sentence missing from the text is deleted from their version: ask the user first.
    """
    return await files.aimport_text(session, f"text.{format}", run=run_id, content=text.encode())

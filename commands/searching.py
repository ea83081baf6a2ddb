"""search and find: passages and papers for a query."""

from __future__ import annotations

from typing import Annotated

import typer

from ..api.messages import counted
from ..errors import InputError
from .options import HomeOption, JsonOption, complete_keys, home_session
from .output import notice, result_json
from .search_view import show_papers, show_passages

_LIMIT_BOUNDS = {"min": 1, "max": 200}
_RERANK = 0.5  # the part of the cross-encoder where it was asked for and no setting says how much

QueryArgument = Annotated[str, typer.Argument(help="What to look for.", show_default=False)]
FromOption = Annotated[int | None, typer.Option("--from-year", help="First year of publication.", show_default=False)]
ToOption = Annotated[int | None, typer.Option("--to-year", help="Last year of publication.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("search", rich_help_panel="Library")(search)
    app.command("find", rich_help_panel="Library")(find)


def search(
    query: QueryArgument,
    papers: Annotated[
        list[str] | None,
        typer.Option(
            "--papers", help="Citation keys to search within, by comma or repeated.", autocompletion=complete_keys
        ),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            "--category",
            help="Kind of section: abstract, introduction, method, evaluation, conclusion, other or related_work; "
            "by comma or repeated.",
        ),
    ] = None,
    from_year: FromOption = None,
    to_year: ToOption = None,
    venue: Annotated[str, typer.Option("--venue", help="Part of the journal's or book's name, in any case.")] = "",
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="dense (by meaning), bm25 (by words) or hybrid. Default: CITELOOM_RETRIEVAL_MODE.",
            show_default="hybrid",
        ),
    ] = None,
    rerank: Annotated[
        bool,
        typer.Option("--rerank", help="Rerank with the bundled cross-encoder (weight: CITELOOM_RERANK or 0.5)."),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", help="Passages to show.", **_LIMIT_BOUNDS)] = 10,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Find passages: by meaning, by words, or both.

    Example: citeloom search "prior probability of an edge" --category method --from-year 2015
    """
    from ..api.library_search import require_words, year_range
    from ..api.library_search import search as search_passages

    require_words(query)
    keys, kinds = split_names("--papers", papers), split_names("--category", categories)
    with home_session(home, reading=True, retrieval_mode=mode) as session:
        settings = session.settings
        weight = settings.rerank or (_RERANK if rerank else 0.0)
        years = year_range(from_year, to_year)
        records = search_passages(session, query, limit, settings.retrieval_mode, keys, kinds, years, venue, weight)
    if as_json:
        result_json(records)
    elif records:
        show_passages(records)
    else:
        notice("Nothing in the library matches.")


def find(
    query: QueryArgument,
    fulltext: Annotated[
        bool, typer.Option("--fulltext", help="Search the full text instead of summaries and notes.")
    ] = False,
    from_year: FromOption = None,
    to_year: ToOption = None,
    page: Annotated[int, typer.Option("--page", help="Page of results, ten papers each.", min=1)] = 1,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Find papers by summary and note, or by full text.

    Example: citeloom find "random permutation of networks" --fulltext --from-year 2015
    """
    from ..api.library_search import find_papers, require_words

    require_words(query)
    with home_session(home, reading=True) as session:
        record = find_papers(session, query, "text" if fulltext else "summary", from_year, to_year, page)
    if as_json:
        result_json(record)
    elif record["papers"]:
        show_papers(record, page)
    elif record["total"]:
        notice(f"There is no page {page}: {counted(record['total'], 'paper')} in all, ten a page.")
    else:
        notice("No paper matches.")


def split_names(option: str, given: list[str] | None) -> list[str]:
    """Split the comma-separated values of a repeatable option; raises `InputError` for an empty one."""
    names = [name.strip() for item in given or [] for name in item.split(",") if name.strip()]
    if given and not names:
        raise InputError(f"{option} is empty.", help="Leave it out to search everywhere.")
    return names

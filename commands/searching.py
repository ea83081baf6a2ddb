"""search and find: passages and papers for a query, in a table, or blocks on a narrow terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from .. import api
from ..api import messages, run_options
from ..api.blocking import run_async
from .options import home_session, takes_options
from .output import Columns, Printed, notice, one_line, table

_RERANK = 0.5  # weight of the cross-encoder if requested without a setting

NOTHING_NEAR = "Nothing near: no passage has the words or the meaning of the query; these are the nearest ones."
NO_SUMMARY_NEAR = (
    "Nothing near: no summary or note has the words or the meaning of the query; --fulltext searches the whole texts."
)

QueryArgument = Annotated[str, "What to look for."]


@takes_options(options=run_options.SearchOptions)
def search(query: QueryArgument, options: run_options.SearchOptions) -> Printed:
    """Find passages: by meaning, by words, or both.

    Example: citeloom search "prior probability of an edge" --category method --from-year 2015
    """
    api.homes.require_words(query)
    with home_session(reading=True, early="search", retrieval_mode=options.mode) as session:
        years = api.library_search.year_range(options.from_year, options.to_year)
        records = api.library_search.search(
            session,
            query,
            options.limit,
            session.settings.retrieval_mode,
            options.papers,
            options.categories,
            years,
            options.venue,
            **options.labels(),
            rerank=session.settings.rerank or (_RERANK if options.rerank else 0.0),
        )
    return Printed(records, show_passages)


def show_passages(records: Sequence[api.results.FoundPassage]) -> None:
    if not records:
        notice("Nothing in the library matches.")
        return
    columns: Columns = {
        "": "",
        "key": "key",
        "page": lambda record: f"{record['page'] or ''}{' (OCR)' if record['ocr'] else ''}",
        "section": lambda record: one_line(record["section"]),
        "score": lambda record: f"{record['score']:.2f}",
        "sentence": _matched,
    }
    table(messages.counted(len(records), "passage"), records, columns, prose=("section", "sentence"))
    show_notices(records)
    if not any(record["near"] for record in records):
        notice(NOTHING_NEAR)


@takes_options(years=run_options.YearLimits)
def find(
    query: QueryArgument,
    years: run_options.YearLimits,
    fulltext: Annotated[bool, "Search the full text instead of summaries and notes."] = False,
    page: Annotated[int, typer.Option(help="Page of results, ten papers each.", min=1)] = 1,
) -> Printed:
    """Find papers by summary and note, or by full text.

    Example: citeloom find "random permutation of networks" --fulltext --from-year 2015
    """
    api.library_search.require_words(query)
    with home_session(reading=True) as session:
        by: Literal["text", "summary"] = "text" if fulltext else "summary"
        record = run_async(api.library_search.afind_papers(session, query, by, years.from_year, years.to_year, page))

    def show(record: api.results.FoundPapers) -> None:
        show_found(record, page, fulltext=fulltext)
        if record["next_page"]:
            notice(f"More: --page {record['next_page']}")

    return Printed(record, show)


def show_found(record: api.results.FoundPapers, page: int = 1, *, fulltext: bool, numbered: bool = False) -> None:
    """Print a table of the papers that were found, or that there are none."""
    papers = record["papers"]
    if not papers:
        nothing = "No paper matches." if fulltext else NO_SUMMARY_NEAR
        beyond = f"There is no page {page}: {messages.counted(record['total'], 'paper')} in all, ten a page."
        notice(beyond if record["total"] else nothing)
        return
    columns: Columns = {
        **({"": ""} if numbered else {}),
        "key": "key",
        "year": "year",
        "title": lambda paper: one_line(paper["title"]),
        "score": lambda paper: f"{paper['score']:.2f}",
        "sentence": matching_line,
    }
    title = f"{len(papers)} of {messages.counted(record['total'], 'paper')}, page {page}"
    table(title, papers, columns, prose=("title", "sentence"))
    show_notices(papers)


_LONGEST_SENTENCE = 240  # characters
_READ = 4_000  # read to show these


def _matched(record: api.results.FoundPassage) -> str:
    """The matching sentence with its figure, and the model's descriptions of figures that may have matched."""
    name = record["figure"]["name"] if record["figure"] else ""
    label = f"[{one_line(name)}] " if name and not record["sentence"].startswith(name) else ""
    described = [
        one_line(f"({item['figure']}, as {item['described_by']} describes it: {plain_sentence(item['description'])})")
        for item in record["described_figures"]
    ]
    return " ".join([with_status(record, f"{label}{plain_sentence(record['sentence'])}"), *described])


def show_notices(records: Sequence[Mapping[str, Any]]) -> None:
    notice(*dict.fromkeys(f"{record['key']}: {line}" for record in records for line in record.get("notices", ())))


def with_status(record: Mapping[str, Any], text: str) -> str:
    """Prefix the text with RETRACTED or the like, if its paper's record says so."""
    return f"{record['status'].upper()}. {text}" if record.get("status") else text


def place_of(record: Mapping[str, Any]) -> str:
    page = f"p. {record['page']}" if record.get("page") else ""
    return ", ".join(part for part in (page, record.get("section", "")) if part)


def matching_line(record: Mapping[str, Any]) -> str:
    """The matching sentence of a paper or passage, after its place or "your note", and RETRACTED or the like."""
    place = "your note" if record.get("matched") == "note" else place_of(record)
    sentence = plain_sentence(record["sentence"])
    return with_status(record, f"{place}: {sentence}" if place else sentence)


def plain_sentence(sentence: str) -> str:
    """A sentence of a paper without markup; truncated if long."""
    from ..documents.plain_text import plain_text  # slow import

    return messages.shorten(plain_text(sentence[:_READ]), _LONGEST_SENTENCE)

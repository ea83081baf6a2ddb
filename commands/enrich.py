"""papers enrich: looks the library's papers up at metadata services."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS
from ..models.concurrency import run_async
from ..plurals import counted
from .completion import complete_keys
from .library import papers_app
from .metadata_view import enrichment_lines
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json

if TYPE_CHECKING:
    from ..graph.session import Session
    from ..metadata.enriching import Enrichment
    from ..settings.config import Settings

OfflineOption = Annotated[
    bool, typer.Option("--offline", help="Send nothing: use only answers that are in the cache, of any age.")
]
RefreshOption = Annotated[
    bool, typer.Option("--refresh", help="Ask again for what is in the cache (CITELOOM_METADATA_DAYS).")
]
_OUTCOMES = (
    ("known", "looked up by DOI"),
    ("found", "found by title and authors"),
    ("unsure", "unsure"),
    ("not-found", "not found"),
    ("failed", "not looked up"),
)


def register(_: typer.Typer) -> None:
    """Add the command to `papers`."""
    papers_app.command("enrich")(enrich_papers)


def enrich_papers(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            help="Citation keys; all papers if none is given.", show_default=False, autocompletion=complete_keys
        ),
    ] = None,
    offline: OfflineOption = False,
    refresh: RefreshOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Look papers up at Crossref, DataCite, OpenAlex and Semantic Scholar.

    Finds the DOI of a paper that has none, by title, authors and year; when it is unsure, it says so and changes
    nothing. Shows what your .bib lacks (volume, abstract, citations, a free PDF), what differs, and retractions,
    corrections and other versions. Your .bib and the library stay as they are: what was said, by whom and when, is kept
    beside them. Titles, authors, years and DOIs of the papers are sent to the services, and your address if
    CITELOOM_METADATA_MAILTO is set. Exit code 4 means that some services or papers failed, each named.

    Example: citeloom papers enrich smith2024quantum
    """
    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session:
        chosen = [session.library.paper(key).key for key in dict.fromkeys(keys or ())]
        chosen = chosen or [paper.key for paper in session.library.papers()]
        record = run_async(_enriched(settings, session, chosen, offline=offline, refresh=refresh, shows=not as_json))
    if as_json:
        result_json(record)
    else:
        counts = Counter(item["outcome"] for item in record["papers"])
        said = ", ".join(f"{counts[name]} {label}" for name, label in _OUTCOMES if counts[name])
        answers = f"{counted(record['requests'], 'answer')} from the services, {record['cached']} from the cache"
        result(f"{counted(len(record['papers']), 'paper')}: {said or 'none'}; {answers}.")
    if any(item["failures"] for item in record["papers"]):
        raise typer.Exit(DONE_WITH_REFUSALS)


async def _enriched(
    settings: Settings, session: Session, keys: list[str], *, offline: bool, refresh: bool, shows: bool
) -> dict[str, Any]:
    from ..api.paper_lookup import aenrich
    from ..metadata.services import service_hosts

    named: set[str] = set()

    def show(found: Enrichment) -> None:
        for line in enrichment_lines(found) if shows else ():
            result(line)
        for failure in found.failures:
            if failure not in named:
                named.add(failure)
                notice(f"Failed: {failure}")

    if not offline:
        notice(f"Asking {service_hosts(settings)} about {counted(len(keys), 'paper')}.")
    return await aenrich(session, keys, offline=offline, refresh=refresh, on_paper=show)

"""research: answers a question from the papers of the library alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.blocking import run_async
from ..errors import InputError
from .answer_stream import AnswerStreamView, answer_progress
from .answer_view import next_steps, show_answer
from .completion import complete_keys
from .options import (
    CiteRetractedOption,
    HomeOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    MaxTokensOption,
    StrictOption,
    command_session,
    resolve,
)
from .output import notice, result_json
from .run_report import end_incomplete, report_run
from .search import FromOption, ToOption, names_given
from .sections import (
    CslOption,
    ForceOption,
    FormatOption,
    ModelOption,
    PageImagesOption,
    UrlOption,
    output_to,
)

if TYPE_CHECKING:
    from ..graph.session import Session
    from ..runs.research import ResearchRequest
    from ..runs.result_record import ResultRecord
    from ..runs.service import Output

QuestionArgument = Annotated[str, typer.Argument(help="What to answer.", show_default=False)]
SourcesOption = Annotated[
    int | None,
    typer.Option("--sources", min=1, max=50, help="Most papers that the answer may draw on.", show_default="8"),
]
LengthOption = Annotated[
    int | None,
    typer.Option("--length", min=50, max=5000, help="Target length of the answer, in words.", show_default="300"),
]
MinYearOption = Annotated[int | None, typer.Option("--min-year", hidden=True, help="The earlier name of --from-year.")]
MaxYearOption = Annotated[int | None, typer.Option("--max-year", hidden=True, help="The earlier name of --to-year.")]
VenueOption = Annotated[str, typer.Option("--venue", help="Part of the journal's or book's name, in any case.")]
PapersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--papers",
        help="Search only these papers: keys, separated by commas or repeated.",
        autocompletion=complete_keys,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for the answer's files; none are written without it.", show_default=False),
]
StyleOption = Annotated[
    str | None,
    typer.Option(
        "--cite-style",
        help="numeric [3], key (smith2024), key-page [smith2024, page 4], pandoc [@smith2024, p. 4], "
        "or latex \\cite[p.~4]{smith2024}.",
        show_default="numeric",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("research", rich_help_panel="Ask")(research)


def research(
    question: QuestionArgument,
    sources: SourcesOption = None,
    length: LengthOption = None,
    from_year: FromOption = None,
    to_year: ToOption = None,
    min_year: MinYearOption = None,
    max_year: MaxYearOption = None,
    venue: VenueOption = "",
    papers: PapersOption = None,
    single_shot: Annotated[
        bool, typer.Option("--single-shot", help="Search once, without the agent's further searches.")
    ] = False,
    cite_style: StyleOption = None,
    formats: FormatOption = None,
    csl: CslOption = None,
    strict: StrictOption = None,
    cite_retracted: CiteRetractedOption = None,
    out: OutOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Answer again, without reusing cached answers.")] = False,
    force: ForceOption = False,
    page_images: PageImagesOption = False,
    model: ModelOption = None,
    base_url: UrlOption = None,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Answer a question from your papers, with citations.

    Prints the answer with its references; --out writes <question>.md, .bib (the cited entries), .evidence.html (opens
    every citation to its passage) and .json as well, --format adds others. Nothing is answered from a model's own
    knowledge: when no passage bears on the question, it says so and what was searched. Run the same command
    again to resume a killed or paused run; a finished one costs nothing again.

    Example: citeloom research "How are graph genomes used to genotype structural variants?" --from-year 2018
    """
    from ..runs.research import ResearchRequest

    if formats and out is None:
        raise InputError("--format needs a folder.", help="Name one with --out.")
    if page_images and out is None:
        raise InputError("--page-images needs a folder.", help="Name one with --out.")
    settings = {
        "cite_style": cite_style,
        "csl": csl,
        "strict": strict,
        "cite_retracted": cite_retracted,
        "chat_model": model,
        "chat_base_url": base_url,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "max_cost": max_cost,
    }
    request = ResearchRequest(
        question,
        sources=sources,
        words=length,
        min_year=min_year if from_year is None else from_year,
        max_year=max_year if to_year is None else to_year,
        venue=venue,
        papers=tuple(names_given("--papers", papers)),
        single_shot=single_shot,
        fresh=fresh,
    )
    output = None if out is None else output_to(out, formats or (), force=force, page_images=page_images)
    record, view = run_async(_ask(request, output, home, settings, draft=not as_json))
    if as_json:
        result_json(record)
    else:
        show_answer(record, view)
        for step in next_steps(record):
            notice(step)
    end_incomplete(record)


async def _ask(
    request: ResearchRequest, output: Output | None, home: str | None, overrides: dict[str, Any], *, draft: bool
) -> tuple[ResultRecord, AnswerStreamView]:
    from ..tools.questions.validation import plain_question

    plain_question(request.question)  # before a home is made or named for nothing
    settings, found = resolve(home, **overrides)
    with (
        command_session(settings, found, create=False) as session,
        answer_progress(session.spent_now, draft=draft) as view,
    ):
        return await answer_one(request, output, session, view), view


async def answer_one(
    request: ResearchRequest, output: Output | None, session: Session, view: AnswerStreamView
) -> ResultRecord:
    """One answer, with its files where a folder is given; reports on stderr, and streams it to `view`."""
    from ..runs.service import run_and_save

    if session.answer_notice:
        notice(session.answer_notice)
    finished = await run_and_save(request, session, output, on_event=view, on_notice=notice)
    view.end()
    report_run(finished)
    return finished.record

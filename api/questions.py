"""Questions: `research`, as a call and as a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Unpack

from ..citations.export.pandoc_formats import Format
from ..graph.run_events import Event, OnEvent
from ..graph.session import Session
from ..runs.result_record import ResultRecord
from ..runs.run_requests import ResearchRequest
from ..settings.config import Depth
from ..text.question_subject import find_subject
from ..tools.scope import plain_question
from .arguments import one_or_more, require_writable, requires_open
from .blocking import blocking
from .events import stream_events
from .run_options import TextOptions
from .running import RunOptions, output_to, run

__all__ = [
    "ResearchOptions",
    "ResearchRequest",
    "aresearch",
    "astream_research",
    "find_subject",
    "plain_question",
    "research",
]


class ResearchOptions(RunOptions, total=False):
    """How a question is answered; see `aresearch`."""

    sources: int | None
    length: int | None
    min_year: int | None
    max_year: int | None
    venue: str
    papers: Sequence[str] | str
    single_shot: bool


@requires_open
async def aresearch(
    session: Session,
    question: str,
    *,
    sources: int | None = None,
    length: int | None = None,
    depth: Depth | None = None,
    min_year: int | None = None,
    max_year: int | None = None,
    venue: str = "",
    papers: Sequence[str] | str = (),
    single_shot: bool = False,
    out: Path | str | None = None,
    formats: Sequence[Format] | Format = (),
    fresh: bool = False,
    force: bool = False,
    strict: bool | None = None,
    page_images: bool = False,
    on_event: OnEvent | None = None,
) -> ResultRecord:
    """Answer a question from the papers alone, or resume its run; returns the JSON of `research --json`.

    Args:
        session: an open library.
        question: what to answer; `answered` in the result is false if nothing was found, None if passages were found
            but no model judged them; `outcome` is "answered", "passages" or "nothing".
        sources: maximum number of papers to draw on; from the settings if omitted.
        length: target length in words; by the depth if omitted.
        depth: how much the answer says; from the settings if omitted.
        min_year: first year of publication.
        max_year: last year of publication.
        venue: a part of the journal's or book's name, in any case.
        papers: keys of papers to search within.
        single_shot: search once, without the agent.
        out: folder for the files; none are written if omitted.
        formats: `tex`, `docx` and `html`, written beside the markdown; they need `out`.
        fresh: answer again, without reusing cached answers.
        force: replace files edited or not written by Citeloom; otherwise the new ones are numbered.
        strict: leave out sentences that fail a check instead of marking them; from the settings if omitted.
        page_images: put images of the cited PDF pages into the evidence report, which needs `out`.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    require_writable(session)
    request = ResearchRequest(
        question, sources, length, min_year, max_year, venue, one_or_more(papers), single_shot=single_shot, fresh=fresh
    )
    given = TextOptions(strict=strict, depth=depth)
    return await run(request, session, output_to(out, formats, force, page_images), given, on_event)


research = requires_open(blocking(aresearch))


@requires_open
def astream_research(
    session: Session, question: str, **options: Unpack[ResearchOptions]
) -> AsyncGenerator[Event, None]:
    """Answer a question, or resume it, as a stream of events; takes the options of `aresearch`.

    Closing the stream early pauses the run; the same call resumes it. Reading it raises what
    `aresearch` raises.
    """
    return stream_events(lambda emit: aresearch(session, question, **options, on_event=emit))

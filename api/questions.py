"""Questions: `research`, as a call and as a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Unpack

from ..graph.run_events import Event, OnEvent
from ..graph.session import Session
from ..runs.result_record import ResultRecord
from ..runs.run_requests import ResearchRequest as ResearchRequest
from ..text.question_subject import find_subject as find_subject
from ..tools.scope import plain_question as plain_question
from .arguments import one_or_more, require_writable, requires_open
from .blocking import blocking
from .events import stream_events
from .running import RunOptions, run


class ResearchOptions(RunOptions, total=False):
    """How a question is answered, see `aresearch`."""

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
    min_year: int | None = None,
    max_year: int | None = None,
    venue: str = "",
    papers: Sequence[str] | str = (),
    single_shot: bool = False,
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> ResultRecord:
    """Answer a question from the papers alone, or resume its run; returns the JSON of `research --json`.

    Args:
        session: an open library.
        question: what to answer; `answered` in the result is false if nothing was found, None if passages were found
            but no model judged them; `outcome` is "answered", "passages" or "nothing".
        sources: maximum number of papers to draw on; from the settings if omitted.
        length: target length in words; by the depth if omitted.
        min_year: first year of publication.
        max_year: last year of publication.
        venue: a part of the journal's or book's name, in any case.
        papers: keys of papers to search within.
        single_shot: search once, without the agent.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `RunOptions`: `out`, `formats`, `fresh` ...

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    require_writable(session)
    fresh = options.get("fresh", False)
    request = ResearchRequest(
        question, sources, length, min_year, max_year, venue, one_or_more(papers), single_shot=single_shot, fresh=fresh
    )
    return await run(request, session, on_event, **options)


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

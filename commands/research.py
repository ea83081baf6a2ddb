"""research: answer a question from the library's papers alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..api.blocking import run_async
from ..api.run_options import AnswerSettings, QuestionOptions
from ..errors import InputError
from .answering import steered
from .options import JsonOption, home_session, takes_options
from .output import notice, result_json
from .run_display import AnswerStreamView, answer_progress
from .run_report import end_incomplete, next_steps, report_run, show_answer
from .sections import TextFiles

if TYPE_CHECKING:
    from ..api.homes import Session
    from ..api.running import Output, ResearchRequest, ResultRecord

QuestionArgument = Annotated[str, "What to answer."]
OutOption = Annotated[Path | None, "Folder for the answer's files; none are written without it."]


@takes_options(files=TextFiles, limits=QuestionOptions, settings=AnswerSettings)
def research(
    question: QuestionArgument,
    files: TextFiles,
    limits: QuestionOptions,
    settings: AnswerSettings,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question from your papers, with citations.

    Prints the answer with its references; --out writes <question>.md, .bib (the cited entries), .evidence.html (opens
    every citation to its passage) and .json as well, --format adds others. Nothing is answered from a model's own
    knowledge: when no passage bears on the question, it says so and what was searched. Run the same command
    again to resume a killed or paused run; a finished one is shown again at no cost.

    Example: citeloom research "How are graph genomes used to genotype structural variants?" --from-year 2018
    """
    from ..api.early_loading import plain_question

    if out is None and (files.formats or files.page_images):
        flag = "--format" if files.formats else "--page-images"
        raise InputError(f"{flag} needs a folder.", help="Name one with --out.")
    output = None if out is None else files.output(out, files.formats)
    plain_question(question)  # before a home is created or printed
    with (
        home_session(early="answer", **settings.changes()) as session,
        answer_progress(session.spent_now, draft=not as_json) as view,
    ):
        request = limits.request(question)
        record = steered(lambda answer: run_async(answer_one(request, output, session, view, answer)))
    if as_json:
        result_json(record)
    else:
        show_answer(record, view)
        for step in next_steps(record):
            notice(step)
    end_incomplete(record)


async def answer_one(
    request: ResearchRequest, output: Output | None, session: Session, view: AnswerStreamView, answer: object = None
) -> ResultRecord:
    """Answer a question, writing files if a folder is given; reports on stderr, streams to `view`.

    `answer` is for what the run asked.
    """
    from ..api.running import run_and_save

    if session.notice_of(answer=True) and answer is None:
        notice(session.notice_of(answer=True))
    try:
        finished = await run_and_save(request, session, output, on_event=view, on_notice=notice, answer=answer)
    finally:
        view.end()
    report_run(finished)
    return finished.record

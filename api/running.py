"""Runs requests and saves their files: `research`, `write_section`, `write_paper`, as calls and as event streams."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypedDict, Unpack, cast

from ..citations.export.pandoc_formats import FORMATS, PLAIN_DOCUMENT, Format
from ..citations.export.plot_figures import MOST_BYTES, image_problem, image_type, with_plot_files, without_plot_files
from ..citations.export.word_fields import DocumentOptions
from ..documents.sandbox import in_thread
from ..drafts.person_questions import AnswerError
from ..errors import InputError
from ..experiment import Experiment, ExperimentError, SectionKind, UnusableField, load_experiment, parse_experiment
from ..graph.run_events import Event, EventRecorder, FindingEvent, OnEvent, ProgressEvent
from ..graph.session import Session, account_name
from ..runs.execution import (
    AnsweredError,
    RunResult,
    begin_run as register_run,
    ignore,
    run_request,
    run_state,
    validate_answer,
)
from ..runs.experiment_check import ExperimentReport, FieldProblem, check_experiment, shorten_body
from ..runs.result_record import ResultRecord, public_record
from ..runs.run_requests import (
    OnNotice,
    ResearchRequest,
    RunKind,
    RunRequest,
    SectionRequest,
    request_to_resume,
    require_same_run,
    required_kinds,
    text_settings_of,
)
from ..section_kinds import SECTION_KINDS, SECTIONS
from ..stores.run_register import PLOT_SET, PLOTS_KEPT, RunRecord
from ..text.wordings import find_subject
from ..tools.scope import Labels, Scope, plain_question
from .arguments import ArgumentError, one_of, one_or_more, parse_formats, require_choice, require_writable, word_options
from .blocking import blocking
from .evidence_tables import load_table_named
from .run_options import Ask, CitationFields, Depth, SteeredOptions, TableSources


async def begin_run(request: RunRequest, session: Session) -> RunRecord:
    """Register a request as a new run, or find the run it repeats; raises `InputError` if invalid."""
    await request.require_valid(session, ignore)
    await session.require_papers()
    register = await asyncio.to_thread(session.home.runs)
    return await asyncio.to_thread(register_run, request, session, register, ignore)


Parameters = ParamSpec("Parameters")


class RunOptions(TypedDict, total=False):
    """How a run works and which files it writes.

    Args:
        out: folder for the files; none are written if omitted.
        formats: `tex`, `docx`, `odt` and `html`, written beside the markdown; they need `out`.
        fresh: write again, without reusing cached answers.
        force: replace files edited or not written by Citeloom; otherwise the new ones are numbered.
        strict: leave out sentences that fail a check instead of marking them; from the settings if omitted.
        depth: how much the text says; from the settings if omitted.
        interrupts: when the run stops to ask you (needs, evidence, sentences, budget, or all); it then raises
            `WaitingError`, and `answer_run` resumes it; from the settings if omitted.
        page_images: put images of the cited PDF pages into the evidence report, which needs `out`.
        citations: how docx and odt cite, `zotero` or `text`; `zotero` by default if a cited paper came from Zotero.
        evidence_comments: put the words behind each citation into docx and odt as comments.
        reference_doc: a docx or odt template whose styles are applied to output in that format.
    """

    out: Path | str | None
    formats: Sequence[Format] | Format
    fresh: bool
    force: bool
    strict: bool | None
    depth: Depth | None
    interrupts: Sequence[Ask] | Ask
    page_images: bool
    citations: CitationFields | None
    evidence_comments: bool
    reference_doc: Path | str | None


async def run(
    request: RunRequest,
    session: Session,
    on_event: OnEvent | None,
    answer: object = None,
    **options: Unpack[RunOptions],
) -> ResultRecord:
    """Run a request and write its files; returns public JSON. Raises `ArgumentError`, and as `run_and_save`."""
    if unknown := sorted(options.keys() - RunOptions.__annotations__.keys()):
        raise TypeError(f"unexpected option {unknown[0]!r}; there are {', '.join(RunOptions.__annotations__)}")
    asks: tuple[Ask, ...] = one_or_more(options.get("interrupts", ()))
    for ask in asks:
        require_choice("interrupt", ask, Ask)
    given = SteeredOptions(strict=options.get("strict"), depth=options.get("depth"), interrupts=asks)
    if given.depth is not None:
        require_choice("depth", given.depth, Depth)
    out = options.get("out")
    wanted = parse_formats(options.get("formats", ()), out)
    output = None
    if out is not None:
        document = word_options(options).document()
        output = Output(Path(out), wanted, options.get("force", False), options.get("page_images", False), document)
    if changes := given.changes():
        session = session.with_settings(**changes)
    return (await run_and_save(request, session, output, on_event=on_event or ignore, answer=answer)).record


@dataclass(frozen=True, slots=True)
class Output:
    """A run's output: folder, formats besides markdown, and how files are written."""

    folder: Path
    formats: tuple[Format, ...] = ()
    force: bool = False
    page_images: bool = False
    document: DocumentOptions = PLAIN_DOCUMENT


async def run_and_save(
    request: RunRequest,
    session: Session,
    output: Output | None = None,
    *,
    on_event: OnEvent = ignore,
    on_notice: OnNotice = ignore,
    answer: object = None,
) -> RunResult[ResultRecord]:
    """Run or resume a request, or return its finished result; writes files to `output`.

    `answer` answers the question that the run is waiting on (`answer_run`). Raises what `run_request` and `save` raise.
    """
    if output is None:
        finished = await run_request(request, session, on_event=on_event, on_notice=on_notice, answer=answer)
        return RunResult(public_record(finished.record), finished.finished_earlier)
    from ..citations.export.section_files import prepare_folder
    from ..runs.imported_text import use_edited_sections
    from ..runs.output_files import report_images, save  # not needed for an answer without files

    made = [path for path in (output.folder, *output.folder.parents) if not path.exists()]  # innermost first
    await asyncio.to_thread(prepare_folder, output.folder)  # before anything is paid for
    try:
        finished = await run_request(request, session, on_event=on_event, on_notice=on_notice, answer=answer)
    except InputError:
        for path in made:
            with suppress(OSError):  # somebody else put something there
                path.rmdir()
        raise
    record, edited = finished.record, dict[str, Path]()
    if "sections" in record and not output.force:
        record, edited = await in_thread(use_edited_sections, record, output.folder, session)
    images, notices = await in_thread(report_images, record, session.library, pages=output.page_images)
    for line in notices:
        on_notice(f"Note: {line}")
    saved = await in_thread(
        save,
        record,
        output.folder,
        output.formats,
        home=session.home,
        force=output.force,
        images=images,
        edited=edited,
        document=output.document,
    )
    return RunResult(saved, finished.finished_earlier)


async def aresearch(
    session: Session,
    question: str,
    *,
    sources: int | None = None,
    length: int | None = None,
    min_year: int | None = None,
    max_year: int | None = None,
    venue: str = "",
    kind: str = "",
    tag: str = "",
    collection: str = "",
    papers: Sequence[str] | str = (),
    single_shot: bool = False,
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> ResultRecord:
    """Answer a question from the papers alone, or resume its run; returns the JSON of `research --json`.

    Args:
        question: what to answer; in the result, `answered` is False if nothing was found, None if passages were found
            but no model judged them; `outcome` is "answered", "passages" or "nothing".
        sources: maximum number of papers to draw on; from the settings if omitted.
        length: target length in words; by the depth if omitted.
        min_year: first year of publication.
        max_year: last year of publication.
        venue: part of the journal's or book's name, ignoring case.
        kind: BibTeX type of the papers.
        tag: tag of the papers.
        collection: Zotero collection of the papers.
        papers: keys of papers to search within.
        single_shot: search once, without the agent.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `RunOptions`: `out`, `formats`, `fresh` ...

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    require_writable(session)
    fresh = options.get("fresh", False)
    labels: Labels = {"kind": kind, "tag": tag, "collection": collection}
    within = (await asyncio.to_thread(Scope.within, session.library, one_or_more(papers), **labels)).papers
    request = ResearchRequest(
        question, sources, length, min_year, max_year, venue, within, single_shot=single_shot, fresh=fresh
    )
    return await run(request, session, on_event, **options)


research = blocking(aresearch)


def sign_answer(answer: object, by: str | None = None) -> dict[str, Any]:
    """Add to an answer who gave it (by default the user of this machine), and when.

    `answer` is "accept", the fields to change, or a `HumanResponse`.
    """
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    given = dict(answer) if isinstance(answer, Mapping) else {"type": answer}
    return {**given, "by": account_name() if by is None else by, "at": datetime.now(UTC).isoformat("T", "seconds")}


async def aanswer_run(
    session: Session,
    run_id: str,
    answer: object = "accept",
    *,
    by: str | None = None,
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> ResultRecord:
    """Answer the question that a run is waiting on, and resume it; returns the JSON of the finished run.

    Args:
        run_id: the run's id or a prefix of it.
        answer: "accept", the fields to change ({"N2": "a better need", "add": ["another"]}), "ignore" where possible,
            or an answer in the form of agent-chat-ui. If it has a `question`, it is for that question only.
        by: who answers; by default the user of this machine.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `RunOptions`: `out`, `formats` ...

    Raises `WaitingError` if the run asks another question, `AnswerError` for an answer in the wrong form (the run keeps
    waiting), `AnsweredError` if somebody answered meanwhile, and what `research` raises.
    """
    require_writable(session)
    record = await asyncio.to_thread(session.home.runs().get, run_id)
    own = session.with_all_settings(text_settings_of(record, session.settings, session.home))
    request = request_to_resume(record)
    await asyncio.to_thread(require_same_run, record, request, own)
    return await run(request, own, on_event, answer=sign_answer(answer, by), **options)


async def require_valid_answer(session: Session, run_id: str, answer: object) -> None:
    """Raise `AnswerError` or `AnsweredError` if the run would refuse the answer, without resuming it."""
    record = await asyncio.to_thread(session.home.runs().get, run_id)
    await validate_answer(answer, await run_state(session.home, run_id), record, session)


answer_run = blocking(aanswer_run)


async def stream_events(work: Callable[[OnEvent], Awaitable[Mapping[str, Any]]]) -> AsyncGenerator[Event, None]:
    """Yield the events of `work`, then `done` with its result; raises what it raises; cancels it if closed early."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    recorder = EventRecorder(events.put_nowait)

    async def run() -> None:
        try:
            recorder.emit_done(await work(recorder))
        finally:
            events.put_nowait(None)

    running = asyncio.ensure_future(run())
    try:
        while (event := await events.get()) is not None:
            yield event
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def streamed(
    call: Callable[Concatenate[Session, Parameters], Awaitable[ResultRecord]],
) -> Callable[Concatenate[Session, Parameters], AsyncGenerator[Event, None]]:
    """Turn a call into a stream of events (`docs/events.md`) with the same options and errors, named "astream_...".

    Drafts of a paper arrive one at a time in writing order, each after its "writing" step.
    """

    @functools.wraps(call)
    def stream(session: Session, *args: Parameters.args, **options: Parameters.kwargs) -> AsyncGenerator[Event, None]:
        return stream_events(lambda emit: cast(Any, call)(session, *args, **options, on_event=emit))

    given = inspect.signature(call)
    taken = [item for item in given.parameters.values() if item.name != "on_event"]
    shown = given.replace(parameters=taken, return_annotation="AsyncGenerator[Event, None]")
    stream.__signature__ = shown  # type: ignore[attr-defined]  # what `help` shows
    stream.__name__ = stream.__qualname__ = re.sub("^a(write_)?", "astream_", call.__name__)
    ends = "Closing it early pauses the run; the same call resumes it."
    stream.__doc__ = f"`{call.__name__}` as a stream of events. {ends}\n\n    {call.__doc__}"
    return stream  # type: ignore[return-value]  # the type does not include the first parameter's name


astream_research = streamed(aresearch)

GivenExperiment = Experiment | dict[str, Any] | Path | str


class WritingOptions(RunOptions, total=False):
    """How a section or a paper is written, and which tables it may cite.

    Args:
        tables: ids or titles of evidence tables whose cells an introduction, a discussion or a paper may cite.
        show_tables: put these tables into the text.
    """

    tables: Sequence[str] | str
    show_tables: bool


async def awrite_section(
    session: Session,
    kind: SectionKind,
    experiment: GivenExperiment,
    *,
    on_event: OnEvent | None = None,
    **options: Unpack[WritingOptions],
) -> ResultRecord:
    """Write or resume a section; returns its JSON.

    Args:
        kind: section type.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `WritingOptions`: `out`, `formats`, `fresh`, `tables` ...

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _write(session, one_of("section", kind, SECTION_KINDS), experiment, on_event, options)


async def awrite_paper(
    session: Session, experiment: GivenExperiment, *, on_event: OnEvent | None = None, **options: Unpack[WritingOptions]
) -> ResultRecord:
    """Write or resume all six sections of a paper as one run, as `awrite_section`; returns the JSON of `paper --json`.

    `out` gets the files of the paper and of each section; `formats` apply to the whole paper only.
    """
    return await _write(session, "paper", experiment, on_event, options)


def load_section_request(kind: RunKind, file: Path, *, fresh: bool = False) -> SectionRequest:
    """Build the request to write a section or paper about the experiment in a file; blocks.

    Raises `ExperimentError`.
    """
    experiment = with_plot_files(load_experiment(file, *required_kinds(kind)), file.parent)
    return SectionRequest(kind, experiment, str(file), fresh)


async def with_tables(request: SectionRequest, session: Session, given: TableSources) -> SectionRequest:
    """Add to a request the current state of the evidence tables that it may cite.

    Raises `ArgumentError` for a section that cites no tables, and `UnknownTableError`.
    """
    kind = request.kind
    if given.tables and kind != "paper" and not SECTIONS[kind].weighs_studies:
        weighing = " and ".join(name for name, spec in SECTIONS.items() if spec.weighs_studies)
        raise ArgumentError(f"tables: {kind} takes no evidence tables; {weighing} do.")
    named = [await load_table_named(session, name, shown=given.show_tables) for name in given.tables]
    return replace(request, tables=tuple({table["table_id"]: table for table in named}.values()))


async def _write(
    session: Session, kind: RunKind, experiment: GivenExperiment, on_event: OnEvent | None, options: WritingOptions
) -> ResultRecord:
    require_writable(session)
    source, needed = "experiment", required_kinds(kind)
    if isinstance(experiment, Experiment):
        given = experiment
    elif isinstance(experiment, dict):
        given = with_plot_files(parse_experiment(experiment, *needed), Path())
    elif isinstance(experiment, Path | str):
        given, source = with_plot_files(load_experiment(experiment, *needed), Path(experiment).parent), str(experiment)
    else:
        raise ArgumentError(
            f"experiment: expected an experiment, its plain data or a path, got {type(experiment).__name__}."
        )
    tables = TableSources(tables=one_or_more(options.pop("tables", ())), show_tables=options.pop("show_tables", False))
    request = SectionRequest(kind, given, source, options.get("fresh", False))
    return await run(await with_tables(request, session, tables), session, on_event, **cast(RunOptions, options))


write_section, astream_section = blocking(awrite_section), streamed(awrite_section)
write_paper, astream_paper = blocking(awrite_paper), streamed(awrite_paper)

"""Running a section or a paper so that it can be killed at any moment and gone on with by the same command."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from citeloom.citations.csl import style_file
from citeloom.errors import CiteloomError, InputError, PausedError
from citeloom.experiment import SECTION_KINDS, Experiment, require_fields
from citeloom.graph.events import ProgressEvent
from citeloom.graph.identity import RunKind, fingerprint, question_of, settings_of_run
from citeloom.graph.nodes.paper import rendered_paper
from citeloom.graph.nodes.rendering import rendered
from citeloom.graph.paper_graph import build_paper_graph
from citeloom.graph.provenance import provenance
from citeloom.graph.section_graph import build_section_graph
from citeloom.graph.state import SectionState
from citeloom.graph.workbench import Workbench
from citeloom.models.journal import Journal
from citeloom.models.paying import paid_by
from citeloom.stores.checkpoints import open_checkpoints
from citeloom.stores.home import Home
from citeloom.stores.lock import run_lock, run_under_way
from citeloom.stores.runs import Run, RunRegister

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

OnEvent = Callable[[ProgressEvent], None]
OnNotice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SectionRequest:
    """What is asked for: a section, or a paper of all six.

    `source` names the experiment in errors, `fresh` sets answers of earlier runs aside. `thread_id` asks for one run
    that there is already, instead of the latest of its kind.
    """

    kind: RunKind
    experiment: Experiment
    source: str = "experiment"
    fresh: bool = False
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class SectionResult:
    """A finished section or paper: its JSON record without files, and whether an earlier run had finished it."""

    record: dict[str, Any]
    finished_earlier: bool


class RunUnderWayError(InputError):
    """A run cannot be deleted while a process works on it."""

    default_help = "Wait for it to end, or end it with Ctrl-C."


def _ignore(_: object) -> None:
    return None


async def run_section(
    request: SectionRequest, bench: Workbench, *, on_event: OnEvent = _ignore, on_notice: OnNotice = _ignore
) -> SectionResult:
    """Write a section or a paper, go on with it, or give the finished one.

    Raises `ExperimentError` or another `InputError` before anything was kept, `PausedError` when the run can be
    gone on with, and other `CiteloomError`s for what cannot be mended by trying again.
    """
    for kind in SECTION_KINDS if request.kind == "paper" else (request.kind,):
        require_fields(request.experiment, kind, source=request.source)
    style_file(bench.settings.csl)  # before anything is paid for
    await bench.require_papers()
    register = await asyncio.to_thread(RunRegister, bench.home.runs)
    run = await asyncio.to_thread(_begin, request, bench, register, on_notice)
    async with run_lock(bench.home, run.thread_id, on_wait=on_notice):
        run = await asyncio.to_thread(register.get, run.thread_id)
        bench.set_scope(run.thread_id, ignore_before=run.started_at if run.fresh else None)
        async with open_checkpoints(bench.home.checkpoints) as saver:
            if run.status == "finished" and run.result is not None:
                return await _finished_earlier(run, bench, saver)
            with paid_by(run.thread_id, bench.budget(run.thread_id)):
                return await _go_on(request, run, bench, register, saver, on_event, on_notice)


def _begin(request: SectionRequest, bench: Workbench, register: RunRegister, on_notice: OnNotice) -> Run:
    if request.thread_id is not None:
        return register.get(request.thread_id)
    version = bench.library.version()
    mark = _mark(request.kind, request.experiment, bench)
    latest = register.latest(mark)
    going_on = latest is not None and (not request.fresh or (latest.fresh and latest.status != "finished"))
    if latest is not None and going_on:
        return latest
    question = question_of(request.kind, request.experiment)
    before = register.latest_about(question)
    if before is not None and before.library_version != version:
        on_notice(
            f"The library changed since run {before.thread_id}: this is a new run; answers on unchanged passages "
            "are taken from the journal."
        )
    return register.begin(
        thread_id=mark if latest is None else f"{mark}-{int(time.time() * 1000):x}",
        fingerprint=mark,
        section=request.kind,
        title=request.experiment.paper_concept.title,
        request={
            "question": question,
            "source": request.source,
            "experiment": request.experiment.model_dump(mode="json"),
            "settings": settings_of_run(bench.settings),
        },
        library_version=version,
        fresh=request.fresh,
    )


def _mark(kind: RunKind, experiment: Experiment, bench: Workbench) -> str:
    return fingerprint(
        kind,
        experiment,
        library_version=bench.library.version(),
        settings=bench.settings,
        prompts_hash=bench.prompts.fingerprint(),
        handed_in=bench.handed_in,
    )


def same_run(run: Run, experiment: Experiment, bench: Workbench) -> bool:
    """Whether giving the command again, as things stand, would go on with this run; blocks."""
    return run.fingerprint == _mark(cast(RunKind, run.section), experiment, bench)


async def _go_on(
    request: SectionRequest,
    run: Run,
    bench: Workbench,
    register: RunRegister,
    saver: AsyncSqliteSaver,
    on_event: OnEvent,
    on_notice: OnNotice,
) -> SectionResult:
    graph = _graph(request.kind, saver, bench)
    config: Any = {"configurable": {"thread_id": run.thread_id}}
    state = await graph.aget_state(config)
    given: Any = None
    if not state.values and not state.next:
        given = {"experiment": request.experiment.model_dump(mode="json")}
        if request.kind != "paper":
            given["section"] = request.kind
    elif state.next:
        on_notice(f"Going on with run {run.thread_id} at {_place(request.kind, state)}.")
    try:
        async for event in graph.astream(given, config, stream_mode="custom", durability="sync"):
            on_event(cast(ProgressEvent, event))
        values = (await graph.aget_state(config)).values
    except BaseException as error:
        await asyncio.shield(_note_stop(error, run, bench, register, saver))
        raise
    record = await _complete(values["result"], values, run, bench)
    await asyncio.to_thread(register.mark, run.thread_id, "finished", result=record)
    return SectionResult(record, finished_earlier=False)


def _graph(kind: RunKind, saver: AsyncSqliteSaver, bench: Workbench | None = None) -> Any:
    """The graph of a kind of run, on its checkpoints; without a bench it can only be asked for its state."""
    build = build_paper_graph if kind == "paper" else build_section_graph
    builder: Any = build(_given(bench)) if bench is not None else build()
    return builder.compile(checkpointer=saver, name="paper" if kind == "paper" else "section")


def _place(kind: RunKind, state: Any) -> str:
    """Where a run stopped: the step, and in a paper the section."""
    steps = ", ".join(state.next)
    return f"the {state.values['section']}, {steps}" if kind == "paper" and "section" in state.values else steps


async def _note_stop(
    error: BaseException, run: Run, bench: Workbench, register: RunRegister, saver: AsyncSqliteSaver
) -> None:
    """Note why a run stopped; one that was refused before its first answer leaves nothing behind."""
    usage = await bench.usage(run.thread_id)
    if isinstance(error, InputError) and not usage["llm_calls"]:
        await _forget(run, bench.journal, register, saver)
        return
    paused = isinstance(error, PausedError | asyncio.CancelledError | KeyboardInterrupt)
    detail = error.message if isinstance(error, CiteloomError) else type(error).__name__
    await asyncio.to_thread(register.mark, run.thread_id, "paused" if paused else "failed", detail=detail)


async def _finished_earlier(run: Run, bench: Workbench, saver: AsyncSqliteSaver) -> SectionResult:
    """The stored result; rendered anew, which takes no model call, in another citation style, with `strict` or
    without it, or for the report of a run that was finished before there were any."""
    record = dict(run.result or {})
    asked = {name: getattr(bench.settings, name) for name in ("cite_style", "csl", "strict")}
    if any(record.get(name) != value for name, value in asked.items()) or "report" not in record:
        kind = cast(RunKind, run.section)
        state = await _graph(kind, saver, bench).aget_state({"configurable": {"thread_id": run.thread_id}})
        values = cast(SectionState, state.values)
        again = rendered_paper if kind == "paper" else rendered
        record = await _complete(await again(values, bench), values, run, bench)
    return SectionResult(record, finished_earlier=True)


async def _complete(result: dict[str, Any], values: Any, run: Run, bench: Workbench) -> dict[str, Any]:
    """The record to keep. Passages go in here and not in the graph's state, whose checkpoints hold no texts."""
    sections = [{**section, "thread_id": run.thread_id} for section in result.get("sections", ())]
    return {
        **result,
        **({"sections": sections} if sections else {}),
        "thread_id": run.thread_id,
        "usage": await bench.usage(run.thread_id),
        "report": {
            **result["report"],
            "title": run.title,
            "library_version": run.library_version,
            **await asyncio.to_thread(provenance, result, values, bench.library),
        },
    }


def _given(bench: Workbench) -> Any:
    async def provide(_: object) -> Workbench:
        return bench

    return provide


async def delete_run(home: Home, thread_id: str) -> Run:
    """Forget a run, its checkpoints and its count of calls; the journal keeps the answers that were paid for.

    Raises `UnknownRunError`, and `RunUnderWayError` when a process is at work on it.
    """
    register = await asyncio.to_thread(RunRegister, home.runs)
    run = await asyncio.to_thread(register.get, thread_id)
    if run_under_way(home, run.thread_id):
        raise RunUnderWayError(f"Run {run.thread_id} is under way in another process.")
    async with run_lock(home, run.thread_id), open_checkpoints(home.checkpoints) as saver:
        with await asyncio.to_thread(Journal.open, home.journal) as journal:
            await _forget(run, journal, register, saver)
    return run


async def _forget(run: Run, journal: Journal, register: RunRegister, saver: AsyncSqliteSaver) -> None:
    """Take a run out of all that knows it, the register last: a kill in between leaves it to be deleted again."""
    await saver.adelete_thread(run.thread_id)
    await journal.forget(run.thread_id)
    await asyncio.to_thread(register.delete, run.thread_id)


async def state_values(home: Home, thread_id: str) -> dict[str, Any]:
    """The values of a run's latest checkpoint, for a person to look at."""
    run = await asyncio.to_thread(RunRegister(home.runs).get, thread_id)
    async with open_checkpoints(home.checkpoints) as saver:
        config: Any = {"configurable": {"thread_id": run.thread_id}}
        return dict((await _graph(cast(RunKind, run.section), saver).aget_state(config)).values)

"""The commands of the shell: questions, lists, searches, a paper's summary and file, and saving."""

from __future__ import annotations

import asyncio
import difflib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ... import api
from ...api import homes, messages, run_options
from ...api.messages import counted
from ...documents.sandbox import in_thread
from ...errors import CiteloomError
from ...settings.config import Settings
from ..output import ingest_progress, notice, print_warnings, result, show_rebuilt_index
from ..papers import matching_line, paper_lines, show_found, show_papers, show_passages
from ..run_display import AnswerStreamView, RunProgress, describe_usage, references_markdown, section_progress
from ..runs import forget_expired
from .parser import is_interactive
from .shell_state import (
    NotNowError,
    Shell,
    ShellDraft,
    ShellState,
    failure,
    next_steps,
    panel,
    resolve_key,
    stage,
    warning,
)

SYNTHESIS_FAILED = "Failed to synthesize research answer"
_UNREADABLE = frozenset({"unknown-marker", "foreign-citation"})
_NEXT = (
    "`improve <feedback>` rewrites the answer; a question follows up on it",
    "`save` saves it with its evidence report",
    "`summary <number>` and `open <number>` show a cited paper",
)


async def answer(shell: Shell, asked: str, kind: api.conversation.TurnKind) -> ShellState:
    """Take a turn of the conversation, and show its answer."""
    if kind == "improve":
        stage("✍️ ", "Improving research answer with your feedback...")
    session = await shell.session()
    if session.notice(answer=True) and not shell.told_of_mode:
        notice(session.notice(answer=True))
        shell.told_of_mode = True
    stages = TurnStages(writes="writer" not in session.extractive)
    # Without a chat model the answer comes all at once, and is shown in a panel only.
    drafts = sys.stdout if sys.stdout.isatty() and "writer" not in session.extractive else None
    view = AnswerStreamView(stages, drafts, shutil.get_terminal_size().columns)
    try:
        request = api.conversation.TurnRequest(asked, kind)
        turn = await api.conversation.take_turn(shell.thread_id, request, session, on_event=view, on_notice=notice)
    except CiteloomError as error:
        if stages.writing:
            error.add_note(SYNTHESIS_FAILED)
        raise
    finally:
        view.end()
    record = turn.record
    shell.turns = turn.number
    if record["route"]["kind"] == "remark":
        result(str(record["text"]))
        return shell.state.without_result()
    if not record["citations"]:
        for text in api.shown_texts.coverage_warnings(record["coverage"]):
            warning(text)
        if stages.papers and not stages.chunks:
            failure("No detailed content found in the selected papers. Papers may not be properly indexed.")
            notice("`rebuild-index` rebuilds the index.")
        else:
            failure(f'No papers found relevant to query: "{record["question"]}". Try refining your search terms.')
            result(str(record["text"]))
        return shell.state.without_result()
    for text in record["warnings"]:
        warning(text)
    if any(finding["rule"] in _UNREADABLE for finding in record["findings"]):
        warning("Some citations could not be formatted correctly")
    reached = draft_answer(record)
    if view.has_output and not view.has_shown(record):
        warning("That was a draft; this is the answer after the checks")
    parts = [] if view.has_shown(record) else [f"# {record['question']}", str(record["text"]).strip()]
    if record["cite_style"] == "numeric":
        parts.append(references_markdown(record))
    else:
        parts += ["## References", *format_references(record["references"], reached.last_query_set)]
    panel("Research Results", "\n\n".join(parts))
    if record["usage"]["llm_calls"] or record["usage"]["journal_hits"]:
        notice(f"{describe_usage(record['usage'])}.")
    if coverage := api.shown_texts.coverage_line(record["coverage"]):
        notice(coverage)
    next_steps(_NEXT)
    return reached


def draft_answer(record: Mapping[str, Any]) -> ShellState:
    """Return the state after an answer: numbered papers, draft to save, and question."""
    references = record["references"]
    numeric = record["cite_style"] == "numeric"
    papers = {int(entry["label"]) if numeric else place: entry["key"] for place, entry in enumerate(references, 1)}
    return ShellState(papers, ShellDraft("research", record["markdown"], record), record["question"])


def format_references(references: Sequence[Mapping[str, Any]], papers: Mapping[int, str]) -> list[str]:
    """Format references with numbers and keys for commands; as paragraphs, since markdown renumbers lists."""
    return [
        f"**[{number}]** {key} - {entry['text']}"
        for (number, key), entry in zip(papers.items(), references, strict=True)
    ]


class TurnStages(RunProgress):
    """Prints a turn's stages from its events; `writes` is false without a chat model."""

    def __init__(self, *, writes: bool = True) -> None:
        self.writes = writes
        self.papers = self.chunks = 0
        self.read = self.writing = False

    def draw(self, event: api.running.ProgressEvent) -> None:
        text, total = event["text"], event.get("total", 0)
        match event["stage"]:
            case "rewritten":
                notice(f"   {text[:1].upper()}{text[1:]}")
            case "routed" if "nothing is searched" not in text:
                stage("🔍", "Stage 1: Searching summaries for relevant papers...")
            case "shortlisted":
                self.papers = total
                notice(f"   Found {counted(total, 'paper')} to look into" if total > 1 else f"   {_capital(text)}")
                stage("📚", f"Stage 2: Gathering detailed evidence from {counted(total, 'paper')}...")
            case "found":
                self.chunks = total
                notice(f"   Retrieved {counted(total, 'content chunk')}")
            case "writing" if event.get("passages"):
                self.writing = True
                done = "Synthesizing answer from evidence" if self.writes else "Listing the nearest passages"
                stage("✍️ ", f"Stage 3: {done}...")
            case "searched" if not self.read:
                self.read = True
                passages = event.get("passages", 0)
                notice(f"   {counted(passages, 'finding')} on the question")
            case "searched" | "planning" | "repairing":
                notice(f"   {_capital(text)}")
            case _:
                pass  # findings are shown with the answer


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


_COMMANDS = {"question": "research", "follow-up": "ask", "improve": "improve"}


def restore(shell: Shell, home: homes.Home, thread: str) -> None:
    """Restore the shell's state at the end of a conversation; blocks briefly. Raises `UnknownConversationError`."""
    home.require_library()
    entry = home.conversations().get(thread)
    shell.thread_id = entry.thread_id
    last = home.conversations().last_turn(entry.thread_id)
    if last is None:
        notice(f"Conversation {entry.thread_id}: no question has been answered yet.")
        return
    shell.turns = last.number
    answered = last if last.answered else home.conversations().last_turn(entry.thread_id, answered=True)
    if answered is not None:
        shell.state = draft_answer(answered.record)
    turns = counted(entry.turns, "turn")
    notice(f"Conversation {entry.thread_id}, {turns}. The last question: {last.question}")


async def finish_opening(shell: Shell, settings: Settings, home: homes.Home) -> None:
    """Finish startup once the library is open: expire conversations, report a paused question."""
    try:
        await shell.opening.wait()
    except CiteloomError:
        return  # already reported
    await forget_expired(settings, home, shell.thread_id)
    paused = await api.conversation.paused_turn(shell.thread_id, home)
    if paused is not None and not shell.state.paused:
        shell.state = shell.state.paused_at(f"{_COMMANDS[paused.kind]} {paused.asked}")
        notice(f"Interrupted question: {paused.asked} `resume` continues it.")


_PASSAGES = 10
_FULLTEXT = "--fulltext"
_NEXT_PAPERS = ("`summary <number>` shows what a paper is about (e.g. `summary 1`)", "`open <number>` opens its file")


async def list_papers(shell: Shell, _: str) -> ShellState:
    papers = await api.library_papers.alist_papers(await shell.session())
    show_papers(papers, numbered=True)
    next_steps(_NEXT_PAPERS)
    return shell.state.listed(_numbers(papers))


async def find(shell: Shell, argument: str) -> ShellState:
    """Show the ten best papers by summary and note, or by full text, like `find` on the command line."""
    words = " ".join(word for word in argument.split() if word != _FULLTEXT)
    api.library_search.require_words(words)
    by_text = _FULLTEXT in argument.split()
    record = await api.library_search.afind_papers(await shell.session(), words, "text" if by_text else "summary")
    show_found(record, fulltext=by_text, numbered=True)
    if not record["papers"]:
        return shell.state.without_result()
    next_steps(_NEXT_PAPERS)
    return shell.state.listed(_numbers(record["papers"]), words)


async def sem_search(shell: Shell, query: str) -> ShellState:
    """Show the passages nearest to a query; their numbers refer to their papers."""
    records = await api.library_search.asearch(await shell.session(), query, _PASSAGES, "dense")
    if not records:
        failure(f'No passage found near "{query}".')
        return shell.state.without_result()
    show_passages(records)
    next_steps([*_NEXT_PAPERS, "`research <question>` answers from the papers", "`save` saves this list"])
    found = "\n\n".join(
        f"{number}. {api.shown_texts.inert(record['key'])}\n\n   > {api.shown_texts.inert(matching_line(record))}"
        for number, record in enumerate(records, 1)
    )
    draft = ShellDraft("sem-search", f"# Passages near to: {api.shown_texts.inert(query)}\n\n{found}\n")
    return ShellState(_numbers(records), draft, query)


async def summary(shell: Shell, argument: str) -> ShellState:
    key = await _resolve_key(shell, argument)
    result(*paper_lines(await api.library_papers.apaper_details(await shell.session(), key)))
    next_steps([f"`open {argument}` opens the file"])
    return shell.state


def _numbers(records: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    return dict(enumerate((record["key"] for record in records), 1))


async def open_paper(shell: Shell, argument: str) -> ShellState:
    key = await _resolve_key(shell, argument)
    paper = await api.library_papers.apaper(await shell.session(), key)
    notice(f"{paper.key} - {' '.join(paper.title.split())}")
    notice(await open_file(paper.source))
    return shell.state


async def _resolve_key(shell: Shell, argument: str) -> str:
    return resolve_key(shell.state, argument, list(await api.ingesting.apaper_sources(await shell.session())))


# Openers that fail do so at once; one that still runs after this many seconds has opened the file.
_OPEN_TIMEOUT = 3.0
_OPENERS = {"darwin": "open", "win32": "explorer"}


def opener() -> str | None:
    """Find the system's default opener; None if it is missing or there is no display."""
    name = _OPENERS.get(sys.platform, "xdg-open")
    if name == "xdg-open" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None  # xdg-open would start a text browser in the shell's terminal
    return shutil.which(name)


async def open_file(source: str) -> str:
    """Open the file, or only name its path without a terminal; returns one line for the user."""
    path = await asyncio.to_thread(Path(source).absolute)  # no leading hyphen: cannot be taken for an option
    if not await asyncio.to_thread(path.is_file):
        return f"The file {source} is gone. For its indexed text: {messages.command('papers show KEY --text')}"
    program = opener() if is_interactive() else None
    if program is None:
        return f"File: {source}"
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.DEVNULL)
    try:
        started = await asyncio.create_subprocess_exec(program, str(path), **quiet, start_new_session=True)
    except OSError as error:
        return f"{program} cannot be started ({error.strerror}). File: {source}"
    try:
        async with asyncio.timeout(_OPEN_TIMEOUT):
            code = await started.wait()
    except TimeoutError:
        code = 0
    # explorer always exits with 1.
    if code and sys.platform != "win32":
        return f"{program} could not open it (exit code {code}). File: {source}"
    return f"Opened with {program}: {source}"


RESULTS = Path("results")


async def save(shell: Shell, argument: str) -> ShellState:
    """Save the last result as markdown, with the other files of an answer or section."""
    draft = shell.state.draft
    assert draft is not None  # ensured by `require`
    name = f"{api.run_texts.slug(shell.state.original_query)}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    path = await asyncio.to_thread(_target, argument, name)
    stage("💾", f"Saving {_NOUNS[draft.kind]}...")
    home = (await shell.session()).home
    if draft.record:
        folder = await asyncio.to_thread(path.parent.absolute)
        record = api.run_texts.stored(draft.record)
        saved = await in_thread(api.run_texts.save, record, folder, stem=path.stem, home=home)
        own = {api.shown_texts.inert(line) for line in draft.record["warnings"]}
        for line in saved["warnings"]:
            if line not in own:
                warning(line)
        beside = ", ".join(f".{kind}" for kind in saved["files"] if kind != "md")
        stage("✅", f"{_NOUNS[draft.kind].capitalize()} saved to: {saved['files']['md']} (beside it {beside})")
        return shell.state
    written, notices = await asyncio.to_thread(api.run_texts.write_own_file, path.absolute(), draft.markdown, home=home)
    for line in notices:
        warning(line)
    stage("✅", f"{_NOUNS[draft.kind].capitalize()} saved to: {written}")
    return shell.state


_NOUNS = {"sem-search": "search results", "research": "research results", "section": "section"}


def _target(argument: str, name: str) -> Path:
    """Return the path to save to; raises `NotNowError` unless it ends in .md."""
    given = Path(argument).expanduser() if argument else RESULTS / f"{name}.md"
    if argument and (given.is_dir() or argument.endswith("/")):
        given = given / f"{name}.md"
    if not given.suffix:
        given = given.with_name(f"{given.name}.md")
    if given.suffix.lower() not in (".md", ".markdown"):
        raise NotNowError(f"{given}: results are saved as markdown.", help="Name a file that ends in .md.")
    return given


async def section(shell: Shell, argument: str) -> ShellState:
    kind, _, given = argument.partition(" ")
    if kind not in run_options.SECTION_KINDS:
        near = difflib.get_close_matches(kind, run_options.SECTION_KINDS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are {', '.join(run_options.SECTION_KINDS)}."
        raise NotNowError(f"There is no section '{kind}'.", help=hint)
    source = Path(given) if given else shell.experiment
    if source is None:
        raise NotNowError(
            "A section needs an experiment, and none was named.",
            help=f"Name its file: 'section {kind} exp.json', or start with 'chat --exp exp.json'.",
        )
    request = await asyncio.to_thread(api.running.load_section_request, kind, source)
    shell.experiment = source
    session = await shell.session()
    with section_progress(session.spent_now) as show:
        finished = await api.running.run_request(request, session, on_event=show, on_notice=notice)
    record = finished.record
    if finished.finished_earlier:
        notice(f"Run {record['thread_id']} was finished earlier; no model was called.")
    for text in record["warnings"]:
        warning(text)
    papers = {number: entry["key"] for number, entry in enumerate(record["references"], 1)}
    body = f"# {kind.capitalize()}\n\n{record['text']}"
    if papers:
        body += "\n\n".join(["", "## References", *format_references(record["references"], papers)])
    panel("Section", body)
    next_steps(["`save` saves it with its .bib and evidence report", "`open <number>` opens a cited paper"])
    return ShellState(papers, ShellDraft("section", record["markdown"], record), kind)


async def rebuild_index(shell: Shell, _: str) -> ShellState:
    session = await shell.session()
    with ingest_progress() as show:
        record = await api.library_upkeep.arebuild_index(session, on_event=show)
    print_warnings(record)
    show_rebuilt_index(record)
    return shell.state

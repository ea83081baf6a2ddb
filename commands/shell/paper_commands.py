"""The commands of the shell: lists, searches, a paper's summary and file, and what writes files (save, section)."""

from __future__ import annotations

import asyncio
import difflib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ...api.messages import command
from ...api.run_options import SECTION_KINDS
from ..output import ingest_progress, notice, result, show_rebuilt, warnings_and_refusals
from ..papers import paper_lines, show_papers
from ..run_display import section_progress
from ..searching import matching_line, show_found, show_passages
from . import display
from .parser import on_terminal
from .research_commands import format_references
from .shell_state import NotNowError, Shell, ShellDraft, ShellState, chosen

_PASSAGES = 10
_FULLTEXT = "--fulltext"
_NEXT = ("`summary <number>` shows what a paper is about (e.g. `summary 1`)", "`open <number>` opens its file")


async def list_papers(shell: Shell, _: str) -> ShellState:
    from ...api.library_papers import alist_papers

    papers = await alist_papers(await shell.session())
    show_papers(papers, numbered=True)
    display.next_steps(_NEXT)
    return shell.state.listed(_numbers(papers))


async def find(shell: Shell, argument: str) -> ShellState:
    """The ten best papers by summary and note, or by full text, like `find` on the command line."""
    from ...api.library_search import afind_papers, require_words

    words = " ".join(word for word in argument.split() if word != _FULLTEXT)
    require_words(words)
    by_text = _FULLTEXT in argument.split()
    record = await afind_papers(await shell.session(), words, "text" if by_text else "summary")
    show_found(record, fulltext=by_text, numbered=True)
    if not record["papers"]:
        return shell.state.without_result()
    display.next_steps(_NEXT)
    return shell.state.listed(_numbers(record["papers"]), words)


async def sem_search(shell: Shell, query: str) -> ShellState:
    """The passages nearest to a query; their numbers stand for their papers."""
    from ...api.library_search import asearch
    from ...api.run_texts import inert  # imports all of `citations`

    records = await asearch(await shell.session(), query, _PASSAGES, "dense")
    if not records:
        display.failure(f'No passage found near to "{query}".')
        return shell.state.without_result()
    show_passages(records)
    display.next_steps([*_NEXT, "`research <question>` answers from the papers", "`save` saves this list"])
    found = "\n\n".join(
        f"{number}. {inert(record['key'])}\n\n   > {inert(matching_line(record))}"
        for number, record in enumerate(records, 1)
    )
    draft = ShellDraft("sem-search", f"# Passages near to: {inert(query)}\n\n{found}\n")
    return ShellState(_numbers(records), draft, query)


async def summary(shell: Shell, argument: str) -> ShellState:
    from ...api.library_papers import apaper_details

    for line in paper_lines(await apaper_details(await shell.session(), await _chosen_key(shell, argument))):
        result(line)
    display.next_steps([f"`open {argument}` opens the file"])
    return shell.state


def _numbers(records: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    return dict(enumerate((record["key"] for record in records), 1))


async def open_paper(shell: Shell, argument: str) -> ShellState:
    from ...api.library_papers import apaper

    key = await _chosen_key(shell, argument)
    paper = await apaper(await shell.session(), key)
    notice(f"{paper.key} - {' '.join(paper.title.split())}")
    notice(await open_file(paper.source))
    return shell.state


async def _chosen_key(shell: Shell, argument: str) -> str:
    from ...api.ingesting import apaper_sources

    return chosen(shell.state, argument, list(await apaper_sources(await shell.session())))


# Programs that fail do so at once; if still running, it shows the file.
_PATIENCE = 3.0  # seconds
_OPENERS = {"darwin": "open", "win32": "explorer"}


def opener() -> str | None:
    """The system's default opener; None if missing or no display."""
    name = _OPENERS.get(sys.platform, "xdg-open")
    if name == "xdg-open" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None  # it would start a text browser on top of the shell
    return shutil.which(name)


async def open_file(source: str) -> str:
    """Open the file, or give its path in a pipe; returns one line for the user."""
    path = await asyncio.to_thread(Path(source).absolute)  # no leading hyphen: cannot be taken for an option
    if not await asyncio.to_thread(path.is_file):
        return f"Its file is gone: {source}. Its indexed text: {command('papers show KEY --text')}"
    program = opener() if on_terminal() else None
    if program is None:
        return f"File: {source}"
    quiet = asyncio.subprocess.DEVNULL
    try:
        started = await asyncio.create_subprocess_exec(
            program, str(path), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
    except OSError as error:
        return f"{program} cannot be started ({error.strerror}). File: {source}"
    try:
        async with asyncio.timeout(_PATIENCE):
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
    from ...api.run_texts import inert, save as save_text, slug, stored, write_own_file
    from ...documents.sandbox import in_thread

    draft = shell.state.draft
    assert draft is not None  # ensured by `require`
    name = f"{slug(shell.state.original_query)}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    path = await asyncio.to_thread(_target, argument, name)
    display.stage("💾", f"Saving {_CALLED[draft.kind]}...")
    home = (await shell.session()).home
    if draft.record:
        folder = await asyncio.to_thread(path.parent.absolute)
        saved = await in_thread(save_text, stored(draft.record), folder, stem=path.stem, home=home)
        own = {inert(line) for line in draft.record["warnings"]}
        for line in saved["warnings"]:
            if line not in own:
                display.warning(line)
        beside = ", ".join(f".{kind}" for kind in saved["files"] if kind != "md")
        display.stage("✅", f"{_CALLED[draft.kind].capitalize()} saved to: {saved['files']['md']} (beside it {beside})")
        return shell.state
    written, notices = await asyncio.to_thread(write_own_file, path.absolute(), draft.markdown, home=home)
    for line in notices:
        display.warning(line)
    display.stage("✅", f"{_CALLED[draft.kind].capitalize()} saved to: {written}")
    return shell.state


_CALLED = {"sem-search": "search results", "research": "research results", "section": "section"}


def _target(argument: str, name: str) -> Path:
    """Where to save; raises `NotNowError` unless the file ends in .md."""
    given = Path(argument).expanduser() if argument else RESULTS / f"{name}.md"
    if argument and (given.is_dir() or argument.endswith("/")):
        given = given / f"{name}.md"
    if not given.suffix:
        given = given.with_name(f"{given.name}.md")
    if given.suffix.lower() not in (".md", ".markdown"):
        raise NotNowError(f"{given}: results are saved as markdown.", help="Name a file that ends in .md.")
    return given


async def section(shell: Shell, argument: str) -> ShellState:
    from ...api.running import load_section_request, run_request

    kind, _, given = argument.partition(" ")
    if kind not in SECTION_KINDS:
        near = difflib.get_close_matches(kind, SECTION_KINDS, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are {', '.join(SECTION_KINDS)}."
        raise NotNowError(f"There is no section '{kind}'.", help=hint)
    source = Path(given) if given else shell.experiment
    if source is None:
        raise NotNowError(
            "A section is about an experiment, and none was named.",
            help=f"Name its file: 'section {kind} exp.json', or start with 'chat --exp exp.json'.",
        )
    request = await asyncio.to_thread(load_section_request, kind, source)
    shell.experiment = source
    session = await shell.session()
    with section_progress(session.spent_now) as show:
        finished = await run_request(request, session, on_event=show, on_notice=notice)
    record = finished.record
    if finished.finished_earlier:
        notice(f"Run {record['thread_id']} was finished earlier; no model was called.")
    for text in record["warnings"]:
        display.warning(text)
    papers = {number: entry["key"] for number, entry in enumerate(record["references"], 1)}
    body = f"# {kind.capitalize()}\n\n{record['text']}"
    if papers:
        body += "\n\n".join(["", "## References", *format_references(record["references"], papers)])
    display.panel("Section", body)
    display.next_steps(["`save` saves it with its .bib and evidence report", "`open <number>` opens a cited paper"])
    return ShellState(papers, ShellDraft("section", record["markdown"], record), kind)


async def rebuild_index(shell: Shell, _: str) -> ShellState:
    from ...api.library_upkeep import arebuild_index

    session = await shell.session()
    with ingest_progress() as show:
        record = await arebuild_index(session, on_event=show)
    warnings_and_refusals(record)
    show_rebuilt(record)
    return shell.state

"""list, find and sem-search show numbered papers or passages; summary and open take one paper."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...api.messages import command
from ..output import notice, result
from ..papers import paper_lines, show_papers
from ..searching import matching_line, show_found, show_passages
from . import display
from .input import on_terminal
from .shell import Shell
from .shell_state import ShellDraft, ShellState, chosen

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
    from ...api.result_views import inert  # imports all of `citations`

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
    from ...api.uploading import apaper_sources

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

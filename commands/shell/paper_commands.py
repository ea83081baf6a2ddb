"""list, find and sem-search show numbered papers; summary and open take one."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...api.messages import command, counted
from ..output import notice
from ..searching import NO_SUMMARY_NEAR, NOTHING_NEAR, matching_line
from . import display
from .input import on_terminal
from .shell import Shell
from .shell_state import ShellDraft, ShellState, chosen

_PASSAGES = 10
_FULLTEXT = "--fulltext"
_NEXT = ("`summary <number>` shows what a paper is about (e.g. `summary 1`)", "`open <number>` opens its file")


async def list_papers(shell: Shell, _: str) -> ShellState:
    """All papers by key."""
    from ...api.library_papers import alist_papers

    papers = await alist_papers(await shell.session())
    items = [(number, display.paper_head(paper), "") for number, paper in enumerate(papers, 1)]
    display.listing(counted(len(papers), "paper"), items)
    display.next_steps(_NEXT)
    return shell.state.listed(dict(enumerate((paper["key"] for paper in papers), 1)))


async def find(shell: Shell, argument: str) -> ShellState:
    """The ten best papers by summary and note, or by full text, like `find` on the command line."""
    from ...api.library_search import afind_papers, require_words

    words = " ".join(word for word in argument.split() if word != _FULLTEXT)
    require_words(words)
    by_text = _FULLTEXT in argument.split()
    record = await afind_papers(await shell.session(), words, "text" if by_text else "summary")
    found = record["papers"]
    if not found:
        lacking = f'No paper has the words "{words}". Try fewer or other words, or `sem-search`.'
        display.failure(lacking if by_text else NO_SUMMARY_NEAR)
        return shell.state.without_result()
    papers = await _papers(shell, [paper["key"] for paper in found])
    items = [
        (number, display.paper_head(papers[paper["key"]]), matching_line(paper))
        for number, paper in enumerate(found, 1)
    ]
    display.listing(f"{len(found)} of {counted(record['total'], 'paper')}, best first", items)
    display.next_steps(_NEXT)
    return shell.state.listed(dict(enumerate((paper["key"] for paper in found), 1)), words)


async def sem_search(shell: Shell, query: str) -> ShellState:
    """The passages nearest to a query, grouped by paper."""
    from ...api.library_search import asearch
    from ...api.result_views import inert  # imports all of `citations`

    records = await asearch(await shell.session(), query, _PASSAGES, "dense")
    if not records:
        display.failure(f'No passage found near to "{query}".')
        return shell.state.without_result()
    papers = await _papers(shell, [record["key"] for record in records])
    items = [
        (
            number,
            display.paper_head(paper),
            "\n".join(matching_line(record) for record in records if record["key"] == key),
        )
        for number, (key, paper) in enumerate(papers.items(), 1)
    ]
    display.listing(f"{counted(len(records), 'passage')} of {counted(len(papers), 'paper')}, nearest first", items)
    if not any(record["near"] for record in records):
        display.warning(NOTHING_NEAR)
    display.next_steps([*_NEXT, "`research <question>` answers from the papers", "`save` saves this list"])
    lines = [f"# Passages near to: {inert(query)}", ""]
    for number, head, below in items:
        lines += [f"{number}. {inert(head)}", "", *(f"   > {inert(line.strip())}\n" for line in below.splitlines())]
    draft = ShellDraft("sem-search", "\n".join(lines).rstrip() + "\n")
    return ShellState(dict(enumerate(papers, 1)), draft, query)


async def summary(shell: Shell, argument: str) -> ShellState:
    """What a paper is about."""
    from ...api.library_papers import apaper_details

    key = await _chosen_key(shell, argument)
    paper = await apaper_details(await shell.session(), key)
    facts = [
        *(f"- **{line}**" for line in paper["metadata"]["notices"]),
        f"- Key: {paper['key']}",
        f"- Authors: {', '.join(paper['authors']) or 'not known'}",
        f"- Published: {', '.join(part for part in (paper['venue'], str(paper['year'] or '')) if part) or 'not known'}",
        *([f"- DOI: {paper['doi']}"] if paper["doi"] else []),
        f"- File: {paper['source']}",
    ]
    parts = [f"# {' '.join(paper['title'].split())}", "\n".join(facts), " ".join(paper["summary"].split())]
    if paper["note"].strip():
        parts.append(f"**Your note:** {paper['note'].strip()}")
    display.panel("Summary", "\n\n".join(part for part in parts if part))
    display.next_steps([f"`open {argument}` opens the file"])
    return shell.state


async def open_paper(shell: Shell, argument: str) -> ShellState:
    """Open a paper's file in the system's default program."""
    from ...api.library_papers import apaper

    key = await _chosen_key(shell, argument)
    paper = await apaper(await shell.session(), key)
    notice(f"{paper.key} - {' '.join(paper.title.split())}")
    notice(await open_file(paper.source))
    return shell.state


async def _chosen_key(shell: Shell, argument: str) -> str:
    from ...api.uploading import apaper_sources

    return chosen(shell.state, argument, list(await apaper_sources(await shell.session())))


async def _papers(shell: Shell, keys: list[str]) -> dict[str, dict[str, Any]]:
    """The papers with these keys, in their order."""
    from ...api.library_papers import apaper

    session = await shell.session()
    return {key: asdict(await apaper(session, key)) for key in dict.fromkeys(keys)}


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

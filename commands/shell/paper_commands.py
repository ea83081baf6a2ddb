"""list, find and sem-search show numbered papers; summary and open take one."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.messages import command, counted
from ...documents import Paper
from ...documents.publication_status import PublicationStatus
from ..output import notice
from ..search_view import behind, place_of, shown
from . import display
from .input import on_terminal
from .shell import Shell
from .state import Drafted, FoundNothing, Listed, Outcome, PapersListed, Selected, ShellDraft, chosen

if TYPE_CHECKING:
    from ...api.homes import Session

_PASSAGES = 10
_FULLTEXT = "--fulltext"
_NEXT = ("`summary <number>` shows what a paper is about (e.g. `summary 1`)", "`open <number>` opens its file")


async def list_papers(shell: Shell, _: str) -> Outcome:
    """All papers by key."""
    session = await shell.session()
    papers = await asyncio.to_thread(session.library.papers)
    display.listing(
        counted(len(papers), "paper"), [(n, display.paper_head(paper), "") for n, paper in enumerate(papers, 1)]
    )
    display.next_steps(_NEXT)
    return PapersListed(_number([paper.key for paper in papers]))


async def find(shell: Shell, argument: str) -> Outcome:
    """The ten best papers by summary and note, or by full text, like `find` on the command line."""
    from ...api.library_search import afind_papers, require_words

    words = " ".join(word for word in argument.split() if word != _FULLTEXT)
    require_words(words)
    session = await shell.session()
    record = await afind_papers(session, words, "text" if _FULLTEXT in argument.split() else "summary")
    found = record["papers"]
    if not found:
        display.failure(f'No paper has the words "{words}". Try fewer or other words, or `sem-search`.')
        return FoundNothing()
    items = [
        (number, display.paper_head(session.library.paper(paper["key"])), behind(paper))
        for number, paper in enumerate(found, 1)
    ]
    display.listing(f"{len(found)} of {counted(record['total'], 'paper')}, best first", items)
    display.next_steps(_NEXT)
    return PapersListed(_number([paper["key"] for paper in found]), words)


async def sem_search(shell: Shell, query: str) -> Outcome:
    """The passages nearest to a query, grouped by paper."""
    from ...api.library_search import asearch

    session = await shell.session()
    records = await asearch(session, query, _PASSAGES, "dense")
    if not records:
        display.failure(f'No passage found near to "{query}".')
        return FoundNothing()
    papers = {key: session.library.paper(key) for key in dict.fromkeys(record["key"] for record in records)}
    items = [
        (number, display.paper_head(paper), "\n".join(_list_passages(paper, records)))
        for number, paper in enumerate(papers.values(), 1)
    ]
    display.listing(f"{counted(len(records), 'passage')} of {counted(len(papers), 'paper')}, nearest first", items)
    display.next_steps([*_NEXT, "`research <question>` answers from the papers", "`save` saves this list"])
    return Drafted(_number(list(papers)), ShellDraft("sem-search", _as_markdown(query, items)), query)


async def summary(shell: Shell, argument: str) -> Outcome:
    """What a paper is about."""
    session = await shell.session()
    key = _key(shell, argument, session.library.papers())
    paper, text, note, status = await asyncio.to_thread(_read_summary, session, key)
    facts = [
        *(f"- **{line}**" for line in status.lines()),
        f"- Key: {paper.key}",
        f"- Authors: {', '.join(paper.authors) or 'not known'}",
        f"- Published: {', '.join(part for part in (paper.venue, str(paper.year or '')) if part) or 'not known'}",
        *([f"- DOI: {paper.doi}"] if paper.doi else []),
        f"- File: {paper.source}",
    ]
    parts = [f"# {' '.join(paper.title.split())}", "\n".join(facts), " ".join(text.split())]
    if note.strip():
        parts.append(f"**Your note:** {note.strip()}")
    display.panel("Summary", "\n\n".join(part for part in parts if part))
    display.next_steps([f"`open {argument}` opens the file"])
    return Selected(key)


async def open_paper(shell: Shell, argument: str) -> Outcome:
    """Open the file of a paper in the system's default program."""
    session = await shell.session()
    key = _key(shell, argument, session.library.papers())
    paper = session.library.paper(key)
    notice(f"{paper.key} - {' '.join(paper.title.split())}")
    notice(await open_file(paper.source))
    return Selected(key)


def _key(shell: Shell, argument: str, papers: list[Paper]) -> str:
    return chosen(shell.state, argument, [paper.key for paper in papers])


def _read_summary(session: Session, key: str) -> tuple[Paper, str, str, PublicationStatus]:
    library, paper = session.library, session.library.paper(key)
    status = session.metadata.statuses([paper]).get(key, PublicationStatus())
    return paper, library.summary(key), library.note(key), status


def _number(keys: list[str]) -> tuple[Listed, ...]:
    return tuple(Listed(number, key) for number, key in enumerate(keys, 1))


def _list_passages(paper: Paper, records: list[dict[str, Any]]) -> list[str]:
    return [_passage(place_of(record), record["sentence"]) for record in records if record["key"] == paper.key]


def _passage(place: str, sentence: str) -> str:
    return f"{place}: {shown(sentence)}" if place else shown(sentence)


def _as_markdown(query: str, items: list[tuple[int, str, str]]) -> str:
    from ...api.result_views import inert  # which loads all of the citations

    lines = [f"# Passages near to: {inert(query)}", ""]
    for number, head, below in items:
        lines += [f"{number}. {inert(head)}", "", *(f"   > {inert(line.strip())}\n" for line in below.splitlines())]
    return "\n".join(lines).rstrip() + "\n"


# A program that fails does so at once; one that is still there shows the file.
_PATIENCE = 3.0  # seconds
_OPENERS = {"darwin": "open", "win32": "explorer"}


def opener() -> str | None:
    """The system's default opener; None without one or without a display."""
    name = _OPENERS.get(sys.platform, "xdg-open")
    if name == "xdg-open" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return None  # it would start a browser of the terminal over the shell
    return shutil.which(name)


async def open_file(source: str) -> str:
    """Open the file, or report its path in a pipe; returns one line for the user."""
    path = await asyncio.to_thread(Path(source).absolute)  # begins with no hyphen: it cannot be taken for an option
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
    # explorer ends with 1 whatever it did.
    if code and sys.platform != "win32":
        return f"{program} could not open it (exit code {code}). File: {source}"
    return f"Opened with {program}: {source}"

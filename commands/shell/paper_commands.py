"""list, find and sem-search show numbered papers; summary and open take one."""

from __future__ import annotations

import asyncio
from typing import Any

from ...api.messages import counted
from ...documents import Paper
from ...documents.publication_status import PublicationStatus
from ..output import notice
from ..search_view import behind, place_of, shown
from . import display
from .file_opener import open_file
from .shell import Shell
from .state import Drafted, FoundNothing, Listed, Outcome, PapersListed, Selected, ShellDraft, chosen

_PASSAGES = 10
_FULLTEXT = "--fulltext"
_NEXT = ("`summary <number>` shows what a paper is about (e.g. `summary 1`)", "`open <number>` opens its file")


async def list_papers(shell: Shell, _: str) -> Outcome:
    """All papers by key."""
    session = await shell.session()
    papers = await asyncio.to_thread(session.library.papers)
    display.listing(
        counted(len(papers), "paper"), [(n, display.head_of(paper), "") for n, paper in enumerate(papers, 1)]
    )
    display.next_steps(_NEXT)
    return PapersListed(_numbered([paper.key for paper in papers]))


async def find(shell: Shell, argument: str) -> Outcome:
    """The ten best papers by summary and note, or by full text, like `find` on the command line."""
    from ...tools.paper_search import papers_by_summary, papers_by_text
    from ...tools.scope import require_words

    words = " ".join(word for word in argument.split() if word != _FULLTEXT)
    require_words(words)
    session = await shell.session()
    if _FULLTEXT in argument.split():
        record = await asyncio.to_thread(papers_by_text, session.library, words)
    else:
        record = await papers_by_summary(session.library, words)
    found = record["papers"]
    if not found:
        display.failure(f'No paper has the words "{words}". Try fewer or other words, or `sem-search`.')
        return FoundNothing()
    items = [
        (number, display.head_of(session.library.paper(paper["key"])), behind(paper))
        for number, paper in enumerate(found, 1)
    ]
    display.listing(f"{len(found)} of {counted(record['total'], 'paper')}, best first", items)
    display.next_steps(_NEXT)
    return PapersListed(_numbered([paper["key"] for paper in found]), words)


async def sem_search(shell: Shell, query: str) -> Outcome:
    """The passages nearest to a query, grouped by paper."""
    from ...tools.retrieval import Retrieval, hit_records, retrieve
    from ...tools.scope import Scope

    session = await shell.session()
    hits = await retrieve(session.library, query, _PASSAGES, Scope(), Retrieval(mode="dense"))
    records = await asyncio.to_thread(hit_records, session.library, query, hits)
    if not records:
        display.failure(f'No passage found near to "{query}".')
        return FoundNothing()
    papers = {key: session.library.paper(key) for key in dict.fromkeys(record["key"] for record in records)}
    items = [
        (number, display.head_of(paper), "\n".join(_passages_of(paper, records)))
        for number, paper in enumerate(papers.values(), 1)
    ]
    display.listing(f"{counted(len(records), 'passage')} of {counted(len(papers), 'paper')}, nearest first", items)
    display.next_steps([*_NEXT, "`research <question>` answers from the papers", "`save` saves this list"])
    return Drafted(_numbered(list(papers)), ShellDraft("sem-search", _as_markdown(query, items)), query)


async def summary(shell: Shell, argument: str) -> Outcome:
    """What a paper is about."""
    session = await shell.session()
    key = _key(shell, argument, session.library.papers())
    paper, text, note, status = await asyncio.to_thread(_told_of, session.library, key)
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


def _told_of(library: Any, key: str) -> tuple[Paper, str, str, PublicationStatus]:
    from ...tools.paper_search import publication_statuses

    paper = library.paper(key)
    return paper, library.summary(key), library.note(key), publication_statuses(library, [paper])[key]


def _numbered(keys: list[str]) -> tuple[Listed, ...]:
    return tuple(Listed(number, key) for number, key in enumerate(keys, 1))


def _passages_of(paper: Paper, records: list[dict[str, Any]]) -> list[str]:
    return [_passage(place_of(record), record["sentence"]) for record in records if record["key"] == paper.key]


def _passage(place: str, sentence: str) -> str:
    return f"{place}: {shown(sentence)}" if place else shown(sentence)


def _as_markdown(query: str, items: list[tuple[int, str, str]]) -> str:
    from ...citations.html_escaping import inert  # which loads all of the citations

    lines = [f"# Passages near to: {inert(query)}", ""]
    for number, head, below in items:
        lines += [f"{number}. {inert(head)}", "", *(f"   > {inert(line.strip())}\n" for line in below.splitlines())]
    return "\n".join(lines).rstrip() + "\n"

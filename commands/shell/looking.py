"""list, find and sem-search, which show papers with numbers; summary and open, which take one."""

from __future__ import annotations

import asyncio
from typing import Any

from citeloom.commands.console import notice
from citeloom.commands.search_view import behind, place_of, shown
from citeloom.commands.shell import screen
from citeloom.commands.shell.context import Shell
from citeloom.commands.shell.file_opener import open_file
from citeloom.commands.shell.state import (
    Draft,
    Drafted,
    FoundNothing,
    Listed,
    Outcome,
    PapersListed,
    Selected,
    chosen,
)
from citeloom.documents import Paper
from citeloom.plurals import counted

_PASSAGES = 10
_FULLTEXT = "--fulltext"
_NEXT = ("`summary <number>` shows what a paper is about (e.g. `summary 1`)", "`open <number>` opens its file")


async def list_papers(shell: Shell, _: str) -> Outcome:
    """All papers by key."""
    bench = await shell.workbench()
    papers = await asyncio.to_thread(bench.library.papers)
    screen.listing(counted(len(papers), "paper"), [(n, screen.head_of(paper), "") for n, paper in enumerate(papers, 1)])
    screen.next_steps(_NEXT)
    return PapersListed(_numbered([paper.key for paper in papers]))


async def find(shell: Shell, argument: str) -> Outcome:
    """What `find` of the command line gives: the ten best papers by summary and note, or by their full text."""
    from citeloom.tools.papers import papers_by_summary, papers_by_text
    from citeloom.tools.scope import require_words

    words = " ".join(word for word in argument.split() if word != _FULLTEXT)
    require_words(words)
    bench = await shell.workbench()
    if _FULLTEXT in argument.split():
        record = await asyncio.to_thread(papers_by_text, bench.library, words)
    else:
        record = await papers_by_summary(bench.library, words)
    found = record["papers"]
    if not found:
        screen.failure(f'No paper has the words "{words}". Try fewer or other words, or `sem-search`.')
        return FoundNothing()
    items = [
        (number, screen.head_of(bench.library.paper(paper["key"])), behind(paper))
        for number, paper in enumerate(found, 1)
    ]
    screen.listing(f"{len(found)} of {counted(record['total'], 'paper')}, best first", items)
    screen.next_steps(_NEXT)
    return PapersListed(_numbered([paper["key"] for paper in found]), words)


async def sem_search(shell: Shell, query: str) -> Outcome:
    """The passages nearest to a query, under their papers."""
    from citeloom.tools.retrieval import Retrieval, as_records, retrieve
    from citeloom.tools.scope import Scope

    bench = await shell.workbench()
    hits = await retrieve(bench.library, query, _PASSAGES, Scope(), Retrieval(mode="dense"))
    records = await asyncio.to_thread(as_records, bench.library, query, hits)
    if not records:
        screen.failure(f'No passage found near to "{query}".')
        return FoundNothing()
    papers = {key: bench.library.paper(key) for key in dict.fromkeys(record["key"] for record in records)}
    items = [
        (number, screen.head_of(paper), "\n".join(_passages_of(paper, records)))
        for number, paper in enumerate(papers.values(), 1)
    ]
    screen.listing(f"{counted(len(records), 'passage')} of {counted(len(papers), 'paper')}, nearest first", items)
    screen.next_steps([*_NEXT, "`research <question>` answers from the papers", "`save` keeps this list"])
    return Drafted(_numbered(list(papers)), Draft("sem-search", _as_markdown(query, items)), query)


async def summary(shell: Shell, argument: str) -> Outcome:
    """What a paper is about."""
    bench = await shell.workbench()
    key = _key(shell, argument, bench.library.papers())
    paper, text, note = await asyncio.to_thread(_told_of, bench.library, key)
    facts = [
        f"- Key: {paper.key}",
        f"- Authors: {', '.join(paper.authors) or 'not known'}",
        f"- Published: {', '.join(part for part in (paper.venue, str(paper.year or '')) if part) or 'not known'}",
        *([f"- DOI: {paper.doi}"] if paper.doi else []),
        f"- File: {paper.source}",
    ]
    parts = [f"# {' '.join(paper.title.split())}", "\n".join(facts), " ".join(text.split())]
    if note.strip():
        parts.append(f"**Your note:** {note.strip()}")
    screen.panel("Summary", "\n\n".join(part for part in parts if part))
    screen.next_steps([f"`open {argument}` opens the file"])
    return Selected(key)


async def open_paper(shell: Shell, argument: str) -> Outcome:
    """The file of a paper in the system's own program for it."""
    bench = await shell.workbench()
    key = _key(shell, argument, bench.library.papers())
    paper = bench.library.paper(key)
    notice(f"{paper.key} - {' '.join(paper.title.split())}")
    notice(await open_file(paper.source))
    return Selected(key)


def _key(shell: Shell, argument: str, papers: list[Paper]) -> str:
    return chosen(shell.state, argument, [paper.key for paper in papers])


def _told_of(library: Any, key: str) -> tuple[Paper, str, str]:
    return library.paper(key), library.summary(key), library.note(key)


def _numbered(keys: list[str]) -> tuple[Listed, ...]:
    return tuple(Listed(number, key) for number, key in enumerate(keys, 1))


def _passages_of(paper: Paper, records: list[dict[str, Any]]) -> list[str]:
    return [_passage(place_of(record), record["sentence"]) for record in records if record["key"] == paper.key]


def _passage(place: str, sentence: str) -> str:
    return f"{place}: {shown(sentence)}" if place else shown(sentence)


def _as_markdown(query: str, items: list[tuple[int, str, str]]) -> str:
    from citeloom.citations.inert import inert  # which loads all of the citations

    lines = [f"# Passages near to: {inert(query)}", ""]
    for number, head, below in items:
        lines += [f"{number}. {inert(head)}", "", *(f"   > {inert(line.strip())}\n" for line in below.splitlines())]
    return "\n".join(lines).rstrip() + "\n"

"""save, section and rebuild-index write files."""

from __future__ import annotations

import asyncio
import difflib
from datetime import datetime
from pathlib import Path

from ...api.run_options import SECTION_KINDS
from ..output import ingest_progress, notice, show_rebuilt, warnings_and_refusals
from ..run_display import section_progress
from . import display
from .research_commands import format_references
from .shell import Shell
from .shell_state import NotNowError, ShellDraft, ShellState

RESULTS = Path("results")


async def save(shell: Shell, argument: str) -> ShellState:
    """Save the last result as markdown, with the other files of an answer or section."""
    from ...api.result_views import inert
    from ...api.run_texts import save as save_text, slug, stored, write_own_file

    draft = shell.state.draft
    assert draft is not None  # ensured by `require`
    name = f"{slug(shell.state.original_query)}_{datetime.now():%Y-%m-%d_%H-%M-%S}"
    path = await asyncio.to_thread(_target, argument, name)
    display.stage("💾", f"Saving {_CALLED[draft.kind]}...")
    home = (await shell.session()).home
    if draft.record:
        folder = await asyncio.to_thread(path.parent.absolute)
        saved = await save_text(stored(draft.record), folder, stem=path.stem, home=home)
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
    from ...api.running import run_request
    from ...api.writing import load_section_request

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

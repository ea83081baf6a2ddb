"""rebuild-index: what mends a library whose papers are not found as they should be."""

from __future__ import annotations

from citeloom.commands.console import ingest_progress, result, warnings_and_refusals
from citeloom.commands.shell.context import Shell
from citeloom.commands.shell.state import Outcome, Unchanged
from citeloom.plurals import counted


async def rebuild_index(shell: Shell, _: str) -> Outcome:
    """Make the index anew from the files of the papers."""
    from citeloom.stores.rebuild import rebuild

    bench = await shell.workbench()
    settings = bench.settings
    with ingest_progress() as show:
        report = await rebuild(
            bench.library,
            on_event=show,
            chunk_tokens=settings.chunk_tokens,
            chunk_overlap=settings.chunk_overlap,
            pdf_reader=settings.pdf_reader,
        )
    warnings_and_refusals(report)
    embedded = f"{counted(report.chunks_embedded, 'chunk')} embedded in {report.seconds:.1f} s"
    result(f"{counted(len(report.updated), 'paper')} indexed anew, {embedded}.")
    return Unchanged()

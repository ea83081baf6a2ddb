"""Mends what `doctor` finds as far as no paper has to be read for it; `stores/rebuild.py` does the rest."""

from __future__ import annotations

import asyncio

from citeloom.plurals import counted
from citeloom.stores.doctor import Finding, differences, fulltext_finding, some, vectors_finding
from citeloom.stores.library import Library
from citeloom.stores.lock import WriterLock


async def mend(library: Library) -> list[Finding]:
    """Mend what needs no embedding, and note the papers that have to be indexed anew.

    A vector store that cannot be read is moved aside; staged changes are finished, records of no paper dropped, and
    the full-text index made anew when it differs.
    """
    async with WriterLock(library.home).held():
        return await asyncio.to_thread(_mend, library)


def _mend(library: Library) -> list[Finding]:
    done: list[Finding] = []
    if vectors_finding(library).level == "problem":
        aside = library.store.set_aside()
        done.append(Finding("fine", "vectors", f"moved to {aside}, since they could not be read; begun anew"))
    finished = library.finish_staged()
    if finished:
        done.append(Finding("fine", "unfinished", f"finished: {some(finished)}"))
    found = differences(library)
    if found.orphans:
        library.store.delete_chunks(sorted(found.orphan_chunks))
        library.store.delete_summaries(sorted(found.orphan_summaries))
        library.store.delete_passages(sorted(found.orphan_passages))
        library.catalog.drop_strays()
        done.append(Finding("fine", "vectors", f"dropped {counted(len(found.orphans), 'record')} of no paper"))
    if found.lacking:
        library.catalog.mark_stale(found.lacking)
    if fulltext_finding(library).level == "problem":
        library.rebuild_fulltext()
        done.append(Finding("fine", "full text", "made anew from the chunks that are kept"))
    return done

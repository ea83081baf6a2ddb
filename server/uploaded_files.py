"""Files that were added through the server: each upload has a folder of its own inside the home."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from ..documents import Paper
from ..ingestion.ingest import remove
from ..stores.home import Home
from ..stores.library import Library


def is_uploaded(paper: Paper, home: Home) -> bool:
    """True when the paper's file is in a folder of an upload."""
    return bool(paper.source) and Path(paper.source).is_relative_to(home.papers.resolve())


async def remove_paper(library: Library, key: str) -> None:
    """Remove a paper, and its file if it was uploaded; raises `UnknownPaperError`."""
    paper = await remove(library, key)
    if is_uploaded(paper, library.home):
        await asyncio.to_thread(_delete, Path(paper.source))


def _delete(file: Path) -> None:
    file.unlink(missing_ok=True)
    with suppress(OSError):  # other papers of the same upload are still there
        file.parent.rmdir()

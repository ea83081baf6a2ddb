"""A paper as an ingest has read it, before anything is decided about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from citeloom.documents.markdown import ParsedPaper
from citeloom.documents.model import Paper


@dataclass(frozen=True, slots=True)
class Source:
    """A paper as read from its file, with the user's note on it.

    `folder` is where its file lies; None for a paper that was handed in, beside which no note can lie.
    """

    path: Path
    parsed: ParsedPaper
    paper: Paper
    folder: Path | None = None
    note: str = ""

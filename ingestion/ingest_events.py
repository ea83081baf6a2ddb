"""Progress events of an ingest, and its final report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..documents.bibliography import Refusal


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another process is writing the library; `pid` is None while unknown."""

    pid: int | None


@dataclass(frozen=True, slots=True)
class Planned:
    """The amount of work, emitted before it starts; `texts` are the chunks and summaries to embed."""

    files: int
    papers: int
    chunks: int
    texts: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The figures and texts of a paper are being read; without a title it is called by its file."""

    key: str
    title: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """This many more texts were embedded."""

    count: int


@dataclass(frozen=True, slots=True)
class Staged:
    """A change to a paper is persisted: after a kill it is applied when the library is next opened."""

    key: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A paper is ready in all stores, or removed from them."""

    key: str
    removed: bool = False


@dataclass(frozen=True, slots=True)
class Described:
    """This many of `total` figure images are done (described or refused)."""

    done: int
    total: int


IngestEvent = Waiting | Planned | Begun | Embedded | Staged | Stored | Described


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of an ingest: keys of papers; `as_dict` gives the counts."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    chunks_embedded: int = 0
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report as printed by `ingest --json`."""
        return {
            "papers_added": len(self.added),
            "papers_updated": len(self.updated),
            "papers_unchanged": len(self.unchanged),
            "papers_removed": len(self.removed),
            "chunks_embedded": self.chunks_embedded,
            "refused": [{"path": item.path, "reason": item.reason} for item in self.refused],
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
        }

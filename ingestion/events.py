"""What an ingest tells while it works, and what it reports at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..documents.bibliography import Refusal


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another process writes the library; `pid` is None while it has not said which."""

    pid: int | None


@dataclass(frozen=True, slots=True)
class Planned:
    """The amount of work, told before it starts; `texts` are the chunks and summaries to embed."""

    files: int
    papers: int
    chunks: int
    texts: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """So many texts more have their vectors."""

    count: int


@dataclass(frozen=True, slots=True)
class Staged:
    """A change to a paper is safe: a kill from here on is made good when the library is opened."""

    key: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A paper is ready in all stores, or gone from them."""

    key: str
    removed: bool = False


IngestEvent = Waiting | Planned | Embedded | Staged | Stored


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest did; the keys of the papers, and `as_dict` for their numbers."""

    added: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    chunks_embedded: int
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `ingest --json`."""
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

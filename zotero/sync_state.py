"""Records in a file of the home which paper came from which item in earlier syncs.

It is written before ingestion, so that a killed sync knows its own papers, and again afterwards with a stamp of the
ingested content, so that nothing is read twice. A sync never removes papers that are not in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ..documents.safe_files import FileRefusedError, read_regular, replace_file
from ..errors import InputError
from ..stores.home import Home

_NAME: Final = "sync.json"
_VERSION: Final = 1
_MOST_BYTES: Final = 200_000_000


@dataclass(frozen=True, slots=True)
class SyncedPaper:
    """A paper that came from Zotero.

    Args:
        item: its library and key, such as library/items/ABCD2345.
        scopes: the keys of the collections by which it came; an empty key is the whole library.
        stamp: stands for everything that was ingested; empty until that is complete.
        file: path, size and time of its file.
        refused: why its file could not be ingested, if it could not.
    """

    item: str
    scopes: frozenset[str]
    stamp: str = ""
    file: str = ""
    refused: str = ""


@dataclass(slots=True)
class SyncState:
    """The papers by citation key."""

    papers: dict[str, SyncedPaper] = field(default_factory=dict)

    @property
    def items(self) -> dict[str, str]:
        """The citation key of each item; for a paper being renamed, the new key."""
        return {paper.item: key for key, paper in self.papers.items()}

    def file_changed(self) -> bool:
        """Whether an ingested file is gone or has a different size or time."""
        for stamp in filter(None, (paper.file for paper in self.papers.values())):
            path = stamp.rsplit(":", 2)[0]
            try:
                state = Path(path).stat()
            except (OSError, ValueError):
                return True
            if stamp != f"{path}:{state.st_size}:{state.st_mtime_ns}":
                return True
        return False


def read_state(home: Home) -> SyncState:
    """The state of a home; empty before the first sync. Raises `InputError` for a damaged file."""
    path = home.zotero / _NAME
    try:
        given = json.loads(read_regular(path, _MOST_BYTES))
        if given["version"] != _VERSION:
            raise ValueError(f"version {given['version']!r:.20}")
        return SyncState({str(key): _paper(value) for key, value in given["papers"].items()})
    except FileNotFoundError:
        return SyncState()
    except (OSError, FileRefusedError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        remedy = "Move it away: the next sync recognizes papers by their entries and files."
        raise InputError(f"{path}: cannot be read ({type(error).__name__}: {error!s:.100}).", help=remedy) from error


def write_state(home: Home, state: SyncState) -> None:
    """Replace the state atomically; raises `InputError` if it cannot be written."""
    path = home.zotero / _NAME
    papers = {key: {**asdict(paper), "scopes": sorted(paper.scopes)} for key, paper in state.papers.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps({"version": _VERSION, "papers": papers}, indent=0).encode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from error


def _paper(value: Mapping[str, Any]) -> SyncedPaper:
    texts = [value["item"], value["stamp"], value["file"], value["refused"], *value["scopes"]]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a paper that is not in words")
    return SyncedPaper(texts[0], frozenset(value["scopes"]), *texts[1:4])

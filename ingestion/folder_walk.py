"""Finds the files in the folders of an ingest; links out of a folder are followed only on request.

A folder may come from somebody else, with links to any of the user's files, and ingested text is sent to models.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..documents.bibliography import Refusal
from ..documents.notes import note_stem


@dataclass(frozen=True, slots=True)
class Walked:
    """The files found, in order of their names; `passed_over` counts files with other extensions."""

    files: tuple[Path, ...]
    bibliographies: tuple[Path, ...]
    refused: tuple[Refusal, ...]
    passed_over: Counter[str] = field(default_factory=Counter)


def walk(paths: Sequence[Path], endings: Sequence[str], *, follow_links: bool = False) -> Walked:
    """The files among `paths`, and the non-hidden files with one of these extensions below its folders.

    Bibliographies are only looked for directly in a folder. A file given by its own path may be a link to anywhere.
    """
    files: dict[Path, None] = {}
    bibliographies: dict[Path, None] = {}
    refused: dict[Path, Refusal] = {}
    passed_over: Counter[str] = Counter()
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        for file in _below(path, follow_links):
            ending = file.suffix.lower()
            if ending not in endings and ending != ".bib":
                passed_over[printable(ending) or "without extension"] += 1
            elif ending == ".bib" and file.parent != path:
                continue
            # Links of notes are checked later, when their paper is known.
            elif not follow_links and note_stem(file) is None and (target := leads_out(file, paths)) is not None:
                refused[file] = refused_link(file, target)
            else:
                (bibliographies if ending == ".bib" else files)[file] = None
    return Walked(tuple(files), tuple(bibliographies), tuple(refused.values()), passed_over)


def _below(folder: Path, follow_links: bool) -> Iterator[Path]:
    """The files below a folder; each folder once, since links can form a cycle."""
    seen: set[str] = set()
    for inside, subfolders, names in os.walk(folder, followlinks=follow_links):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        if follow_links:
            real = os.path.realpath(inside)
            if real in seen:
                subfolders.clear()
                continue
            seen.add(real)
        yield from (Path(inside) / name for name in sorted(names) if not name.startswith("."))


def leads_out(file: Path, within: Sequence[Path]) -> Path | None:
    """The target of a link, if it is neither one of these paths nor below one of these folders."""
    if not file.is_symlink():
        return None
    try:
        target = file.resolve()
        inside = any(target.is_relative_to(path.resolve()) for path in within)
    except (OSError, RuntimeError):  # a cyclic link, which cannot be read either
        return None
    return None if inside else target


def refused_link(file: Path, target: Path) -> Refusal:
    """The refusal of a link, naming the option that follows it."""
    reason = f"is a link out of the folder, to {printable(str(target))}; use --follow-links to ingest its target"
    return Refusal(printable(str(file)), reason)


def printable(name: str) -> str:
    """A file name that can be stored and shown, with bytes that are not UTF-8 escaped."""
    return name.encode("utf-8", "backslashreplace").decode()

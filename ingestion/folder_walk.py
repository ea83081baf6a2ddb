"""Which files lie in the folders of an ingest; what a link leads to outside of them is left alone, unless asked for.

A folder may come from someone else, and its links may lead to anything of the user's: what is taken in is shown to
models.
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
    """The files that were met, in the order of their names; `passed_over` counts those of other endings."""

    files: tuple[Path, ...]
    bibliographies: tuple[Path, ...]
    refused: tuple[Refusal, ...]
    passed_over: Counter[str] = field(default_factory=Counter)


def walk(paths: Sequence[Path], endings: Sequence[str], *, follow_links: bool = False) -> Walked:
    """The files among `paths`, and those with one of these endings below its folders, no hidden ones.

    Of bibliographies those that lie in a folder itself. A file that is given itself may be a link to anywhere.
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
                passed_over[printable(ending) or "without ending"] += 1
            elif ending == ".bib" and file.parent != path:
                continue
            # A note is looked at when its paper is known.
            elif not follow_links and note_stem(file) is None and (target := leads_out(file, paths)) is not None:
                refused[file] = refused_link(file, target)
            else:
                (bibliographies if ending == ".bib" else files)[file] = None
    return Walked(tuple(files), tuple(bibliographies), tuple(refused.values()), passed_over)


def _below(folder: Path, follow_links: bool) -> Iterator[Path]:
    """The files below a folder; with links each folder once, since links can lead in a circle."""
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
    """Where a link leads to, when that is neither one of these paths nor below one of these folders."""
    if not file.is_symlink():
        return None
    try:
        target = file.resolve()
        inside = any(target.is_relative_to(path.resolve()) for path in within)
    except (OSError, RuntimeError):  # a link in a circle, which cannot be read either
        return None
    return None if inside else target


def refused_link(file: Path, target: Path) -> Refusal:
    """Why a link is not followed, and what does follow it."""
    reason = f"is a link out of the folder, to {printable(str(target))}; --follow-links takes in what it leads to"
    return Refusal(printable(str(file)), reason)


def printable(name: str) -> str:
    """A file name as it can be stored and shown; bytes of it that are no UTF-8 as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()

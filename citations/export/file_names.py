"""Chooses file names for a result: files that Citeloom wrote are replaced, all others are kept.

The files of a result belong together. If one of them was edited or is not ours, all of them are written under the next
free number: `discussion.2.md` with `discussion.2.bib`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

IsOwn = Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class FreeName:
    """The chosen name for the files of a result, and the existing files kept under the requested name."""

    stem: str
    kept: tuple[Path, ...] = ()

    def notices(self) -> list[str]:
        """One line that names the kept files and the new location; empty if nothing was in the way."""
        if not self.kept:
            return []
        names = ", ".join(path.name for path in self.kept)
        what = "is kept: it was" if len(self.kept) == 1 else "are kept: they were"
        return [
            f"{names} {what} edited, or not written by Citeloom from this home; the new files are {self.stem}.*"
            " (--force replaces the existing ones)."
        ]


def free_name(folder: Path, stem: str, suffixes: Sequence[str], is_own: IsOwn) -> FreeName:
    """The first of `stem`, `stem.2`, `stem.3` ... under which only our own files would be replaced."""
    kept = _foreign(_files(folder, stem, suffixes), is_own)
    if not kept:
        return FreeName(stem)
    numbered = (f"{stem}.{number}" for number in count(2))
    return FreeName(next(name for name in numbered if not _foreign(_files(folder, name, suffixes), is_own)), kept)


def there(path: Path) -> bool:
    """Whether a path exists, as any kind of file."""
    return os.path.lexists(path)


def _files(folder: Path, stem: str, suffixes: Iterable[str]) -> list[Path]:
    return [folder / (f"{stem}.{suffix}" if suffix else stem) for suffix in suffixes]


def _foreign(paths: Iterable[Path], is_own: IsOwn) -> tuple[Path, ...]:
    return tuple(path for path in paths if there(path) and not is_own(path))

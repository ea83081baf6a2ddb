"""Which names the files of a result may have: what Citeloom wrote is replaced, any other file is kept.

The files of a result belong together. Where one of them was edited, or is somebody else's, all of them are written
under the next free number: `discussion.2.md` beside `discussion.2.bib`.
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
    """The name that the files of a result get, and the files that had to be kept under the name asked for."""

    stem: str
    kept: tuple[Path, ...] = ()

    def told(self) -> list[str]:
        """One line that names what was kept, and where the result is instead; none where nothing stood in the way."""
        if not self.kept:
            return []
        names = ", ".join(path.name for path in self.kept)
        what = "is kept: it was" if len(self.kept) == 1 else "are kept: they were"
        return [
            f"{names} {what} edited, or not written by Citeloom from this home; what is new is in {self.stem}.*"
            " (--force replaces what is there)."
        ]


def free_name(folder: Path, stem: str, suffixes: Sequence[str], is_own: IsOwn) -> FreeName:
    """The first of `stem`, `stem.2`, `stem.3` ... under which nothing would be replaced that is not our own."""
    kept = _foreign(_files(folder, stem, suffixes), is_own)
    if not kept:
        return FreeName(stem)
    numbered = (f"{stem}.{number}" for number in count(2))
    return FreeName(next(name for name in numbered if not _foreign(_files(folder, name, suffixes), is_own)), kept)


def there(path: Path) -> bool:
    """Whether a name is taken, by whatever it is."""
    return os.path.lexists(path)


def _files(folder: Path, stem: str, suffixes: Iterable[str]) -> list[Path]:
    return [folder / (f"{stem}.{suffix}" if suffix else stem) for suffix in suffixes]


def _foreign(paths: Iterable[Path], is_own: IsOwn) -> tuple[Path, ...]:
    return tuple(path for path in paths if there(path) and not is_own(path))

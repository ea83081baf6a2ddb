"""Recognizes a full disk behind errors of any library."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import CiteloomError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# SQLite and Chroma cannot work with less, and then report whatever they were doing.
_TOO_LITTLE = 2 * 1024 * 1024


def disk_full(error: BaseException, places: Sequence[Path]) -> str | None:
    """A one-line message if a full disk caused the error, else None.

    Args:
        error: what ended the command.
        places: where it writes; a missing path counts as its nearest existing folder.
    """
    links = list(_chain(error))
    # A mistake of the user's is no less one while the disk is full; what a library raised may well come of it.
    ours_alone = isinstance(error, CiteloomError) and len(links) == 1
    full = [] if ours_alone else [place for place in places if _free(place) < _TOO_LITTLE]
    if not full and not any(_reports_full_disk(link) for link in links):
        return None
    where = f"{full[0]}: the disk is full" if full else "the disk is full where the output goes"
    return f"{where}; completed work is saved. Free some space and run the same command to resume."


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions


def _reports_full_disk(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return "database or disk is full" in str(error)


def _free(place: Path) -> float:
    for folder in (place, *place.absolute().parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return float("inf")

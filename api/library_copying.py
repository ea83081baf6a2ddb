"""Copies a library to another folder or database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import Any

from ..errors import InputError
from ..graph.session import Session
from ..ingestion.home_copy import copy_home, copy_library
from ..settings.addresses import DatabaseUrl, parse_home, parse_vectors
from ..settings.config import Settings
from ..stores.home import Home, find_home
from ..stores.library import Library
from .blocking import blocking

__all__ = ["acopy_library", "copy_home_to", "target_home"]


def target_home(settings: Settings, home: Home, to: str, to_vectors: str | None) -> Home:
    """Find the home that a copy goes to; raises `InputError` for the home itself, and for vectors of a folder.

    `to_vectors` is the Milvus of the copy: that of the settings if `home` is a folder and none is given.
    """
    vectors = parse_vectors(to_vectors) or (None if isinstance(home.address, DatabaseUrl) else settings.vectors)
    address = parse_home(to)
    in_database = isinstance(address, DatabaseUrl)
    if to_vectors and not in_database:
        raise InputError(f"--to-vectors: the other home, {to}, is a folder.", help="Milvus searches a database only.")
    other = find_home(address, vectors=vectors if in_database else None)
    if other.address == home.address:
        raise InputError(f"{home.name}: is the home itself.", help="Give another one as --to.")
    home.require_library()
    return other


async def acopy_library(
    library: Session, to: Home, *, papers_only: bool = False, on_notice: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Copy a library to another home, with runs, conversations and the journal unless `papers_only`.

    Returns the JSON of `library copy --json`. A copy that was interrupted continues. Raises `InputError` if the other
    home holds anything else, and if the copy differs.
    """
    source, records = library.library, dict[str, int]()
    opened = await asyncio.to_thread(lambda: Library.open(to, source.embedding, on_notice=on_notice))
    with closing(opened) as target:
        if papers_only:
            report = await copy_library(source, target, lambda key: on_notice(f"  copied {key}"))
        else:
            copied = await copy_home(source, target, lambda line: on_notice(f"  {line}"))
            report, records = copied.papers, copied.records | {"checkpoints": copied.checkpoints}
    return {**asdict(report), "to": str(to.name), "records": records}


copy_home_to = blocking(acopy_library)

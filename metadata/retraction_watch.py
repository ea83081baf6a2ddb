"""Imports Retraction Watch's CSV file, row by row and once per version of the file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ..documents.publication_status import Notice, notice_kind
from ..documents.safe_files import FileRefusedError, require_regular
from ..errors import InputError
from ..stores.metadata_store import RETRACTION_WATCH, MetadataStore
from .service_works import doi_in, field_text

_COLUMNS: Final = ("OriginalPaperDOI", "RetractionDOI", "RetractionDate", "RetractionNature", "Reason")
_MOST_BYTES: Final = 1_000_000_000  # the file had 60 MB in 2025
_LONGEST_CELL: Final = 1_000_000
_LONGEST_REASON: Final = 300
_DATE = re.compile(  # ISO, or month/day/year as in the file
    r"(?:(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})|(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}))\b"
)
_HELP: Final = "Download it again from Retraction Watch, or correct CITELOOM_RETRACTION_WATCH."


def import_retraction_watch(store: MetadataStore, file: Path, on_notice: Callable[[str], None] | None = None) -> bool:
    """Replace Retraction Watch's notices with the file's, unless this version was already imported; blocks.

    `on_notice` is called before the import, which takes seconds. Returns whether the file was imported. Raises
    `InputError` if the file is missing, too large or not Retraction Watch's; the previous import then stays.
    """
    try:
        require_regular(file, _MOST_BYTES)
        state = file.stat()
    except (OSError, FileRefusedError) as error:
        reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
        raise InputError(f"{file} (retraction_watch): cannot be read ({reason}).", help=_HELP) from error
    stamp = f"{file.resolve()}:{state.st_size}:{state.st_mtime_ns}"
    if store.file_stamp(RETRACTION_WATCH) == stamp:
        return False
    if on_notice is not None:
        on_notice(f"Importing {file}; this is done once for each version of the file.")
    try:
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as opened:
            store.replace_notices(RETRACTION_WATCH, read_notices(opened, str(file)), stamp)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}).", help=_HELP) from error
    return True


def read_notices(opened: io.TextIOBase | io.TextIOWrapper, name: str) -> Iterator[tuple[str, Notice]]:
    """The notices of the file, each with the DOI of its paper; raises `InputError` if it has other columns."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        rows = csv.DictReader(opened)
        missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"{name}: is not Retraction Watch's file: it has no column {missing[0]}.", help=_HELP)
        for row in rows:
            doi = doi_in(row["OriginalPaperDOI"])
            kind = notice_kind(row["RetractionNature"] or "")
            if doi and kind is not None:
                reasons = [reason.strip(" +") for reason in (row["Reason"] or "").split(";")]
                reason = field_text(", ".join(filter(None, reasons)))[:_LONGEST_REASON]
                date, found = "", _DATE.match((row["RetractionDate"] or "").strip())
                if found is not None:
                    month, day = found["month"] or found["m"], found["day"] or found["d"]
                    date = f"{found['year'] or found['y']}-{int(month):02d}-{int(day):02d}"
                yield doi, Notice(kind, RETRACTION_WATCH, doi_in(row["RetractionDOI"]), date, reason)
    except csv.Error as error:
        raise InputError(f"{name}: cannot be read as CSV ({error}).", help=_HELP) from error
    finally:
        csv.field_size_limit(before)

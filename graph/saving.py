"""Writing a section's files: the text, the cited entries, the evidence report, and the record of every citation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from citeloom.citations.evidence_report import evidence_report
from citeloom.citations.export import prepare_folder, write_texts

__all__ = ["prepare_folder", "public_record", "save_section"]

_FILE_CONTENTS = ("markdown", "bibliography", "report")


def public_record(record: dict[str, Any], files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The section's JSON: the record without the contents of the other files."""
    return {
        **{name: value for name, value in record.items() if name not in _FILE_CONTENTS},
        "files": files or {},
    }


async def save_section(record: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write `<section>.md`, `.bib`, `.evidence.html` and `.json`; returns the JSON.

    Raises `InputError` when they cannot be written. A failed write loses nothing: the finished run is in the
    register, and the same command writes it again.
    """

    def write() -> dict[str, Any]:
        def as_json(files: Mapping[str, str]) -> str:
            return json.dumps(public_record(record, files), ensure_ascii=False, indent=2) + "\n"

        contents = {
            "md": record["markdown"],
            "bib": record["bibliography"],
            "evidence.html": evidence_report(record),
        }
        return public_record(record, write_texts(out, record["section"], contents, as_json))

    return await asyncio.to_thread(write)

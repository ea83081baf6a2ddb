"""Writing the files of a section or an answer: text in its formats, cited entries, evidence report, and record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from citeloom.citations.csl import style_file
from citeloom.citations.evidence_report import evidence_report
from citeloom.citations.export import file_stem, prepare_folder, slug, write_texts
from citeloom.citations.formats import ExportError, Format, convert

__all__ = ["prepare_folder", "public_record", "save_section"]

_FILE_CONTENTS = ("markdown", "bibliography", "report", "manuscript", "marked", "paper_numbers")


def public_record(record: dict[str, Any], files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The section's JSON: the record without the contents of the other files."""
    return {
        **{name: value for name, value in record.items() if name not in _FILE_CONTENTS},
        "files": files or {},
    }


async def save_section(
    record: dict[str, Any], out: Path, formats: Sequence[Format] = (), *, stem: str = ""
) -> dict[str, Any]:
    """Write `<section>.md`, `.bib`, `.evidence.html` and `.json`, and these formats; returns the JSON.

    `stem` names the files otherwise than after the section.

    Raises `InputError` when they cannot be written, and `ExportError` for a format that pandoc refuses, after all
    other files are written. A failed write loses nothing: the finished run is in the register, and the same command
    writes it again.
    """

    def write() -> dict[str, Any]:
        def as_json(files: Mapping[str, str]) -> str:
            return json.dumps(public_record(record, files), ensure_ascii=False, indent=2) + "\n"

        made, failed = _converted(record, formats, stem or name_of(record))
        contents = {
            "md": record["markdown"],
            "bib": record["bibliography"],
            "evidence.html": evidence_report(record),
            **made,
        }
        saved = public_record(record, write_texts(out, stem or name_of(record), contents, as_json))
        if failed:
            raise failed[0]
        return saved

    return await asyncio.to_thread(write)


def name_of(record: Mapping[str, Any]) -> str:
    """What the files of a record are called: after the section, or after the first words of the question."""
    return str(record["section"]) if "section" in record else slug(record["question"])


def _converted(
    record: Mapping[str, Any], formats: Sequence[Format], stem: str
) -> tuple[dict[str, bytes], list[ExportError]]:
    """The contents by format, and the errors of those that could not be made."""
    made: dict[str, bytes] = {}
    failed: list[ExportError] = []
    name = file_stem(stem)
    for target in dict.fromkeys(formats):
        try:
            made[target] = convert(
                record["manuscript"],
                record["bibliography"],
                target,
                csl=style_file(record["csl"]),
                bibliography_name=name,
            )
        except ExportError as error:
            failed.append(error)
    return made, failed

"""Writing the files of a section, a paper or an answer: text in its formats, cited entries, report, and record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from citeloom.citations.csl import style_file
from citeloom.citations.evidence_report import evidence_report
from citeloom.citations.export import file_stem, prepare_folder, slug, write_texts
from citeloom.citations.figures import figure_lines, images_of
from citeloom.citations.formats import ExportError, Format, convert
from citeloom.documents.processes import in_thread

__all__ = ["prepare_folder", "public_record", "save", "save_section"]

_FILE_CONTENTS = ("markdown", "bibliography", "report", "manuscript", "with_markers", "numbering")


def public_record(record: dict[str, Any], files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The JSON of a section or a paper: the record without the contents of the other files."""
    public = {name: value for name, value in record.items() if name not in _FILE_CONTENTS}
    public["files"] = dict(files or record.get("files") or {})
    if "sections" in record:
        public["sections"] = [public_record(section) for section in record["sections"]]
    return public


async def save(record: dict[str, Any], out: Path, formats: Sequence[Format] = ()) -> dict[str, Any]:
    """Write the files of a section, or those of a paper and of each of its sections; returns the JSON.

    Of a paper only the whole is written in `formats`. Raises as `save_section` does.
    """
    if "sections" not in record:
        return await save_section(record, out, formats)
    sections = [await save_section(_with_sources(section, record["report"]), out) for section in record["sections"]]
    return await save_section({**record, "sections": sections}, out, formats)


def _with_sources(section: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """A paper's section with what its own report shows; texts and papers are kept once, with the paper's."""
    searches = [search for search in whole["searches"] if search["section"] == section["section"]]
    return {**section, "report": {**whole, **section["report"], "searches": searches}}


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

        images = images_of(record.get("figures", ()))
        made, failed = _converted(record, formats, stem or name_of(record), images)
        contents = {
            **{file.partition(".")[2]: image for file, image in images.items()},
            "md": record["markdown"],
            "bib": record["bibliography"],
            "evidence.html": evidence_report(record),
            **made,
        }
        saved = public_record(record, write_texts(out, stem or name_of(record), contents, as_json))
        if failed:
            raise failed[0]
        return saved

    return await in_thread(write)


def name_of(record: Mapping[str, Any]) -> str:
    """What the files of a record are called: after the section, or after the first words of the question."""
    return str(record["section"]) if "section" in record else slug(record["question"])


def _converted(
    record: Mapping[str, Any], formats: Sequence[Format], stem: str, images: Mapping[str, bytes]
) -> tuple[dict[str, bytes], list[ExportError]]:
    """The contents by format, and the errors of those that could not be made."""
    made: dict[str, bytes] = {}
    failed: list[ExportError] = []
    name = file_stem(stem)
    figures = [figure for figure in record.get("figures", ()) if figure["file"] in images]
    cited_too = sorted({key for citation in record.get("own_citations", ()) for key in citation["keys"]})
    for target in dict.fromkeys(formats):
        try:
            shown = figure_lines(figures, None if target == "tex" else images)
            made[target] = convert(
                f"{record['manuscript']}\n{shown}\n" if shown else record["manuscript"],
                record["bibliography"],
                target,
                csl=style_file(record["csl"]),
                bibliography_name=name,
                title=record.get("title", ""),
                cited_too=cited_too,
                notice=record["report"]["notice"],
            )
        except ExportError as error:
            failed.append(error)
    return made, failed

"""Writes the files of a section, paper or answer: text in all formats, bibliography, report and record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..citations.export.evidence_report import ReportImages
from ..citations.export.pandoc_formats import FORMATS, Format
from ..citations.export.plot_figures import unshown_figures
from ..citations.export.section_files import (
    ExportError,
    FreeName,
    as_bytes,
    file_stem,
    free_name,
    prepare_folder,
    there,
    write_atomically,
    write_texts,
)
from ..citations.html_escaping import inert
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..stores.backends import written_files
from ..stores.home import Home
from ..stores.run_register import WrittenFiles
from .result_files import ALWAYS, ResultFiles, json_text, name_of
from .result_record import ResultRecord, StoredRecord, public_record as public_record, stored


async def save(
    record: StoredRecord,
    out: Path,
    formats: Sequence[Format] = (),
    *,
    home: Home | None = None,
    force: bool = False,
    images: ReportImages | None = None,
    edited: Mapping[str, Path] | None = None,
) -> ResultRecord:
    """Write the files of a section, or of a paper and all its sections; returns the JSON.

    Of a paper, only the whole is exported to `formats`. `edited` are section files that the user edited and
    that stay. Raises as `save_section` does.
    """
    if "sections" not in record:
        return await save_section(record, out, formats, home=home, force=force, images=images)
    sections = []
    notices: list[str] = []
    for section in record["sections"]:
        if edited and section["section"] in edited:
            sections.append(public_record({**section, "files": {"md": str(edited[section["section"]])}}))
            continue
        complete = with_sources(section, record["report"])
        saved = await save_section(complete, out, home=home, force=force, images=images)
        own = {inert(line) for line in section["warnings"]}
        notices += [line for line in saved["warnings"] if line not in own]
        sections.append(saved)
    whole = stored({**record, "sections": sections, "warnings": [*notices, *record["warnings"]]})
    return await save_section(whole, out, formats, home=home, force=force, images=images)


def with_sources(section: StoredRecord, whole: Mapping[str, Any]) -> StoredRecord:
    """Complete a section's report data from its paper, which stores texts and papers once for all."""
    searches = [search for search in whole["searches"] if search["section"] == section["section"]]
    return {**section, "report": {**whole, **section["report"], "searches": searches}}


async def save_section(
    record: StoredRecord,
    out: Path,
    formats: Sequence[Format] = (),
    *,
    stem: str = "",
    home: Home | None = None,
    force: bool = False,
    images: ReportImages | None = None,
) -> ResultRecord:
    """Write `<section>.md`, `.bib`, `.evidence.html` and `.json`, and these formats; returns the JSON.

    Unless `force` is given, files edited or not written by Citeloom from `home` are kept: then all new files are
    numbered (`discussion.2.md`), with a warning. Formats left by an earlier run are regenerated, or a warning
    names them. `stem` overrides the file name; `images` are the report's.

    Raises `InputError` if writing fails, and `ExportError` if pandoc rejects a format, after writing all other files. A
    failed write loses nothing: the finished run is in the register, and repeating the command writes it again.
    """
    wanted = tuple(dict.fromkeys(formats))
    name = file_stem(stem or name_of(record))

    def write() -> ResultRecord:
        written = written_files(home)
        suffixes = [*ALWAYS, *wanted, *(figure["file"].partition(".")[2] for figure in record["figures"])]
        find_name = partial(free_file_name, out, name, suffixes, written, force=force)
        while True:
            free = find_name()
            files = ResultFiles.of(record, home, free.stem, images)
            beside = [kind for kind in FORMATS if kind not in wanted and there(out / f"{free.stem}.{kind}")]
            ours = [kind for kind in beside if written.has(out / f"{free.stem}.{kind}")]
            made: dict[str, bytes] = {}
            failed: dict[str, ExportError] = {}
            for target in (*wanted, *ours):
                try:
                    made[target] = files.content(target)
                except ExportError as problem:
                    failed[target] = problem
            if free == find_name():  # unless edited meanwhile
                break
        formats_left = [f"{free.stem}.{kind}" for kind in (*wanted, *beside) if kind not in made]
        old = [file for file in formats_left if there(out / file)]
        are_old = "is not of this run" if len(old) == 1 else "are not of this run"
        notices = [
            *free.notices(),
            *([f"{', '.join(old)} {are_old}: kept as before."] if old else []),
            *unshown_figures(files.figures, free.stem, ["md", *made]),
        ]
        whole: StoredRecord = {**files.record, "warnings": [*notices, *record["warnings"]]}
        beside_it = {suffix: files.content(suffix) for suffix in (*files.image_suffixes, "md", "bib", "evidence.html")}
        saved = public_record(
            whole,
            write_texts(out, free.stem, {**beside_it, **made}, lambda paths: json_text(whole, paths), written.note),
        )
        for error in (failed[kind] for kind in wanted if kind in failed):
            raise error
        return saved

    return await in_thread(write)


def free_file_name(
    out: Path, name: str, suffixes: Sequence[str], written: WrittenFiles, *, force: bool = False
) -> FreeName:
    """A file name that overwrites nothing the user edited, unless `force`."""
    return FreeName(name) if force else free_name(out, name, suffixes, written.has)


def write_own_file(
    path: Path, content: str, *, home: Home | None = None, force: bool = False
) -> tuple[Path, list[str]]:
    """Write one file, numbered if the existing one was edited; returns its path and a warning if so.

    Blocks; raises `InputError`.
    """
    written = written_files(home)
    free = free_file_name(path.parent, path.stem, [path.suffix[1:]], written, force=force)
    target = path.with_name(f"{free.stem}{path.suffix}")
    prepare_folder(path.parent)
    written.note([as_bytes(content)])
    try:
        write_atomically(target, content)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}).") from error
    return target, free.notices()

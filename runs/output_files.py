"""Writes the files of a section, a paper or an answer: text in its formats, bibliography, report and record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..citations.csl_styles import style_file
from ..citations.export.evidence_report import evidence_report
from ..citations.export.figures import figure_lines, images_of, unshown_figures
from ..citations.export.file_names import FreeName, free_name, there
from ..citations.export.files import as_bytes, file_stem, prepare_folder, slug, write_atomically, write_texts
from ..citations.export.pandoc_formats import FORMATS, ExportError, Format, convert
from ..citations.html_escaping import inert, inert_record
from ..documents.subprocesses import in_thread
from ..errors import InputError
from ..stores.backends import written_files
from ..stores.home import Home
from ..stores.home_protocols import WrittenHashes
from .result_record import CitationRecord, ResultRecord, StoredRecord, stored

__all__ = ["public_record", "save", "save_section", "write_own_file"]

_ALWAYS = ("md", "bib", "evidence.html", "json")
_FILE_CONTENTS = ("markdown", "bibliography", "report", "manuscript", "with_markers", "numbering")


def public_record(
    record: StoredRecord, files: Mapping[str, str] | None = None, *, passages: Mapping[str, str] | None = None
) -> ResultRecord:
    """The JSON of a section or a paper: the record without the contents of the other files and without live HTML."""
    public: dict[str, Any] = {name: value for name, value in record.items() if name not in _FILE_CONTENTS}
    texts = {**(passages or {}), **record.get("report", {}).get("passages", {})}
    if "citations" in record:
        public["citations"] = [_with_chunk(citation, texts) for citation in record["citations"]]
    public["files"] = dict(files or record.get("files") or {})
    if "sections" in record:
        public["sections"] = [public_record(section, passages=texts) for section in record["sections"]]
    return cast(ResultRecord, inert_record(public))


def _with_chunk(citation: CitationRecord, texts: Mapping[str, str]) -> CitationRecord:
    """The citation with the text of its chunk, to check `chunk_text[start:end] == quote` without the library.

    None when the paper had left the library before the run was finished.
    """
    return {**citation, "chunk_text": texts.get(citation["evidence_id"], citation.get("chunk_text"))}


async def save(
    record: StoredRecord,
    out: Path,
    formats: Sequence[Format] = (),
    *,
    home: Home | None = None,
    force: bool = False,
) -> ResultRecord:
    """Write the files of a section, or those of a paper and each of its sections; returns the JSON.

    For a paper only the whole is written in `formats`. Raises as `save_section` does.
    """
    if "sections" not in record:
        return await save_section(record, out, formats, home=home, force=force)
    sections = []
    notices: list[str] = []
    for section in record["sections"]:
        with_sources = _with_sources(section, record["report"])
        saved = await save_section(with_sources, out, home=home, force=force)
        own = {inert(line) for line in section["warnings"]}
        notices += [line for line in saved["warnings"] if line not in own]
        sections.append(saved)
    whole = stored({**record, "sections": sections, "warnings": [*notices, *record["warnings"]]})
    return await save_section(whole, out, formats, home=home, force=force)


def _with_sources(section: StoredRecord, whole: Mapping[str, Any]) -> StoredRecord:
    """A paper's section with the data of its own report; texts and papers are stored once, with the paper."""
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
) -> ResultRecord:
    """Write `<section>.md`, `.bib`, `.evidence.html` and `.json`, and these formats; returns the JSON.

    Files not written by Citeloom from `home`, or edited since, are kept unless `force` is given: all new files then get
    a number (`discussion.2.md`), and a warning says so. Formats left by an earlier run are regenerated, or named in a
    warning when they cannot be. `stem` overrides the file name.

    Raises `InputError` when they cannot be written, and `ExportError` for a format that pandoc rejects, after all other
    files are written. A failed write loses nothing: the finished run is in the register, and the same command writes it
    again.
    """
    wanted = tuple(dict.fromkeys(formats))
    name = file_stem(stem or name_of(record))

    def write() -> ResultRecord:
        written = written_files(home)
        suffixes = [*wanted, *(figure["file"].partition(".")[2] for figure in record.get("figures", ()))]
        while True:
            free = _free(out, name, suffixes, written, force)
            named = _with_figures_called(record, name, free.stem)
            images = images_of(named.get("figures", ()))
            beside = [kind for kind in FORMATS if kind not in wanted and there(out / f"{free.stem}.{kind}")]
            ours = [kind for kind in beside if written.has(out / f"{free.stem}.{kind}")]
            made, failed = _converted(named, [*wanted, *ours], free.stem, images)
            if free == _free(out, name, suffixes, written, force):  # not edited in the meantime
                break
        old = [f"{free.stem}.{kind}" for kind in (*wanted, *beside) if kind not in made]
        figures = [figure for figure in named.get("figures", ()) if figure["file"] in images]
        notices = [
            *free.notices(),
            *_named_as_old([file for file in old if there(out / file)]),
            *unshown_figures(figures, free.stem, ["md", *made]),
        ]
        whole: StoredRecord = {**named, "warnings": [*notices, *record["warnings"]]}

        def as_json(files: Mapping[str, str]) -> str:
            return json.dumps(public_record(whole, files), ensure_ascii=False, indent=2) + "\n"

        contents: dict[str, str | bytes] = {
            **{file.removeprefix(f"{free.stem}."): image for file, image in images.items()},
            "md": named["markdown"],
            "bib": record["bibliography"],
            "evidence.html": evidence_report(named),
            **made,
        }
        saved = public_record(whole, write_texts(out, free.stem, contents, as_json, written.note))
        for error in (failed[kind] for kind in wanted if kind in failed):
            raise error
        return saved

    return await in_thread(write)


def _with_figures_called(record: StoredRecord, name: str, stem: str) -> StoredRecord:
    """The record with its figure files renamed from `name` to the `stem` of its files."""
    if name == stem or not record.get("figures"):
        return record
    figures = [{**item, "file": f"{stem}.{item['file'].partition('.')[2]}"} for item in record["figures"]]
    markdown = record["markdown"]
    for old, new in zip(record["figures"], figures, strict=True):
        for shown in ("[{0}]({0})", "]({0})"):
            markdown = markdown.replace(shown.format(old["file"]), shown.format(new["file"]))
    return {**record, "figures": figures, "markdown": markdown}


def _free(out: Path, name: str, formats: Sequence[Format], written: WrittenHashes, force: bool) -> FreeName:
    return FreeName(name) if force else free_name(out, name, (*_ALWAYS, *formats), written.has)


def write_own_file(
    path: Path, content: str, *, home: Home | None = None, force: bool = False
) -> tuple[Path, list[str]]:
    """Write one file, under the next free number if the existing one was edited; returns its path and what was kept.

    Blocks; raises `InputError`.
    """
    written = written_files(home)
    free = FreeName(path.stem) if force else free_name(path.parent, path.stem, [path.suffix[1:]], written.has)
    target = path.with_name(f"{free.stem}{path.suffix}")
    prepare_folder(path.parent)
    written.note([as_bytes(content)])
    try:
        write_atomically(target, content)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}).") from error
    return target, free.notices()


def _named_as_old(files: Sequence[str]) -> list[str]:
    """One line on formats next to the new files that are not from this run."""
    if not files:
        return []
    is_old = "is not of this run" if len(files) == 1 else "are not of this run"
    return [f"{', '.join(files)} {is_old}: kept as before."]


def name_of(record: StoredRecord) -> str:
    """The file name of a record: the section, or the first words of the question."""
    return str(record["section"]) if "section" in record else slug(record["question"])


def _converted(
    record: StoredRecord, formats: Sequence[Format], name: str, images: Mapping[str, bytes]
) -> tuple[dict[str, bytes], dict[str, ExportError]]:
    """The contents by format, and the errors of formats that could not be made."""
    made: dict[str, bytes] = {}
    failed: dict[str, ExportError] = {}
    figures = [figure for figure in record.get("figures", ()) if figure["file"] in images]
    cited_too = sorted({key for citation in record.get("own_citations", ()) for key in citation["keys"]})
    for target in formats:
        try:
            shown = figure_lines(figures, target, None if target == "tex" else images)
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
            failed[target] = error
    return made, failed

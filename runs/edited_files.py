"""Exports a section or a paper as its user edited it in the markdown file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..citations.export.pandoc_formats import Format
from ..citations.export.plot_figures import figure_lines
from ..citations.export.section_files import section_title, write_atomically
from ..citations.html_escaping import inert
from ..citations.markers import MARKER, sentences
from ..documents.exported_text import without_comments_and_references
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..graph.session import Session
from ..stores.backends import backend_of, written_files
from ..stores.run_register import RunRecord, WrittenFiles
from .editable_text import EditableSection, EditableText, editable_text
from .edited_record import edited_record
from .output_files import free_file_name
from .result_files import ResultFiles
from .result_record import StoredRecord, stored

_TITLE = re.compile(r"\A\s*# [^\n]*\n")


async def export_edited(
    file: Path,
    run: RunRecord,
    formats: Sequence[Format],
    session: Session,
    *,
    csl: str | None = None,
    force: bool = False,
) -> tuple[list[Path], list[str]]:
    """Write these formats of an edited markdown file beside it; their paths, and warnings on what was kept.

    `run` is the run that wrote the file. Raises `InputError`, and `ExportError` for a format that cannot be made.
    """
    markdown = await in_thread(_read, file)
    record = await edited_record(edited_by_hand(run, markdown), session, csl)

    def write() -> tuple[list[Path], list[str]]:
        files = ResultFiles.of(record, session.home, file.stem)
        contents = {name: files.content(name) for name in formats}
        written = written_files(session.home)
        free = free_file_name(file.parent, file.stem, formats, written, force=force)
        written.note(list(contents.values()))
        paths = []
        for name, content in contents.items():
            path = file.parent / f"{free.stem}.{name}"
            write_atomically(path, content)
            paths.append(path)
        return paths, [*free.notices(), *(str(line) for line in record["warnings"])]

    return await in_thread(write)


async def with_edited_sections(
    record: StoredRecord, folder: Path, session: Session
) -> tuple[StoredRecord, dict[str, Path]]:
    """A paper with the text of its section files that were edited in `folder`, and these files by section.

    Raises `InputError` for a file that cannot be read.
    """
    files = await in_thread(_edited_files, record, folder, written_files(session.home))
    if not files:
        return record, files
    run = await in_thread(backend_of(session.home).runs().get, record["thread_id"])
    text = editable_text(replace(run, result=dict(record)), [])
    bodies = {kind: await in_thread(_read, path) for kind, path in files.items()}
    sections = [
        _by_hand(section, _body(bodies[section.kind], section.record)) if section.kind in bodies else section
        for section in text.sections
    ]
    edited = await edited_record(replace(text, sections=tuple(sections)), session)
    names = ", ".join(path.name for path in files.values())
    said = f"{names} {'was' if len(files) == 1 else 'were'} edited by hand: the paper has your text."
    return stored({**edited, "warnings": list(dict.fromkeys([said, *edited["warnings"], *record["warnings"]]))}), files


def _edited_files(record: StoredRecord, folder: Path, written: WrittenFiles) -> dict[str, Path]:
    """The markdown files of the paper's sections that are not as the run wrote them, by section."""
    found = {}
    for section in record["sections"]:
        path = folder / f"{section['section']}.md"
        if path.is_file() and not written.has(path) and _run_beside(path) == record["thread_id"]:
            found[str(section["section"])] = path
    return found


def _run_beside(path: Path) -> str:
    """The run of the record beside a markdown file; empty without one."""
    try:
        return str(json.loads(path.with_suffix(".json").read_text("utf-8"))["thread_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def edited_by_hand(run: RunRecord, markdown: str) -> EditableText:
    """The text of a finished run as it stands in its edited markdown file.

    Raises `NotEditableError` for a run that has no sections.
    """
    text = editable_text(run, [])
    body = _body(markdown, run.result or {})
    if len(text.sections) == 1 and "sections" not in (run.result or {}):
        return replace(text, sections=(_by_hand(text.sections[0], body),))
    bodies = _parts(body, [section.kind for section in text.sections])
    return replace(text, sections=tuple(_by_hand(section, bodies.get(section.kind, "")) for section in text.sections))


def _body(markdown: str, record: Mapping[str, Any]) -> str:
    """The text of a markdown file without its title, references, images and captions."""
    return _TITLE.sub("", f"{_without_captions(without_comments_and_references(markdown), record)}\n")


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({' '.join(str(error).split())[:160]}).") from error


def _without_captions(body: str, result: Mapping[str, Any]) -> str:
    """The text without the images and captions that were put under it."""
    for figure in result.get("figures", ()):
        image, _, caption = figure_lines([figure]).partition("\n\n")
        body = re.sub(rf"(?m)^!\[Figure {figure['number']}\]\([^()\n]*\)$", "", body.replace(image, ""))
        if caption:  # a paragraph of its own: "shown in Figure 1." ends like the caption of a plot without one
            body = re.sub(rf"(?m)^{re.escape(caption)}$", "", body)
    return body


def _parts(body: str, kinds: Sequence[str]) -> dict[str, str]:
    """The text under the heading of each section."""
    titles = {section_title(kind): kind for kind in kinds}
    pieces = re.split(rf"(?m)^## ({'|'.join(map(re.escape, titles))})[ \t]*$", body)
    return {titles[title]: words for title, words in zip(pieces[1::2], pieces[2::2], strict=True)}


def _by_hand(section: EditableSection, body: str) -> EditableSection:
    """The section with this text, in which unchanged sentences have the markers that they had."""
    known = {inert(shown): sentence.text for shown, sentence in zip(section.shown(), section.sentences, strict=True)}
    known |= {inert(words): known[inert(shown)] for shown, words in zip(section.shown(), _marked(section), strict=True)}
    own_words = MARKER.sub("", section.record["with_markers"])
    lines = []
    for line in body.strip().splitlines():
        pieces: list[str] = []
        done = 0
        for sentence in sentences(line):
            marked = known.get(sentence.text) or section.citable.marked(sentence.text, own_words)
            pieces += [line[done : sentence.start], marked]
            done = sentence.end
        lines.append("".join([*pieces, line[done:]]))
    return replace(section, by_hand="\n".join(lines))


def _marked(section: EditableSection) -> list[str]:
    """The sentences as they stand in the file, with the marks of failed checks."""
    return [section.record["text"][start:end] for start, end in section.places()]

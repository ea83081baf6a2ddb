"""Keeps sections of finished runs up to date in a LaTeX project, such as a git clone of an Overleaf project.

Only marked regions are rewritten, and bibliographies only grow. A region that a person edited is a conflict, which is
shown and resolved only on request. Files are replaced atomically, unless they changed since they were read.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from typing_extensions import TypedDict

from ..citations.export.latex_output import (
    Region,
    body_hash,
    find_regions,
    grow_bibliography,
    missing_packages,
    region_text,
    section_body,
    with_keys,
    without_comments,
)
from ..documents.bibliography import parse_bibliography
from ..documents.safe_files import FileRefusedError, read_regular, replace_file
from ..errors import InputError
from ..plurals import counted
from ..stores.home import Home
from ..stores.run_register import WrittenFiles
from ..text.sentences import replace_spans
from .output_files import ResultFiles, complete_section
from .result_record import StoredRecord, stored

Side = Literal["", "ours", "theirs"]
_MOST_BYTES: Final = 4_000_000
_MOST_FILES: Final = 2_000
_FIGURES: Final = "figures"
_SENTENCE_END: Final = re.compile(r"(?<=[.!?]) ")
_INPUT: Final = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]{1,300})\}")
_UNMERGED: Final = re.compile(r"(?m)^<{7} ")
_BIBLIOGRAPHY: Final = re.compile(r"\\(?:bibliography|addbibresource(?:\[[^\[\]]*\])?)\s*\{([^{}]{1,1000})\}")


class SyncedRegion(TypedDict):
    """A section in a LaTeX project: its place, what happened to it, and for a conflict the differences.

    `state` is new, updated, unchanged, conflict, taken (the run took the file's text), refused, or overwritten (with
    `backup`, a copy of the original file).
    """

    file: str
    line: int
    run: str
    section: str
    state: str
    diff: str
    backup: str


@dataclass
class _TextFile:
    """A project file; `data` is its content as read, None for a new file; `text` keeps the line endings."""

    name: str
    data: bytes | None
    text: str
    encoding: str = "utf-8"

    @property
    def newline(self) -> str:
        return "\r\n" if self.text.count("\r\n") * 2 > self.text.count("\n") else "\n"


@dataclass
class TexProject:
    """The LaTeX files of a folder; `problems` lists what failed, `notices` what was done, a line each."""

    root: Path
    files: dict[str, _TextFile] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> TexProject:
        """Read the `.tex` and `.bib` files of a folder; blocks. Raises `InputError` if it is not a folder."""
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder.", help="Give the folder of your LaTeX project.")
        project, seen = cls(folder.resolve()), set[Path]()
        for place, folders, names in os.walk(project.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(place) / name for name in sorted(names) if not name.startswith(".")):
                if path.suffix.lower() not in (".tex", ".bib") or (target := path.resolve()) in seen:
                    continue
                seen.add(target)
                name = path.relative_to(project.root).as_posix()
                try:
                    if len(seen) > _MOST_FILES or not target.is_relative_to(project.root):
                        raise FileRefusedError("is a link out of the folder, or exceeds the number of files")
                    data = read_regular(target, _MOST_BYTES)
                except (OSError, FileRefusedError) as error:
                    project.problems.append(f"{name}: {getattr(error, 'strerror', None) or error}; not touched.")
                    continue
                try:
                    project.files[name] = _TextFile(name, data, data.decode("utf-8"))
                except UnicodeDecodeError:
                    project.files[name] = _TextFile(name, data, data.decode("latin-1"), "latin-1")
        return project

    def of_kind(self, suffix: str) -> list[_TextFile]:
        return [file for file in self.files.values() if file.name.lower().endswith(suffix)]

    @property
    def source(self) -> str:
        """All LaTeX without comments."""
        return "\n".join(without_comments(file.text) for file in self.of_kind(".tex"))

    @property
    def main_file(self) -> str:
        """The name of the main file; empty if there is none."""
        mains = [file.name for file in self.of_kind(".tex") if "\\documentclass" in without_comments(file.text)]
        return min(mains, key=lambda name: (name.count("/"), name), default="")

    @property
    def main_folder(self) -> str:
        """The folder of the main file, to which LaTeX's paths are relative; ends in a slash unless empty."""
        folder, slash, _ = self.main_file.rpartition("/")
        return folder + slash

    @property
    def definitions(self) -> str:
        """The main file's preamble, including the files that it inputs."""
        main = self.files.get(self.main_file)
        base = self.main_folder

        def read(named: re.Match[str]) -> str:
            file = self.files.get(f"{base}{named[1].strip().removesuffix('.tex')}.tex")
            return without_comments(file.text) if file else named[0]

        preamble = without_comments(main.text).partition("\\begin{document}")[0] if main else ""
        return _INPUT.sub(read, preamble)

    def regions(self) -> list[tuple[_TextFile, Region]]:
        """Return all regions and placeholders by file; raises `InputError` for unpaired marks and unmerged files."""
        for file in self.files.values():
            if "\n>>>>>>> " in file.text and (unmerged := _UNMERGED.search(file.text)):
                line = file.text.count("\n", 0, unmerged.start()) + 1
                raise InputError(
                    f"{file.name}:{line}: git could not merge this file, and marked the conflicts.",
                    help="Resolve the conflicts first (git status names the files).",
                )
        return [(file, region) for file in self.of_kind(".tex") for region in find_regions(file.text, file.name)]

    def find_file(self, name: str) -> _TextFile:
        """Return the file with this name, a new one if there is none."""
        return self.files.setdefault(name, _TextFile(name, None, ""))

    def put(self, name: str, content: bytes, before: bytes | None) -> bool:
        """Replace a file whose content was `before` (None: new file); on failure, note a problem and return False.

        Blocks.
        """
        target = (self.root / name).resolve()
        try:
            if not target.is_relative_to(self.root):
                raise FileRefusedError("is a link out of the folder")
            mode = stat.S_IMODE(target.stat().st_mode) if os.path.lexists(target) else None
            if mode is not None and not mode & 0o222:
                raise FileRefusedError("is read-only")
            if (None if mode is None else read_regular(target, _MOST_BYTES)) != before:
                raise FileRefusedError("is not as Citeloom left it" if before is None else "changed meanwhile")
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, content)
            if mode is not None:
                target.chmod(mode)
        except (OSError, FileRefusedError) as error:
            self.problems.append(f"{name}: {getattr(error, 'strerror', None) or error}; not written.")
            return False
        return True

    def back_up(self, file: _TextFile) -> str:
        """Copy a file in its folder before a change; returns the copy's name, empty if that failed."""
        names = (f"{file.name}.original{f'.{number}' * (number > 1)}" for number in range(1, 10_000))
        name = next(name for name in names if not os.path.lexists(self.root / name))
        return name if self.put(name, file.data or b"", None) else ""

    def write(self, file: _TextFile, text: str) -> bool:
        """Replace a file's text; on failure, note a problem and return False. Blocks."""
        try:
            content = text.encode(file.encoding)
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            self.problems.append(f"{file.name} is in Latin-1, which has no {sign!r}; convert it to UTF-8.")
            return False
        return self.put(file.name, content, file.data)

    def new_region(self, section: str) -> tuple[_TextFile, Region]:
        """Make a region for a section in a new file."""
        base = self.main_folder
        awaited = {Path(name.strip().removesuffix(".tex")) for name in _INPUT.findall(self.source)}
        ours = [path.as_posix() for path in sorted(awaited) if path.name == section and ".." not in path.parts]
        name = next((name for name in ours if f"{base}{name}.tex" not in self.files and name[0] != "/"), "")
        if not name:
            name = f"sections/{'citeloom-' * (f'{base}sections/{section}.tex' in self.files)}{section}"
            self.notices.append(f"{base}{name}.tex is new: put \\input{{{name}}} where it should appear.")
        newline = next((file.newline for file in self.of_kind(".tex")), "\n")
        return self.find_file(f"{base}{name}.tex"), Region("", section, "", "", 0, 0, newline)


@dataclass(frozen=True)
class TexSection:
    """The current version of a run's section."""

    run: str
    kind: str
    files: ResultFiles

    @classmethod
    def all_of(cls, run: str, record: StoredRecord, home: Home) -> list[TexSection]:
        """Return the sections of a section's or paper's record, in text order; blocks."""
        parts = (
            [complete_section(part, record["report"]) for part in record["sections"]]
            if "sections" in record
            else [record]
        )
        # The project sets the citation style; an abstract is only exported with a title.
        made = [stored({**part, "csl": "", "title": "x"}) for part in parts]
        return [cls(run, str(part["section"]), ResultFiles.of(part, home)) for part in made]


def synchronize(
    project: TexProject,
    sections: Mapping[str, TexSection],
    side: Side,
    written: WrittenFiles,
    take: Callable[[TexSection, str], TexSection],
) -> list[SyncedRegion]:
    """Update the regions of a project from sections by kind; blocks.

    `take(section, theirs)` stores a person's text in the run and returns the resulting section. Raises `InputError` for
    broken marks, before anything is written.
    """
    source, base = project.source, project.main_folder
    found = [item for item in project.regions() if item[1].section in sections]
    present = {region.section for _, region in found if region.run}
    places = {region.section: (file, region) for file, region in reversed(found) if not region.run}
    regions = [item for item in found if item[1].run]
    regions += [places.get(kind) or project.new_region(kind) for kind in sections if kind not in present]
    keys = _grow_bibliography(project, source, list(sections.values()))
    originals = {new: old for old, new in keys.items()}
    done: list[SyncedRegion] = []
    changes: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for file, region in regions:
        section, diff, backup, state, taken = sections[region.section], "", "", "unchanged", ""
        fresh = _body(section, source, keys)
        body: str = fresh
        if region.body != fresh and not region.edited and region.source == body_hash(fresh):
            body, taken = region.body, region.source  # a person's text, already stored in the run
        elif region.body != fresh and not region.edited and not region.source:
            state = "updated" if region.run else "new"
        elif region.body != fresh and side == "theirs":
            known = take(section, with_keys(region.body, originals))
            body, taken, state = region.body, body_hash(_body(known, source, keys)), "taken"
        elif region.body != fresh:
            old, new = (_SENTENCE_END.sub("\n", words).split("\n") for words in (fresh, region.body))
            diff = "\n".join(difflib.unified_diff(old, new, f"run {section.run}", file.name, n=1, lineterm=""))
            backup = project.back_up(file) if side == "ours" else ""
            state = "overwritten" if backup else "conflict"
        whole = region_text(section.run, region.section, body, region.newline, taken)
        if region.start and file.text[region.start - 1] != "\n":
            whole = region.newline + whole
        if state != "conflict" and whole != file.text[region.start : region.end]:
            changes[file.name].append((region.start, region.end, whole))
        line = file.text.count("\n", 0, region.start) + 1
        named = {"file": file.name, "line": line, "run": section.run, "section": region.section}
        done.append({**named, "state": state, "diff": diff, "backup": backup})  # type: ignore[typeddict-item]
        for name, image in section.files.images.items():
            path = project.root / f"{base}{_FIGURES}/{name}"
            before = path.read_bytes() if written.has(path) else None
            if before != image and project.put(f"{base}{_FIGURES}/{name}", image, before):
                written.note([image])
        if lacking := missing_packages(body, source):
            project.notices.append(f"{region.section} needs \\usepackage{{{','.join(lacking)}}} in the preamble.")
    for name, edits in changes.items():
        if not project.write(project.files[name], replace_spans(project.files[name].text, sorted(edits))):
            done = [{**item, "state": "refused"} if item["file"] == name else item for item in done]
    return done


def _body(section: TexSection, source: str, keys: Mapping[str, str]) -> str:
    return section_body(section.files.content("tex").decode("utf-8"), source, keys, section.files.images, _FIGURES)


def _grow_bibliography(project: TexProject, source: str, sections: Sequence[TexSection]) -> Mapping[str, str]:
    """Append the entries that the project's bibliography lacks; returns the renamed keys."""
    cited = "\n\n".join(section.files.record["bibliography"] for section in sections)
    bibs = {file.name: file.text for file in project.of_kind(".bib")}
    entries, keys, notes = grow_bibliography(bibs, list(parse_bibliography(cited, "cited").papers.values()))
    project.notices += notes
    if not entries:
        return keys
    base = project.main_folder
    listed = [name.strip() for found in _BIBLIOGRAPHY.findall(source) for name in found.split(",")]
    named = [f"{base}{name.removesuffix('.bib')}.bib" for name in listed]
    known = [name for name in (*named, *bibs) if name in bibs]
    file = project.find_file([*known, *named, f"{base}references.bib"][0])
    if not known and not named:
        project.notices.append(f"{file.name} is new: name it in \\bibliography{{references}}.")
    newline = file.newline
    before = newline * (1 if file.text.endswith("\n") else 2) if file.text else ""
    added = (newline * 2).join(entry.replace("\r\n", "\n").replace("\n", newline) for entry in entries)
    if project.write(file, f"{file.text}{before}{added}{newline}"):
        project.notices.append(f"{file.name}: {counted(len(entries), 'entry', 'entries')} added.")
    return keys

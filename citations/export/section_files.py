"""Writes the files of a finished section: `discussion.md`, `discussion.bib`, `discussion.json`.

Each is written atomically: if the process is killed, the old file or the new one remains, never a partial one. The
files of a result belong together: if one of them was edited or is not ours, all of them are written under the next free
number, as `discussion.2.md` with `discussion.2.bib`.
"""

from __future__ import annotations

import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, count
from pathlib import Path
from typing import Any

from ...documents import Paper
from ...documents.safe_files import replace_file
from ...errors import CiteloomError, InputError
from ..html_escaping import inert
from ..references import Reference
from .plot_figures import figure_lines

_SLUG_LENGTH = 60


class ExportError(CiteloomError):
    """pandoc could not produce a format; the section's other files were written."""

    default_help = "The other files were written; run the command again without this --format."


def markdown_document(
    title: str,
    text: str,
    references: Sequence[Reference] = (),
    figures: Sequence[Mapping[str, Any]] = (),
    remarks: Sequence[str] = (),
) -> str:
    """Heading, text, figures and references; the remarks are in a comment, invisible in the paper."""
    name = " ".join(title.split())
    parts = [f"# {inert(name)}" if name else "", inert(without_title(text, name)), figure_lines(figures)]
    if references:
        parts.append("## References\n\n" + "\n".join(inert(reference.line) for reference in references))
    parts.append(comment(remarks))
    return "\n\n".join(part for part in parts if part) + "\n"


def comment(lines: Sequence[str]) -> str:
    """A markdown comment with these lines; empty if there are none."""
    shown = [" ".join(line.split()) for line in lines if line.strip()]
    # Two hyphens would end the comment; a `>` without them does not.
    body = re.sub(r"-(?=-)", "- ", "\n".join(shown))
    return f"<!--\n{body}\n-->" if shown else ""


def section_title(kind: str) -> str:
    return kind.replace("_", " ").strip().capitalize()


def without_title(text: str, title: str) -> str:
    """The text without its first line if the writer repeated the heading there."""
    lines = text.strip().splitlines()
    if lines and lines[0].lstrip("# ").strip(":* ").casefold() == title.casefold():
        lines = lines[1:]
    return "\n".join(lines).strip()


def bibliography(papers: Sequence[Paper]) -> str:
    """The BibTeX entries of the cited papers as the user wrote them, without duplicates, by key."""
    unique = {paper.key: paper for paper in papers}
    entries = [unique[key].bibtex.strip() for key in sorted(unique, key=lambda key: (key.casefold(), key))]
    return "\n\n".join(entry for entry in entries if entry) + "\n"


def prepare_folder(out_dir: Path) -> None:
    """Create the folder and check that it is writable, before anything is paid for; raises InputError."""
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out_dir, prefix=".citeloom-write-test-"):
            pass
    except OSError as error:
        raise not_writable(out_dir, error) from error


def write_texts(
    out_dir: Path,
    kind: str,
    contents: Mapping[str, str | bytes],
    as_json: Callable[[Mapping[str, str]], str],
    note: Callable[[Collection[bytes]], None] = lambda _: None,
) -> dict[str, str]:
    """Write `contents`, by suffix, then the JSON, which lists all files; returns their paths. See `write_files`."""
    stem = file_stem(kind)
    files = {suffix: str(out_dir / f"{stem}.{suffix}") for suffix in (*contents, "json")}
    write_files({Path(files[name]): text for name, text in {**contents, "json": as_json(files)}.items()}, note)
    return files


def write_files(
    contents: Mapping[Path, str | bytes], note: Callable[[Collection[bytes]], None] = lambda _: None
) -> None:
    """Write files, each atomically and durably; `note` is called with all contents before the first is written.

    Raises InputError if a folder cannot be created or written.
    """
    written = {path: as_bytes(text) for path, text in contents.items()}
    for folder in {path.parent for path in written}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_writable(folder, error) from error
    note(list(written.values()))
    for path, content in written.items():
        try:
            replace_file(path, content)
        except OSError as error:
            raise not_writable(path, error) from error


def file_stem(kind: str) -> str:
    """The file name of a section, safe on every system."""
    from pathvalidate import sanitize_filename

    return sanitize_filename(kind, replacement_text="-", platform="universal").strip(". ") or "section"


def slug(text: str) -> str:
    """The first words of a text as a file name: letters and digits with hyphens between, at most 60 characters."""
    name = "-".join(re.findall(r"[^\W_]+", text.casefold()))
    whole = name[: _SLUG_LENGTH + 1].rpartition("-")[0] if len(name) > _SLUG_LENGTH else name
    return whole or name[:_SLUG_LENGTH] or "answer"


def not_writable(path: Path, error: OSError) -> InputError:
    """Build the error for a file or folder that cannot be written."""
    return InputError(
        f"{path}: cannot be written ({error.strerror or error}).",
        help="Choose another folder with --out.",
    )


def zip_files(contents: Mapping[str, bytes]) -> bytes:
    """A ZIP archive of these files by name; the same files give the same bytes."""
    archived = BytesIO()
    with zipfile.ZipFile(archived, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return archived.getvalue()


def as_bytes(content: str | bytes) -> bytes:
    """Encode a text for a file."""
    # "replace": a lone surrogate in a model's answer must not lose the section.
    return content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class FreeName:
    """The chosen name for the files of a result, and the existing files kept under the requested name."""

    stem: str
    kept: tuple[Path, ...] = ()

    def notices(self) -> list[str]:
        """One line that names the kept files and the new location; empty if nothing was in the way."""
        if not self.kept:
            return []
        names = ", ".join(path.name for path in self.kept)
        what = "is kept: it was" if len(self.kept) == 1 else "are kept: they were"
        return [
            f"{names} {what} edited, or not written by Citeloom from this home; the new files are {self.stem}.*"
            " (--force replaces the existing ones)."
        ]


def free_name(
    folder: Path, stem: str, suffixes: Sequence[str], is_own: Callable[[Path], bool], *, force: bool = False
) -> FreeName:
    """The first of `stem`, `stem.2`, `stem.3` ... that would replace only our own files; `stem` with `force`."""

    def foreign(name: str) -> tuple[Path, ...]:
        paths = (folder / (f"{name}.{suffix}" if suffix else name) for suffix in suffixes)
        return tuple(path for path in paths if not force and os.path.lexists(path) and not is_own(path))

    names = chain([stem], (f"{stem}.{number}" for number in count(2)))
    return FreeName(next(name for name in names if not foreign(name)), foreign(stem))

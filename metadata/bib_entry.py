"""Makes a BibTeX entry for a work, and adds entries to a `.bib` file without touching what it holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..documents.bibliography import Bibliography, as_latex, parse_bibliography, read_bibliography, render_entry
from ..documents.paper_names import identifier_of
from ..documents.safe_files import replace_file
from ..errors import InputError
from .work import Work

_TYPES: Final = {
    "journal-article": "article",
    "proceedings-article": "inproceedings",
    "book-chapter": "incollection",
    "book": "book",
    "monograph": "book",
    "edited-book": "book",
    "reference-book": "book",
    "dissertation": "phdthesis",
    "report": "techreport",
}
_VENUE_FIELD: Final = {
    "article": "journal",
    "inproceedings": "booktitle",
    "incollection": "booktitle",
    "phdthesis": "school",
    "techreport": "institution",
}
PAGES = re.compile(r"^\s*([\w.]+)\s*[-\u2013\u2014]+\s*([\w.]+)\s*$")


def bib_entry(work: Work, key: str) -> str:
    """The BibTeX entry of a work under this key."""
    entry_type = _TYPES.get(work.kind, "article" if work.venue and not work.is_preprint else "misc")
    arxiv = identifier_of(work.doi).arxiv
    venue = work.venue or (work.publisher if entry_type in ("phdthesis", "techreport") else "")
    fields = {
        "title": "{" + as_latex(work.title) + "}",
        "author": " and ".join(map(_author, work.authors)),
        "year": str(work.year or ""),
        _VENUE_FIELD.get(entry_type, "howpublished"): as_latex(venue),
        "volume": as_latex(work.volume),
        "number": as_latex(work.issue),
        "pages": as_latex(PAGES.sub(r"\1--\2", work.pages)),
        "publisher": as_latex(work.publisher) if entry_type in ("book", "incollection", "inproceedings") else "",
        "doi": re.sub(r"[{}\\]", "", work.doi),
        "eprint": arxiv,
        "archiveprefix": "arXiv" if arxiv else "",
    }
    return render_entry(entry_type, key, fields)


def _author(author: object) -> str:
    """ "Family, Given", so that no family name is taken for a given one; a name of one part in braces."""
    name, family = str(getattr(author, "name", "")), str(getattr(author, "family", ""))
    if name == family:
        return "{" + as_latex(name) + "}"
    given = name.removesuffix(family).strip()
    written = f"{family}, {given}" if given and name.endswith(family) else name
    return re.sub(r"\b(and|others)\b", r"{\1}", as_latex(written))


def bib_of(path: Path) -> Bibliography:
    """The entries of a `.bib` that may not exist yet; raises `InputError` for one that cannot be read."""
    return read_bibliography(path) if path.exists() else Bibliography()


def append_entries(path: Path, entries: Sequence[str]) -> None:
    """Add entries at the end of a `.bib`, atomically; what is there stays byte for byte. Raises `InputError`."""
    text = "\n\n".join(entries)
    made = parse_bibliography(text, source=str(path))
    if made.refused or len(made.papers) != len(entries):
        raise InputError(f"{path}: an entry could not be made ({made.refused[0].reason if made.refused else 'key'}).")
    try:
        before = path.read_bytes() if path.exists() else b""
        gap = b"" if not before else b"\n" if before.endswith(b"\n") else b"\n\n"
        write_durably(path, before + gap + text.encode("utf-8") + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).", help="Choose another .bib.") from error


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file atomically, with its folder created if missing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.resolve() if path.is_symlink() else path, content)

"""Which files an ingest is about: walks folders, reads papers, finds each one's `.bib` entry."""

from __future__ import annotations

import codecs
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from citeloom.documents.bibliography import Bibliography, Refusal, read_bibliography
from citeloom.documents.markdown import ParsedPaper, parse_markdown
from citeloom.documents.metadata import describe
from citeloom.documents.model import Paper
from citeloom.errors import InputError

MARKDOWN = frozenset({".md", ".markdown"})
_MAX_BYTES = 20_000_000  # some 8,000 pages; beyond it cutting alone would take minutes


@dataclass(frozen=True, slots=True)
class Source:
    """A paper as read from its file."""

    path: Path
    parsed: ParsedPaper
    paper: Paper


@dataclass(frozen=True, slots=True)
class Sources:
    """What an ingest found: papers with different keys, what it refused and what it has to say.

    `folders` are the folders that were walked, by which papers are known whose file is gone.
    """

    found: tuple[Source, ...]
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    folders: tuple[Path, ...]


class SourceRefusedError(Exception):
    """A file that cannot be taken in; the message is the reason."""


def read_sources(paths: Sequence[Path], bib: Path | None) -> Sources:
    """Read all papers under `paths`; raises `InputError` when there are none, or a path or `bib` is missing."""
    if not paths:
        raise InputError("No path was given.", help="Name the folder that holds your papers.")
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder.", help="Check the path that you gave to ingest.")
    folders = tuple(path for path in paths if path.is_dir())
    passed_over: Counter[str] = Counter()
    files = list(dict.fromkeys(file for path in paths for file in _files(path, passed_over)))
    if not files:
        where = ", ".join(str(path) for path in paths)
        raise InputError(f"{where}: holds no markdown papers (.md, .markdown).", help="Name the folder of your papers.")
    warnings: list[str] = []
    bibliography = _bibliography(folders, bib, warnings)
    refused = list(bibliography.refused)
    warnings.extend(bibliography.warnings)
    found: dict[str, Source] = {}
    for file in files:
        if _printable(str(file)) != str(file):
            refused.append(Refusal(_printable(str(file)), "has a name that is no text; rename it"))
            continue
        try:
            source, said = _read(file, bibliography)
        except SourceRefusedError as error:
            refused.append(Refusal(str(file), str(error)))
            continue
        earlier = found.get(source.paper.key)
        if earlier is not None:
            refused.append(Refusal(str(file), f"has the same key, {source.paper.key}, as {earlier.path}"))
            continue
        found[source.paper.key] = source
        warnings.extend(said)
    if passed_over:
        kinds = ", ".join(f"{count} {ending}" for ending, count in sorted(passed_over.items()))
        warnings.append(f"Passed over {passed_over.total()} files that are no markdown ({kinds}).")
    return Sources(tuple(found.values()), tuple(refused), tuple(warnings), folders)


def _files(path: Path, passed_over: Counter[str]) -> Iterator[Path]:
    """The file itself, or the markdown files below a folder in the order of their names, no hidden ones."""
    if not path.is_dir():
        yield path
        return
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            ending = Path(name).suffix.lower()
            if name.startswith("."):
                continue
            if ending in MARKDOWN:
                yield Path(folder) / name
            elif ending != ".bib":
                passed_over[_printable(ending) or "without ending"] += 1


def _printable(name: str) -> str:
    """A file name as it can be stored and shown; bytes of it that are no UTF-8 as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _bibliography(folders: Sequence[Path], bib: Path | None, warnings: list[str]) -> Bibliography:
    """The given `.bib`, else the only one that lies in a given folder, else none."""
    if bib is not None:
        return read_bibliography(bib)
    inside = [file for folder in folders for file in sorted(folder.iterdir()) if file.suffix.lower() == ".bib"]
    if len(inside) == 1:
        return read_bibliography(inside[0])
    if inside:
        names = ", ".join(file.name for file in inside)
        warnings.append(f"None of several .bib files was used ({names}); name one with --bib.")
    return Bibliography()


def _read(file: Path, bibliography: Bibliography) -> tuple[Source, list[str]]:
    """A paper and what there is to say about it; raises `SourceRefusedError`."""
    if file.suffix.lower() not in MARKDOWN:
        hint = "; give it with --bib" if file.suffix.lower() == ".bib" else ""
        raise SourceRefusedError(f"is no markdown file (.md, .markdown){hint}")
    parsed = parse_markdown(_text(file))
    front = parsed.front_matter
    entry = bibliography.match(file, doi=front.doi, title=parsed.title)
    paper, said = describe(file, parsed, entry)
    return Source(file, parsed, paper), said


def _text(file: Path) -> str:
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SourceRefusedError("is no regular file")
        if status.st_size > _MAX_BYTES:
            raise SourceRefusedError(
                f"is {status.st_size / 1e6:.0f} MB, more than a paper's text may be ({_MAX_BYTES / 1e6:.0f} MB); "
                "are pictures embedded in it?"
            )
        data = file.read_bytes()
    except OSError as error:
        raise SourceRefusedError(f"cannot be read ({error.strerror or type(error).__name__})") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceRefusedError("is UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise SourceRefusedError("is binary, not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceRefusedError(f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    if not text.strip():
        raise SourceRefusedError("is empty")
    return text


def read_again(paper: Paper) -> Source:
    """A paper's file with the metadata that the library has of it; raises `SourceRefusedError`."""
    file = Path(paper.source)
    if not file.is_file():
        raise SourceRefusedError("is gone")
    source, _ = _read(file, Bibliography({paper.key: paper}, {file.name.lower(): paper.key}))
    return Source(file, source.parsed, replace(paper, content_hash=source.paper.content_hash))

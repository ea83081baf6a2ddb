"""Collects the sources of an ingest: walks folders, reads papers and LangChain documents, finds their `.bib` entries.

Links out of a folder are followed only on request: the folder may come from somebody else and link to any of the user's
files, and ingested text is sent to models.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..documents.bibliography import Bibliography, Refusal, describe, read_bibliography
from ..documents.figures import IMAGE_ENDINGS
from ..documents.front_matter import find_doi
from ..documents.markdown import ParsedPaper, parse_markdown
from ..documents.pdf.ocr import Ocr
from ..documents.safe_files import FileRefusedError
from ..documents.sandbox import raise_if_stopped
from ..documents.types import Paper, note_stem
from ..errors import InputError
from ..plurals import counted
from . import reading
from .reading import PDF, ConvertedFiles, parse_file, printable

if TYPE_CHECKING:
    from langchain_core.documents import Document


@dataclass(frozen=True, slots=True)
class Walked:
    """The files found, sorted by name; `passed_over` counts files with other extensions."""

    files: tuple[Path, ...]
    bibliographies: tuple[Path, ...]
    refused: tuple[Refusal, ...]
    passed_over: Counter[str] = field(default_factory=Counter)


def walk(paths: Sequence[Path], endings: Sequence[str], *, follow_links: bool = False) -> Walked:
    """Find the files among `paths`, and the non-hidden files with these extensions below the folders among them.

    Bibliographies must be directly in a folder. A file given by its own path may be a link to anywhere.
    """
    files: dict[Path, None] = {}
    bibliographies: dict[Path, None] = {}
    refused: dict[Path, Refusal] = {}
    passed_over: Counter[str] = Counter()
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        for file in _walk_folder(path, follow_links):
            ending = file.suffix.lower()
            if ending not in endings and ending != ".bib":
                passed_over[printable(ending) or "without extension"] += 1
            elif ending == ".bib" and file.parent != path:
                continue
            # Links of notes are checked later, when their paper is known.
            elif not follow_links and note_stem(file) is None and (target := outside_target(file, paths)) is not None:
                refused[file] = refuse_link(file, target)
            else:
                (bibliographies if ending == ".bib" else files)[file] = None
    return Walked(tuple(files), tuple(bibliographies), tuple(refused.values()), passed_over)


def _walk_folder(folder: Path, follow_links: bool) -> Iterator[Path]:
    """Yield the files below a folder, entering each folder once, since links can form a cycle."""
    seen: set[str] = set()
    for inside, subfolders, names in os.walk(folder, followlinks=follow_links):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        if follow_links:
            real = os.path.realpath(inside)
            if real in seen:
                subfolders.clear()
                continue
            seen.add(real)
        yield from (Path(inside) / name for name in sorted(names) if not name.startswith("."))


def outside_target(file: Path, within: Sequence[Path]) -> Path | None:
    """The target of a link if it is outside these paths; None for any other file."""
    if not file.is_symlink():
        return None
    try:
        target = file.resolve()
        inside = any(target.is_relative_to(path.resolve()) for path in within)
    except (OSError, RuntimeError):  # a cyclic link, which cannot be read either
        return None
    return None if inside else target


def _is_pdf(file: Path) -> bool:
    return file.suffix.lower() == PDF


def refuse_link(file: Path, target: Path) -> Refusal:
    """The refusal of a link, naming the option that allows following it."""
    reason = f"is a link out of the folder, to {printable(str(target))}; use --follow-links to ingest its target"
    return Refusal(printable(str(file)), reason)


_GAP = "\n\n"
_MOST_PAGES = 100_000
_MOST_NAME = 4_000
_RUN = 6  # words that identify a place
_SAME = 0.6  # share of the pages with text that must be found, in order
_WORD = re.compile(r"[^\W_]+")


def align_pages(paper: ParsedPaper, pdf: ParsedPaper) -> ParsedPaper | None:
    """Add the pages of a PDF to a paper's text, and missing authors, year and DOI from its first page.

    None if the PDF has a different text. A page whose words are not in the text, such as a page of figures, begins
    where the next page does.
    """
    words = [(match.group().casefold(), match.start()) for match in _WORD.finditer(paper.text)]
    places: dict[tuple[str, ...], int] = {}  # of runs of words; -1 for one that occurs several times
    for place in range(len(words) - _RUN + 1):
        run = tuple(word for word, _ in words[place : place + _RUN])
        places[run] = -1 if run in places else place
    ends = [*pdf.page_starts[1:], len(pdf.text)]
    starts: list[int | None] = []
    found = counted = last = 0
    for begin, end in zip(pdf.page_starts, ends, strict=True):
        page = [match.group().casefold() for match in _WORD.finditer(pdf.text[begin:end])]
        runs = (places.get(tuple(page[offset : offset + _RUN]), -1) for offset in range(len(page) - _RUN + 1))
        known = next(((offset, word) for offset, word in enumerate(runs) if word >= last), None)
        # The page begins before its first run that is in the text, though not before `last`.
        first = known and (max(last, known[1] - known[0]) if known[0] < _RUN else known[1])
        counted += len(page) >= 2 * _RUN
        found += first is not None and len(page) >= 2 * _RUN
        last = first if first is not None else last
        starts.append(words[first][1] if first is not None else None)
    if not counted or found < _SAME * counted:
        return None
    following, filled = len(paper.text), list[int]()
    for start in reversed(starts):
        following = following if start is None else min(start, following)
        filled.append(following)
    own, other = paper.front_matter, pdf.front_matter
    front = replace(own, authors=own.authors or other.authors, year=own.year or other.year, doi=own.doi or other.doi)
    return replace(paper, page_starts=(0, *reversed(filled[:-1])), front_matter=front)


@dataclass(frozen=True, slots=True)
class SourcePaper:
    """A paper read from its file, with the user's note on it, and `notices` about its metadata.

    `folder` is the folder of its file; None for a paper given as documents, which has no note.
    """

    path: Path
    parsed: ParsedPaper
    paper: Paper
    folder: Path | None = None
    note: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of an ingest: papers with distinct keys, refused files and warnings.

    `folders` are the folders that were walked, needed to detect papers whose file is gone; `notes` are the user's notes
    found on the way, which may be links out of their folders if `follow_links`; `refused_entries` are those of the
    `.bib`.
    """

    found: tuple[SourcePaper, ...]
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    folders: tuple[Path, ...]
    notes: tuple[Path, ...] = ()
    follow_links: bool = False
    refused_entries: tuple[Refusal, ...] = ()


def read_sources(
    paths: Sequence[Path],
    bib: Path | None,
    documents: Sequence[Document] = (),
    kept: ConvertedFiles | None = None,
    ocr: Ocr | None = None,
    *,
    follow_links: bool = False,
    parse: reading.ParseFiles = reading.parse_files,
) -> Sources:
    """Read all papers under `paths` and in `documents`; `kept` caches PDF and other converted files.

    Links out of a folder are refused unless `follow_links`. Raises `InputError` if there are no papers, or a path or
    `bib` is missing.
    """
    if not paths and not documents:
        raise InputError("No path was given.", help="Name the folder that holds your papers.")
    require_paths(paths)
    folders = tuple(path for path in paths if path.is_dir())
    walked = walk(paths, reading.ENDINGS, follow_links=follow_links)
    notes = tuple(file for file in walked.files if note_stem(file) is not None)
    files, twins = _choose_files([file for file in walked.files if note_stem(file) is None])
    pdfs = {file: twin for twin, file in twins if _is_pdf(twin)}
    if not files and not documents and not walked.refused:
        where = ", ".join(str(path) for path in paths)
        message = f"{where}: no papers found ({', '.join(reading.ENDINGS)})."
        raise InputError(message, help="Name the folder of your papers.")
    warnings = [
        f"{twin}: skipped, since {file.name} next to it is the same paper; move one away to choose the other."
        for twin, file in twins
        if not _is_pdf(twin)
    ]
    if bib is None and len(walked.bibliographies) > 1:
        names = ", ".join(printable(file.name) for file in walked.bibliographies)
        warnings.append(f"There are several .bib files ({names}), so none was used; name one with --bib.")
    chosen = bib or (walked.bibliographies[0] if len(walked.bibliographies) == 1 else None)
    bibliography = Bibliography() if chosen is None else read_bibliography(chosen)
    refused = [*walked.refused]
    warnings.extend(bibliography.warnings)
    given, nameless = group_documents(documents)
    refused.extend(nameless)
    found: dict[str, SourcePaper] = {}
    parsed = zip((*pdfs.values(), *files), parse((*pdfs.values(), *files), kept, ocr), strict=True)
    with_pages: dict[Path, ParsedPaper | Refusal] = {file: one for file, (_, one) in zip(pdfs, parsed, strict=False)}
    of_files = (
        (str(file), _describe(*_take_pages(file, one, with_pages.get(file), warnings, refused), bibliography))
        for file, one in parsed
    )
    of_documents = ((name, read_documents(name, parts, bibliography)) for name, parts in given.items())
    for name, read in chain(of_files, of_documents):
        raise_if_stopped()
        if isinstance(read, Refusal):
            refused.append(read)
            continue
        key, source = read.paper.key, read
        if key in found:
            both = merge_text_with_pdf(found[key], read)
            if both is None:
                refused.append(Refusal(name, f"has the same key, {key}, as {found[key].path}"))
                continue
            source = both
        found[key] = source
        warnings.extend(read.notices)
    passed_over = {kind: count for kind, count in walked.passed_over.items() if kind not in IMAGE_ENDINGS}
    if passed_over:  # images beside papers may be those of their figures
        kinds = ", ".join(f"{count} {ending}" for ending, count in sorted(passed_over.items()))
        skipped = counted(sum(passed_over.values()), "file")
        warnings.append(f"Skipped {skipped} of other types ({kinds}).")
    papers, lines = tuple(found.values()), tuple(warnings)
    return Sources(papers, tuple(refused), lines, folders, notes, follow_links, bibliography.refused)


def require_paths(paths: Sequence[Path]) -> None:
    """Raise `InputError` for a path that does not exist."""
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder.", help="Check the path that you gave to ingest.")


def _choose_files(files: Sequence[Path]) -> tuple[list[Path], list[tuple[Path, Path]]]:
    """Choose one file per paper, Markdown first and PDF last; also returns each other file with the chosen one."""
    ranks = {ending: rank for rank, ending in enumerate(reading.ENDINGS)}
    best: dict[tuple[Path, str], Path] = {}
    for file in sorted(files, key=lambda file: ranks.get(file.suffix.lower(), len(ranks))):
        best.setdefault((file.parent, file.stem), file)
    twins = [
        (file, taken)
        for file in files
        if (taken := best[file.parent, file.stem]) != file and file.suffix.lower() != taken.suffix.lower()
    ]
    left_out = {file for file, _ in twins}
    return [file for file in files if file not in left_out], twins


def _take_pages(
    file: Path,
    parsed: ParsedPaper | Refusal,
    pdf: ParsedPaper | Refusal | None,
    warnings: list[str],
    refused: list[Refusal],
) -> tuple[Path, ParsedPaper | Refusal]:
    """The paper with the pages of the PDF next to it, if any, and its file; the PDF's paper if the text is refused.

    Adds a warning if the pages cannot be used, and a refusal for a text that its PDF replaces.
    """
    if pdf is None:
        return file, parsed
    if isinstance(parsed, Refusal):
        refused.append(parsed)
        return file.with_suffix(PDF), pdf
    paged = None if isinstance(pdf, Refusal) else align_pages(parsed, pdf)
    if paged is None:
        why = pdf.reason if isinstance(pdf, Refusal) else "has a different text"
        warnings.append(
            f"{file.with_suffix(PDF)}: skipped, {file.name} next to it is used without its pages: it {why}."
        )
    return file, paged or parsed


def merge_text_with_pdf(earlier: SourcePaper, later: SourcePaper) -> SourcePaper | None:
    """Merge a text and a PDF with the same key into one paper; None if they are different papers."""
    if _is_pdf(earlier.path) == _is_pdf(later.path):
        return None
    text, pdf = (later, earlier) if _is_pdf(earlier.path) else (earlier, later)
    parsed = align_pages(text.parsed, pdf.parsed)
    if parsed is None:
        return None
    return replace(text, parsed=parsed, paper=replace(text.paper, pages=len(parsed.page_starts)))


def _describe(file: Path, parsed: ParsedPaper | Refusal, bibliography: Bibliography) -> SourcePaper | Refusal:
    """The paper with its metadata, or its refusal."""
    if isinstance(parsed, Refusal):
        return parsed
    try:
        paper, notices = describe(file, parsed, bibliography)
    except reading.UNPARSABLE as error:
        return reading.refuse_unparsable(str(file), error)
    return SourcePaper(file, parsed, paper, folder=file.parent, notices=tuple(notices))


def group_documents(documents: Iterable[Document]) -> tuple[dict[str, list[Document]], list[Refusal]]:
    """Group documents by the key or source in their metadata, in order of first occurrence; refuses others."""
    groups: dict[str, list[Document]] = {}
    refused: list[Refusal] = []
    for number, document in enumerate(documents):
        try:
            name = str(document.metadata.get("key") or document.metadata.get("source") or "").strip()
        except (ValueError, RecursionError):  # a number with thousands of digits, a list that contains itself
            name = ""
        if 0 < len(name) <= _MOST_NAME:
            groups.setdefault(name, []).append(document)
            continue
        wrong = f"a 'key' or 'source' of {len(name)} characters" if name else "neither 'key' nor 'source'"
        refused.append(Refusal(f"document {number}", f"has {wrong} in its metadata"))
    return groups, refused


def read_documents(name: str, parts: Sequence[Document], bibliography: Bibliography) -> SourcePaper | Refusal:
    """The paper in a group of documents, or its refusal."""
    try:
        given = parts[0].metadata
        size = sum(len(part.page_content) for part in parts)
        if size > reading.MOST_CHARACTERS:
            return Refusal(
                name, f"is {size / 1e6:.0f} MB, more than the limit of {reading.MOST_CHARACTERS / 1e6:.0f} MB"
            )
        # Page numbers, counted from 0, are kept if each part states its own.
        pages = [part.metadata.get("page") for part in parts]
        numbers = [page for page in pages if isinstance(page, int) and 0 <= page < _MOST_PAGES]
        paged = len(numbers) == len(parts) and numbers == sorted(numbers)
        text, starts = "", list[int]()
        for number, part in enumerate(parts):
            text += _GAP if text else ""
            if paged:
                starts += [len(text)] * (numbers[number] + 1 - len(starts))
            # Without NUL characters, which no store accepts, and lone surrogates, which cannot be encoded.
            text += part.page_content.replace("\0", "").encode("utf-8", "ignore").decode("utf-8").strip()
        parsed = replace(parse_markdown(text), page_starts=tuple(starts))
        if not parsed.text.strip():
            return Refusal(name, "is empty")
        front = parsed.front_matter
        metadata = {field: str(given.get(field) or "").strip() for field in ("title", "author", "doi")}
        authors = tuple(name.strip() for name in re.split(r";|\band\b", metadata["author"]) if name.strip())
        front = replace(
            front,
            title=front.title or metadata["title"],
            authors=front.authors or authors,
            doi=front.doi or find_doi(metadata["doi"]),
        )
        parsed = replace(parsed, front_matter=front, title=parsed.title or front.title)
        # A file name to derive the key from: the key itself, else the last part of the source, which may be a URL.
        last = PurePosixPath(name.replace("\\", "/").split("?")[0].rstrip("/")).name
        path = Path(f"{name}.md" if given.get("key") else last or "document")
        paper, warnings = describe(path, parsed, bibliography)
        source = str(given.get("source") or name)
        return SourcePaper(path, parsed, replace(paper, source=source), notices=tuple(warnings))
    except reading.UNPARSABLE as error:
        return reading.refuse_unparsable(name, error)


def read_again(paper: Paper, kept: ConvertedFiles, ocr: Ocr | None) -> SourcePaper:
    """Read a paper's file again, keeping the library's metadata; raises `FileRefusedError`."""
    file = Path(paper.source)
    if file.is_symlink():  # the library stores resolved paths
        raise FileRefusedError("has become a link")
    if not file.is_file():
        raise FileRefusedError("is gone")
    read = read_as(file, paper, kept, ocr)
    if isinstance(read, Refusal):
        raise FileRefusedError(read.reason)
    now = read.paper
    return replace(read, paper=replace(paper, content_hash=now.content_hash, ocr_pages=now.ocr_pages))


def read_as(file: Path, entry: Paper, kept: ConvertedFiles, ocr: Ocr | None) -> SourcePaper | Refusal:
    """Read a file as the paper of an entry, whatever the file's name."""
    parsed, beside = parse_file(file, kept, ocr), file.with_suffix(PDF)
    if not _is_pdf(file) and beside.is_file():
        file, parsed = _take_pages(file, parsed, parse_file(beside, kept, ocr), [], [])
    return _describe(file, parsed, Bibliography({entry.key: entry}, {file.name.lower(): entry.key}))

"""Lists, shows, corrects and removes a library's papers, with their texts and figures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast

from ..documents import Paper, entry_labels
from ..documents.figures import PaperFigure
from ..documents.safe_files import FileRefusedError, replace_file, require_regular
from ..documents.sandbox import in_thread
from ..documents.types import NOTE_ENDING
from ..errors import InputError
from ..graph.session import Session
from ..stores.library import Library
from ..stores.tables import acting
from ..stores.uploads import Uploads
from ..tools.paper_search import (
    OutlinedSection,
    Passage,
    count_kinds,
    keys_with_words,
    merge_chunks,
    outline,
    publication_statuses,
    read_indexed_text,
)
from ..tools.scope import Labels, has_labels
from .blocking import blocking, threaded

if TYPE_CHECKING:
    from .results import FigureWithImage, PaperDetails, PaperSummary, TextRecord

ExportForm = Literal["bib", "ris", "csl.json"]
PaperOrder = Literal["key", "title", "authors", "year", "venue", "chunks"]
_SEARCH_FIELDS: Final = frozenset({"vector", "described_chunk", "table_chunks"})
_PDF_HEAD: Final = 1024  # search `%PDF` in this many bytes
_IMAGE_SUFFIXES: Final = {"image/png": ".png", "image/jpeg": ".jpg"}


class ImageNotWrittenError(InputError):
    """An image file cannot be written."""


class MissingFigureError(InputError):
    """A paper has no figure with this number, or the figure has no image."""


class MissingPdfError(InputError):
    """A paper has no readable PDF."""

    default_help = "Add the paper again."


@threaded
def alist_papers(session: Session) -> list[PaperSummary]:
    """Return all papers, as the JSON of `papers list --json`."""
    library = session.library
    papers = library.papers()
    statuses = publication_statuses(library, papers)
    labels = {paper.key: entry_labels(paper.bibtex) for paper in papers}
    return [
        {
            "key": paper.key,
            "authors": list(paper.authors),
            "year": paper.year,
            "title": paper.title,
            "venue": paper.venue,
            "kind": labels[paper.key][0],
            "tags": labels[paper.key][1],
            "collections": labels[paper.key][2],
            "chunks": library.chunk_count(paper.key),
            "source": paper.source,
            "status": statuses[paper.key].label,
            "notices": statuses[paper.key].lines(),
        }
        for paper in papers
    ]


async def aselect_papers(
    session: Session,
    words: Sequence[str] = (),
    *,
    order: PaperOrder = "key",
    descending: bool = False,
    from_year: int | None = None,
    to_year: int | None = None,
    venue: str = "",
    status: str = "",
    papers: Sequence[PaperSummary] | None = None,
    **labels: Unpack[Labels],
) -> tuple[list[PaperSummary], bool]:
    """Search papers by metadata, else by text; returns them sorted, and True if the text was used.

    `words` are parts of key, title, authors, venue or year, ignoring case; `venue` is the whole name of a journal or
    book; `status` is a status such as "retracted", or "noted" for any; `papers` is the full list, if already loaded;
    `labels` are a `kind` (BibTeX type), `tag` and `collection`.
    """
    folded = [word.casefold() for word in words]

    limited = from_year is not None or to_year is not None
    first, last = from_year or 0, 9999 if to_year is None else to_year

    def has_words(paper: PaperSummary) -> bool:
        fields = (paper["key"], paper["title"], *paper["authors"], paper["venue"], str(paper["year"] or ""))
        text = " ".join(fields).casefold()
        return all(word in text for word in folded)

    def rank(paper: PaperSummary) -> tuple[Any, ...]:
        value = paper[order]
        if isinstance(value, int):
            return (value, paper["key"])
        text = " ".join(value) if isinstance(value, list) else value or ""
        return (0 if order in ("year", "chunks") else text.casefold(), paper["key"])

    papers = [
        paper
        for paper in (await alist_papers(session) if papers is None else papers)
        if (not limited or (paper["year"] is not None and first <= paper["year"] <= last))
        and venue in ("", paper["venue"])
        and has_labels(paper["kind"], paper["tags"], paper["collections"], labels)
        and (not status or status == paper["status"] or (status == "noted" and paper["status"]))
    ]
    found = [paper for paper in papers if has_words(paper)]
    in_text = bool(folded) and not found
    if in_text:
        keys = await asyncio.to_thread(keys_with_words, session.library, folded)
        found = [paper for paper in papers if paper["key"] in keys]
    return sorted(found, key=rank, reverse=descending), in_text


@threaded
def aexport_papers(session: Session, keys: Sequence[str], form: ExportForm) -> str:
    """Return papers as BibTeX, RIS or CSL-JSON, for a reference manager; raises `UnknownPaperError`."""
    papers = [session.library.paper(key) for key in keys]
    if form == "bib":
        from ..citations.export.section_files import bibliography  # lists need no writer of files

        return bibliography(papers)
    if form == "ris":
        return "\n".join(map(_ris_entry, papers))
    return json.dumps([_csl_entry(paper) for paper in papers], ensure_ascii=False, indent=1) + "\n"


def _csl_entry(paper: Paper) -> dict[str, Any]:
    entry = {
        "id": paper.key,
        "type": "article-journal" if paper.venue else "document",
        "title": paper.title,
        "author": [
            {"family": family, "given": given} if given else {"literal": family}
            for family, given in _author_names(paper)
        ],
        "issued": {"date-parts": [[paper.year]]} if paper.year else None,
        "container-title": paper.venue,
        "DOI": paper.doi,
        "URL": paper.url,
        "abstract": paper.abstract,
    }
    return {name: value for name, value in entry.items() if value}


def _ris_entry(paper: Paper) -> str:
    names = [("AU", ", ".join(filter(None, name))) for name in _author_names(paper)]
    rows = [("TY", "JOUR" if paper.venue else "GEN"), *names, ("PY", paper.year)]
    rows += [("TI", paper.title), ("JO", paper.venue), ("DO", paper.doi), ("UR", paper.url)]
    rows += [("AB", paper.abstract), ("ID", paper.key)]
    lines = [f"{tag}  - {' '.join(str(value).split())}" for tag, value in rows if value]
    return "\n".join([*lines, "ER  - ", ""])


def _author_names(paper: Paper) -> list[tuple[str, str]]:
    """The family and given names of the authors."""
    from ..documents.paper_names import family_name  # loads YAML, which lists do not need

    families = [(family_name(author), author) for author in paper.authors]
    return [(family, author.removesuffix(family).strip(" ,")) for family, author in families]


@threaded
def apaper(session: Session, key: str) -> Paper:
    """Return a paper's metadata; raises `UnknownPaperError`."""
    return session.library.paper(key)


@threaded
def apaper_details(session: Session, key: str, *, text: bool = False) -> PaperDetails:
    """Return the JSON of `papers show --json`, optionally with the searchable text; raises `UnknownPaperError`."""
    from ..documents.paper_names import zotero_links  # lazy: loads YAML, which listings do not need
    from ..metadata.enriching import stored_metadata  # lazy: loads service clients

    library = session.library
    paper, sections = library.paper(key), outline(library, key)
    record = {
        **asdict(paper),
        **zotero_links(paper.bibtex),
        "summary": library.summary(key),
        "note": _visible_note(session, key),
        "chunks": sum(item.chunk_count for item in sections),
        "sections": [
            {
                "title": item.section.title,
                "level": item.section.level,
                "category": item.section.category.name.lower(),
                "searchable": item.section.searchable,
                "chunks": item.chunk_count,
                "chunk_range": list(item.chunks) if item.chunks else None,
                "page_range": list(item.pages) if item.pages else None,
            }
            for item in sections
        ],
        "figures": [figure_record(figure) for figure in library.figures(key)],
        "metadata": stored_metadata(library.metadata, paper).as_dict(),
        **({"text": _read_text(library, key)} if text else {}),
    }
    return cast("PaperDetails", record)  # `asdict` has all fields of a paper


@threaded
def apaper_text(session: Session, key: str) -> list[TextRecord]:
    """Return the searchable text of a paper by section and page; raises `UnknownPaperError`."""
    return _read_text(session.library, key)


def _read_text(library: Library, key: str) -> list[TextRecord]:
    return [
        {"section": item.section, "page": item.page, "chunk_ids": list(item.chunk_ids), "text": item.text}
        for item in read_indexed_text(library, key)
    ]


@threaded
def apaper_markdown(session: Session, key: str) -> str:
    """Return a paper's searchable text under its section titles; raises `UnknownPaperError`."""
    paper = session.library.paper(key)
    lines = [f"# {paper.title}", f"{', '.join(paper.authors)} ({paper.year or 'no year'}). {paper.venue} {paper.doi}"]
    section = ""
    for passage in read_indexed_text(session.library, key):
        if passage.section != section:
            section = passage.section
            page = f" (p. {passage.page})" if passage.page is not None else ""
            lines.append(f"## {section.strip() or '(untitled)'}{page}")
        lines.append(passage.text)
    return "\n\n".join(line.strip() for line in lines) + "\n"


@dataclass(frozen=True, slots=True)
class SectionText:
    """The section tree of a paper, and the text of the section at `current` with its subsections."""

    tree: list[OutlinedSection]
    current: int | None
    passages: list[Passage]
    earlier: int | None
    later: int | None


@threaded
def asection_text(session: Session, key: str, chosen: int | None, max_characters: int) -> SectionText:
    """Return a section's text by its index in the tree, or the first with text; raises `UnknownPaperError`.

    The text ends before the subsection that would exceed `max_characters`.
    """
    library = session.library
    tree = outline(library, key)
    with_text = [place for place, item in enumerate(tree) if item.chunks]
    first = next((place for place in with_text if chosen is None or place >= chosen), None)
    if first is None:
        return SectionText(tree, None, [], with_text[-1] if with_text and chosen is not None else None, None)
    top = first if chosen is None else min(chosen, len(tree) - 1)
    level = tree[top].section.level
    last = next((at for at in range(top + 1, len(tree)) if tree[at].section.level <= level), len(tree)) - 1
    spans = [item.chunks for item in tree[first : last + 1] if item.chunks]
    chunks = [chunk for chunk in library.paper_chunks(key) if any(start <= chunk.index <= end for start, end in spans)]
    passages, used = [], 0
    for passage in merge_chunks(chunks):
        if used and used + len(passage.text) > max_characters:
            last = next(place for place in with_text if tree[place].section.title == passage.section) - 1
            break
        used += len(passage.text)
        passages.append(passage)
    earlier = next((place for place in reversed(with_text) if place < first), None)
    later = next((place for place in with_text if place > max(last, first)), None)
    return SectionText(tree, first if chosen is None else chosen, passages, earlier, later)


@threaded
def afind_citing(session: Session, key: str) -> dict[str, Any]:
    """Return the `turns` of conversations and the `runs` that cite a paper."""
    home = session.home
    return {"turns": home.conversations().citing(key), "runs": home.runs().citing(key)}


async def acorrect_entry(session: Session, key: str, bibtex: str) -> None:
    """Update a paper's metadata from a BibTeX entry; fields not in it stay.

    Raises `UnknownPaperError`, and `InputError` for a text that is not one entry.
    """
    from ..ingestion.paper_matching import parse_entry, update_metadata  # lists need no code that writes

    entry = await asyncio.to_thread(parse_entry, bibtex)
    await update_metadata(session.library, {key: entry})


def _visible_note(session: Session, key: str) -> str:
    """The note that the current user sees: their own on a server with accounts, else the library's."""
    own = session.home.accounts().note(person, key) if (person := acting.get()) else None
    return session.library.note(key) if own is None else own


class NoteNotSavedError(InputError):
    """A note on a paper cannot be saved."""


async def asave_note(session: Session, key: str, text: str, *, before: str | None = None) -> None:
    """Save the user's note on a paper in the library and beside its file, as `KEY.notes.md`; an empty text removes it.

    Args:
        key: the paper's citation key.
        text: Markdown; a line `> words (p. 4)` is a highlight.
        before: the note as it was before the edit; if it has changed since, nothing is saved.
    Raises `UnknownPaperError`, `CopyError` for an incomplete paper, and `NoteNotSavedError`.
    """
    from ..documents.chunking import make_note  # lists need no code that writes
    from ..documents.paper_names import item_path
    from ..ingestion.home_copy import build_change
    from ..ingestion.indexing import run_to_end, write

    library, home = session.library, session.home

    def require_unchanged(now: str) -> None:
        if before is not None and before.strip() != now.strip():
            raise NoteNotSavedError(f"The note on {key} was changed elsewhere.", help="Load the page again to see it.")

    if person := acting.get():  # personal notes are kept out of the library, where others' searches would find them
        require_unchanged(await asyncio.to_thread(_visible_note, session, key))
        await asyncio.to_thread(home.accounts().keep_note, person, library.paper(key).key, text)
        return
    async with home.writer_lock().held(lambda pid: None):
        change = await asyncio.to_thread(build_change, library, library.paper(key).key)
        record = change.record
        assert record is not None  # the change adds the paper
        if item_path(record.paper.bibtex):
            raise NoteNotSavedError(f"Zotero keeps the notes of {key}.", help="Edit the note in Zotero, and sync.")
        require_unchanged(record.note.text if record.note else "")
        count, target = library.embedding.count_tokens, session.settings.chunk_tokens
        note = make_note(text, count, target=target) if text.strip() else None
        vectors = await library.embedding.embed_documents(note.passages) if note else change.note_vectors[:0]
        await run_to_end(_write_note, home.uploads(), record.paper, text)
        changed = replace(change, record=replace(record, note=note), note_vectors=vectors)
        await write(library, [changed], lambda event: None)


def _write_note(uploads: Uploads, paper: Paper, text: str) -> None:
    """Write a note beside the paper's file, where the next ingest finds it; does nothing if there is no file."""
    file = uploads.file(paper.source)
    if not paper.source or not file.parent.is_dir():
        return
    names = [f"{stem}{NOTE_ENDING}" for stem in (paper.key, file.stem)]
    known = next((name for name in names if (file.parent / name).is_file()), "")
    path = file.parent / (known or next(name for name in names if Path(name).name == name))
    place = uploads.place_of(paper.source)
    try:
        if place is not None:
            uploads.remove(place[0], [path.name])
        if text.strip():
            replace_file(path, text.encode())
        elif place is None:
            path.unlink(missing_ok=True)
    except (OSError, UnicodeError) as error:
        raise NoteNotSavedError(f"{path}: cannot be written ({error}).", help="Make its folder writable.") from error
    if place is not None:
        uploads.publish(place[0])


async def aremove_papers(session: Session, keys: Sequence[str]) -> None:
    """Remove papers and Citeloom's copies of their files; raises `UnknownPaperError` before any change."""
    from ..ingestion.ingest import remove_all

    await remove_all(session.library, list(dict.fromkeys(keys)))


@threaded
def afigures(session: Session, key: str, *, images: bool = False) -> list[FigureWithImage]:
    """Return the figures and tables of a paper, as the JSON of `papers figures --json`.

    Args:
        key: the paper's citation key.
        images: also return each `image` as PNG or JPEG bytes, None if missing.

    Raises `InputError` for an unknown key.
    """
    found = session.library.figures(key)
    records = [figure_record(figure) for figure in found]
    if images:
        for record, figure in zip(records, found, strict=True):
            record["image"] = session.library.figure_image(figure)
    return records


def figure_record(figure: PaperFigure) -> FigureWithImage:
    """Convert a figure to plain data; its description is written by the model `described_by`, not the paper."""
    fields = {name: value for name, value in asdict(figure).items() if name not in _SEARCH_FIELDS}
    why = "" if figure.image_hash else figure.no_image
    if not why and not figure.image_hash:  # depends on its source
        if figure.page is not None and figure.start is None:
            why = "has no caption to locate it by on its page"
        else:
            why = "is kept as rows of the text" if figure.body else "names no image file"
    return cast("FigureWithImage", {"name": figure.name, **fields, "no_image": why})  # it has all fields of a figure


@threaded
def afigure(session: Session, key: str, number: int) -> PaperFigure:
    """Return a paper's figure by its number; raises `UnknownPaperError` and `MissingFigureError`."""
    found = next((figure for figure in session.library.figures(key) if figure.number == number), None)
    if found is None:
        raise MissingFigureError(f"{key} has no figure {number}.", help="The paper may have changed: list them again.")
    return found


@threaded
def asave_figures(session: Session, key: str, folder: Path) -> dict[int, Path]:
    """Write a paper's figure images to a folder; returns the files by figure number.

    Never replaces a file with other content. Raises `UnknownPaperError` and `ImageNotWrittenError`.
    """
    from pathvalidate import sanitize_filename

    written: dict[int, Path] = {}
    for figure in session.library.figures(key):
        content = session.library.figure_image(figure)
        if content is None:
            continue
        name = (figure.label or f"{figure.kind} {figure.number + 1}").lower().replace(" ", "-")
        stem = sanitize_filename(f"{key}-{name}", replacement_text="-")
        path = folder / f"{stem}{_IMAGE_SUFFIXES[figure.media_type]}"
        if folder.exists() and not folder.is_dir():
            raise ImageNotWrittenError(f"{folder}: is a file, not a folder.", help="Choose another --out.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if path.is_symlink() or (path.exists() and path.read_bytes() != content):
                raise ImageNotWrittenError(f"{path} exists with other content.", help="Choose another --out.")
            replace_file(path, content)
        except OSError as error:
            raise ImageNotWrittenError(
                f"{path}: cannot be written ({error.strerror}).", help="Choose a writable folder with --out."
            ) from error
        written[figure.number] = path
    return written


@threaded
def apaper_pdf(session: Session, key: str) -> Path:
    """Return the PDF of a paper; raises `UnknownPaperError`, and `MissingPdfError` if it has none or lost it."""
    from ..documents.pdf.drawing import MAX_BYTES  # lists need no PDF reader

    source = session.library.paper(key).source
    if Path(source).suffix.lower() != ".pdf":
        raise MissingPdfError(f"Paper {key} is not a PDF.", help="")
    path = session.home.uploads().file(source)
    try:
        require_regular(path, MAX_BYTES)
        with path.open("rb") as file:
            is_pdf = b"%PDF-" in file.read(_PDF_HEAD)
    except (OSError, FileRefusedError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingPdfError(f"The PDF of {key} cannot be read ({reason}).") from error
    if not is_pdf:
        raise MissingPdfError(f"The file of {key} is not a PDF any more.")
    return path


async def apage_image(session: Session, key: str, number: int, *, words: str = "", width: int = 1000) -> bytes:
    """Return a page of a paper's PDF as a PNG, with the given words highlighted.

    Raises `UnknownPaperError`, `MissingPdfError`, and `FileRefusedError` saying why it cannot be drawn.
    """
    from ..documents.pdf.drawing import draw_page_apart

    return await in_thread(draw_page_apart, await apaper_pdf(session, key), number, words=words, width=width)


figures = blocking(afigures)

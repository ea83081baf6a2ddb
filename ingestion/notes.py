"""Finds the user's note on each ingested paper: `<key>.notes.md` or `<file>.notes.md` in the same folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..documents.bibliography import Refusal
from ..documents.notes import note_stem
from .folder_walk import leads_out, printable, refused_link
from .langchain_documents import SourcePaper
from .sources import SourceRefusedError, Sources, read_text

Names = dict[tuple[Path, str], Path]


def attach_notes(sources: Sources) -> Sources:
    """The sources with the current notes next to their files; notes that match no paper are named in warnings.

    To be called when the keys are final. A note that cannot be read is refused, and its paper is ingested without one.
    A source keeps the note that it came with if there is no file for it.
    """
    names = _notes_beside(source.folder for source in sources.found if source.folder is not None)
    of_paper = _owners(sources.found, names)
    found: list[SourcePaper] = []
    refused = list(sources.refused)
    for source in sources.found:
        file = of_paper.get(source.paper.key)
        try:
            text = _text(file, sources) if file is not None else source.note
        except SourceRefusedError as error:
            refused.append(Refusal(str(file), str(error)))
            text = ""
        found.append(replace(source, note=text))
    owned = {file.resolve() for file in of_paper.values()}
    of_refused = {(Path(item.path).parent.resolve(), Path(item.path).stem) for item in sources.refused}
    warnings = [
        f"{printable(str(file))}: is a note, but matches no paper in its folder; name it after the paper's key or file."
        for file in sources.notes
        if file.resolve() not in owned and (file.parent.resolve(), note_stem(file)) not in of_refused
    ]
    return replace(sources, found=tuple(found), refused=tuple(refused), warnings=(*sources.warnings, *warnings))


def _text(file: Path, sources: Sources) -> str:
    """A note's text, empty if it is blank; raises `SourceRefusedError`."""
    target = None if sources.follow_links else leads_out(file, (*sources.folders, file.parent))
    if target is not None:
        raise SourceRefusedError(refused_link(file, target).reason)
    return read_text(file, blank=True)


def _notes_beside(folders: Iterable[Path]) -> Names:
    """The notes in these folders, by folder and the stem that each is named after."""
    names: Names = {}
    for folder in dict.fromkeys(folders):
        try:
            files = sorted(folder.iterdir())
        except OSError:
            continue  # a folder that can be read from but not listed
        for file in files:
            stem = note_stem(file)
            if stem is not None and file.is_file():
                names.setdefault((folder, stem), file)
    return names


def _owners(sources: Sequence[SourcePaper], names: Names) -> dict[str, Path]:
    """The note of each paper that has one, by key; a match by key takes precedence over one by file name."""
    owners: dict[str, Path] = {}
    unmatched = dict(names)
    for stem_of in (_by_key, _by_file):
        for source in sources:
            if source.folder is None or source.paper.key in owners:
                continue
            file = unmatched.pop((source.folder, stem_of(source)), None)
            if file is not None:
                owners[source.paper.key] = file
    return owners


def _by_key(source: SourcePaper) -> str:
    return source.paper.key


def _by_file(source: SourcePaper) -> str:
    return source.path.stem

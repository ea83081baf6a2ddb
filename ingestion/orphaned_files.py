"""Finds files in a home that belong to no paper or run; `doctor` lists them, finished jobs delete those of uploads."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..documents.notes import NOTE_ENDING
from ..stores.library import Library
from ..stores.uploads import Uploads
from .reading import ConvertedFiles

Files = dict[str, dict[str, int]]  # bytes by upload and name
_HOUR: Final = 3600.0  # seconds; a newer file may belong to a paper that is being added


@dataclass(frozen=True, slots=True)
class OrphanedFiles:
    """Unreferenced files: uploaded papers and plots, converted texts, and papers added by identifier."""

    papers: Files
    plots: Files
    files: dict[Path, int]

    @classmethod
    def of(cls, library: Library) -> OrphanedFiles:
        """Find the orphaned files of a library that no job is about to use; blocks."""
        home = library.home
        uploads, plots = home.uploads(), home.plots()
        idle = set(plots.idle())
        unused = plots.files(idle - home.runs().plot_sets()) if idle else {}
        home, before = library.home, time.time() - _HOUR
        sources = [Path(paper.source) for paper in library.papers() if paper.source]
        places = [place for source in sources if (place := uploads.place_of(str(source)))]
        here = [*sources, *(uploads.folder(upload) / name for upload, name in places)]
        used = {*sources, *map(ConvertedFiles(home.converted).entry, here)}
        kept = (*home.converted.glob("*"), *home.added.resolve().glob("*"))
        found = {file: file.stat() for file in kept if file not in used and file.suffix != ".bib"}
        old = {file: status.st_size for file, status in found.items() if status.st_mtime < before}
        return cls(find_orphans(library, uploads, uploads.idle()), unused, old)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each file in bytes, by name."""
        uploads = self.papers | self.plots
        stored = {f"{upload}/{name}": size for upload, files in uploads.items() for name, size in files.items()}
        return stored | {f"{file.parent.name}/{file.name}": size for file, size in self.files.items()}

    def remove(self, library: Library) -> None:
        """Delete these files; blocks."""
        home = library.home
        remove_orphans(library, home.uploads(), self.papers)
        for upload, files in self.plots.items():
            home.plots().remove(upload, files)
        for file in self.files:
            file.unlink(missing_ok=True)


def find_orphans(library: Library, uploads: Uploads, among: Collection[str]) -> Files:
    """The files of these uploads that belong to no paper; blocks.

    Select the uploads first: an upload whose job ends meanwhile will already have its papers.
    """
    stored = uploads.files(among)
    owned: defaultdict[str, set[str]] = defaultdict(set)  # by upload, the files that are papers or notes on them
    for key, record in library.records().items():
        place = uploads.place_of(record.paper.source)
        if place is None or place[0] not in stored:
            continue
        upload, name = place
        owned[upload].add(name)
        if record.note is not None:
            notes = (f"{stem}{NOTE_ENDING}".lower() for stem in (key, Path(name).stem))
            named = {other.lower(): other for other in stored[upload]}
            owned[upload] |= set([named[note] for note in notes if note in named][:1])
    found = {
        upload: {name: size for name, size in files.items() if name not in owned[upload]}
        for upload, files in stored.items()
    }
    return {upload: files for upload, files in found.items() if files}


def remove_orphans(library: Library, uploads: Uploads, among: Collection[str]) -> Files:
    """Delete orphans with their converted texts, and the remains of uploads without files; blocks."""
    orphans = find_orphans(library, uploads, among)
    converted = ConvertedFiles(library.home.converted)
    for upload in {*orphans, *(set(among) - uploads.files(among).keys())}:
        uploads.remove(upload, orphans.get(upload, ()))
        for name in orphans.get(upload, ()):
            converted.forget(uploads.folder(upload) / name)
    return orphans

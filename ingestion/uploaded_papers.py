"""Uploaded files that belong to no paper of the library: found for `doctor`, and deleted when a job ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from ..documents.notes import NOTE_ENDING
from ..stores.library import Library
from ..stores.server_protocols import Uploads
from .conversion_cache import ConvertedFiles

Files = dict[str, dict[str, int]]  # bytes by upload and name


def find_orphans(library: Library, uploads: Uploads, among: Collection[str]) -> Files:
    """The files of these uploads that belong to no paper; blocks.

    Choose the uploads before: one whose job ends in between has its papers by then.
    """
    stored = uploads.files(among)
    owned = _owned(library, uploads, stored)
    found = {
        upload: {name: size for name, size in files.items() if name not in owned[upload]}
        for upload, files in stored.items()
    }
    return {upload: files for upload, files in found.items() if files}


def remove_orphans(library: Library, uploads: Uploads, among: Collection[str]) -> Files:
    """Delete them with their converted texts, and what an upload without files has left here; blocks."""
    orphans = find_orphans(library, uploads, among)
    converted = ConvertedFiles(library.home.converted)
    for upload in {*orphans, *(set(among) - uploads.files(among).keys())}:
        uploads.remove(upload, orphans.get(upload, ()))
        for name in orphans.get(upload, ()):
            converted.forget(uploads.folder(upload) / name)
    return orphans


def _owned(library: Library, uploads: Uploads, stored: Files) -> defaultdict[str, set[str]]:
    """The names of the files of each upload that are papers, or notes on these."""
    owned: defaultdict[str, set[str]] = defaultdict(set)
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
    return owned

"""Images of figures in a folder, each named by its sha256, so that equal ones are stored once."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from ...documents.figures import image_hash, is_image_hash
from ...documents.safe_files import replace_file
from ..home import Home


class FigureFiles:
    """The folder of a home, created with the first image; a private copy never deletes images of its original."""

    def __init__(self, home: Home) -> None:
        self._folder = home.figures
        self._own = home.copy_of is None

    def put(self, images: Mapping[str, bytes]) -> None:
        """Store images by hash; those that are there already are left as they are. Raises OSError."""
        missing = {name: content for name, content in images.items() if self.get(name) is None}
        if missing:
            self._folder.mkdir(exist_ok=True)
        for name, content in missing.items():
            replace_file(self._folder / name, content)

    def get(self, name: str) -> bytes | None:
        """An image; None if it is missing or damaged."""
        if not is_image_hash(name):
            return None
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        return content if image_hash(content) == name else None

    def names(self) -> set[str]:
        """The names of all files in the folder, those of interrupted writes among them."""
        try:
            return {file.name for file in self._folder.iterdir()}
        except OSError:
            return set()

    def delete(self, names: Collection[str]) -> None:
        """Delete files; unknown names are ignored."""
        for name in names if self._own else ():
            with contextlib.suppress(OSError):
                (self._folder / Path(name).name).unlink()

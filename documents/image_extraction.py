"""Reads the images of a paper's figures: draws them from a PDF, or takes them from an archive, a folder or the text.

`python -m citeloom.documents.image_extraction FILE JOB` prints a JSON object by number of the figure, and exits with 0:
either an image in base64 with its type and size, or `{"refused": reason}`. A damaged image can hang or crash its
decoder, so nothing else runs in that process (`ingestion/figure_subprocess.py` starts and monitors it). Nothing is
fetched from the network, and nothing is read from outside of the paper's folder.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

from .figures import IMAGE_ENDINGS, FigureKind
from .image_decoding import MAX_BYTES, EncodedImage, ImageRefusedError, decoded
from .pdf.drawing import drawn_figures, drawn_page
from .safe_files import FileRefusedError, read_regular
from .sandbox import bound_memory

_MAX_PDF: Final = 500_000_000  # bytes
_MAX_TOTAL: Final = 100 << 20  # bytes of all images of a paper
_MEMORY: Final = 3 << 30  # bytes of address space
_ARCHIVES: Final = frozenset({".docx", ".epub"})
_REMOTE = re.compile(r"(?!data:)[A-Za-z][A-Za-z0-9+.-]*:|//", re.IGNORECASE)
_DATA = re.compile(r"data:image/[\w.+-]{1,40};base64,", re.IGNORECASE)
_GRAPHICS_PATH = re.compile(rb"\\graphicspath\s{0,9}\{((?:\s{0,9}\{[^{}]{0,300}\}){1,20})")
# A LaTeX or JATS file names an image without its ending.

Found = Iterator[tuple[int, EncodedImage | ImageRefusedError]]


@dataclass(frozen=True, slots=True)
class WantedFigure:
    """A figure whose image is to be read: by page and the words of its caption from a PDF, else by address."""

    number: int
    kind: FigureKind
    page: int | None
    words: str
    address: str


def is_remote(address: str) -> bool:
    """Whether an address leads to the network."""
    return _REMOTE.match(address) is not None


def main() -> None:
    """Print the images of the figures in the job."""
    bound_memory(_MEMORY)
    # Messages of libraries must not mix with the output.
    answer = os.dup(1)
    os.dup2(2, 1)
    path, job = Path(sys.argv[1]), Path(sys.argv[2])
    wanted = [WantedFigure(**item) for item in json.loads(job.read_bytes())]
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(_records(path, wanted), out)


def _records(path: Path, wanted: Sequence[WantedFigure]) -> dict[int, dict[str, Any]]:
    records: dict[int, dict[str, Any]] = {}
    total = 0
    for number, found in read_images(path, wanted):
        if isinstance(found, ImageRefusedError) or total + len(found.content) > _MAX_TOTAL:
            over = f"the images of the paper take more than {_MAX_TOTAL >> 20} MB"
            records[number] = {"refused": str(found) if isinstance(found, ImageRefusedError) else over}
            continue
        total += len(found.content)
        content = base64.b64encode(found.content).decode("ascii")
        records[number] = {
            "content": content,
            "media_type": found.media_type,
            "width": found.width,
            "height": found.height,
        }
    return records


def read_images(path: Path, wanted: Sequence[WantedFigure]) -> Found:
    """The image of each figure, or why it has none."""
    if path.suffix.lower() == ".pdf":
        yield from _from_pdf(path, wanted)
        return
    for figure in wanted:
        try:
            name, data = _data(path, figure.address)
            image = drawn_page(data) if name.endswith(".pdf") or data.startswith(b"%PDF-") else decoded(data)
        except ImageRefusedError as error:
            yield figure.number, error
        except (OSError, ValueError, MemoryError, NotImplementedError, zipfile.BadZipFile) as error:
            yield figure.number, ImageRefusedError(f"cannot be read ({type(error).__name__})")
        else:
            yield figure.number, image


def _from_pdf(path: Path, wanted: Sequence[WantedFigure]) -> Found:
    pages: dict[int, list[tuple[int, FigureKind, str]]] = {}
    for figure in wanted:
        pages.setdefault(figure.page or 0, []).append((figure.number, figure.kind, figure.words))
    try:
        yield from drawn_figures(read_regular(path, _MAX_PDF), pages)
    except (ImageRefusedError, FileRefusedError, OSError, MemoryError) as error:
        yield from ((figure.number, ImageRefusedError(str(error) or "cannot be read")) for figure in wanted)


def _data(path: Path, address: str) -> tuple[str, bytes]:
    """The bytes behind an address, and the name they have there; raises `ImageRefusedError`."""
    if head := _DATA.match(address):
        try:
            return "", base64.b64decode(unquote(address[head.end() :]), validate=True)
        except binascii.Error as error:
            raise ImageRefusedError("is written in the text, but damaged") from error
    if is_remote(address):
        raise ImageRefusedError("is on the network, from where nothing is fetched")
    address = unquote(re.split(r"[?#]", address)[0])
    if not address or "\0" in address:
        raise ImageRefusedError("has no address")
    return _from_archive(path, address) if path.suffix.lower() in _ARCHIVES else _from_folder(path, address)


def _from_archive(path: Path, address: str) -> tuple[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        wanted = f"/{address.lstrip('/')}"
        item = next((item for item in archive.infolist() if f"/{item.filename}".endswith(wanted)), None)
        if item is None:
            raise ImageRefusedError(f"is not in the file ({address[:100]})")
        if item.file_size > MAX_BYTES:
            raise ImageRefusedError(f"is larger than {MAX_BYTES >> 20} MB")
        with archive.open(item) as member:
            return item.filename.lower(), member.read(MAX_BYTES + 1)


def _from_folder(path: Path, address: str) -> tuple[str, bytes]:
    folder = path.parent.resolve()
    if PurePosixPath(address).is_absolute() or Path(address).is_absolute():
        raise ImageRefusedError("is named by an absolute path; only files in the paper's folder are read")
    for place in ("", *_graphics_paths(path)):
        for ending in ("", *IMAGE_ENDINGS):
            file = Path(os.path.normpath(folder / place / f"{address}{ending}"))
            if not file.is_relative_to(folder) or not file.resolve().is_relative_to(folder):
                raise ImageRefusedError("leads out of the paper's folder")
            if file.is_file():
                return file.name.lower(), _read(file.resolve())
    raise ImageRefusedError(f"is not in the paper's folder ({address[:100]})")


def _graphics_paths(path: Path) -> list[str]:
    """The folders in which a LaTeX file says that its images are."""
    if path.suffix.lower() not in {".tex", ".latex"}:
        return []
    found = _GRAPHICS_PATH.search(read_regular(path, MAX_BYTES))
    return [part.decode("utf-8", "replace").strip() for part in re.findall(rb"\{([^{}]*)\}", found[1])] if found else []


def _read(file: Path) -> bytes:
    try:
        return read_regular(file, MAX_BYTES)
    except FileRefusedError as error:
        raise ImageRefusedError(str(error)) from error


if __name__ == "__main__":
    main()

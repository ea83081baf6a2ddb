"""Reads the images of figures: draws them from a PDF, or takes them from an archive, a folder or the text.

A damaged image can hang or crash its decoder, so they are read in a sandbox. Nothing is fetched from the network, and
nothing is read from outside the paper's folder.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

from .figure_search import FoundFigure
from .figures import IMAGE_ENDINGS, FigureKind, PaperFigure, image_hash, image_type
from .image_decoding import MAX_BYTES, EncodedImage, decode_image
from .pdf.drawing import draw_figures, draw_first_page
from .safe_files import FileRefusedError, read_regular
from .sandbox import CallLimits, SandboxError, sandboxed

SECONDS: Final = 90.0
_MEMORY: Final = 3 << 30  # bytes of address space
_MAX_PDF: Final = 500_000_000  # bytes
_MAX_TOTAL: Final = 100 << 20  # bytes of all images of a paper
_ARCHIVES: Final = frozenset({".docx", ".epub"})
_REMOTE = re.compile(r"(?!data:)[A-Za-z][A-Za-z0-9+.-]*:|//", re.IGNORECASE)
_DATA = re.compile(r"data:image/[\w.+-]{1,40};base64,", re.IGNORECASE)
_GRAPHICS_PATH = re.compile(rb"\\graphicspath\s{0,9}\{((?:\s{0,9}\{[^{}]{0,300}\}){1,20})")
_ON_NETWORK: Final = "is on the network, from where nothing is fetched"

FoundImages = Iterator[tuple[int, EncodedImage | FileRefusedError]]


@dataclass(frozen=True, slots=True)
class WantedFigure:
    """A figure whose image to read: by page and caption words in a PDF, else by address."""

    number: int
    kind: FigureKind
    page: int | None
    words: str
    address: str


@dataclass(frozen=True, slots=True)
class ReadFigures:
    """The figures of a paper with their image data, and the images by hash."""

    figures: tuple[PaperFigure, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)


def read_figures(
    file: Path | None, text: str, found: Sequence[FoundFigure], *, seconds: float = SECONDS
) -> ReadFigures:
    """The figures found in a paper's `text` with their images, read from its file if there is one.

    Figures without an image say why. Never raises because of a file's content.
    """
    wanted: list[WantedFigure] = []
    is_pdf = file is not None and file.suffix.lower() == ".pdf"
    for each in found:
        figure, in_text = each.figure, each.figure.start is not None
        if in_text if is_pdf else bool(each.address) and not _REMOTE.match(each.address):
            words = text[figure.start : figure.end] if in_text else ""
            wanted.append(WantedFigure(figure.number, figure.kind, figure.page, words, each.address))
    answers: dict[str, dict[str, Any]] = {}
    try:
        if file and wanted:
            answers = sandboxed(image_records, CallLimits(seconds, _MEMORY), file.resolve(), wanted)
    except SandboxError as error:
        answers = {str(each.number): {"refused": f"was not read: the image reader {error}"} for each in wanted}
    images: dict[str, bytes] = {}
    figures: list[PaperFigure] = []
    for each in found:
        answer = answers.get(str(each.figure.number), {})
        content = answer.get("content")
        kind = image_type(content) if isinstance(content, bytes) else ""
        if not isinstance(content, bytes) or not kind:  # there is no image, or its type is not stored
            remote = _ON_NETWORK if _REMOTE.match(each.address) else ""
            figures.append(replace(each.figure, no_image=str(answer.get("refused") or remote)))
            continue
        images[image_hash(content)] = content
        width, height = int(answer["width"]), int(answer["height"])
        figures.append(
            replace(each.figure, image_hash=image_hash(content), media_type=kind, width=width, height=height)
        )
    return ReadFigures(tuple(figures), images)


def image_records(path: str, wanted: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The image of each figure by its number, or why it is `refused`. To be called in a sandbox."""
    records: dict[str, dict[str, Any]] = {}
    total = 0
    for number, found in _read_images(Path(path), [WantedFigure(**each) for each in wanted]):
        if isinstance(found, FileRefusedError):
            records[str(number)] = {"refused": str(found)}
        elif total + len(found.content) > _MAX_TOTAL:
            records[str(number)] = {"refused": f"the images of the paper take more than {_MAX_TOTAL >> 20} MB"}
        else:
            total += len(found.content)
            records[str(number)] = asdict(found)
    return records


def _read_images(path: Path, wanted: Sequence[WantedFigure]) -> FoundImages:
    """The image of each figure, or why it has none."""
    if path.suffix.lower() == ".pdf":
        pages: dict[int, list[tuple[int, FigureKind, str]]] = {}
        for figure in wanted:
            pages.setdefault(figure.page or 0, []).append((figure.number, figure.kind, figure.words))
        try:
            yield from draw_figures(read_regular(path, _MAX_PDF), pages)
        except (FileRefusedError, OSError, MemoryError) as error:
            yield from ((figure.number, FileRefusedError(str(error) or "cannot be read")) for figure in wanted)
        return
    for figure in wanted:
        try:
            name, data = _data(path, figure.address)
            image = draw_first_page(data) if name.endswith(".pdf") or data.startswith(b"%PDF-") else decode_image(data)
        except FileRefusedError as error:
            yield figure.number, error
        except (OSError, ValueError, MemoryError, NotImplementedError, zipfile.BadZipFile) as error:
            yield figure.number, FileRefusedError(f"cannot be read ({type(error).__name__})")
        else:
            yield figure.number, image


def _data(path: Path, address: str) -> tuple[str, bytes]:
    """The file name and bytes at an address; raises `FileRefusedError`."""
    if head := _DATA.match(address):
        try:
            return "", base64.b64decode(unquote(address[head.end() :]), validate=True)
        except binascii.Error as error:
            raise FileRefusedError("is embedded in the text, but damaged") from error
    if _REMOTE.match(address):
        raise FileRefusedError(_ON_NETWORK)
    address = unquote(re.split(r"[?#]", address)[0])
    if not address or "\0" in address:
        raise FileRefusedError("has no address")
    return _from_archive(path, address) if path.suffix.lower() in _ARCHIVES else _from_folder(path, address)


def _from_archive(path: Path, address: str) -> tuple[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        wanted = f"/{address.lstrip('/')}"
        item = next((item for item in archive.infolist() if f"/{item.filename}".endswith(wanted)), None)
        if item is None:
            raise FileRefusedError(f"is not in the file ({address[:100]})")
        if item.file_size > MAX_BYTES:
            raise FileRefusedError(f"is larger than {MAX_BYTES >> 20} MB")
        with archive.open(item) as member:
            return item.filename.lower(), member.read(MAX_BYTES + 1)


def _from_folder(path: Path, address: str) -> tuple[str, bytes]:
    folder = path.parent.resolve()
    if PurePosixPath(address).is_absolute() or Path(address).is_absolute():
        raise FileRefusedError("is named by an absolute path; only files in the paper's folder are read")
    places = [""]
    if path.suffix.lower() in {".tex", ".latex"} and (found := _GRAPHICS_PATH.search(read_regular(path, MAX_BYTES))):
        places += [part.decode("utf-8", "replace").strip() for part in re.findall(rb"\{([^{}]*)\}", found[1])]
    for place in places:
        for ending in ("", *IMAGE_ENDINGS):
            file = Path(os.path.normpath(folder / place / f"{address}{ending}"))
            if not file.is_relative_to(folder) or not file.resolve().is_relative_to(folder):
                raise FileRefusedError("leads out of the paper's folder")
            if file.is_file():
                return file.name.lower(), read_regular(file.resolve(), MAX_BYTES)
    raise FileRefusedError(f"is not in the paper's folder ({address[:100]})")

"""Reads the images of figures: draws them from a PDF, or decodes them from an archive, a folder or the text.

A damaged image can hang or crash its decoder, so they are read in a sandbox. No bytes are passed through: a stored
image holds only pixels, no metadata, scripts or second file appended to it. Nothing is fetched from the network, and
nothing is read from outside the paper's folder.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from .figure_search import FoundFigure
from .figures import IMAGE_ENDINGS, PaperFigure, image_hash, image_type
from .pdf.drawing import WantedFigure, draw_figures, draw_first_page
from .safe_files import FileRefusedError, read_regular
from .sandbox import CallLimits, SandboxError, run_sandboxed

if TYPE_CHECKING:
    from PIL.Image import Image

SECONDS: Final = 90.0
_MEMORY: Final = 3 << 30  # bytes of address space
_MAX_PDF: Final = 500_000_000  # bytes
_MAX_TOTAL: Final = 100 << 20  # bytes of all images of a paper
MAX_BYTES: Final = 50 << 20  # of a file
_MAX_PIXELS: Final = 100_000_000  # declared by a file
_LONGEST_SIDE: Final = 2_000  # pixels of a stored image
_SMALLEST: Final = 32  # pixels: smaller images are decoration
_JPEG_ABOVE: Final = 300_000  # bytes of a PNG: larger ones may be photographs
_QUALITY: Final = 88
_FORMATS: Final = ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP")
_VECTOR: Final = (b"<svg", b"<?xml", b"\x01\x00\x00\x00", b"\xd7\xcd\xc6\x9a", b"%!PS", b"\xc5\xd0\xd3\xc6")
_ARCHIVES: Final = frozenset({".docx", ".epub"})
_REMOTE = re.compile(r"(?!data:)[A-Za-z][A-Za-z0-9+.-]*:|//", re.IGNORECASE)
_DATA = re.compile(r"data:image/[\w.+-]{1,40};base64,", re.IGNORECASE)
_GRAPHICS_PATH = re.compile(rb"\\graphicspath\s{0,9}\{((?:\s{0,9}\{[^{}]{0,300}\}){1,20})")
_ON_NETWORK: Final = "is on the network, from where nothing is fetched"


@dataclass(frozen=True, slots=True)
class ReadFigures:
    """The figures of a paper with their image data, and the images by hash."""

    figures: tuple[PaperFigure, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)


def read_figures(
    file: Path | None, text: str, found: Sequence[FoundFigure], *, seconds: float = SECONDS
) -> ReadFigures:
    """The figures of a paper's `text`, with images or the reason for none; never raises because of content."""
    wanted: list[WantedFigure] = []
    is_pdf = file is not None and file.suffix.lower() == ".pdf"
    for each in found:
        figure, in_text = each.figure, each.figure.start is not None
        if in_text if is_pdf else bool(each.address) and not _REMOTE.match(each.address):
            words = text[figure.start : figure.end] if in_text else ""
            wanted.append(WantedFigure(figure.number, figure.kind, figure.page or 0, words, each.address))
    answers: dict[str, dict[str, Any]] = {}
    try:
        if file and wanted:
            answers = run_sandboxed(image_records, CallLimits(seconds, _MEMORY), file.resolve(), wanted)
    except SandboxError as error:
        answers = {str(each.number): {"refused": f"was not read: the image reader {error}"} for each in wanted}
    images: dict[str, bytes] = {}
    figures: list[PaperFigure] = []
    for each in found:
        answer = answers.get(str(each.figure.number), {})
        content, remote = answer.get("content"), _ON_NETWORK if _REMOTE.match(each.address) else ""
        change: dict[str, Any] = {"no_image": str(answer.get("refused") or remote)}
        if isinstance(content, bytes) and (kind := image_type(content)):  # a type that is stored
            images[image_hash(content)] = content
            size = {name: int(answer[name]) for name in ("width", "height")}
            change = {"image_hash": image_hash(content), "media_type": kind, **size}
        figures.append(replace(each.figure, **change))
    return ReadFigures(tuple(figures), images)


def image_records(path: str, wanted: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The image of each figure by its number, or why it is `refused`. To be called in a sandbox."""
    records: dict[str, dict[str, Any]] = {}
    total = 0
    for number, found in _pictures(Path(path), [WantedFigure(**each) for each in wanted]):
        try:
            if isinstance(found, FileRefusedError):
                raise found
            image = encode_image(found)
            if total + len(image["content"]) > _MAX_TOTAL:
                raise FileRefusedError(f"the images of the paper take more than {_MAX_TOTAL >> 20} MB")
            total += len(image["content"])
            records[str(number)] = image
        except (FileRefusedError, OSError, ValueError, MemoryError) as error:
            records[str(number)] = {"refused": str(_refusal(error))}
    return records


def _pictures(path: Path, wanted: Sequence[WantedFigure]) -> Iterator[tuple[int, Image | FileRefusedError]]:
    if path.suffix.lower() == ".pdf":
        try:
            yield from draw_figures(read_regular(path, _MAX_PDF), wanted)
        except (FileRefusedError, OSError, MemoryError) as error:
            yield from ((figure.number, FileRefusedError(str(error) or "cannot be read")) for figure in wanted)
        return
    for figure in wanted:
        try:
            name, data = _data(path, figure.address)
            is_pdf = name.endswith(".pdf") or data.startswith(b"%PDF-")
            yield figure.number, draw_first_page(data) if is_pdf else decode_image(data)
        except (FileRefusedError, OSError, ValueError, MemoryError, NotImplementedError, zipfile.BadZipFile) as error:
            yield figure.number, _refusal(error)


def _refusal(error: Exception) -> FileRefusedError:
    return (
        error if isinstance(error, FileRefusedError) else FileRefusedError(f"cannot be read ({type(error).__name__})")
    )


def _data(path: Path, address: str) -> tuple[str, bytes]:
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
    if path.suffix.lower() in _ARCHIVES:
        with zipfile.ZipFile(path) as archive:
            wanted = f"/{address.lstrip('/')}"
            item = next((item for item in archive.infolist() if f"/{item.filename}".endswith(wanted)), None)
            if item is None:
                raise FileRefusedError(f"is not in the file ({address[:100]})")
            if item.file_size > MAX_BYTES:
                raise FileRefusedError(f"is larger than {MAX_BYTES >> 20} MB")
            with archive.open(item) as member:
                return item.filename.lower(), member.read(MAX_BYTES + 1)
    folder, places = path.parent.resolve(), [""]
    if PurePosixPath(address).is_absolute() or Path(address).is_absolute():
        raise FileRefusedError("is named by an absolute path; only files in the paper's folder are read")
    if path.suffix.lower() in {".tex", ".latex"} and (found := _GRAPHICS_PATH.search(read_regular(path, MAX_BYTES))):
        places += [part.decode("utf-8", "replace").strip() for part in re.findall(rb"\{([^{}]*)\}", found[1])]
    for place, ending in product(places, ("", *IMAGE_ENDINGS)):
        file = Path(os.path.normpath(folder / place / f"{address}{ending}"))
        if not file.is_relative_to(folder) or not file.resolve().is_relative_to(folder):
            raise FileRefusedError("leads out of the paper's folder")
        if file.is_file():
            return file.name.lower(), read_regular(file.resolve(), MAX_BYTES)
    raise FileRefusedError(f"is not in the paper's folder ({address[:100]})")


def decode_image(data: bytes) -> Image:
    """The first frame of an untrusted raster image, in RGB on white and upright; raises `FileRefusedError`."""
    from PIL import Image as Images, ImageOps, UnidentifiedImageError

    if not data:
        raise FileRefusedError("is empty")
    if len(data) > MAX_BYTES:
        raise FileRefusedError(f"is larger than {MAX_BYTES >> 20} MB")
    if data.lstrip()[:5].lower().startswith(_VECTOR) or data.startswith(_VECTOR):
        raise FileRefusedError("is a drawing in a format that is not read (SVG, EMF, WMF or EPS)")
    Images.MAX_IMAGE_PIXELS = _MAX_PIXELS
    warnings.simplefilter("ignore", Images.DecompressionBombWarning)  # too large images are refused below
    try:
        with Images.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise FileRefusedError(f"has {image.width} x {image.height} pixels, which is too large")
            if max(image.size) > _LONGEST_SIDE:
                image.draft("RGB", (_LONGEST_SIDE, _LONGEST_SIDE))  # decodes a JPEG at reduced size
            turned = ImageOps.exif_transpose(image) or image
            if turned.mode in {"RGBA", "LA", "PA"} or "transparency" in turned.info:
                layer = turned.convert("RGBA")
                turned = Images.alpha_composite(Images.new("RGBA", layer.size, "white"), layer)
            return turned.convert("RGB")
    except UnidentifiedImageError as error:
        raise FileRefusedError("is not an image that can be read") from error
    except (OSError, ValueError, SyntaxError, MemoryError, Images.DecompressionBombError) as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise FileRefusedError(f"is damaged or too large ({reason})") from error


def encode_image(image: Image) -> dict[str, Any]:
    """The `content` of a PNG or JPEG as stored, its `width` and `height`; raises `FileRefusedError` for a tiny one."""
    if min(image.size) < _SMALLEST:
        raise FileRefusedError(f"has only {image.width} x {image.height} pixels")
    if max(image.size) > _LONGEST_SIDE:
        image.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    png, jpeg = io.BytesIO(), io.BytesIO()
    image.save(png, "PNG", optimize=True)
    content = png.getvalue()
    if len(content) > _JPEG_ABOVE:
        image.save(jpeg, "JPEG", quality=_QUALITY, optimize=True)
        if 2 * len(jpeg.getvalue()) < len(content):
            content = jpeg.getvalue()
    return {"content": content, "width": image.width, "height": image.height}

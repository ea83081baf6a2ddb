"""Decodes untrusted images within limits and encodes them as PNG or JPEG.

No bytes are passed through: a stored image holds only pixels, no metadata, scripts or second file appended to it.
Call it only in a sandbox, since decoders have had security faults.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .safe_files import FileRefusedError

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES: Final = 50 << 20  # of a file
_MAX_PIXELS: Final = 100_000_000  # declared by a file
_LONGEST_SIDE: Final = 2_000  # pixels of a stored image
_SMALLEST: Final = 32  # pixels: smaller images are decoration
_JPEG_ABOVE: Final = 300_000  # bytes of a PNG: larger ones may be photographs
_QUALITY: Final = 88
_FORMATS: Final = ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP")
_VECTOR: Final = (b"<svg", b"<?xml", b"\x01\x00\x00\x00", b"\xd7\xcd\xc6\x9a", b"%!PS", b"\xc5\xd0\xd3\xc6")


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """A PNG or JPEG as stored."""

    content: bytes
    media_type: str
    width: int
    height: int


def decode_image(data: bytes) -> EncodedImage:
    """Decode a raster image and encode it again; raises `FileRefusedError`."""
    from PIL import Image, UnidentifiedImageError

    if not data:
        raise FileRefusedError("is empty")
    if len(data) > MAX_BYTES:
        raise FileRefusedError(f"is larger than {MAX_BYTES >> 20} MB")
    if data.lstrip()[:5].lower().startswith(_VECTOR) or data.startswith(_VECTOR):
        raise FileRefusedError("is a drawing in a format that is not read (SVG, EMF, WMF or EPS)")
    Image.MAX_IMAGE_PIXELS = _MAX_PIXELS
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # too large images are refused below
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise FileRefusedError(f"has {image.width} x {image.height} pixels, which is too large")
            if max(image.size) > _LONGEST_SIDE:
                image.draft("RGB", (_LONGEST_SIDE, _LONGEST_SIDE))  # decodes a JPEG at reduced size
            return encode_image(_plain(image))
    except UnidentifiedImageError as error:
        raise FileRefusedError("is not an image that can be read") from error
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError) as error:
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise FileRefusedError(f"is damaged or too large ({reason})") from error


def encode_image(image: Image) -> EncodedImage:
    """Encode an image, scaled down if large; raises `FileRefusedError` for a tiny one."""
    if min(image.size) < _SMALLEST:
        raise FileRefusedError(f"has only {image.width} x {image.height} pixels")
    if max(image.size) > _LONGEST_SIDE:
        image.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    png = io.BytesIO()
    image.save(png, "PNG", optimize=True)
    content = png.getvalue()
    if len(content) > _JPEG_ABOVE:
        jpeg = io.BytesIO()
        image.save(jpeg, "JPEG", quality=_QUALITY, optimize=True)
        if 2 * len(jpeg.getvalue()) < len(content):
            return EncodedImage(jpeg.getvalue(), "image/jpeg", *image.size)
    return EncodedImage(content, "image/png", *image.size)


def _plain(image: Image) -> Image:
    """The first frame in RGB on white, rotated according to its metadata."""
    from PIL import Image as Images, ImageOps

    turned = ImageOps.exif_transpose(image) or image
    if turned.mode in {"RGBA", "LA", "PA"} or "transparency" in turned.info:
        layer = turned.convert("RGBA")
        white = Images.new("RGBA", layer.size, "white")
        return Images.alpha_composite(white, layer).convert("RGB")
    return turned.convert("RGB")

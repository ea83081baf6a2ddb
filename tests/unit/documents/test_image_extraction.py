"""Only the pixels of an image are stored, within limits."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from citeloom.documents.figures import image_type
from citeloom.documents.image_extraction import decode_image, encode_image
from citeloom.documents.safe_files import FileRefusedError


def written(kind: str, size: tuple[int, int] = (300, 200), mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, "red" if mode == "RGB" else None).save(file, kind)
    return file.getvalue()


def stored(data: bytes) -> dict[str, Any]:
    return encode_image(decode_image(data))


def png_of(width: int, height: int) -> bytes:
    """A PNG that declares a size and holds hardly a byte."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP"])
def test_raster_images_become_png_or_jpeg(kind: str) -> None:
    image = stored(written(kind))
    assert (image_type(image["content"]), image["width"], image["height"]) == ("image/png", 300, 200)
    assert Image.open(io.BytesIO(image["content"])).size == (300, 200)


def test_equal_pixels_become_equal_bytes_without_metadata() -> None:
    plain = written("PNG")
    assert stored(plain + b"<script>alert(1)</script>")["content"] == stored(plain)["content"]


def test_a_large_image_is_reduced() -> None:
    image = stored(written("PNG", (5000, 1000)))
    assert (image["width"], image["height"]) == (2000, 400)


def test_transparency_becomes_white() -> None:
    image = Image.open(io.BytesIO(stored(written("PNG", mode="RGBA"))["content"]))
    assert image.mode == "RGB"
    assert image.getpixel((5, 5)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", ""),
        (b"no image at all", ""),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "SVG"),
        (b"\n<?xml version='1.0'?><svg/>", "SVG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "EPS"),
        (written("PNG")[:60], ""),
        (png_of(100_000, 100_000), ""),
        (png_of(20_000, 6_000), "20000 x 6000"),
        (png_of(0, 10), ""),
        (written("PNG", (8, 300)), "8 x 300"),
    ],
)
def test_a_refused_image_gives_the_reason(data: bytes, named: str) -> None:
    with pytest.raises(FileRefusedError, match=named or None):
        stored(data)

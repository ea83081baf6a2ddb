"""Reads a PDF's title from its information dictionary or XMP metadata.

It is read from the raw bytes: the parser exposes neither, and fails on files with broken metadata.
"""

from __future__ import annotations

import re

from ...text.normalize import unescape_html
from .dehyphenation import plain

_XMP = re.compile(rb"<dc:title>((?:[^<]|<(?!/?dc:title>)){0,2000}+)</dc:title>")
_INFORMATION = re.compile(rb"/Info\s+(\d+)\s+(\d+)\s+R")
_TITLE = re.compile(rb"/Title\s*(\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\)){0,2000}\)|<[0-9A-Fa-f\s]{0,4000}>)", re.DOTALL)
_NO_TITLE = re.compile(
    r"(?:untitled|title|document|microsoft word|slide ?\d*|layout \d|adobe photoshop pdf"
    r"|.*\.(?:docx?|tex|dvi|pdf|indd|qxd|html?))\b.*",
    re.IGNORECASE,
)
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"", b"f": b""}
_LEAST = 8  # characters


def document_title(data: bytes) -> str:
    """The title in a PDF's metadata; empty if there is none, or only a file name."""
    for found in (_from_information(data), _from_xmp(data)):
        title = " ".join(plain(found).split())
        if len(title) >= _LEAST and " " in title and not _NO_TITLE.fullmatch(title):
            return title
    return ""


def _from_information(data: bytes) -> str:
    reference = _INFORMATION.search(data)
    if reference is None:
        return ""
    start = re.search(rb"(?<!\d)" + reference.group(1) + rb"\s+" + reference.group(2) + rb"\s+obj\b", data)
    if start is None:
        return ""
    end = data.find(b"endobj", start.end())
    title = _TITLE.search(data, start.end(), end if end > 0 else len(data))
    return _string(title.group(1)) if title else ""


def _string(raw: bytes) -> str:
    """Decode a PDF string, in UTF-16 or (approximately) Latin-1."""
    if raw.startswith(b"<"):
        digits = re.sub(rb"\s", b"", raw[1:-1])
        value = bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode("ascii"))
    else:
        value = re.sub(rb"\\([0-7]{1,3}|\r\n|.)", _escape, raw[1:-1], flags=re.DOTALL)
    if value.startswith(b"\xfe\xff"):
        return value[2:].decode("utf-16-be", "ignore")
    if value.startswith(b"\xef\xbb\xbf"):
        return value[3:].decode("utf-8", "ignore")
    return value.decode("cp1252", "ignore")


def _escape(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    if code.isdigit():
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, b"" if code in (b"\n", b"\r\n") else code)


def _from_xmp(data: bytes) -> str:
    found = _XMP.search(data)
    if found is None:
        return ""
    return unescape_html(re.sub(r"<[^>]*>", " ", found.group(1).decode("utf-8", "ignore")))  # bounded: 2,000 characters

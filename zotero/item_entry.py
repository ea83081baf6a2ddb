"""Derives a paper from a Zotero item: BibTeX entry, Better BibTeX's citation key, the user's note, and the file.

Names and paths of attachments come from a database that others may write to (such as a group's). So stored files are
read only from their folder in Zotero's storage, linked files only from the folder that the user configured for them.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..documents.bibliography import as_latex, label_list, render_entry
from ..documents.front_matter import find_doi
from ..documents.paper_names import zotero_fields
from ..ingestion.reading import ENDINGS
from ..metadata.bib_entry import KINDS, VENUE_FIELD, KeyFields, bib_name, normalize_pages
from ..text.words import one_line, unescape_html
from .zotero_records import Attachment, Creator, Texts, ZoteroItem, ZoteroLibrary

_EDITED: Final = ("incollection", "inproceedings", "book")
_VENUES: Final = (
    "publicationTitle proceedingsTitle conferenceName bookTitle encyclopediaTitle dictionaryTitle university "
    "institution repository websiteTitle"
).split()
_YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d|21\d\d)(?!\d)")
_IN_EXTRA = re.compile(r"^[ \t]{0,8}(citation key|bibtex|doi|arxiv)[ \t]{0,8}:[ \t]{0,8}(\S{1,300})", re.I | re.M)
_ARXIV = re.compile(r"(?:arxiv:)?(\d{4}\.\d{4,5}|[a-z][a-z.-]{1,20}/\d{7})(?:v\d{1,3})?", re.IGNORECASE)
_UNUSABLE = re.compile(r"[\s{}\\\"#%~,@'()=\x00-\x1f\x7f]")
_LONGEST_KEY: Final = 200
_MOST_ABSTRACT: Final = 20_000
_MOST_NAMES: Final = 5_000


def bibtex_key(item: ZoteroItem, known: str = "") -> str:
    """Better BibTeX's key of an item, from its field, else from Extra, else `known`; empty if none is usable."""
    written = item.fields.get("citationKey", "").strip() or _extra(item, "citation key") or _extra(item, "bibtex")
    found = written or known
    return found if found and len(found) <= _LONGEST_KEY and not _UNUSABLE.search(found) else ""


def key_fields(item: ZoteroItem) -> KeyFields:
    families = [creator.family for creator in _authors(item)]
    return KeyFields(families, item.title, _year(item), _venue(item), item.kind)


def item_entry(
    item: ZoteroItem, key: str, library: ZoteroLibrary, pdf: str = "", collections: Sequence[str] = ()
) -> str:
    """The BibTeX entry of an item under a key, with tags, collections, and links back to the item.

    `pdf` is the key of the PDF attachment; `collections` are paths, such as Thesis/Methods.
    """
    kind = KINDS["zotero"].get(item.kind, "misc")
    if kind == "phdthesis" and "master" in item.fields.get("thesisType", "").lower():
        kind = "mastersthesis"
    field = item.fields.get
    arxiv = _ARXIV.fullmatch((field("archiveID", "")[:100] or _extra(item, "arxiv")).strip())
    authors = _authors(item)
    editors = [creator for creator in item.creators if creator.role in ("editor", "seriesEditor") and kind in _EDITED]
    fields = {
        "title": "{" + as_latex(item.title) + "}" if item.title else "",
        "author": " and ".join(bib_name(one.family, one.given) for one in authors[:_MOST_NAMES]),
        "editor": " and ".join(bib_name(one.family, one.given) for one in editors[:_MOST_NAMES] if editors != authors),
        "year": str(_year(item) or ""),
        VENUE_FIELD.get(kind, "howpublished"): as_latex(_venue(item)),
        "series": as_latex(field("series", "")),
        "volume": as_latex(field("volume", "")),
        "number": as_latex(field("issue") or field("reportNumber") or field("number") or ""),
        "pages": as_latex(normalize_pages(field("pages", "")[:100])),
        "edition": as_latex(field("edition", "")),
        "publisher": as_latex(field("publisher", "")),
        "address": as_latex(field("place", "")),
        "isbn": as_latex(field("ISBN", "")),
        "doi": _strip_delimiters(item_doi(item)),
        "eprint": _strip_delimiters(arxiv[1]) if arxiv else "",
        "archiveprefix": "arXiv" if arxiv else "",
        "url": _strip_delimiters(field("url", "")),
        "abstract": as_latex(field("abstractNote", "")[:_MOST_ABSTRACT]),
        "keywords": label_list(item.tags),
        "groups": label_list(collections),
        **zotero_fields(library.path, item.key, pdf),
    }
    return render_entry(kind, key, fields)


def item_doi(item: ZoteroItem) -> str:
    """The DOI of an item, in lower case; empty if it has none."""
    return find_doi(item.fields.get("DOI", "")[:500]) or find_doi(_extra(item, "doi"))


def _authors(item: ZoteroItem) -> list[Creator]:
    """The authors of an item; if it has none, its other creators, editors first."""
    for roles in (("author",), ("editor", "bookAuthor"), None):
        found = [creator for creator in item.creators if roles is None or creator.role in roles]
        if found:
            return found
    return []


def _venue(item: ZoteroItem) -> str:
    return next((value for name in _VENUES if (value := item.fields.get(name, ""))), "")


def _year(item: ZoteroItem) -> int | None:
    found = _YEAR.search(item.fields.get("date", "")[:200])
    return int(found[1]) if found else None


def _extra(item: ZoteroItem, name: str) -> str:
    """A value that has its own line in the Extra field."""
    lines = _IN_EXTRA.finditer(item.fields.get("extra", ""))
    return next((found[2] for found in lines if found[1].lower() == name), "")


def _strip_delimiters(value: str) -> str:
    """Remove characters that could end the field from a link or identifier."""
    return re.sub(r"[\s{}\\]", "", value[:2_000])


_MOST_HTML: Final = 1_000_000  # characters of one note, without the pictures in it
_MOST_IN_ALL: Final = 2_000_000  # characters of a paper's note
_PICTURE = re.compile(r"data:[a-z]{1,20}/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/=]*+", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)  # always ends with: -->
# A quoted `>` does not end a tag, unless the quotation mark is never closed.
_TAG = re.compile(
    r"<(?:(?P<slash>/?)(?P<name>[a-zA-Z][^\s/<>\"']*+)(?:(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+>|[^<>]*+>)|[!?/][^<>]*+>)"
)
_BLOCKS: Final = (
    "address article aside blockquote dd div dl dt figure footer h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section "
    "table tr ul".split()
)
_AT_END: Final = dict.fromkeys(_BLOCKS, "\n")
_AT_START: Final = {**dict.fromkeys(_BLOCKS, "\n\n"), "br": "\n", "td": "\n", "th": "\n", "li": "\n- "}
_SILENT: Final = frozenset({"script", "style", "head", "title", "template", "noscript"})
_MORE_THAN_ONE = re.compile(r"\n{3,}")


def item_note(notes: Iterable[Texts], annotations: Iterable[Texts]) -> str:
    """The user's note on a paper: the notes as written, then the annotations in page order."""
    texts = [html_text(note["note"]) for note in sorted(notes, key=itemgetter("dateAdded", "key"))]
    for one in sorted(annotations, key=itemgetter("parentItem", "annotationSortIndex", "key")):
        text, comment = one_line(one["annotationText"]), one_line(one["annotationComment"])
        said = " – ".join(part for part in (f"“{text}”" if text else "", comment) if part)
        texts.append(f"p. {one['annotationPageLabel']}: {said}" if said and one["annotationPageLabel"] else said)
    return "\n\n".join(text for text in texts if text)[:_MOST_IN_ALL].strip()


def html_text(html: str) -> str:
    """The visible text of a note without markup, one line per block."""
    closed, end, rest = _PICTURE.sub("", html)[:_MOST_HTML].rpartition("-->")
    html = f"{_COMMENT.sub('', closed + end)}{rest}"
    parts: list[str] = []
    hidden_by, done = "", 0
    for match in _TAG.finditer(html):
        tag = (match["name"] or "").lower()
        parts += [] if hidden_by else [html[done : match.start()].replace("\n", " ")]
        parts.append((_AT_END if match["slash"] else _AT_START).get(tag, ""))
        done = match.end()
        if match["slash"]:
            hidden_by = "" if tag == hidden_by else hidden_by
        elif tag in _SILENT:
            hidden_by = hidden_by or tag
    parts += [] if hidden_by else [html[done:].replace("\n", " ")]
    lines = (" ".join(unescape_html(line).split()) for line in "".join(parts).split("\n"))
    return _MORE_THAN_ONE.sub("\n\n", "\n".join(lines)).strip()


STORAGE_NAME: Final = "storage"
_RELATIVE: Final = "attachments:"  # prefix of a path in Zotero's base folder for linked files
# PDFs first, as in Zotero, then formats with structure, and saved web pages last, since many show only an abstract.
_PREFERRED: Final = (".pdf", ".epub", ".docx", ".tex", ".latex", ".nxml", ".jats", ".xml", ".md", ".markdown")
_BESIDE: Final = ("supplement", "supporting info", "appendix", "erratum", "slides", "poster")
_LINKED_HELP: Final = "name the folder of your linked files in CITELOOM_ZOTERO_LINKED"


@dataclass(frozen=True, slots=True)
class ItemFile:
    """The file to ingest for an item, with the size and time that show whether it changed."""

    attachment: str
    path: Path
    size: int
    modified: int

    @property
    def stamp(self) -> str:
        return f"{self.path}:{self.size}:{self.modified}"

    @property
    def pdf(self) -> str:
        """The key of the attachment if it is a PDF; empty otherwise."""
        return self.attachment if self.path.suffix.lower() == ".pdf" else ""


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """The folders of attachments: `storage` (None: as the API says), and the folder of `linked` files."""

    storage: Path | None
    linked: Path | None
    group: bool = False


def choose_file(attachments: Iterable[Attachment], places: FilePlaces) -> tuple[ItemFile | None, list[str]]:
    """The best usable file of an item's attachments, and why better ones were not used."""
    problems: list[str] = []
    for attachment in sorted(filter(is_paper, attachments), key=_rank):
        found = _locate(attachment, places)
        if isinstance(found, ItemFile):
            return found, problems
        name = " ".join(attachment.name.split())[-80:] or "without a name"
        problems.append(f"attachment {attachment.key} ({name}): {found}")
    return None, problems


def is_paper(attachment: Attachment) -> bool:
    """Whether an attachment has a readable file type."""
    return attachment.mode != "other" and _ending(attachment) in ENDINGS


def _rank(attachment: Attachment) -> tuple[int, bool, str, str]:
    ending = _ending(attachment)
    place = _PREFERRED.index(ending) if ending in _PREFERRED else len(_PREFERRED)
    named = f"{attachment.title} {attachment.name}".casefold()
    return place, any(word in named for word in _BESIDE), attachment.added, attachment.key


def _ending(attachment: Attachment) -> str:
    return PurePosixPath(attachment.name.replace("\\", "/")).suffix.lower()


def _locate(attachment: Attachment, places: FilePlaces) -> ItemFile | str:
    """The file of an attachment, or why it is not read."""
    try:
        found = _find_stored(attachment, places) if attachment.mode == "stored" else _find_linked(attachment, places)
        if isinstance(found, str):
            return found
        state = found.stat()
    except (OSError, ValueError, RuntimeError) as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        return "its file is missing" if missing else "its file cannot be read"
    if not stat.S_ISREG(state.st_mode):
        return "is not a regular file"
    return ItemFile(attachment.key, found, state.st_size, state.st_mtime_ns)


def _find_stored(attachment: Attachment, places: FilePlaces) -> Path | str:
    """The path of a stored file, without links on the way from the storage folder; raises OSError."""
    if places.storage is not None:
        name, storage = attachment.name, places.storage
    else:
        parts = urlsplit(attachment.url)
        path = Path(url2pathname(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None
        if path is None:
            return "Zotero does not say where its file is; name its data folder in CITELOOM_ZOTERO"
        name, storage = path.name, path.parent.parent
        if path.parent.name != attachment.key or storage.name != STORAGE_NAME:
            return "its file lies outside of Zotero's storage"
    if not name or name in (".", "..") or "/" in name or "\\" in name:
        return "its name leads out of its folder"
    file = storage.resolve(strict=True) / attachment.key / name
    return file if file.resolve(strict=True) == file else "is a link out of Zotero's storage"


def _find_linked(attachment: Attachment, places: FilePlaces) -> Path | str:
    """The path of a linked file inside the folder that the user named; raises OSError."""
    if places.group:
        return "is a linked file in a group's library, which Zotero does not allow"
    if places.linked is None:
        return f"is a linked file; {_LINKED_HELP}"
    base = places.linked.expanduser().resolve(strict=True)
    named = attachment.name
    path = base / named.removeprefix(_RELATIVE) if named.startswith(_RELATIVE) else Path(named)
    if not path.is_absolute():
        return "its path is not absolute"
    file = path.resolve(strict=True)
    return file if file.is_relative_to(base) else f"is a linked file outside of {base}; {_LINKED_HELP}"

"""Makes the BibTeX entry of an item, and finds the citation key that Better BibTeX gave it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..documents.bibliography import as_latex, render_entry
from ..documents.front_matter import find_doi
from ..documents.paper_names import zotero_fields
from ..metadata.bib_entry import escape_separators, normalize_pages
from ..metadata.citation_keys import KeyFields
from .zotero_records import Creator, ZoteroItem, ZoteroLibrary

_TYPES: Final = {
    "journalArticle": "article",
    "magazineArticle": "article",
    "newspaperArticle": "article",
    "conferencePaper": "inproceedings",
    "bookSection": "incollection",
    "encyclopediaArticle": "incollection",
    "dictionaryEntry": "incollection",
    "book": "book",
    "thesis": "phdthesis",
    "report": "techreport",
    "manuscript": "unpublished",
}
_VENUE_FIELD: Final = {
    "article": "journal",
    "inproceedings": "booktitle",
    "incollection": "booktitle",
    "phdthesis": "school",
    "mastersthesis": "school",
    "techreport": "institution",
}
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
    """Better BibTeX's key of an item: its field, else a line of Extra, else `known`; empty if none is usable."""
    written = item.fields.get("citationKey", "").strip() or _extra(item, "citation key") or _extra(item, "bibtex")
    found = written or known
    return found if found and len(found) <= _LONGEST_KEY and not _UNUSABLE.search(found) else ""


def key_fields(item: ZoteroItem) -> KeyFields:
    """What the key of an item without one is made of."""
    families = [creator.family for creator in _authors(item)]
    return KeyFields(families, item.title, _year(item), _venue(item), item.kind)


def item_entry(item: ZoteroItem, key: str, library: ZoteroLibrary, pdf: str = "") -> str:
    """The BibTeX entry of an item under a key, with the links back to it; `pdf` is the key of its PDF attachment."""
    kind = _TYPES.get(item.kind, "misc")
    if kind == "phdthesis" and "master" in item.fields.get("thesisType", "").lower():
        kind = "mastersthesis"
    field = item.fields.get
    doi, arxiv = _doi(item), _arxiv(item)
    editors = [creator for creator in item.creators if creator.role in ("editor", "seriesEditor")]
    authors = _authors(item)
    fields = {
        "title": "{" + as_latex(item.title) + "}" if item.title else "",
        "author": _names(authors),
        "editor": _names(editors) if kind in _EDITED and editors != authors else "",
        "year": str(_year(item) or ""),
        _VENUE_FIELD.get(kind, "howpublished"): as_latex(_venue(item)),
        "series": as_latex(field("series", "")),
        "volume": as_latex(field("volume", "")),
        "number": as_latex(field("issue") or field("reportNumber") or field("number") or ""),
        "pages": as_latex(normalize_pages(field("pages", "")[:100])),
        "edition": as_latex(field("edition", "")),
        "publisher": as_latex(field("publisher", "")),
        "address": as_latex(field("place", "")),
        "isbn": as_latex(field("ISBN", "")),
        "doi": _raw(doi),
        "eprint": _raw(arxiv),
        "archiveprefix": "arXiv" if arxiv else "",
        "url": _raw(field("url", "")),
        "abstract": as_latex(field("abstractNote", "")[:_MOST_ABSTRACT]),
        **zotero_fields(library.path, item.key, pdf),
    }
    return render_entry(kind, key, fields)


def item_doi(item: ZoteroItem) -> str:
    """The DOI of an item, in lower case; empty if it has none."""
    return _doi(item)


def _authors(item: ZoteroItem) -> list[Creator]:
    """The authors, else whoever else made it: editors first."""
    for roles in (("author",), ("editor", "bookAuthor"), None):
        found = [creator for creator in item.creators if roles is None or creator.role in roles]
        if found:
            return found
    return []


def _names(creators: Iterable[Creator]) -> str:
    return " and ".join(map(_name, list(creators)[:_MOST_NAMES]))


def _name(creator: Creator) -> str:
    """ "Family, Given", so that no family name is taken for a given one; a name of one part in braces."""
    if not creator.given:
        return "{" + as_latex(creator.family) + "}"
    written = f"{as_latex(creator.family).replace(',', ' ')}, {as_latex(creator.given).replace(',', ' ')}"
    return escape_separators(written)


def _venue(item: ZoteroItem) -> str:
    return next((value for name in _VENUES if (value := item.fields.get(name, ""))), "")


def _year(item: ZoteroItem) -> int | None:
    found = _YEAR.search(item.fields.get("date", "")[:200])
    return int(found[1]) if found else None


def _doi(item: ZoteroItem) -> str:
    return find_doi(item.fields.get("DOI", "")[:500]) or find_doi(_extra(item, "doi"))


def _arxiv(item: ZoteroItem) -> str:
    named = item.fields.get("archiveID", "")[:100] or _extra(item, "arxiv")
    found = _ARXIV.fullmatch(named.strip())
    return found[1] if found else ""


def _extra(item: ZoteroItem, name: str) -> str:
    """A value that stands as a line of its own in the Extra field."""
    lines = _IN_EXTRA.finditer(item.fields.get("extra", ""))
    return next((found[2] for found in lines if found[1].lower() == name), "")


def _raw(value: str) -> str:
    """A link or identifier without what could end its field."""
    return re.sub(r"[\s{}\\]", "", value[:2_000])

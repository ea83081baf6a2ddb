"""The ways to name a paper: by authors in a sentence ("Lee et al."), DOI or arXiv id, or Zotero item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from .front_matter import find_doi
from .types import Paper

_TITLE_WORDS = 6
_PARTICLES = frozenset({"van", "von", "der", "den", "de", "del", "della", "di", "da", "du", "la", "le", "ter", "ten"})
NAME_SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv)\.?$", re.IGNORECASE)
_TITLE_BREAK = re.compile(r"(?<!\s)(?:\s*+[:?!.]\s|\s++[\u2013\u2014-]\s)")


def family_name(author: str) -> str:
    """The family name with particles ("van Beethoven"); a name in braces ("{The ENCODE Consortium}") stays whole."""
    name = author.strip()
    if name.startswith("{") and name.endswith("}"):
        return name[1:-1].strip()
    if "," in name:
        head, _, rest = name.partition(",")
        if not NAME_SUFFIX.match(rest.strip()):
            return head.strip()
        name = head
    words = name.split()
    while len(words) > 1 and NAME_SUFFIX.match(words[-1]):
        words.pop()
    start = len(words) - 1
    while start > 1 and words[start - 1].lower() in _PARTICLES:
        start -= 1
    return " ".join(words[max(start, 0) :])


def in_text_name(paper: Paper) -> str:
    """The name of the paper in a sentence: its authors, or its quoted short title if it has none."""
    families = paper.family_names or tuple(family_name(author) for author in paper.authors)
    all_names = [name.strip("{} ") for name in families if name.strip("{} ")]
    names = [name for name in all_names if name.lower() != "others"]
    if not names:
        return f"\u201c{short_title(paper)}\u201d"
    if len(all_names) > 2 or len(names) < len(all_names):
        return f"{names[0]} et al."
    return " and ".join(names)


def short_title(paper: Paper) -> str:
    """The title up to its first punctuation break, at most six words; the key if there is no title."""
    title = _TITLE_BREAK.split(paper.title.strip(), maxsplit=1)[0].strip()
    words = title.split()
    return " ".join(words[:_TITLE_WORDS]) + " \u2026" * (len(words) > _TITLE_WORDS) if words else paper.key


ARXIV_PREFIX: Final = "10.48550/arxiv."
_LEAD = re.compile(r"^(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
_ARXIV = re.compile(
    r"^(?:https?://(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/|arxiv:\s*)?"
    r"(?P<id>\d{4}\.\d{4,5}|[a-z][a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?/?$",
    re.IGNORECASE,
)
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Identifier:
    """A paper's DOI in lower case."""

    doi: str

    @property
    def arxiv(self) -> str:
        """The arXiv id in the DOI; empty if it has none."""
        return self.doi.removeprefix(ARXIV_PREFIX) if self.doi.startswith(ARXIV_PREFIX) else ""

    @property
    def shown(self) -> str:
        return f"arXiv:{self.arxiv}" if self.arxiv else self.doi


def parse_identifier(text: str) -> Identifier | None:
    """Parse a text as an identifier; None if it is neither a DOI nor an arXiv id."""
    named = text.strip()
    if len(named) > _LONGEST:
        return None
    found = _ARXIV.match(named)
    if found:
        return Identifier(ARXIV_PREFIX + found["id"].lower())
    bare = unquote(_LEAD.sub("", named)) if "%" in named else _LEAD.sub("", named)
    doi = find_doi(bare)
    return Identifier(doi) if doi and doi == bare.rstrip(".,;)]/").lower() else None


_WHERE: Final = r"(?P<library>library|groups/[1-9][0-9]{0,11})/items/(?P<key>[A-Z0-9]{8})"
_FIELD: Final = r"^[ \t]{{0,8}}{name}[ \t]{{0,8}}=[ \t]{{0,8}}\{{{scheme}{where}\}},?[ \t]{{0,8}}$"
_ITEM = re.compile(_FIELD.format(name="zotero", scheme="zotero://select/", where=_WHERE), re.MULTILINE)
_PDF = re.compile(_FIELD.format(name="zoteropdf", scheme="zotero://open-pdf/", where=_WHERE), re.MULTILINE)

_ADDRESS = re.compile(rf"zotero://(?:select|open-pdf)/{_WHERE}")


def is_zotero_address(address: object) -> bool:
    """Whether an address has the form made by `zotero_links`, so that it is safe to show as a link."""
    return isinstance(address, str) and _ADDRESS.fullmatch(address) is not None


def zotero_fields(library: str, item: str, pdf: str = "") -> dict[str, str]:
    """The fields of an entry that remember an item and its PDF attachment; `library` is "library" or "groups/ID"."""
    return {
        "zotero": f"zotero://select/{library}/items/{item}",
        "zoteropdf": f"zotero://open-pdf/{library}/items/{pdf}" if pdf else "",
    }


def zotero_links(bibtex: str) -> dict[str, str]:
    """Addresses that Zotero opens: `zotero` shows the item, `zotero_pdf` its PDF; empty if there is none."""
    item, pdf = _ITEM.search(bibtex), _PDF.search(bibtex)
    select = f"zotero://select/{item['library']}/items/{item['key']}" if item else ""
    same = item is not None and pdf is not None and pdf["library"] == item["library"]
    opens = f"zotero://open-pdf/{pdf['library']}/items/{pdf['key']}" if pdf and same else ""
    return {"zotero": select, "zotero_pdf": opens}


def item_path(bibtex: str) -> str:
    """The library and key of a paper's item, such as library/items/ABCD2345; empty if it did not come from Zotero."""
    return zotero_links(bibtex)["zotero"].removeprefix("zotero://select/")


def zotero_address(bibtex: str, key: str) -> str:
    """The address by which Zotero's word processor plugins know the item of an entry; empty if it has none."""
    begins = re.search(rf"(?m)^@[A-Za-z]{{1,40}}\{{{re.escape(key)},", bibtex)
    ends = re.compile(r"(?m)^@[A-Za-z]{1,40}\{").search(bibtex, begins.end()) if begins else None
    path = item_path(bibtex[begins.start() : ends.start() if ends else None]) if begins else ""
    # A user's own library is matched whatever its id, so that Zotero finds the items by their keys.
    return f"http://zotero.org/{path.replace('library/', 'users/local/citeloom/', 1)}" if path else ""

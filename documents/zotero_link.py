"""Links from a paper back to its item in Zotero, kept in two fields of its BibTeX entry.

An entry may come from anybody, so a link is only what matches these patterns: no other scheme or path gets through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_WHERE: Final = r"(?P<library>library|groups/[1-9][0-9]{0,11})/items/(?P<key>[A-Z0-9]{8})"
_FIELD: Final = r"^[ \t]{{0,8}}{name}[ \t]{{0,8}}=[ \t]{{0,8}}\{{{scheme}{where}\}},?[ \t]{{0,8}}$"
_ITEM = re.compile(_FIELD.format(name="zotero", scheme="zotero://select/", where=_WHERE), re.MULTILINE)
_PDF = re.compile(_FIELD.format(name="zoteropdf", scheme="zotero://open-pdf/", where=_WHERE), re.MULTILINE)

_ADDRESS = re.compile(rf"zotero://(?:select|open-pdf)/{_WHERE}")


@dataclass(frozen=True, slots=True)
class ZoteroLink:
    """Addresses that Zotero opens: `select` shows the item, `pdf` its PDF; empty if there is none."""

    select: str
    pdf: str = ""

    def as_dict(self) -> dict[str, str]:
        """The addresses as records hold them."""
        return {"zotero": self.select, "zotero_pdf": self.pdf}


NO_LINK: Final = ZoteroLink("")


def is_zotero_address(address: object) -> bool:
    """Whether it is an address that `zotero_link` makes, so that it may be shown as a link."""
    return isinstance(address, str) and _ADDRESS.fullmatch(address) is not None


def zotero_fields(library: str, item: str, pdf: str = "") -> dict[str, str]:
    """The fields of an entry that remember an item and its PDF attachment; `library` is "library" or "groups/ID"."""
    return {
        "zotero": f"zotero://select/{library}/items/{item}",
        "zoteropdf": f"zotero://open-pdf/{library}/items/{pdf}" if pdf else "",
    }


def zotero_link(bibtex: str) -> ZoteroLink | None:
    """The link of a paper, from its BibTeX entry; None if it did not come from Zotero."""
    item, pdf = _ITEM.search(bibtex), _PDF.search(bibtex)
    if item is None:
        return None
    select = f"zotero://select/{item['library']}/items/{item['key']}"
    same = pdf is not None and pdf["library"] == item["library"]
    return ZoteroLink(select, f"zotero://open-pdf/{pdf['library']}/items/{pdf['key']}" if pdf and same else "")


def item_path(bibtex: str) -> str:
    """The library and key of a paper's item, such as library/items/ABCD2345; empty if it did not come from Zotero."""
    link = zotero_link(bibtex)
    return link.select.removeprefix("zotero://select/") if link else ""

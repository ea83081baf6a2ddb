from __future__ import annotations

import pytest

from citeloom.documents.bibliography import render_entry
from citeloom.documents.paper_names import is_zotero_address, item_path, zotero_fields, zotero_links

NONE = {"zotero": "", "zotero_pdf": ""}


@pytest.mark.parametrize("library", ["library", "groups/4711"])
def test_the_fields_of_an_entry_are_read_back(library: str) -> None:
    entry = render_entry("article", "a", {"title": "{A}", **zotero_fields(library, "ABCD2345", "PDFS2345")})
    select, pdf = f"zotero://select/{library}/items/ABCD2345", f"zotero://open-pdf/{library}/items/PDFS2345"
    assert zotero_links(entry) == {"zotero": select, "zotero_pdf": pdf}
    assert item_path(entry) == f"{library}/items/ABCD2345"
    assert is_zotero_address(select) and is_zotero_address(pdf)
    without = render_entry("article", "a", zotero_fields(library, "ABCD2345"))
    assert zotero_links(without) == {"zotero": select, "zotero_pdf": ""}


OTHERS = [
    "javascript:alert(1)",
    "zotero://select/library/items/ABCD2345/../../x",
    "zotero://select/library/items/abcd2345",
    "zotero://select/library/items/ABCD2345 onclick=x",
    "zotero://select/groups/0/items/ABCD2345",
    "zotero://select/groups/12345678901234/items/ABCD2345",
    "zotero://attachment/library/items/ABCD2345",
    "zotero://select/library/items/ABCD2345\n",
    "https://example.org/zotero://select/library/items/ABCD2345",
    "file:///etc/passwd",
    "",
]


@pytest.mark.parametrize("address", OTHERS, ids=range(len(OTHERS)))
def test_nothing_else_is_a_link(address: str) -> None:
    assert not is_zotero_address(address)
    if "\n" not in address:
        assert zotero_links(f"@article{{a,\n  zotero = {{{address}}},\n}}") == NONE


def test_a_link_inside_another_field_is_ignored() -> None:
    assert zotero_links("@article{a,\n  note = {zotero = {zotero://select/library/items/ABCD2345}},\n}") == NONE
    assert not is_zotero_address(None) and not is_zotero_address(3)


def test_a_pdf_in_another_library_is_ignored() -> None:
    entry = (
        "@article{a,\n  zotero = {zotero://select/library/items/ABCD2345},\n"
        "  zoteropdf = {zotero://open-pdf/groups/7/items/PDFS2345},\n}"
    )
    assert zotero_links(entry) == {"zotero": "zotero://select/library/items/ABCD2345", "zotero_pdf": ""}

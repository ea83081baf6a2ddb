from __future__ import annotations

import pytest

from citeloom.documents.bibliography import parse_bibliography
from citeloom.documents.paper_names import zotero_links
from citeloom.documents.types import Paper, entry_labels
from citeloom.metadata.bib_entry import KeyPattern
from citeloom.zotero.item_entry import bibtex_key, item_entry, key_fields
from citeloom.zotero.zotero_records import Creator, ZoteroItem, ZoteroLibrary

OWN = ZoteroLibrary()


def _item(kind: str = "journalArticle", *creators: Creator, **fields: str) -> ZoteroItem:
    return ZoteroItem("ABCD2345", kind, fields, creators)


def _paper(item: ZoteroItem, pdf: str = "") -> Paper:
    parsed = parse_bibliography(item_entry(item, "key1", OWN, pdf), source="x")
    assert not parsed.refused
    return parsed.papers["key1"]


@pytest.mark.parametrize(
    ("kind", "fields", "written"),
    [
        ("journalArticle", {"publicationTitle": "J", "issue": "3"}, ["@article{", "journal = {J}", "number = {3}"]),
        ("conferencePaper", {"proceedingsTitle": "P"}, ["@inproceedings{", "booktitle = {P}"]),
        ("bookSection", {"bookTitle": "B", "publisher": "Q"}, ["@incollection{", "booktitle = {B}", "publisher = {Q}"]),
        ("thesis", {"university": "U"}, ["@phdthesis{", "school = {U}"]),
        ("thesis", {"university": "U", "thesisType": "Master's thesis"}, ["@mastersthesis{", "school = {U}"]),
        ("report", {"institution": "I", "reportNumber": "9"}, ["@techreport{", "institution = {I}", "number = {9}"]),
        ("preprint", {"repository": "arXiv", "archiveID": "arXiv:1706.03762v5"}, ["@misc{", "eprint = {1706.03762}"]),
        ("webpage", {"websiteTitle": "W"}, ["@misc{", "howpublished = {W}"]),
        ("somethingNew", {"title": "T"}, ["@misc{", "title = {{T}}"]),
    ],
)
def test_each_kind_of_item_has_its_type_and_venue(kind: str, fields: dict[str, str], written: list[str]) -> None:
    entry = item_entry(_item(kind, **fields), "key1", OWN)
    assert all(part in entry for part in written), entry


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("2020-05-01 May 2020", 2020),
        ("2020-00-00 2020", 2020),
        ("1/5/2019", 2019),
        ("0000-00-00 in press", None),
        ("20190501", None),
        ("", None),
    ],
)
def test_the_year_is_read_from_dates_in_both_forms(date: str, year: int | None) -> None:
    assert _paper(_item(title="T", date=date)).year == year


def test_names_of_people_institutions_and_editors_are_read() -> None:
    people = (
        Creator("author", "van der Berg", "Jan"),
        Creator("author", "Sand and Stone Institute"),
        Creator("author", "Mac Others", "And"),
        Creator("editor", "Itor", "Ed"),
        Creator("contributor", "Hand", "Third"),
    )
    paper = _paper(_item("bookSection", *people, title="T"))
    assert paper.authors == ("Jan van der Berg", "Sand and Stone Institute", "And Mac Others")
    assert "editor = {Itor, Ed}" in paper.bibtex
    edited = _paper(_item("book", Creator("editor", "Itor", "Ed"), title="T"))
    assert edited.authors == ("Ed Itor",)


def test_a_doi_is_read_from_its_field_a_link_or_extra() -> None:
    for fields in ({"DOI": "https://doi.org/10.5555/A.b"}, {"extra": "PMID: 3\nDOI: 10.5555/A.b"}):
        assert _paper(_item(title="T", **fields)).doi == "10.5555/a.b"


def test_tags_and_collections_are_kept_whatever_characters_they_contain() -> None:
    tags = ("50% & more", "Looms, hand", "{evil}")
    item = ZoteroItem("ABCD2345", "thesis", {"title": "T, keywords = {no}"}, tags=tags)
    parsed = parse_bibliography(item_entry(item, "key1", OWN, collections=["Thesis/To read; soon"]), source="x")
    kind, kept, collections = entry_labels(parsed.papers["key1"].bibtex)
    assert (kind, kept, collections) == ("phdthesis", ["50% & more", "Looms, hand", "evil"], ["Thesis/To read; soon"])


HOSTILE = "}}, evil = {x}\n}\n@article{other, title={\\input{/etc/passwd}} %$#_&~^\\ {"


def test_no_text_of_an_item_can_end_its_field() -> None:
    names = "title abstractNote publicationTitle url DOI pages volume issue series place publisher ISBN extra".split()
    paper = _paper(
        _item("journalArticle", Creator("author", HOSTILE, HOSTILE), **dict.fromkeys(names, HOSTILE)), "PDFS2345"
    )
    assert "\\input" not in paper.bibtex and zotero_links(paper.bibtex)["zotero"]
    link = "@article{a, zotero = {zotero://select/library/items/EVIL2345}"
    found = zotero_links(_paper(_item(title=link, abstractNote=f"\n  {link}\n")).bibtex)
    assert found["zotero"].endswith("ABCD2345")


@pytest.mark.parametrize(
    ("fields", "known", "key"),
    [
        ({"citationKey": "field"}, "known", "field"),
        ({"extra": "Citation Key: extra2020"}, "known", "extra2020"),
        ({"extra": "note\n  citation key:extra2020 \nmore"}, "", "extra2020"),
        ({"extra": "bibtex: old2010"}, "", "old2010"),
        ({"extra": "The citation key: none"}, "known", "known"),
        ({}, "smith:2020_α-b/c", "smith:2020_α-b/c"),
        ({}, "a b", ""),
        ({}, "a,b", ""),
        ({}, "a}b", ""),
        ({"citationKey": "x" * 300}, "", ""),
    ],
)
def test_the_key_of_better_bibtex_is_used(fields: dict[str, str], known: str, key: str) -> None:
    assert bibtex_key(_item(**fields), known) == key


def test_a_key_follows_the_pattern_in_the_settings() -> None:
    item = _item("journalArticle", Creator("author", "Lovelace", "Ada"), title="On the Looms", date="2020")
    assert KeyPattern("auth.lower + year + veryshorttitle.lower").key(key_fields(item)) == "lovelace2020looms"

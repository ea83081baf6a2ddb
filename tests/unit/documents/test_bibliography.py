"""BibTeX libraries as users have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from citeloom.documents.bibliography import Bibliography, describe, key_from_path, parse_bibliography, read_bibliography
from citeloom.documents.markdown import parse_markdown
from citeloom.errors import InputError

SOURCE = r"""
@string{nat = "Nature"}
@comment{not an entry}
@article{Mueller_2020:a,
  title = {{The {DNA} of {\"O}cto --- 50% of $x_i$}},
  author = {M{\"u}ller, J{\"o}rg and {The ENCODE Consortium} and van der Berg, Jan and Doe, Jr., John and Ada Lee},
  journal = nat # " Comm.",
  date = {2020-03-01},
  doi = {https://doi.org/10.1234/ABC\_d},
  file = {Full Text:C\:\\Users\\me\\My paper.md:text/markdown;Snap:/x/y.html:text/html},
}
@book{plain, title="Plain", author="Hopper, Grace and others", year=1952}
@article{Mueller_2020:a, title = {Again}}
@article{broken, title = {never closed
@misc{twice, title = {One}, title = {Two}}
@misc{, title = {No key}}
@misc{b{a}d, title = {Odd key}}
"""


@pytest.fixture(scope="module")
def bibliography() -> Bibliography:
    return parse_bibliography(SOURCE, source="library.bib")


def test_metadata_is_readable(bibliography: Bibliography) -> None:
    paper = bibliography.papers["Mueller_2020:a"]
    assert paper.title == "The DNA of Öcto — 50% of $x_i$"
    assert paper.authors == ("Jörg Müller", "The ENCODE Consortium", "Jan van der Berg", "John Doe Jr.", "Ada Lee")
    assert paper.family_names == ("Müller", "The ENCODE Consortium", "van der Berg", "Doe", "Lee")
    assert (paper.year, paper.venue, paper.doi) == (2020, "Nature Comm.", "10.1234/abc_d")


def test_an_entry_is_kept_as_written_when_it_can_stand_alone(bibliography: Bibliography) -> None:
    plain = '@book{plain, title="Plain", author="Hopper, Grace and others", year=1952}'
    assert bibliography.papers["plain"].bibtex == plain
    rewritten = bibliography.papers["Mueller_2020:a"].bibtex
    assert "journal = {Nature Comm.}" in rewritten
    again = parse_bibliography(rewritten, source="again.bib")
    assert again.refused == ()
    assert again.papers["Mueller_2020:a"].title == bibliography.papers["Mueller_2020:a"].title


def test_unusable_entries_are_reported(bibliography: Bibliography) -> None:
    reasons = [refusal.reason for refusal in bibliography.refused]
    assert {refusal.path for refusal in bibliography.refused} == {"library.bib"}
    assert reasons[0] == "line 13: duplicate key Mueller_2020:a (first on line 4); the first entry is kept"
    assert reasons[1].startswith("line 14: entry broken lacks its closing brace")
    assert "line 16: entry without a usable key" in reasons[2]
    assert bibliography.papers["twice"].title == "One"
    assert "twice" in bibliography.warnings[0]
    assert len(parse_bibliography(bibliography.papers["twice"].bibtex, source="x").papers) == 1
    assert all("{" not in key for key in bibliography.papers)


@pytest.mark.parametrize(
    ("name", "doi", "title", "wanted"),
    [
        ("Mueller_2020:a.md", "", "", "Mueller_2020:a"),
        ("PLAIN.md", "", "", "plain"),
        ("My paper.md", "", "", "Mueller_2020:a"),
        ("x.md", "10.1234/ABC_d", "", "Mueller_2020:a"),
        ("x.md", "", "The DNA of Octo, 50 of", None),
        ("x.md", "", "the dna of ÖCTO: 50% of $x_i$", "Mueller_2020:a"),
        ("x.md", "", "Plain", None),
    ],
)
def test_a_file_is_matched_to_its_entry(
    bibliography: Bibliography, name: str, doi: str, title: str, wanted: str | None
) -> None:
    found = bibliography.match(Path(name), doi=doi, title=title)
    assert (found.key if found else None) == wanted


def test_a_missing_or_binary_bib_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.bib"):
        read_bibliography(tmp_path / "gone.bib")
    (tmp_path / "b.bib").write_bytes(b"@a{b\0}")
    with pytest.raises(InputError, match=r"b\.bib"):
        read_bibliography(tmp_path / "b.bib")


def test_a_latin_1_bib_is_read_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "old.bib").write_bytes("@misc{a, title={Café}}".encode("latin-1"))
    found = read_bibliography(tmp_path / "old.bib")
    assert found.papers["a"].title == "Café"
    assert "Latin-1" in found.warnings[0]


@pytest.mark.parametrize(
    ("name", "key"),
    [("My notes (v2).md", "My-notes-v2"), ("a{b}%c,d.md", "a-b-c-d"), ("Füße.md", "Fue"), ("论文.md", None)],
)
def test_generated_keys_are_safe(name: str, key: str | None) -> None:
    made = key_from_path(Path(name))
    assert made == key if key else made.startswith("paper-")


BROKEN = """@article{ada2020, title={Looms that count}, year={2020},

@misc{bob2021, file={scan7.pdf}, doi={10.1234/five}, title={Threads}

@misc{cyd2022, title={A whole one}}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("ada2020.md", ""), ("scan7.pdf", ""), ("x.md", "---\ndoi: 10.1234/five\n---\n"), ("y.md", "# Looms that count")],
)
def test_a_paper_whose_entry_is_broken_is_not_reported_as_without_an_entry(name: str, text: str) -> None:
    found = parse_bibliography(BROKEN, source="library.bib")
    assert [("line 1" in item.reason, "brace" in item.reason) for item in found.refused][:1] == [(True, True)]
    assert describe(Path(name), parse_markdown(f"{text}\n\nProse."), found)[1] == []
    assert "no .bib entry" in describe(Path("other.md"), parse_markdown("Prose."), found)[1][0]


def test_a_bib_that_is_another_kind_of_text_is_reported() -> None:
    assert "library.bib" in parse_bibliography("TY  - JOUR\nER  -", source="library.bib").warnings[0]


def test_a_generated_entry_can_be_read_back(tmp_path: Path) -> None:
    text = (
        "---\ntitle: 'Profit & {loss} of 50% \\ x_1'\nauthor: Ada Lovelace and Band and Sons\ndate: 1843\n---\n\nProse."
    )
    paper, warnings = describe(tmp_path / "a b.md", parse_markdown(text), Bibliography())
    assert "no .bib entry" in warnings[0]
    again = parse_bibliography(paper.bibtex, source="x").papers["a-b"]
    assert (again.title, again.year) == ("Profit & loss of 50% x_1", 1843)
    assert again.authors == paper.authors


LIBRARY = r"""
@preamble{"\newcommand{\x}{y}"}
@string(abc = "ABC Journal")
@comment{jabref-meta: databaseType:bibtex;}
@proceedings{icml20, title={Proceedings of Looms}, year=2020, publisher={PMLR}, doi={10.1234/all}}
@inproceedings{child, crossref={ICML20}, title={A child}, author={Ada Lee}}
@inproceedings{orphan, crossref={nobody}, title={An orphan}}
@inproceedings{loop1, crossref={loop2}, title={Loop one}}
@inproceedings{loop2, crossref={loop1}, title={Loop two}}
@article{accents, title={Über "Quoted" \& 100\% {$\alpha$}-rays: na{\"\i}ve \v{C}ech \aa ngstr\"om}, year={in press}}
@report{corporate, author={{World Health Organization} and {\'E}cole, Ren\'e and others}, title={Health}}
@ARTICLE{upper, TITLE = {Upper}, AUTHOR={Beta, A}, YEAR={2001}}
@article(paren, title={Paren}, year={2002}, journal=abc)
@online{web, title={Web}, date={2019-05/2020-01}, url={https://doi.org/10.5555/AB_c}}
@misc{zotero, title={Z}, file={Full Text PDF:files/12/My Paper.pdf:application/pdf;Snap:files/13/s.html:text/html}}
@misc{betterbib, title={B}, file={/home/me/Zotero/storage/AB12/other\_one.pdf}}
"""

ENTRIES = [
    ("child", "A child", 2020, "Proceedings of Looms", ""),
    ("orphan", "An orphan", None, "", ""),
    ("loop1", "Loop one", None, "Loop two", ""),
    ("accents", 'Über "Quoted" & 100% $\\alpha$-rays: naïve Čech ångström', None, "", ""),
    ("upper", "Upper", 2001, "", ""),
    ("paren", "Paren", 2002, "ABC Journal", ""),
    ("web", "Web", 2019, "", "10.5555/ab_c"),
]


@pytest.mark.parametrize(("key", "title", "year", "venue", "doi"), ENTRIES, ids=[entry[0] for entry in ENTRIES])
def test_typical_entries_of_users_are_read(key: str, title: str, year: int | None, venue: str, doi: str) -> None:
    paper = parse_bibliography(LIBRARY, source="x.bib").papers[key]
    assert (paper.title, paper.year, paper.venue, paper.doi) == (title, year, venue, doi)


def test_every_entry_of_a_library_is_read_and_can_stand_alone() -> None:
    whole = parse_bibliography(LIBRARY, source="x.bib")
    assert (whole.refused, len(whole.papers)) == ((), 12)
    for paper in whole.papers.values():
        alone = parse_bibliography(paper.bibtex, source="alone.bib").papers[paper.key]
        assert replace(alone, bibtex="") == replace(paper, bibtex="")
    assert whole.papers["upper"].bibtex in LIBRARY


def test_corporate_authors_stay_whole() -> None:
    paper = parse_bibliography(LIBRARY, source="x.bib").papers["corporate"]
    assert paper.authors == ("World Health Organization", "René École", "others")


@pytest.mark.parametrize(("name", "key"), [("My Paper.pdf", "zotero"), ("other_one.pdf", "betterbib")])
def test_files_listed_by_zotero_and_better_bibtex_are_matched_to_their_entry(name: str, key: str) -> None:
    found = parse_bibliography(LIBRARY, source="x.bib").match(Path(name))
    assert found is not None and found.key == key


def test_ten_thousand_entries_are_all_read() -> None:
    text = "".join(f"@misc{{k{n}, title={{Paper number {n} of many}}, doi={{10.1234/{n}}}}}\n" for n in range(10_000))
    library = parse_bibliography(text, source="x.bib")
    assert len(library.papers) == 10_000
    found = library.match(Path("a.md"), doi="10.1234/77"), library.match(Path("a.md"), title="Paper number 88 of many!")
    assert [paper.key if paper else None for paper in found] == ["k77", "k88"]

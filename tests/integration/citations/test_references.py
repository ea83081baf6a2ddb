"""References through the real pandoc, of the real library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from citeloom.citations.citation_styles import render
from citeloom.citations.export.section_files import bibliography
from citeloom.citations.references import build_references
from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.documents.bibliography import parse_bibliography, read_bibliography
from citeloom.errors import InputError
from citeloom.roles.protocols import Source

ODD = r"""
@article{se2020, title = {{Graphs \& {$x^2$} of_it}}, year = 2020, journal = {J},
  author = {Jouni Sir\xE9n and Timothy J. Triche, Jr.}}
@misc{k:1+x, title = {Only a title}}
@book{müller2001, title = {Ein Buch}, author = {{The Foo Group}}, publisher = {P}, year = 2001}
"""
BROKEN = Paper("broken", "Left *open*", ("Ada Lovelace",), 1843, "Notes", bibtex="@article{broken, title = {open")
NUMERIC_CSL = """<?xml version="1.0" encoding="utf-8"?>
<style xmlns="http://purl.org/net/xbiblio/csl" class="in-text" version="1.0">
  <info><title>Numbers</title><id>numbers</id><updated>2020-01-01T00:00:00+00:00</updated></info>
  <citation><layout><text variable="citation-number"/></layout></citation>
  <bibliography second-field-align="flush"><layout>
    <text variable="citation-number" prefix="[" suffix="]"/><text variable="title"/>
  </layout></bibliography>
</style>
"""


@pytest.fixture(scope="module")
def library(shared_dir: Path) -> dict[str, Paper]:
    return dict(read_bibliography(shared_dir / "corpus" / "library.bib").papers)


def test_every_paper_of_the_library_gets_a_readable_reference(library: dict[str, Paper]) -> None:
    references = build_references(list(library.values()), "key")
    assert references.warnings == ()
    assert [entry.key for entry in references.entries] == sorted(library, key=str.casefold)
    for entry in references.entries:
        paper = library[entry.key]
        assert re.match(rf"- \*\*{re.escape(entry.key)}\*\*: \S.*\. {paper.year}\. “.+”", entry.line)
        assert "\n" not in entry.line
        assert not re.search(r"</?(?:span|div)|ahead of print|[{}]|\\x", entry.line)
        assert paper.family_names[0] in entry.text
        assert not paper.doi or paper.doi in entry.text.lower()


def test_the_numeric_list_is_ordered_by_number(library: dict[str, Paper]) -> None:
    papers = list(library.values())[:3]
    numbers = {paper.key: number for number, paper in enumerate(reversed(papers), 1)}
    entries = build_references(papers, "numeric", numbers=numbers).entries
    assert [(entry.label, entry.key) for entry in entries] == [
        (str(number), paper.key) for number, paper in enumerate(reversed(papers), 1)
    ]


def test_odd_entries_are_repaired_for_the_reader() -> None:
    papers = list(parse_bibliography(ODD, source="odd.bib").papers.values())
    texts = {entry.key: entry.text for entry in build_references(papers, "key").entries}
    assert "Jouni Sirén" in texts["se2020"] or "Sirén, Jouni" in texts["se2020"]
    assert "Triche" in texts["se2020"] and "Jr. Timothy" not in texts["se2020"]
    assert "Only a Title" in texts["k:1+x"]
    assert texts["müller2001"].startswith("The Foo Group")


def test_an_entry_refused_by_pandoc_affects_no_other(library: dict[str, Paper]) -> None:
    good = list(library.values())[:4]
    references = build_references([*good, BROKEN], "key")
    assert len(references.entries) == 5
    assert [warning.split(":")[0] for warning in references.warnings] == ["broken"]
    broken = next(entry for entry in references.entries if entry.key == "broken")
    assert broken.text == r"Ada Lovelace. 1843. “Left \*open\*”. *Notes*."
    assert build_references(good, "key").entries == tuple(e for e in references.entries if e.key != "broken")


def test_a_users_own_style_file_is_used(library: dict[str, Paper], tmp_path: Path) -> None:
    csl = tmp_path / "numbers.csl"
    csl.write_text(NUMERIC_CSL, encoding="utf-8")
    entry = build_references([library["lee2022ten"]], "key", csl=csl).entries[0]
    linked = "[Ten Quick Tips for Deep Learning in Biology](https://doi.org/10.1371/journal.pcbi.1009803)"
    assert entry.line == f"- **lee2022ten**: {linked}"
    csl.write_text("no style", encoding="utf-8")
    references = build_references([library["lee2022ten"]], "key", csl=csl)
    assert "numbers.csl" in references.warnings[0] and "Lee" in references.entries[0].text
    with pytest.raises(InputError, match=r"missing\.csl"):
        build_references([library["lee2022ten"]], "key", csl=tmp_path / "missing.csl")


def _source(number: int, paper: Paper, page: int | None, section: str) -> Source:
    text = "A finding that holds."
    chunk = Chunk(f"{paper.key}:00000", paper.key, 0, text, section, "", Category.OTHER, 1, page, 0, len(text), 5)
    scores = {"vector_score": 0.5, "llm_score": 0.5, "combined_score": 0.5}
    evidence = Evidence.of(chunk, id=f"E{number}", summary="s", start=0, end=9, source_query="q", **scores)
    return Source(evidence, paper, text)


def test_pandoc_reads_the_citations_written_by_citeloom(library: dict[str, Paper], tmp_path: Path) -> None:
    import pypandoc

    odd = next(iter(parse_bibliography(ODD, source="odd.bib").papers.values()))
    papers = [library["lee2022ten"], library["himmelstein2017systematic"], odd]
    sections = ["Tip 1: don't, and 2-3; [more] @all", "2. Results & *discussion*", "Über `x_1`"]
    sources = [_source(n, paper, None, title) for n, (paper, title) in enumerate(zip(papers, sections, strict=True), 1)]
    sources.append(_source(4, papers[0], 7, ""))
    rendered = render("One [E1][E2]. Two [E3]. Three [E4].", sources, "pandoc")
    (tmp_path / "discussion.bib").write_text(bibliography(papers), encoding="utf-8")
    options = ["--citeproc", "--wrap=none", f"--bibliography={tmp_path / 'discussion.bib'}"]
    shown = pypandoc.convert_text(rendered.text, "plain", format="markdown", extra_args=options, sandbox=True)
    assert "One (Lee et al. 2022, in section “Tip 1: don’t, and 2-3" in shown
    assert "Himmelstein et al. 2017, in section “2. Results & discussion”)" in shown
    assert "Three (Lee et al. 2022, 7)" in shown
    assert "@" not in shown.split("Three")[0]
    latex = pypandoc.convert_text(render("So [E4][E2].", sources, "latex").text, "latex", format="markdown")
    assert latex.strip() == r"So \cite[p.~7]{lee2022ten} \cite{himmelstein2017systematic}."


def test_the_exported_bib_contains_exactly_the_cited_keys(library: dict[str, Paper], tmp_path: Path) -> None:
    papers = [library["lee2022ten"], library["hickey2020genotyping"]]
    (tmp_path / "discussion.bib").write_text(bibliography(papers), encoding="utf-8")
    written = read_bibliography(tmp_path / "discussion.bib")
    assert (set(written.papers), written.refused) == ({paper.key for paper in papers}, ())
    assert all(written.papers[paper.key].bibtex == paper.bibtex for paper in papers)

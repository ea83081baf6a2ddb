"""Word, LaTeX, JATS, HTML and EPUB by the real pandoc: structure, metadata, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.documents.markdown import ParsedPaper, parse_markdown
from citeloom.documents.pandoc import FORMATS, as_markdown
from citeloom.documents.safe_files import FileRefusedError
from citeloom.documents.types import Category

SOURCE = """\
---
title: Looms and Engines
author: Ada Lovelace
---

# Introduction

A loom weaves a pattern from cards, and an engine weaves numbers in the same way.

# Methods

## Cards

We punched 12 cards and counted the threads that each of them lifted.

| card | threads |
|------|---------|
| A    | 12      |
| B    | 30      |

$$ t = n^2 $$

# Conclusion

Looms and engines are closer than they seem.
"""
WRITERS = {".docx": "docx", ".tex": "latex", ".xml": "jats", ".html": "html", ".epub": "epub"}


def written(folder: Path, ending: str) -> Path:
    """The paper in another format, as pandoc writes it."""
    import pypandoc

    file = folder / f"paper{ending}"
    pypandoc.convert_text(
        SOURCE, WRITERS[ending], format="markdown", outputfile=str(file), extra_args=["--standalone", "--mathml"]
    )
    return file


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_brackets_and_symbols_are_quoted_as_displayed(tmp_path: Path, ending: str) -> None:
    import pypandoc

    source = "# Results\n\nSeen before \\[12, 13\\] at p \\< 0.05 with CRP \\> 52.5 and `a\\>b`, for \\$5 \\[4\\]."
    file = tmp_path / f"paper{ending}"
    pypandoc.convert_text(source, WRITERS[ending], format="markdown", outputfile=str(file), extra_args=["--standalone"])
    assert "Seen before [12, 13] at p < 0.05 with CRP > 52.5 and `a\\>b`, for \\$5 [4]." in as_markdown(file)


def parsed(file: Path) -> ParsedPaper:
    return parse_markdown(as_markdown(file))


@pytest.mark.parametrize("ending", sorted(WRITERS))
def test_structure_and_title_survive_conversion(tmp_path: Path, ending: str) -> None:
    paper = parsed(written(tmp_path, ending))
    assert paper.title == "Looms and Engines"
    titles = [(section.title, section.category) for section in paper.sections if section.title != paper.title]
    assert titles == [
        ("Introduction", Category.INTRODUCTION),
        ("Methods", Category.METHOD),
        ("Cards", Category.METHOD),
        ("Conclusion", Category.CONCLUSION),
    ]
    assert "We punched 12 cards and counted the threads that each of them lifted." in paper.text
    tables = [paper.text[block.start : block.end] for block in paper.blocks if block.kind == "table"]
    assert len(tables) == 1 and "threads" in tables[0] and "30" in tables[0]
    formulas = [paper.text[block.start : block.end] for block in paper.blocks if block.kind == "math"]
    assert len(formulas) == 1 and "t" in formulas[0]
    assert "<section" not in paper.text and "<div" not in paper.text and "<span" not in paper.text


@pytest.mark.parametrize("ending", [".docx", ".tex", ".xml"])
def test_an_abstract_is_part_of_the_papers_text(tmp_path: Path, ending: str) -> None:
    import pypandoc

    source = SOURCE.replace("author:", "abstract: Cards of 12 looms tired nobody.\nauthor:", 1)
    file = tmp_path / f"paper{ending}"
    pypandoc.convert_text(source, WRITERS[ending], format="markdown", outputfile=str(file), extra_args=["--standalone"])
    paper = parsed(file)
    (section,) = (section for section in paper.sections if section.category is Category.ABSTRACT)
    shown = [paper.text[block.start : block.end].strip() for block in paper.section_blocks(section)]
    assert section.searchable and shown == ["Cards of 12 looms tired nobody."] == [paper.abstract()]


ARTICLE = """\
<?xml version="1.0"?>
<article><front><article-meta><title-group><article-title>Looms</article-title></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Lovelace</surname><given-names>Ada</given-names></name>
<xref ref-type="corresp" rid="c1"/></contrib></contrib-group>
<author-notes><corresp id="c1">Correspondence: Ada Lovelace, London</corresp></author-notes>
<abstract><sec><title>Objective</title><p>To tire weavers.</p></sec>
<sec><title>Results</title><p>Of 48 weavers, 12 tired.</p></sec></abstract></article-meta></front>
<body><sec><title>Introduction</title><p>See <xref ref-type="fig" rid="f1">Figure 1</xref> and
<ext-link ext-link-type="uri" xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="http://a.example/">there</ext-link>.
</p></sec></body>
<back><ref-list><title>References</title>
<ref id="r1"><mixed-citation>Someone: else 2001.</mixed-citation></ref></ref-list>
</back><floats-group><table-wrap id="t1"><label>Table 1</label><caption><p>Weavers that tired</p></caption>
<table><thead><tr><th>loom</th><th>tired</th></tr></thead><tbody><tr><td>A</td><td>12</td></tr></tbody></table>
</table-wrap></floats-group></article>
"""


def test_nothing_of_an_article_is_lost_or_shown_as_markup(tmp_path: Path) -> None:
    file = tmp_path / "looms.xml"
    file.write_text(ARTICLE, encoding="utf-8")
    paper = parsed(file)
    assert [section.title for section in paper.sections][:2] == ["Abstract", "Introduction"]
    assert paper.front_matter.authors == ("Ada Lovelace",) and not paper.warnings
    assert "**Results:** Of 48 weavers, 12 tired." in paper.text
    assert "See Figure 1 and [there](http://a.example/)." in " ".join(paper.text.split())
    tables = [paper.text[block.start : block.end] for block in paper.blocks if block.kind == "table"]
    assert len(tables) == 1 and "12" in tables[0] and "Weavers that tired" in paper.text


def test_an_articles_doi_and_journal_are_read_and_left_out_of_abstract_and_names(tmp_path: Path) -> None:
    doi = "10.7554/eLife.04490"
    front = f"""<front><journal-meta><journal-title-group><journal-title>Looms &amp; Engines</journal-title>
</journal-title-group></journal-meta><article-meta><article-id pub-id-type="pmcid">17</article-id>
<article-id pub-id-type="doi">{doi}</article-id>"""
    object_id = f'<abstract><object-id pub-id-type="doi">{doi}.001</object-id>'
    link = (
        f'<ext-link ext-link-type="doi" xmlns:x="http://www.w3.org/1999/xlink" x:href="{doi}.001">{doi}.001</ext-link>'
    )
    given = ARTICLE.replace("<front><article-meta>", front).replace("<abstract>", object_id)
    given = given.replace("</abstract>", f"<p><bold>DOI:</bold> {link}</p></abstract>")
    given = given.replace(
        "Correspondence: Ada Lovelace, London", "<label>*</label>For correspondence: <email>a@b.example</email>"
    )
    file = tmp_path / "looms.xml"
    file.write_text(given, encoding="utf-8")
    paper = parsed(file)
    matter = paper.front_matter
    assert (matter.doi, matter.venue, matter.authors) == (doi.lower(), "Looms & Engines", ("Ada Lovelace",))
    assert ".001" not in paper.text and paper.abstract().startswith("**Objective:** To tire weavers.")
    file.write_text(
        given.replace(f">{doi}<", ">10.1002/15&lt;1661::AID&gt;2-2<").replace("Looms", "\0"), encoding="utf-8"
    )
    damaged = parsed(file).front_matter
    assert (damaged.doi, damaged.venue) == ("", "")


def test_the_author_is_read_from_the_file(tmp_path: Path) -> None:
    assert parsed(written(tmp_path, ".docx")).front_matter.authors == ("Ada Lovelace",)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("a.docx", b"", ""),
        ("a.docx", b"no archive at all", "docx"),
        ("b.docx", b"PK\x03\x04 cut", "docx"),
        ("a.epub", b"<html></html>", "epub"),
        ("a.tex", rb"\section{Part}", "\\documentclass"),
        ("a.xml", b"<?xml version='1.0'?><note>x</note>", "JATS"),
        ("a.html", b"  \n", ""),
    ],
)
def test_a_document_that_is_not_of_its_format_is_refused(tmp_path: Path, name: str, content: bytes, named: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(FileRefusedError) as caught:
        as_markdown(file)
    assert named in str(caught.value) and "\n" not in str(caught.value)


def test_a_document_cannot_make_pandoc_read_other_files(tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("the secret word", encoding="utf-8")
    paper = tmp_path / "paper.tex"
    paper.write_text(
        f"\\documentclass{{article}}\\begin{{document}}Before. \\input{{{tmp_path}/secret}} After.\\end{{document}}",
        encoding="utf-8",
    )
    assert "secret word" not in as_markdown(paper)


def test_every_readable_file_ending_is_in_lower_case() -> None:
    assert all(ending == ending.lower() and ending.startswith(".") for ending in FORMATS)


def test_an_introduction_without_a_heading_is_not_part_of_the_abstract(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    people = "".join(
        f'<contrib contrib-type="{kind}"><name><surname>{name}</surname><given-names>A</given-names></name></contrib>'
        for kind, name in (("editor", "Eysenbach"), ("reviewer", "Norman"), ("author", "Whittaker"))
    )
    file.write_text(
        f"<article><front><article-meta><title-group><article-title>Messages</article-title></title-group>"
        f"<contrib-group>{people}</contrib-group><abstract><p>We sent messages.</p></abstract></article-meta></front>"
        "<body><p>Smoking harms.</p><sec><title>Methods</title><p>We sent 200 messages.</p></sec></body></article>"
    )
    paper = parse_markdown(as_markdown(file))
    found = [(part.category, paper.text[part.start : part.end].strip()) for part in paper.sections]
    assert found == [
        (Category.ABSTRACT, "We sent messages."),
        (Category.INTRODUCTION, "Smoking harms."),
        (Category.METHOD, "We sent 200 messages."),
    ]
    assert (paper.front_matter.authors, paper.abstract()) == (("A Whittaker",), "We sent messages.")


SPANNING = """<?xml version="1.0"?><article><front><article-meta><title-group><article-title>A trial</article-title>
</title-group></article-meta></front>
<body><sec><title>Results</title><p>As <xref ref-type="table" rid="T1">Table 1</xref> shows.</p>
<table-wrap id="T1"><object-id>1</object-id><label><bold>Table 1</bold></label><caption><title>Outcomes at 48 h</title>
<p>Values are n (%).</p></caption><table>
<thead><tr><th rowspan="2">Outcome</th><th colspan="2">Group</th><th rowspan="2">P</th></tr>
<tr><th>A<break/>(n = 50)</th><th>B (n = 48)</th></tr></thead>
<tbody><tr><td rowspan="2">Vomiting</td><td>13 (26)</td><td>5 (10.4)</td><td>0.037</td></tr>
<tr><td>in 24 h</td><td>4</td><td>0.1</td></tr><tr><td colspan="4">Secondary</td></tr></tbody></table></table-wrap>
<table-wrap id="T2"><label>Table 2</label><table><tbody><tr><td>Age</td><td>54</td></tr></tbody></table></table-wrap>
<p>And so on.</p></sec></body></article>
"""


def test_a_table_with_merged_cells_has_one_header_and_repeats_row_labels(tmp_path: Path) -> None:
    file = tmp_path / "paper.xml"
    file.write_text(SPANNING, encoding="utf-8")
    text = as_markdown(file)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == ["Outcome", "Group, A (n = 50)", "Group, B (n = 48)", "P"]
    assert rows[2:5] == [
        ["Vomiting", "13 (26)", "5 (10.4)", "0.037"],
        ["Vomiting", "in 24 h", "4", "0.1"],
        ["Secondary", "", "", ""],
    ]
    assert "<t" not in text


def test_the_label_of_a_table_starts_its_caption_and_is_not_a_heading(tmp_path: Path) -> None:
    file = tmp_path / "paper.xml"
    file.write_text(SPANNING, encoding="utf-8")
    lines = as_markdown(file).splitlines()
    assert "**Table 1**. Outcomes at 48 h. Values are n (%)." in lines and "Table 2" in lines
    assert [line for line in lines if line.startswith("#")] == ["# Results"]

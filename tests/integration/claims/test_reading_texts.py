"""Users' texts in all formats are read into sentences with their citations and places, and are never changed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pypandoc
import pytest

from citeloom.citations.references import style_file
from citeloom.claims.manuscript import Manuscript
from citeloom.claims.markup_readers import read_manuscript
from citeloom.claims.reference_entries import ReferenceList, citation_faults, load_references, pointer_faults
from citeloom.documents import Paper
from citeloom.errors import InputError
from tests.support.word_files import csl, endnote, mendeley_cite, paragraph, raised, run, word_field, write_word, zotero

CASES = json.loads((Path(__file__).parents[2] / "unit" / "cases" / "check_marker_cases.json").read_text("utf-8"))
POINTERS = json.loads((Path(__file__).parents[2] / "unit" / "cases" / "check_pointer_cases.json").read_text("utf-8"))
ENTRIES = [Paper(key, "", tuple(names.split("|")), year) for key, (names, year) in CASES["entries"].items()]
LOOMS, SLOW = csl("Smith", 2020, "Looms that scale"), csl("Lee", 2019, "Slow looms")


def cited(file: Path, papers: list[Paper] | None = None) -> list[list[str]]:
    """The keys that each citation names."""
    manuscript = read_manuscript(file)
    references = load_references(manuscript, file, None, papers or [])
    entries = tuple(references.entries.values())
    return [
        [references.key_of(work) or work.shown for work in mark.works]
        for sentence in manuscript.sentences(entries)
        for mark in sentence.marks
    ]


def shown(manuscript: Manuscript) -> list[str]:
    return [sentence.shown for sentence in manuscript.sentences()]


def test_a_long_text_with_figures_and_tables_is_read(tmp_path: Path) -> None:
    file = tmp_path / "long.md"
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    file.write_text("![One.](one.png)\n\n" + table + "Looms wove cloth, as Figure 1 shows. " * 4_000, "utf-8")
    read = read_manuscript(file)
    assert read.targets["figure"] == ["1"] and read.targets["table"] == ["1"]
    assert len(shown(read)) == 4_000


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: str(case["id"]))
def test_citations_in_labelled_texts_are_read_as_a_reader_sees_them(case: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / f"text.{case['format']}"
    file.write_text(str(case["text"]), encoding="utf-8")
    manuscript = read_manuscript(file)
    references = load_references(manuscript, file, None, ENTRIES)
    sentences = manuscript.sentences(tuple(references.entries.values()))
    keys = [[references.key_of(work) or work.shown for work in mark.works] for one in sentences for mark in one.marks]
    assert keys == case["cites"]
    assert len(sentences) == case.get("sentences", len(sentences))
    assert all(any(words in one.shown for one in sentences) for words in case.get("says", ()))  # type: ignore[attr-defined]
    assert file.read_text(encoding="utf-8") == case["text"]


def test_an_opening_quotation_mark_stays_with_its_sentence(tmp_path: Path) -> None:
    file = tmp_path / "text.md"
    file.write_text('They are slow. "The looms never rest, they said. So.', encoding="utf-8")
    assert shown(read_manuscript(file)) == ["They are slow.", '"The looms never rest, they said.', "So."]


def test_each_sentence_maps_back_to_its_words_in_the_file(tmp_path: Path) -> None:
    text = (
        "\\begin{document}\n% a remark\nLooms \\emph{scale} well \\cite{smith2020}.\nThey are slow.\n\\end{document}\n"
    )
    file = tmp_path / "text.tex"
    file.write_text(text, encoding="utf-8")
    manuscript = read_manuscript(file)
    places = [manuscript.place(one.start, one.end) for one in manuscript.sentences()]
    words = [text[place["start"] : place["end"]] for place in places]
    assert words == ["Looms \\emph{scale} well \\cite{smith2020}.", "They are slow."]
    assert [(place["line"], place["column"]) for place in places] == [(3, 1), (4, 1)]


def test_included_files_are_read_inside_the_folder_and_never_outside(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "secret.tex").write_text("A secret \\cite{secret}.", encoding="utf-8")
    (folder / "parts" / "one.tex").write_text("From a part \\cite{smith2020}.", encoding="utf-8")
    (folder / "link.tex").symlink_to(tmp_path / "secret.tex")
    main = folder / "main.tex"
    main.write_text(
        "\\input{parts/one}\n\\input{../secret}\n\\input{link}\n\\input{main}\n\\input{gone}", encoding="utf-8"
    )
    manuscript = read_manuscript(main)
    assert shown(manuscript) == ["From a part [smith2020]."]
    assert manuscript.place(0, 5)["file"] == "parts/one.tex"
    assert sum("outside the folder" in notice for notice in manuscript.notices) == 2
    assert any("gone.tex" in notice for notice in manuscript.notices)


def test_two_megabytes_of_latex_with_macros_are_read(tmp_path: Path) -> None:
    file = tmp_path / "long.tex"
    macros = "\\newcommand{\\tool}{Weaver}\\newcommand{\\loop}{\\tool\\loop}\\newcommand{\\see}[2]{#1 \\cite{#2}}\n"
    file.write_text(macros + "\\see{The \\tool{} scales}{smith2020}. \\loop\n\n" * 40_000, encoding="utf-8")
    sentences = read_manuscript(file).sentences()
    assert sentences[0].shown == "The Weaver scales [smith2020]."


def test_fields_of_zotero_mendeley_and_endnote_identify_their_works(tmp_path: Path) -> None:
    file = write_word(
        tmp_path / "text.docx",
        paragraph(run("Introduction"), style="berschrift1"),
        paragraph(run("Looms scale "), zotero(LOOMS, SLOW), run(". They are old "), mendeley_cite(SLOW), run(".")),
        paragraph(run("They hum "), endnote("Roe", 2018, "Humming looms"), run(".")),
        paragraph(run("They rattle "), endnote("Doe", 2017, "Rattling looms", encoded=True), run(".")),
    )
    assert cited(file) == [
        ["smith2020looms", "lee2019slow"],
        ["lee2019slow"],
        ["roe2018humming"],
        ["doe2017rattling"],
    ]
    manuscript = read_manuscript(file)
    assert {paper.title for paper in manuscript.papers.values()} >= {"Looms that scale", "Humming looms"}
    assert manuscript.sentences()[0].section == "Introduction"
    assert manuscript.place(manuscript.sentences()[0].start, manuscript.sentences()[0].end)["paragraph"] == 1


def test_plain_citations_in_word_are_matched_to_its_reference_list(tmp_path: Path) -> None:
    file = write_word(
        tmp_path / "text.docx",
        paragraph(run("Looms scale [2]. They are slow."), raised("1,2"), run(" They cover 5 m"), raised("2"), run(".")),
        paragraph(run("References"), style="berschrift1"),
        paragraph(run("1. Smith A. Looms that scale. 2020.")),
        paragraph(run("2. Lee B. Slow looms. 2019.")),
    )
    assert cited(file) == [["2"], ["1", "2"]]


@pytest.mark.parametrize("case", POINTERS["pointers"], ids=lambda case: str(case["id"]))
def test_a_mention_of_a_missing_figure_table_or_section_is_reported(case: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / f"text.{case['format']}"
    file.write_text(str(case["text"]), encoding="utf-8")
    manuscript = read_manuscript(file)
    found = pointer_faults(manuscript, manuscript.sentences(ENTRIES))
    said = [fault["message"] for faults in found.values() for fault in faults]
    names = [message.partition("points to ")[2].partition(",")[0] for message in said]
    assert [name.removeprefix("label ").lower() for name in names] == [str(name).lower() for name in case["missing"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", POINTERS["broken"], ids=lambda case: str(case["text"]))
def test_a_broken_citation_is_reported_as_a_missing_reference(case: dict[str, object], tmp_path: Path) -> None:
    file = tmp_path / f"text.{case['format']}"
    file.write_text(str(case["text"]), encoding="utf-8")
    manuscript, smith = read_manuscript(file), Paper("smith2020", "", ("Smith",), 2020)
    references = ReferenceList({"smith2020": smith}, {})
    works = [work for one in manuscript.sentences([smith]) for mark in one.marks for work in mark.works]
    assert [work.key for work in works if work.key != "smith2020"] == case["keys"]
    faults = [fault for one in manuscript.sentences([smith]) for fault in citation_faults(one, references, {})]
    assert [fault["rule"] for fault in faults] == ["key-without-entry"] * len(case["keys"])  # type: ignore[arg-type]


@pytest.mark.parametrize("style", ["", "Bibliography", "EndNoteBibliography"])
def test_the_reference_list_in_word_is_not_part_of_the_text(style: str, tmp_path: Path) -> None:
    entries = ("Lee, B. Slow looms. 2019. It won a prize.", "Smith, A. Looms that scale. 2020.")
    heading = [] if style else [paragraph(run("7. References and notes".removesuffix(" and notes")))]
    file = write_word(
        tmp_path / "text.docx",
        paragraph(run("Looms scale (Smith 2020).")),
        *heading,
        *(paragraph(run(entry), style=style) for entry in entries),
    )
    manuscript = read_manuscript(file)
    assert shown(manuscript) == ["Looms scale (Smith 2020)."]
    assert [item.text for item in manuscript.listed] == list(entries)


@pytest.mark.parametrize("style", ["chicago-author-date", "apa", "ieee"])
def test_a_reference_list_that_repeats_a_bib_file_adds_no_duplicates(style: str, tmp_path: Path) -> None:
    bib, file = tmp_path / "my.bib", tmp_path / "my.docx"
    bib.write_text(
        "@article{smith, title={Looms that scale with their weavers}, author={Smith, Ann and Lee, Bo},"
        " year={2020}, journal={Weaving}, doi={10.1000/looms.1}}\n"
        "@article{smithlater, title={Slow looms and patient weavers}, author={Smith, Ann}, year={2020},"
        " journal={Weaving}}\n"
        "@article{roe, title={Humming looms in the valley}, author={Roe, Cy and Doe, Di and Poe, Ed and Loe, Flo},"
        " year={2018}, journal={Weaving}}\n",
        "utf-8",
    )
    text = "Looms scale [@smith]. They are slow [@smithlater], and they hum [@roe].\n\n# References\n"
    options = ["--citeproc", f"--bibliography={bib}", f"--csl={style_file(style)}"]
    pypandoc.convert_text(text, "docx", format="markdown", outputfile=str(file), extra_args=options)
    manuscript = read_manuscript(file)
    references = load_references(manuscript, file, bib, [])
    assert len(manuscript.listed) == 3 and list(references.entries) == ["smith", "smithlater", "roe"]
    works = [work for one in manuscript.sentences() for mark in one.marks for work in mark.works]
    assert "smith" in [references.key_of(work) for work in works] and references.key_of(works[-1]) == "roe"


def test_tracked_changes_comments_equations_and_lost_references_in_word_are_read(tmp_path: Path) -> None:
    deleted = "<w:del><w:r><w:delText>never </w:delText></w:r></w:del>"
    inserted = f"<w:ins>{run('always ')}</w:ins>"
    formula = "<m:oMath><m:r><m:t>x = 1</m:t></m:r></m:oMath>"
    file = write_word(
        tmp_path / "text.docx",
        paragraph(run("Looms "), deleted, inserted, run("scale as "), formula, run(".")),
        paragraph(run("See "), word_field(" REF _Ref1 \\h ", "Error! Reference source not found."), run(" for more.")),
        comments='<w:comment w:id="4" w:author="A"><w:p><w:r><w:t>Why?</w:t></w:r></w:p></w:comment>',
    )
    manuscript = read_manuscript(file)
    assert shown(manuscript)[0] == "Looms always scale as \u2026."
    assert len(manuscript.notices) == 3
    assert {pointer.name for pointer in manuscript.pointers} == {"_Ref1", "Error! Reference source not found."}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("text.docx", b"PK\x03\x04 broken", "broken"),
        ("text.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "password"),
        ("text.docx", b"", "broken"),
        ("text.tex", b"\\section{a\0b}", "text file"),
        ("text.md", b"\0" * 10, "text file"),
        ("text.md", b"a" * 5_000_000, "MB"),
        ("text.pdf", b"%PDF-1.4 nothing", "text.pdf"),
        ("text.odt", b"PK", ".docx"),
    ],
)
def test_an_unreadable_file_is_reported_in_one_line(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError, match=name) as raised_error:
        read_manuscript(file)
    assert says in raised_error.value.message and "\n" not in raised_error.value.message


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><w:document>&b;</w:document>'
    file = tmp_path / "text.docx"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", bomb)
    with pytest.raises(InputError, match="entities"):
        read_manuscript(file)


@pytest.mark.parametrize("name", ["none.pdf", "none.docx", "none.md", "none.tex"])
def test_a_missing_file_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_manuscript(tmp_path / name)


@pytest.mark.parametrize(
    ("ending", "text", "keys"),
    [
        ("md", "Looms scale [@]. They are slow [@smith2020].", [[""], ["smith2020"]]),
        ("md", "Looms scale [@{}]. They are slow [see @smith2020; @].", [[""], ["smith2020", ""]]),
        ("md", "Looms scale \\cite{}. So `[@]` is code.", [[""]]),
        ("tex", "Looms scale \\cite{}. They are slow \\citep[see][4]{ }.", [[""], [""]]),
        ("tex", "Looms scale \\cite{smith2020,}.", [["smith2020"]]),
        ("typ", "Looms scale #cite(). They are slow @smith2020.", [[""], ["smith2020"]]),
    ],
)
def test_a_citation_without_a_key_is_read_as_naming_no_work(
    tmp_path: Path, ending: str, text: str, keys: list[list[str]]
) -> None:
    file = tmp_path / f"text.{ending}"
    file.write_text(text, encoding="utf-8")
    assert cited(file, ENTRIES) == keys


def test_labels_of_quarto_cells_and_attributes_can_be_referred_to(tmp_path: Path) -> None:
    file = tmp_path / "text.qmd"
    cells = "```{r}\n#| label: fig-one\nplot(1)\n```\n\n```{r fig-two, echo=FALSE}\nplot(2)\n```\n\n"
    cells += '```{python}\n#| label: "tbl-one"\n```\n\n```{ojs}\n//| label: fig-three\n```\n\n'
    heading = "## Looms {.unnumbered #sec-looms}\n\n"
    named = ["fig-one", "fig-two", "tbl-one", "fig-three", "sec-looms", "fig-none"]
    file.write_text(cells + heading + "".join(f"Looms weave, see @{name}.\n\n" for name in named), "utf-8")
    manuscript = read_manuscript(file)
    faults = [fault for found in pointer_faults(manuscript, manuscript.sentences()).values() for fault in found]
    assert [fault["message"] for fault in faults] == ["It points to label fig-none, which the text does not have."]

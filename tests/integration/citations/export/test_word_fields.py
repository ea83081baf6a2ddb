"""Citations in Word and LibreOffice documents as Zotero's own fields, as its plugins read them."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from citeloom.citations.export.pandoc_formats import convert
from citeloom.citations.export.word_fields import CitedEvidence, DocumentOptions
from citeloom.citations.references import style_file
from citeloom.documents.edited_documents import read_edited
from citeloom.errors import InputError

BIB = """@article{lee2019,
  title = {A {DNA} title <b>&},
  author = {Lee, Ann and Kim, Bo},
  year = {2019},
  journal = {Nature},
  doi = {10.1/abc},
  zotero = {zotero://select/groups/42/items/ABCD2345}
}

@inproceedings{obrien:2020,
  title = {Other "quoted" words},
  author = {O'Brien, Niamh},
  year = {2020},
  booktitle = {Conf}
}
"""
SOURCE = """# Results

It rains [@lee2019, p. 4; @obrien:2020, in section “Methods”]. @lee2019 says
why. Figure\ue2001\ue201 shows $a^2$ [@obrien:2020, pp. 2, 7].

$$E = mc^2$$

| a | b |
|---|---|
| 1 | 2 |

"""
PLACES = [
    CitedEvidence(frozenset({"lee2019", "obrien:2020"}), ("E3", "E5"), "\u201cWords & <more>\u201d"),
    CitedEvidence(frozenset({"lee2019"}), ()),
    CitedEvidence(frozenset({"obrien:2020"}), ("E9",), "Other words"),
]
PNG = (
    "![Figure 1. Rain.](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg==)\n"
)
LIVE = DocumentOptions("zotero", evidence_comments=True)


def _made(target: str, csl: str = "", options: DocumentOptions = LIVE) -> dict[str, str]:
    data = convert(
        SOURCE + PNG,
        BIB,
        target,  # type: ignore[arg-type]
        csl=style_file(csl),
        mark="run-1 results",
        places=PLACES,
        document=options,
    )
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".xml")}
    for name, xml in parts.items():
        ElementTree.fromstring(xml)
        assert "\ue200" not in xml, name
    return parts


def _codes(parts: dict[str, str]) -> list[str]:
    if "content.xml" in parts:
        found = re.findall(
            r"(?:reference-mark-start|text:section) text:name=('[^']*'|\"[^\"]*\")", parts["content.xml"]
        )
        return [html.unescape(name[1:-1]) for name in found if "ZOTERO" in name]
    text = parts["word/document.xml"] + parts.get("word/footnotes.xml", "")
    return [html.unescape(code).strip() for code in re.findall(r"<w:instrText[^>]*>([^<]*ZOTERO[^<]*)<", text)]


def _citations(parts: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    for code in _codes(parts):
        if "CSL_CITATION" in code:
            citation, end = json.JSONDecoder().raw_decode(code[code.index("{") :])
            assert re.fullmatch(r"(| RND\w{10})", code[code.index("{") + end :]), code
            found.append(citation)
    return found


@pytest.mark.parametrize("csl", ["", "ieee", "apa"])
@pytest.mark.parametrize("target", ["docx", "odt"])
def test_each_citation_is_a_field_with_its_works_and_displayed_text(target: str, csl: str) -> None:
    parts = _made(target, csl)
    first, second, third = _citations(parts)
    text = re.sub("<[^<>]*>", "", re.sub("<w:instrText.*?</w:instrText>", "", "".join(parts.values())))
    for citation in (first, second, third):
        assert html.escape(citation["properties"]["plainCitation"], quote=False) in text
        for item in citation["citationItems"]:
            data = item["itemData"]
            assert data["type"] and data["title"] and data["author"][0]["family"] and data["issued"]["date-parts"]
            assert isinstance(item["uris"], list) and len(item["uris"]) == 1
    assert first["citationID"] == "E3-E5-1" and third["citationID"] == "E9-3"
    assert [item["id"] for item in first["citationItems"]] == ["lee2019", "obrien:2020"]
    assert first["citationItems"][0] | {"locator": "4", "label": "page"} == first["citationItems"][0]
    assert first["citationItems"][0]["uris"] == ["http://zotero.org/groups/42/items/ABCD2345"]
    assert first["citationItems"][1]["suffix"] == ", in section “Methods”"
    assert second["citationItems"][0].get("suppress-author") is (None if csl == "ieee" else True)
    assert "Lee" not in second["properties"]["plainCitation"]
    assert third["citationItems"][0]["locator"] == "2, 7"
    assert sum("CSL_BIBLIOGRAPHY" in code for code in _codes(parts)) == 1
    numbers = {
        "": "(Lee and Kim 2019, 4; O’Brien 2020, in section “Methods”)",
        "ieee": "[1, p. 4], [2], in section “Methods”",
    }
    if csl in numbers:
        assert first["properties"]["plainCitation"] == numbers[csl]


@pytest.mark.parametrize("target", ["docx", "odt"])
def test_the_document_stores_its_zotero_style_and_its_run(target: str) -> None:
    parts = _made(target, "ieee")
    xml = parts["docProps/custom.xml" if target == "docx" else "meta.xml"]
    values = re.findall(r'name="(ZOTERO_PREF_\d|citeloom-run)"[^>]*>(?:<vt:lpwstr>)?([^<]*)<', xml)
    pieces = {name: html.unescape(value) for name, value in values}
    assert pieces["citeloom-run"] == "run-1 results"
    assert all(len(piece) <= 255 for piece in pieces.values())
    data = ElementTree.fromstring("".join(pieces[f"ZOTERO_PREF_{n}"] for n in range(1, len(pieces))))
    style, prefs = data.find("style"), {one.get("name"): one.get("value") for one in data.iter("pref")}
    assert data.get("data-version") == "3" and data.find("session") is not None
    assert style is not None and style.get("id") == "http://www.zotero.org/styles/ieee"
    assert prefs["fieldType"] == ("Field" if target == "docx" else "ReferenceMark") and prefs["noteType"] == "0"


def test_word_gets_equations_captions_cross_references_comments_and_fields_only_on_request() -> None:
    parts = _made("docx")
    document, comments = parts["word/document.xml"], parts["word/comments.xml"]
    assert "<m:oMath>" in document and "<w:tbl>" in document
    assert " SEQ Figure " in document and " REF _Ref_figure_1 " in document and 'w:name="_Ref_figure_1"' in document
    assert comments.count("<w:comment ") == 2 == document.count("<w:commentReference ")
    assert "Words &amp; &lt;more&gt;" in comments
    plain = _made("docx", options=DocumentOptions("text"))
    assert not _codes(plain) and "citeloom-run" in plain["docProps/custom.xml"]
    assert "Lee and Kim" in plain["word/document.xml"] and "w:hyperlink" in plain["word/document.xml"]
    assert len(_citations(_made("docx", options=DocumentOptions()))) == 3, "one of the papers came from Zotero"
    notes = _made("docx", "chicago-notes-bibliography")
    assert [one["properties"]["noteIndex"] for one in _citations(notes)] == [1, 2, 3]


_TABLES = """# Results

It rains, as Table 1 shows (table 2) [@lee2019, Table 1]; `Table 1` and \u201cTable 2 of theirs\u201d are words.

**Table 1.** Rain by $a^2$. It is like Table 2.

| a | b |
|---|---|
| 1 | 2 |

Words between.

| c | d |
|---|---|
| 3 | 4 |

Table 2: Snow.

Table 7. Far.

| e |
|---|
| 5 |

Words after.

Table 9. No table stands beside it.
"""


@pytest.mark.parametrize("target", ["docx", "odt"])
def test_captions_of_tables_are_sequence_fields_and_mentions_refer_to_them(target: str, tmp_path: Path) -> None:
    file = tmp_path / f"text.{target}"
    file.write_bytes(convert(_TABLES, BIB, target, document=LIVE))  # type: ignore[arg-type]
    with zipfile.ZipFile(file) as archive:
        xml = archive.read("word/document.xml" if target == "docx" else "content.xml").decode()
    fields = re.findall(r" ((?:SEQ|REF) [^<]*?) <", xml)
    if target == "odt":
        fields = re.findall(r'<text:sequence(?:-ref)? [^>]*(?:ref-name="refTable\d"|formula="[^"]*")[^>]*>', xml)
        assert [re.sub(r'.*?(?:formula="(.*?)"|ref-name="(.*?)").*', r"\1\2", field) for field in fields] == [
            *("refTable1", "refTable2", "refTable1", "refTable2", "refTable2", "refTable7")
        ]
        assert xml.count('formula="ooow:Table+1"') == 2 and 'formula="7"' in xml, "others would be numbered anew"
    else:
        reference, sequence = "REF _Ref_table_{} \\h", "SEQ Table \\* ARABIC"
        mentions = [reference.format(number) for number in (1, 2)]
        assert fields == [*mentions, sequence, mentions[1], sequence, "SEQ Table \\r 7"]
    assert "\ue200" not in xml and "Table 1" in re.sub("<[^>]*>", "", xml)
    back = read_edited(file).text
    places = [back.index(words) for words in ("Table 1.**", "| a ", "Words between", "| c ", "Table 2: Snow.", "| e ")]
    if target == "docx":  # as Word writes it in German
        with zipfile.ZipFile(file) as archive:
            parts = {name: archive.read(name).replace(b'"TableCaption"', b'"B"') for name in archive.namelist()}
        with zipfile.ZipFile(file, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
        assert read_edited(file).text == back
    assert places == sorted(places) and "$a^{2}$" in back and "`Table 1`" in back and "(table\u00a02)" in back


@pytest.mark.parametrize("target", ["docx", "odt"])
def test_a_template_provides_styles_and_a_bad_one_is_refused_in_one_line(target: str, tmp_path: Path) -> None:
    good = tmp_path / f"my.{target}"
    good.write_bytes(convert("# Mine\n", "", target))  # type: ignore[arg-type]
    assert _made(target, options=DocumentOptions(reference_doc=good))
    bomb = tmp_path / f"bomb.{target}"
    shutil.copy(good, bomb)
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/big.xml", b" " * 61_000_000)
    broken = tmp_path / f"broken.{target}"
    broken.write_bytes(b"PK\x03\x04 no archive")
    for path in (bomb, broken, tmp_path / f"none.{target}", tmp_path / "my.txt", tmp_path):
        with pytest.raises(InputError) as refused:
            _made(target, options=DocumentOptions(reference_doc=path))
        assert str(path) in refused.value.message and "\n" not in refused.value.message


_KINDS = """
@misc{a, title = {A}, author = {Lee, Ann and others}, year = {in press}, howpublished = {H}, eprint = {1901.00001}}
@phdthesis{b, title = {B}, author = {van der Berg, Jan and O'Brien, N., Jr.}, school = {S}, year = {n.d.}}
@unheard{c, title = {C}, author = {{World Health Organization}}, date = {2018/2019-05}, keywords = {x, y}, eid = {e1}}
@article{d, author = {Lee, A}, date = {2019-21}, pmid = {12}, shorttitle = {S}, translator = {T, T}, usera = {z}}
@book{e, title = {E}, editor = {Ed, E}, edition = {2}, volumes = {3}, isbn = {1}, urldate = {2020-01-02}, year = {-50}}
@dataset{f, title = {F}, date = {2019~}, version = {1.0}}
@inproceedings{g, title = {G}, author = {Lee, A}, booktitle = {C}, eventdate = {2019-01-01/2019-01-05}, pages = {1--3}}
"""


@pytest.mark.parametrize("target", ["docx", "odt"])
def test_fields_for_all_kinds_of_works_follow_csl(target: str) -> None:
    source = "# Results\n\n" + " ".join(f"It is so [@{key}, p. 4]." for key in "abcdefg") + "\n"
    data = convert(source, _KINDS, target, document=DocumentOptions("zotero"))  # type: ignore[arg-type]
    with zipfile.ZipFile(BytesIO(data)) as archive:
        made = _citations({name: archive.read(name).decode() for name in archive.namelist() if name.endswith(".xml")})
    works = {item["id"]: item["itemData"] for one in made for item in one["citationItems"]}
    assert [works[key]["type"] for key in "abceg"] == ["document", "thesis", "document", "book", "paper-conference"]
    assert (
        "issued" not in works["a"] and "issued" not in works["b"] and works["d"]["issued"]["date-parts"] == [[2019, 21]]
    )
    if folder := os.environ.get("CITELOOM_CSL_SCHEMA"):  # `schemas/input` of citation-style-language/schema
        _check_against(Path(folder), made)


def _check_against(folder: Path, citations: list[dict[str, Any]]) -> None:
    """Check with the published schema but for what Zotero adds: what a field shows, the schema's former address."""
    from jsonschema import Draft7Validator
    from referencing import Registry, Resource

    schema, data = (json.loads((folder / f"csl-{name}.json").read_text("utf-8")) for name in ("citation", "data"))
    address = schema["properties"]["citationItems"]["items"]["properties"]["itemData"]["$ref"].partition("#")[0]
    registry: Any = Registry().with_resource(address, Resource.from_contents(data))
    shown = {"formattedCitation", "plainCitation"}
    for citation in citations:
        properties = {name: value for name, value in citation["properties"].items() if name not in shown}
        plain = {**citation, "properties": properties, "schema": schema["$id"]}
        faults = list(Draft7Validator(schema, registry=registry).iter_errors(plain))
        assert not faults, faults[0]

"""Reads a Word document as prose: its paragraphs, and the citation fields of Zotero, Mendeley and EndNote.

The XML is parsed by position, so that a copy with comments can be made without touching anything else. Deleted text of
tracked changes is left out, inserted text is read.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from ..documents import Paper
from ..documents.front_matter import find_doi
from ..documents.safe_files import FileRefusedError, open_office, read_part
from ..text.words import read_rules
from .manuscript import LIST_HEADING, ListedReference, Manuscript

_RULES: Final = {name: re.compile(rule) for name, rule in read_rules(__file__, "markup_rules")["word"].items()}
_MENDELEY: Final = "MENDELEY_CITATION"


@dataclass(frozen=True, slots=True)
class WordRun:
    """A run of text: bytes `first:last` of the part, characters `start:end` of its paragraph's prose."""

    paragraph: int
    start: int
    end: int
    first: int
    last: int


@dataclass
class _Field:
    instruction: str = ""
    in_result: bool = False
    written: str | None = None


def read_word(path: str) -> Manuscript:
    """Read a document. Raises `FileRefusedError`."""
    file = Path(path)
    with open_office(file) as archive:
        body = WordText(read_part(archive, "word/document.xml"), _style_names(read_part(archive, "word/styles.xml")))
        notes = [WordText(read_part(archive, name)) for name in ("word/footnotes.xml", "word/endnotes.xml")]
        commented = b"<w:comment " in read_part(archive, "word/comments.xml")
    for note in notes:
        body.append(note)
    prose, notices = body.prose, body.prose.notices
    prose.files = [file.name]
    if body.changes:
        notices.append(f"{file.name}: tracked changes are read as if accepted ({body.changes} deletions left out).")
    if commented:
        notices.append(f"{file.name}: its comments are not checked.")
    if body.formulas:
        notices.append(f"{file.name}: {body.formulas} equations are not checked.")
    return prose.finish()


class WordText:
    """The prose of one part, its runs with their bytes, and the works that its citation fields name."""

    def __init__(self, xml: bytes, styles: Mapping[str, str] | None = None) -> None:
        self.prose = Manuscript("docx")
        self.runs: list[WordRun] = []
        self.changes = self.formulas = self.paragraphs = 0
        self._styles = styles or {}
        self._in_list = False
        self._style = ""
        self._pieces: list[tuple[str, int]] = []
        self._fields: list[_Field] = []
        self._skip = 0
        self._table = 0
        self._run_start = self._run_text = 0
        self._data: list[str] = []
        self._raised = False
        self._text_kind = ""
        self._controls: list[str] = []
        self._length = 0
        if not xml:
            return
        parser = expat.ParserCreate(namespace_separator=None)
        parser.buffer_text = True
        parser.StartElementHandler = lambda name, attributes: self._start(name, attributes, parser.CurrentByteIndex)
        parser.EndElementHandler = lambda name: self._end(name, parser.CurrentByteIndex, xml)
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(xml, True)
        except expat.ExpatError as error:
            raise FileRefusedError(f"contains broken XML (line {error.lineno})") from None

    def append(self, note: WordText) -> None:
        """Add the paragraphs of another part, such as footnotes, at the end of the document."""
        for line in filter(None, (line.strip() for line in "".join(note.prose.pieces).split("\n\n"))):
            self.prose.paragraph(self.paragraphs, 0)
            self.prose.add(line, self.paragraphs, 0, 0)
        self.prose.papers |= note.prose.papers
        self.changes += note.changes

    def _start(self, name: str, attributes: Mapping[str, str], at: int) -> None:
        local = name.rpartition(":")[2]
        if name.startswith("m:") and local in ("oMath", "oMathPara"):
            self.formulas += local == "oMath" and not self._skip
            self._put("\u2026") if local == "oMath" and not self._skip else None
            self._skip += 1
        elif local in ("del", "moveFrom", "instrDel"):
            self.changes += 1
            self._skip += 1
        elif local == "tbl":
            self._table += 1
        elif local == "p" and name.startswith("w:"):
            self._style, self._pieces, self._length = "", [], 0
        elif local == "pStyle":
            self._style = self._styles.get(attributes.get("w:val", ""), attributes.get("w:val", ""))
        elif local == "r":
            self._run_start, self._raised = at, False
            self._run_text = self._length
        elif local == "vertAlign":
            self._raised = attributes.get("w:val") == "superscript"
        elif local in ("t", "instrText", "delText", "fldData"):
            self._text_kind = local
        elif local in ("tab", "br", "cr") and not self._skip:
            self._put(" ")
        elif local == "fldChar":
            self._field(attributes.get("w:fldCharType", ""))
        elif local == "fldSimple":
            self._fields.append(_Field(attributes.get("w:instr", "")))
            self._begin_result(self._fields[-1])
        elif local == "sdt":
            self._controls.append("")
        elif local == "tag" and self._controls:
            # Mendeley Cite keeps a citation in the tag of a content control.
            tag = attributes.get("w:val", "")
            if tag.startswith(_MENDELEY) and (works := _csl_works(_decode(tag.rpartition("_")[2]))):
                self._write(works)
                self._controls[-1] = "written"
        elif local == "bookmarkStart":
            self.prose.labels.append(attributes.get("w:name", ""))

    def _end(self, name: str, at: int, xml: bytes) -> None:
        local = name.rpartition(":")[2]
        if (name.startswith("m:") and local in ("oMath", "oMathPara")) or local in ("del", "moveFrom", "instrDel"):
            self._skip = max(0, self._skip - 1)
        elif local == "tbl":
            self._table -= 1
        elif local == "p" and name.startswith("w:"):
            self._finish_paragraph()
        elif local == "r":
            if self._length > self._run_text:
                last = xml.index(b">", at) + 1
                self.runs.append(WordRun(self.paragraphs, self._run_text, self._length, self._run_start, last))
        elif local in ("t", "instrText", "delText", "fldData"):
            if local == "fldData" and self._fields:
                self._fields[-1].instruction += _decode("".join(self._data))
            self._text_kind = ""
            self._data.clear()
        elif local == "fldSimple":
            self._field("end")
        elif local == "sdt" and self._controls:
            self._controls.pop()

    def _characters(self, data: str) -> None:
        if self._skip or self._text_kind == "delText":
            return
        if self._text_kind == "fldData":
            self._data.append(data)
        elif self._text_kind == "instrText" and self._fields:
            self._fields[-1].instruction += data
        elif self._text_kind == "t":
            replaced = any(one.in_result and one.written is not None for one in self._fields)
            if not replaced and not any(self._controls):
                raised = self._raised and re.fullmatch(r"[\d,;\s\u2013-]+", data)
                self._put(f"^{data.strip()}^" if raised else data)

    def _put(self, text: str) -> None:
        self._pieces.append((text, self._length))
        self._length += len(text)

    def _field(self, kind: str) -> None:
        if kind == "begin":
            self._fields.append(_Field())
        elif kind == "separate" and self._fields:
            self._begin_result(self._fields[-1])
        elif kind == "end" and self._fields:
            ended = self._fields.pop()
            if not ended.in_result:
                self._begin_result(ended)

    def _begin_result(self, begun: _Field) -> None:
        """Write a citation field as the keys of its works, in place of the text shown in Word."""
        begun.in_result = True
        instruction = begun.instruction
        works: list[Paper] = []
        if _RULES["json_field"].search(instruction):
            works = _csl_works(instruction[instruction.find("{") :])
        elif "EN.CITE" in instruction:
            works = [] if "EN.CITE.DATA" in instruction else list(_endnote_works(instruction))
        else:
            self._in_list = self._in_list or bool(_RULES["bibliography"].search(instruction))
            pointed = _RULES["ref_field"].match(instruction)
            if pointed and not self._skip:
                self._pieces.append((f"\ue020{pointed[1]}", self._length))
        if works:
            self._write(works)
            begun.written = ""

    def _write(self, works: list[Paper]) -> None:
        for paper in works:
            self.prose.papers.setdefault(paper.key, paper)
        self._put("[" + "; ".join(f"@{{{paper.key}}}" for paper in works) + "]")

    def _finish_paragraph(self) -> None:
        unit = self.paragraphs
        self.paragraphs += 1
        text = "".join(piece for piece, _ in self._pieces if not piece.startswith("\ue020")).strip()
        heading = _RULES["heading"].fullmatch(self._style.strip())
        of_list = LIST_HEADING.fullmatch(text) is not None
        if text and (heading or of_list):
            self._in_list = of_list
        elif text and (self._in_list or _RULES["list_style"].fullmatch(self._style.strip())):
            number = _RULES["number"].match(text)
            self.prose.listed.append(
                ListedReference(number[1] if number else "", text[number.end() :] if number else text)
            )
            return
        if not text or self._table:
            return
        self.prose.paragraph(unit, 0)
        if heading or of_list:
            self.prose.add("#" * min(6, 1 + int(heading[1] or 0) if heading else 1) + " ", unit, 0, 0)
        for piece, at in self._pieces:
            if piece.startswith("\ue020"):
                self.prose.point("label", piece[1:], "", unit, at, at)
            else:
                done = 0
                for broken in _RULES["broken_reference"].finditer(piece):
                    self.prose.add(piece[done : broken.start()], unit, at + done, at + broken.start())
                    self.prose.point("label", broken[0], broken[0], unit, at + broken.start(), at + broken.end())
                    done = broken.end()
                self.prose.add(piece[done:], unit, at + done, at + len(piece))


def _style_names(xml: bytes) -> dict[str, str]:
    text = xml.decode("utf-8", "replace")
    found = re.findall(
        r'<w:style\b[^<>]{0,300}w:styleId="([^"]{1,100})"[^<>]{0,300}>\s{0,20}<w:name w:val="([^"]{1,100})"', text
    )
    return {name: html.unescape(shown) for name, shown in found}


def _csl_works(text: str) -> list[Paper]:
    try:
        citation = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return []
    items = citation.get("citationItems") if isinstance(citation, dict) else None
    data = [item.get("itemData") for item in items or () if isinstance(item, dict)]
    return [_csl_paper(item) for item in data if isinstance(item, dict)]


def _csl_paper(item: Mapping[str, Any]) -> Paper:
    names = [name for name in item.get("author") or () if isinstance(name, dict)]
    families = tuple(str(name.get("family") or name.get("literal") or "") for name in names)
    authors = tuple(f"{name.get('given', '')} {family}".strip() for name, family in zip(names, families, strict=True))
    issued = item.get("issued")
    dates = str(issued.get("date-parts") or issued.get("raw") or "") if isinstance(issued, dict) else ""
    title, doi = str(item.get("title") or ""), find_doi(str(item.get("DOI") or ""))
    return _listed_paper(title, authors, families, dates, doi)


def _listed_paper(title: str, authors: tuple[str, ...], families: tuple[str, ...], dates: str, doi: str) -> Paper:
    year = re.search(r"(?:1[5-9]|20)\d\d", dates)
    words = re.findall(r"[^\W\d_]{4,}", title.casefold())
    name = re.sub(r"\W", "", families[0].casefold()) if families else "anonymous"
    key = f"{name}{year[0] if year else ''}{words[0] if words else ''}"
    number = int(year[0]) if year else None
    return Paper(key, " ".join(title.split()), authors, number, doi=doi, family_names=families)


def _decode(data: str) -> str:
    try:
        return base64.b64decode("".join(data.split()) + "==").decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _endnote_works(instruction: str) -> Iterator[Paper]:
    xml = html.unescape(instruction) if "&lt;Cite" in instruction else instruction
    for cite in _RULES["endnote"].findall(xml):

        def values(name: str, within: str = cite) -> list[str]:
            found = re.findall(rf"<{name}>((?:(?!<{name}>).){{0,2000}}?)</{name}>", within, re.DOTALL)
            return [html.unescape(" ".join(_RULES["tag"].sub("", value).split())) for value in found]

        authors = tuple(values("author") or values("Author"))
        families = tuple(name.partition(",")[0].strip() for name in authors)
        title = (values("title") or [""])[0]
        year = (values("year") or values("Year") or [""])[0]
        doi = find_doi((values("electronic-resource-num") or [""])[0])
        shown = tuple(" ".join(reversed([part.strip() for part in name.split(",", 1)])) for name in authors)
        yield _listed_paper(title, shown, families, year, doi)

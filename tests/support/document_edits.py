"""Edits a Word or LibreOffice document as a person would, by a seeded script, and says which words are then in it."""

from __future__ import annotations

import json
import random
import re
import zipfile
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
T: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
PARTS: Final = {".docx": "word/document.xml", ".odt": "content.xml"}
_WORD: Final = re.compile(r"[^\W_]+")


class EditedFile:
    """A document whose paragraphs are edited in place."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.kind = path, path.suffix
        with zipfile.ZipFile(path) as archive:
            self.parts = {name: archive.read(name) for name in archive.namelist()}
        source = self.parts[PARTS[self.kind]]
        for prefix, address in re.findall(rb'xmlns:([A-Za-z]\w*)="([^"]*)"', source):
            ElementTree.register_namespace(prefix.decode(), address.decode())
        self.root = ElementTree.fromstring(source)
        notes = self.parts.get("word/footnotes.xml", b"")
        self.notes = ElementTree.fromstring(notes) if notes else Element("none")
        self.random = random.Random(seed)
        self.tag = W + "p" if self.kind == ".docx" else T + "p"
        self.done: Counter[str] = Counter()

    def paragraphs(self) -> list[tuple[Element, Element]]:
        """The paragraphs of plain text, each with its parent: no titles of sections, no list of references."""
        found = []
        for parent in self.root.iter():
            for child in parent:
                words = "".join(child.itertext())
                style = "".join(value for one in child.iter() for value in one.attrib.values() if len(value) < 40)
                listed = "CSL_BIBLIOGRAPHY" in words or parent.tag.rpartition("}")[2] in ("section", "annotation")
                framed = listed or re.search("Heading|Bibliography|Title", style)
                if child.tag == self.tag and len(words) > 60 and not framed:
                    found.append((parent, child))
        return found

    def edit(self, count: int) -> None:
        """Make this many edits."""
        edits = [self._delete, self._move, self._split, self._merge, self._format, self._say, self._say, self._cut]
        for _ in range(count):
            places = self.paragraphs()
            if len(places) < 4:
                return
            more = [self._track, *([self._note] if self._called() else [])] if self.kind == ".docx" else []
            chosen = self.random.choice([*edits, *more])
            parent, paragraph = self.random.choice(places)
            self.done[chosen.__name__] += chosen(parent, paragraph) is not False

    def _delete(self, parent: Element, paragraph: Element) -> None:
        parent.remove(paragraph)

    def _move(self, parent: Element, paragraph: Element) -> None:
        parent.remove(paragraph)
        other, before = self.random.choice(self.paragraphs())
        other.insert(list(other).index(before), paragraph)

    def _runs(self, paragraph: Element) -> list[int]:
        """The places of children outside of fields, where a paragraph can be cut."""
        depth, places = 0, []
        for place, child in enumerate(paragraph):
            for one in child.iter():
                depth += {"begin": 1, "end": -1}.get(one.get(W + "fldCharType", ""), 0)
                depth += {T + "reference-mark-start": 1, T + "reference-mark-end": -1}.get(one.tag, 0)
            if depth == 0 and place and child.tag != W + "pPr":
                places.append(place)
        return places

    def _split(self, parent: Element, paragraph: Element) -> bool:
        places = self._runs(paragraph)
        if not places:
            return False
        place = self.random.choice(places)
        rest = Element(paragraph.tag, paragraph.attrib)
        if self.kind == ".odt":
            rest.text, paragraph[place].tail = paragraph[place].tail, ""
        for child in list(paragraph)[place + 1 :]:
            paragraph.remove(child)
            rest.append(child)
        parent.insert(list(parent).index(paragraph) + 1, rest)
        return True

    def _merge(self, parent: Element, paragraph: Element) -> bool:
        place = list(parent).index(paragraph)
        following = list(parent)[place + 1 : place + 2]
        if not following or following[0].tag != self.tag or "Heading" in str(following[0].attrib):
            return False
        if self.kind == ".docx":
            paragraph.append(_run(" "))
        elif len(paragraph):
            paragraph[-1].tail = f"{paragraph[-1].tail or ''} {following[0].text or ''}"
        else:
            paragraph.text = f"{paragraph.text or ''} {following[0].text or ''}"
        for child in following[0]:
            if child.tag != W + "pPr":
                paragraph.append(child)
        parent.remove(following[0])
        return True

    def _texts(self, paragraph: Element) -> list[Element]:
        """The plain runs of a Word paragraph outside of fields and tracked changes."""
        depth, found = 0, []
        for child in paragraph:
            for one in child.iter():
                depth += {"begin": 1, "end": -1}.get(one.get(W + "fldCharType", ""), 0)
            text = child.find(W + "t")
            if depth == 0 and child.tag == W + "r" and text is not None and len(text.text or "") > 3:
                found.append(child)
        return found

    def _format(self, _: Element, paragraph: Element) -> bool:
        if self.kind == ".odt":
            return False
        runs = self._texts(paragraph)
        if runs:
            run = self.random.choice(runs)
            properties = run.find(W + "rPr")
            if properties is None:
                properties = Element(W + "rPr")
                run.insert(0, properties)
            ElementTree.SubElement(properties, W + "b")
        return bool(runs)

    def _new(self) -> str:
        return f" Added word{self.random.randrange(10**6)} in number {self.random.randrange(1000)}. "

    def _say(self, _: Element, paragraph: Element) -> bool:
        if self.kind == ".odt":
            words = (paragraph.text or "").split(" ")
            place = self.random.randrange(len(words) + 1)
            paragraph.text = " ".join([*words[:place], self._new().strip(), *words[place:]])
            return True
        runs = self._texts(paragraph)
        if runs:
            text = self.random.choice(runs).find(W + "t")
            assert text is not None
            text.text = f"{text.text}{self._new()}"
        return bool(runs)

    def _called(self) -> list[Element]:
        """The footnotes of a Word document that its text calls."""
        numbers = {one.get(W + "id") for one in self.root.iter(W + "footnoteReference")}
        return [note for note in self.notes.iter(W + "footnote") if note.get(W + "id") in numbers]

    def _note(self, _: Element, __: Element) -> None:
        self.random.choice(self._called()).findall(W + "p")[-1].append(_run(self._new()))

    def _cut(self, _: Element, paragraph: Element) -> bool:
        if self.kind == ".odt":
            paragraph.text = " ".join((paragraph.text or "").split(" ")[:-1])
            return True
        runs = self._texts(paragraph)
        if len(runs) > 3:
            paragraph.remove(self.random.choice(runs))
        return len(runs) > 3

    def _track(self, _: Element, paragraph: Element) -> bool:
        runs = self._texts(paragraph)
        if not runs:
            return False
        run, kind = self.random.choice(runs), self.random.choice(["del", "ins"])
        place = list(paragraph).index(run)
        change = Element(W + kind, {W + "author": "A person", W + "id": str(self.random.randrange(10**6))})
        if kind == "ins":
            change.append(_run(self._new()))
            paragraph.insert(place, change)
        else:
            paragraph.remove(run)
            text = run.find(W + "t")
            assert text is not None
            text.tag = W + "delText"
            change.append(run)
            paragraph.insert(place, change)
        return True

    def save(self, path: Path) -> None:
        content = BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.parts.items():
                whole = ElementTree.tostring(self.root, encoding="utf-8", xml_declaration=True)
                if name == "word/footnotes.xml":
                    data = ElementTree.tostring(self.notes, encoding="utf-8", xml_declaration=True)
                archive.writestr(name, whole if name == PARTS[self.kind] else data)
        path.write_bytes(content.getvalue())

    def words(self) -> Counter[str]:
        """The words of the document with changes accepted, without what citations, their list and the title show."""
        said: list[str] = []
        codes: list[str] = []

        def read(element: Element, hidden: bool) -> None:
            name = element.get(T + "name", "")
            kind = element.tag.rpartition("}")[2]
            codes_before = len(codes)
            if element.get(W + "fldCharType") == "begin":
                codes.append("")
            elif element.get(W + "fldCharType") == "end":
                codes.pop()
            elif kind == "instrText":
                codes[-1] += element.text or ""
            elif element.tag == T + "reference-mark-start" and "ZOTERO" in name:
                codes.append("ZOTERO")
            elif element.tag == T + "reference-mark-end" and "ZOTERO" in name:
                codes.pop()
            hidden = (
                hidden
                or kind in ("del", "moveFrom", "annotation", "note-citation")
                or (kind == "section" and "ZOTERO" in name)
            )
            live = not hidden and not any("ZOTERO" in code for code in codes)
            if (live and kind == "t" and self.kind == ".docx") or (
                live and self.kind == ".odt" and codes_before == len(codes)
            ):
                said.append(element.text or "")
            for child in element:
                read(child, hidden)
                if self.kind == ".odt" and not hidden and not any("ZOTERO" in code for code in codes):
                    said.append(child.tail or "")
            if kind in ("p", "h"):
                said.append(" ")

        body = self.root.find(".//" + W + "body") if self.kind == ".docx" else self.root
        assert body is not None
        for paragraph in list(body.iter()):
            style = paragraph.find(f"{W}pPr/{W}pStyle")
            if (
                paragraph.tag == self.tag
                and "Title'" in f"{paragraph.attrib} {None if style is None else style.attrib}"
            ):
                paragraph.clear()
        for part in (body, *self._called()):
            read(part, hidden=False)
        return Counter(_WORD.findall("".join(said).casefold()))

    def evidence(self) -> set[str]:
        """The ids of the evidence that the citations left in the document name."""
        if self.kind == ".docx":
            codes = [one.text or "" for part in (self.root, *self._called()) for one in part.iter(W + "instrText")]
        else:
            codes = [one.get(T + "name", "") for one in self.root.iter(T + "reference-mark-start")]
        found = [json.JSONDecoder().raw_decode(code[code.index("{") :])[0] for code in codes if "CSL_CITATION" in code]
        return {part for one in found for part in one["citationID"].split("-")[:-1]}


def _run(text: str) -> Element:
    run = Element(W + "r")
    ElementTree.SubElement(run, W + "t", {"{http://www.w3.org/XML/1998/namespace}space": "preserve"}).text = text
    return run

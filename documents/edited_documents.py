"""Reads what was exported, and perhaps edited: text as markdown, citations, comments and changes.

Citation fields of a document become placeholders in its text. The XML is read and simplified in a process with limits,
and only then given to pandoc; links to references become `[@key]`.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ..errors import InputError
from ..plurals import counted
from .latex_words import with_words_of_commands
from .pandoc import PandocError, pandoc
from .safe_files import MAIN_PARTS, FileRefusedError, open_office, read_part, read_regular
from .sandbox import CallLimits, SandboxError, run_sandboxed

MARK: Final = "citeloom-run"  # the property of a document that names its run, and the section if it has only one
HELD: Final = re.compile("\ue300(\\d{1,6})\ue301")  # a citation field in the text
_RAISED: Final = re.compile("\\^\\((\ue300\\d+\ue301)\\)")
SUFFIXES: Final = (".docx", ".odt", ".tex", ".md")
AUTHOR: Final = "Citeloom"  # of the comments that an export adds
_LIMITS: Final = CallLimits(seconds=60.0, memory=4 << 30)
_MOST_TEXT: Final = 4_000_000
_MOST_BYTES: Final = 50_000_000  # of a web page, with its images
_TO: Final = (
    "markdown_strict-raw_html+citations+footnotes+pipe_tables+tex_math_dollars+all_symbols_escapable"
    "+backtick_code_blocks"
)
_TEMPLATE: Final = "$if(abstract)$\n# Abstract\n\n$abstract$\n\n$endif$\n$body$\n"
EXPORTED_SUFFIXES: Final = (*SUFFIXES, ".html")
_MARKED: Final = re.compile(rf"{MARK}: ([\w-]{{1,80}}(?: [a-z_]{{1,40}})?)")
_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SAID: Final = frozenset({_W + "t", _W + "tab", _W + "br"})
_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE: Final = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_FORMULA: Final = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}object"
_LINKED: Final = "{http://www.w3.org/1999/xlink}href"
_DC: Final = "{http://purl.org/dc/elements/1.1/}"
_XML: Final = "{http://www.w3.org/XML/1998/namespace}"
_CITATION: Final = re.compile(r"ZOTERO_ITEM|CSL_CITATION")
_LIST: Final = re.compile(r"ZOTERO_BIBL|CSL_BIBLIOGRAPHY")
_LIST_HEADING: Final = re.compile(r"(?m)^#{1,3} References[ \t]*$")
_ESCAPED: Final = re.compile(r"\\([\[\]@<>&\"'()~^!{}])")
_WORDS: Final = re.compile(r"[^\W_]+(?:[.,'\u2019][^\W_]+)*")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REFERENCES = re.compile(r"(?ms)^#{1,3} (?:\[\]\{#anchor[\d-]*+\})?References\b[^\n]*\n.*?(?=^#|\Z)")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t])")
_HEADING = re.compile(r"(?m)^#{1,6} .*$")
_CAPTION_STYLE = re.compile(rb'(<w:name w:val=")(?:Table )?Caption(?=")', re.IGNORECASE)
_IN_LINE = re.compile(r"(?m)^(?!\$\$[^$\n]+\$\$$)[^\n]*\$\$[^\n]*$")
_BOLD_NUMBER = re.compile(r"(\*\*(?:Table|Figure)) ?\*\* ?(?:\*\*)?(\d{1,4})\*\*(?=[.:])")
_NOTE = re.compile(r"(?m)^\[\^(?P<name>[^\s\[\]^]{1,80})\]:(?P<words>[^\n]*+(?:\n(?:[ ]{4}[^\n]*+|(?=\n)))*+)\n?")
_NOTED = re.compile(r"(?P<sign>[.,;:!?]?)(?P<names>(?:\[\^[^\s\[\]^]{1,80}\])++)")
_NOTE_NAME = re.compile(r"\[\^([^\[\]]+)\]")
_CITING = re.compile("[ ;,]*(?:\ue300\\d{1,6}\ue301|\\[(?P<keys>@[^\\[\\]]*+)\\])")
_LATEX_FIGURE = re.compile(r"\\begin\{figure\}(?:(?!\\begin\{figure\}).)*?\\end\{figure\}", re.DOTALL)
_OWN_LABEL = re.compile(r"\\label\{fig:\d+\}")  # of an exported figure
_LATEX_REFERENCE = re.compile(r"~?\\ref\{fig:(?P<number>\d+)\}")
_UNPARTED = re.compile(r"(@[^\s;,\[\]@]{1,200}+)\s(?=pp?\.|in section)")  # the key and the place of LaTeX's citation
_LABEL = re.compile(r"\[\\\[([\w:.-]{1,100})\\\]\]\(#\1\)")  # a \ref as pandoc writes it; kept as a formula
_IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()\s]*\)(?:\{[^{}]*\})?")
_FIGURE_NUMBER = re.compile(r"\[(?P<number>\d*)\](?:\(#_Ref_[a-z]+_\d+\)|\{#_Ref_[a-z]+_\d+ \.anchor\})")
_LABELLED = re.compile(
    r"(?<!\\)\[(?P<label>(?:\\[\[\]]|[^\[\]\\])++)\]\(#(?:ref-|(?=X[0-9a-f]{39}\)))(?P<key>[^()\s]++)\)"
)
_PAGES = re.compile(r", (?:pp?\. )?(\d{1,3}(?:(?:, |[-–])\d{1,3}){0,20})(?:\\\])?$")
_BRACKET = re.compile(r"\^?\((?P<inner>[^()]*+)\)")
_CITED = re.compile(r"\[(@[^\[\]]*)\]")
_PLACE = re.compile(r"(?<=\]),(?:\\? )in(?:\\? )section(?:\\? )“[^”]{0,300}”")
_BETWEEN = re.compile(r"\](?:\^\(,\)|, ?)\[@")


@dataclass
class EditedDocument:
    """What a document says: `fields` are its citations as CSL, `labels` what links to references show, with their keys;
    `comments` have an author and a text, `changes` counts tracked changes, `mark` names its run, and `listed` are the
    paragraphs below the heading of the references."""

    text: str
    mark: str = ""
    fields: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, str]] = field(default_factory=list)
    changes: int = 0
    notices: list[str] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)


class _Slot:
    """A place for text in XML: inside an element, or directly after it."""

    def __init__(self, element: Element, name: str) -> None:
        self.element, self.name = element, name

    @property
    def text(self) -> str:
        return getattr(self.element, self.name) or ""

    @text.setter
    def text(self, value: str) -> None:
        setattr(self.element, self.name, value)
        if self.name == "text":
            self.element.set(f"{_XML}space", "preserve")


@dataclass
class _OpenField:
    code: str = ""
    shows: bool = False
    texts: list[_Slot] = field(default_factory=list)


def read_edited(path: Path, *, reject: bool = False) -> EditedDocument:
    """Read a `.docx`, `.odt`, `.tex` or `.md`, with tracked changes accepted or rejected; blocks.

    Raises `FileRefusedError` with the reason in one line, and OSError.
    """
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise FileRefusedError(f"is not one of {', '.join(SUFFIXES)}")
    try:
        if kind not in MAIN_PARTS:
            source = read_regular(path, _MOST_TEXT).decode("utf-8-sig").replace("\r\n", "\n")
            found = _MARKED.findall(source)
            markdown = kind == ".md"
            document = _without_references(EditedDocument(with_notes(source))) if markdown else read_latex(source)
            return replace(document, mark=found[-1] if found else "")
        read = run_sandboxed(_simplify, _LIMITS, str(path), kind, reject)
        listed = bool(read.pop("listed"))
        text = _BOLD_NUMBER.sub(r"\1 \2", _RAISED.sub(r"\1", _as_markdown(read.pop("content"), kind[1:])))
        if kind == ".odt":  # pandoc takes every formula for a displayed one
            text = _IN_LINE.sub(lambda line: line[0].replace("$$", "$"), text)
        document = replace(_with_keys(without_images(text)), **read)
    except (SandboxError, PandocError, UnicodeDecodeError) as error:
        raise FileRefusedError(f"cannot be read ({' '.join(str(error).split())[:160]})") from None
    if len(document.text) > _MOST_TEXT:
        raise FileRefusedError(f"has more than {_MOST_TEXT // 1_000_000} MB of text")
    if listed:  # its list was a field, after which a person may have written
        document.text = _LIST_HEADING.sub("", document.text)
    else:
        document = _without_references(document)
    document.text = _ESCAPED.sub(r"\1", document.text.replace("&nbsp;", " "))
    return document


def read_latex(source: str, preamble: str = "") -> EditedDocument:
    """Read LaTeX without figures and references, with the commands that a preamble defines; blocks.

    Raises `PandocError`.
    """
    source = f"{preamble}\\begin{{document}}\n{source}\n\\end{{document}}" if preamble else source
    latex, notices = with_words_of_commands(latex_without_figures(source))
    own = (figure for figure in _LATEX_FIGURE.findall(source) if not _OWN_LABEL.search(figure))
    notices += [f"A figure, not taken over: {' '.join(figure.split())[:200]}" for figure in own]
    markdown = _LABEL.sub(r"$\\ref{\1}$", _as_markdown(latex.encode(), "latex"))
    document = _without_references(_with_keys(_UNPARTED.sub(r"\1, ", markdown)))
    return replace(document, text=_ESCAPED.sub(r"\1", document.text), notices=notices)


def _without_references(document: EditedDocument) -> EditedDocument:
    """The document without comments and references, whose paragraphs become its `listed`."""
    lists = [found.partition("\n")[2] for found in _REFERENCES.findall(_without_comments(document.text))]
    listed = [words.strip() for found in lists for words in _PARAGRAPHS.split(found) if re.search(r"[^\W\d_]", words)]
    return replace(document, text=without_comments_and_references(document.text), listed=listed)


def _with_keys(markdown: str) -> EditedDocument:
    """Pandoc's markdown with keys in place of links, and its footnotes inserted where they are called."""
    labels = [(link["label"], link["key"]) for link in _LABELLED.finditer(markdown)]
    return EditedDocument(with_notes(links_to_keys(markdown)), labels=labels)


def _as_markdown(content: bytes, reader: str) -> str:
    options = ["--from", reader, "--to", _TO, "--wrap=none", "--markdown-headings=atx", "--template=template.md"]
    return pandoc([*options, "text"], {"text": content, "template.md": _TEMPLATE}).decode("utf-8", "replace")


def with_notes(markdown: str) -> str:
    """The text with its footnotes inserted where they are called: citations as such, their other words in brackets.

    A citation goes before the punctuation mark that its number follows. A note that is never called stays in place.
    """
    calls = {
        name for called in _NOTED.finditer(_NOTE.sub("", markdown)) for name in _NOTE_NAME.findall(called["names"])
    }
    notes = {
        note["name"]: " ".join(note["words"].split()) for note in _NOTE.finditer(markdown) if note["name"] in calls
    }

    def note(called: re.Match[str]) -> str:
        cited, said = "", ""
        for name in _NOTE_NAME.findall(called["names"]):
            if name not in notes:
                said += f"[^{name}]"
                continue
            words, place = notes[name], 0
            keys: list[str] = []
            while found := _CITING.match(words, place):
                place = found.end()
                if found["keys"]:
                    keys.append(found["keys"])
                else:
                    cited += f" {found[0].strip(' ;,')}"
            cited += f" [{'; '.join(keys)}]" if keys else ""
            rest = words[place:].strip(" .;,") if place else words
            said += f" ({rest})" if rest else ""
        return f"{cited}{called['sign']}{said}"

    left = _NOTE.sub(lambda note: "" if note["name"] in notes else f"{note['words'].strip()}\n", markdown)
    return _NOTED.sub(note, left)


def _simplify(name: str, kind: str, reject: bool) -> dict[str, Any]:
    """Put placeholders for citations and resolve tracked changes; returns the document and what was found in it."""
    with open_office(Path(name), kind) as archive:
        found, parts, listed = EditedDocument(""), dict[str, bytes](), False
        for part in (MAIN_PARTS[kind], *(("word/footnotes.xml", "word/endnotes.xml") if kind == ".docx" else ())):
            if not (source := read_part(archive, part)):
                continue
            for prefix, address in re.findall(rb'xmlns:([A-Za-z][\w.-]*)="([^"]*)"', source[:20_000]):
                if not re.fullmatch(rb"ns\d+", prefix):
                    ElementTree.register_namespace(prefix.decode(), address.decode())
            listed |= _LIST.search(source.decode("utf-8", "replace")) is not None
            root = _parse(source)
            (_simplify_word if kind == ".docx" else _simplify_writer)(root, found, reject)
            parts[part] = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        if styles := read_part(archive, "word/styles.xml"):  # pandoc would put the caption of a table after it
            parts["word/styles.xml"] = _CAPTION_STYLE.sub(rb"\1Own caption", styles)
        comments = read_part(archive, "word/comments.xml") if kind == ".docx" else b""
        for comment in _parse(comments).iter(_W + "comment") if comments else ():
            lines = ("".join(one.text or " " for one in line.iter() if one.tag in _SAID) for line in comment)
            said = " ".join(" ".join(lines).split())
            _comment(comment.get(_W + "author", ""), said, found)
        properties = read_part(archive, "docProps/custom.xml" if kind == ".docx" else "meta.xml")
        marked = re.search(rb'name="%b"[^<>]{0,200}>(?:<vt:lpwstr>)?([\w -]{1,130})<' % MARK.encode(), properties)
        if media := sum(bool(re.search(r"(?:^|/)(?:media|Pictures)/", entry)) for entry in archive.namelist()):
            are = "is" if media == 1 else "are"
            found.notices.append(f"{counted(media, 'image')} of the document {are} not taken over.")
        content = BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
            for entry in archive.namelist():
                if entry in parts:
                    made.writestr(entry, parts[entry])
                elif entry.endswith((".xml", ".rels", "mimetype")):
                    made.writestr(entry, read_part(archive, entry))
    found.mark = marked[1].decode().strip() if marked else ""
    values = {name: value for name, value in vars(found).items() if name not in ("text", "labels", "listed")}
    return {**values, "listed": listed, "content": content.getvalue()}


def _parse(xml: bytes) -> Element:
    try:
        return ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise FileRefusedError(f"contains broken XML ({error})") from None


def _simplify_word(root: Element, found: EditedDocument, reject: bool) -> None:
    gone, kept = ("ins", "del") if reject else ("del", "ins")
    moved = {"ins": "moveTo", "del": "moveFrom"}
    changes = {_W + name for name in (*moved, *moved.values())}
    for parent in reversed(list(root.iter())):  # nested changes first
        for child in list(parent) if parent.tag not in (_W + "rPr", _W + "trPr") else ():
            if child.tag in changes:
                found.changes += 1
                place = list(parent).index(child)
                parent[place : place + 1] = list(child) if child.tag in (_W + kept, _W + moved[kept]) else []
    if reject:  # deleted text is restored
        for one in root.iter():
            one.tag = {_W + "delText": _W + "t", _W + "delInstrText": _W + "instrText"}.get(one.tag, one.tag)
    marks = [(mark, one) for mark in root.iterfind(f".//{_W}pPr/{_W}rPr") for one in mark if one.tag in changes]
    found.changes += len(marks) + sum(one.tag in changes for row in root.iter(_W + "trPr") for one in row)
    for parent in list(root.iter()):  # a paragraph whose end was deleted continues in the next
        for one, following in zip(list(parent), list(parent)[1:], strict=False):
            ended = one.find(f"{_W}pPr/{_W}rPr/{_W}{gone}") if one.tag == following.tag == _W + "p" else None
            if ended is not None:
                style = following.find(_W + "pPr")
                following[int(style is not None) : int(style is not None)] = [c for c in one if c.tag != _W + "pPr"]
                parent.remove(one)
        for row in parent.findall(_W + "tr"):
            if row.find(f"{_W}trPr/{_W}{gone}") is not None:
                parent.remove(row)
    for mark, one in marks:  # pandoc would accept it
        mark.remove(one)
    opened: list[_OpenField] = []
    for run in [one for one in root.iter() if one.tag in (_W + "r", _W + "fldSimple")]:
        if run.tag == _W + "fldSimple":
            if _CITATION.search(code := run.get(_W + "instr", "")):
                _put_placeholder(code, [_Slot(text, "text") for text in run.iter(_W + "t")], found)
            continue
        for item in run:
            if item.tag == _W + "fldChar":
                state = item.get(_W + "fldCharType")
                if state == "begin":
                    opened.append(_OpenField())
                elif opened and state == "separate":
                    opened[-1].shows = True
                elif opened and state == "end":
                    closed = opened.pop()
                    if _CITATION.search(closed.code):
                        texts = closed.texts or [_Slot(ElementTree.SubElement(run, _W + "t"), "text")]
                        _put_placeholder(closed.code, texts, found)
                    elif _LIST.search(closed.code):
                        for text in closed.texts:
                            text.text = ""
            elif item.tag == _W + "instrText" and opened:
                opened[-1].code += item.text or ""
            elif item.tag == _W + "t":
                for outer in opened:
                    outer.texts += [_Slot(item, "text")] if outer.shows else []


def _comment(author: str, said: str, found: EditedDocument) -> None:
    if said and author != AUTHOR:
        found.comments.append({"author": author, "text": said})


def _put_placeholder(code: str, texts: list[_Slot], found: EditedDocument) -> None:
    """Replace what a citation shows by a placeholder, followed by any words that a person added."""
    try:
        citation = json.JSONDecoder().raw_decode(code[code.index("{") :])[0]
        items = [item for item in citation.get("citationItems", ()) if isinstance(item, dict)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return  # its text stays
    shown = "".join(text.text for text in texts)
    properties = citation.get("properties")
    before = str(properties.get("plainCitation") or shown) if isinstance(properties, dict) else shown
    known, added = Counter(_WORDS.findall(before)), list[str]()
    for word in _WORDS.findall(shown):
        known[word] -= 1
        added += [word] if known[word] < 0 else []
    number = len(found.fields)
    found.fields.append({"id": str(citation.get("citationID", "")), "items": items, "shown": shown})
    for text in texts:
        text.text = ""
    if texts:
        lead = " " if shown[:1].isspace() else ""
        texts[0].text = f"{lead}\ue300{number}\ue301{f' ({chr(32).join(added)})' if added else ''}"


def _events(element: Element) -> Iterator[tuple[Element | None, _Slot | None]]:
    """The elements and the places of text below an element, in order."""
    yield element, None
    yield None, _Slot(element, "text")
    for child in element:
        yield from _events(child)
        yield None, _Slot(child, "tail")


def _simplify_writer(root: Element, found: EditedDocument, reject: bool) -> None:
    deleted: dict[str, list[Element]] = {}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == _TEXT + "tracked-changes":
                for region in child:
                    found.changes += 1
                    name = region.get(_TEXT + "id", "") or region.get(f"{_XML}id", "")
                    removal = region.find(_TEXT + "deletion")
                    deleted[name] = [] if removal is None else [*_paragraphs(removal)]
            elif child.tag == _OFFICE + "annotation":
                remark = " ".join(" ".join("".join(one.itertext()) for one in child.iter(_TEXT + "p")).split())
                _comment(child.findtext(_DC + "creator", ""), remark, found)
            elif child.tag == _TEXT + "section" and _LIST.search(child.get(_TEXT + "name", "")):
                child[:] = []
                continue
            else:
                if child.tag.endswith("-ref"):  # a cross-reference, whose number pandoc would lose
                    child.tag = _TEXT + "span"
                elif child.tag == _FORMULA and (folder := child.get(_LINKED)):  # as pandoc finds it
                    child.set(_LINKED, folder.rstrip("/"))
                continue
            _drop(parent, child)
    for parent in list(root.iter()) if reject else ():  # deleted text is restored
        for place, child in enumerate(parent):
            if child.tag == _TEXT + "change":
                parent[place] = back = Element(_TEXT + "span")
                back.extend(deleted.get(child.get(_TEXT + "change-id", ""), ()))
                for one in back[:-1]:
                    one.tail = " "
                back.tail = child.tail
    inside: dict[str, list[_Slot]] = {}
    inserted: set[str] = set()
    for element, slot in _events(root):
        if slot is not None:
            if inserted and reject:
                slot.text = ""
            if slot.text:
                for texts in inside.values():
                    texts.append(slot)
            continue
        assert element is not None
        name, change = element.get(_TEXT + "name", ""), element.get(_TEXT + "change-id", "")
        if element.tag == _TEXT + "change-start":
            inserted.add(change)
        elif element.tag == _TEXT + "change-end":
            inserted.discard(change)
        elif element.tag == _TEXT + "reference-mark-start" and _CITATION.search(name):
            inside[name] = []
            element.tag = _TEXT + "soft-page-break"  # pandoc would show the name
        elif element.tag == _TEXT + "reference-mark-end" and name in inside:
            shown = inside.pop(name) or [_Slot(element, "tail")]
            if not (inserted and reject):
                _put_placeholder(name, shown, found)


def _paragraphs(removal: Element) -> Iterator[Element]:
    """The paragraphs of a deletion, as spans of text."""
    for child in removal:
        if child.tag not in (_TEXT + "p", _TEXT + "h"):
            yield from _paragraphs(child) if child.tag != _OFFICE + "change-info" else ()
            continue
        child.tag, child.attrib, child.tail = _TEXT + "span", {}, ""
        yield child


def _drop(parent: Element, child: Element) -> None:
    """Remove an element, but not the text after it."""
    place = list(parent).index(child)
    if place:
        parent[place - 1].tail = (parent[place - 1].tail or "") + (child.tail or "")
    else:
        parent.text = (parent.text or "") + (child.tail or "")
    parent.remove(child)


def read_exported(file: Path) -> EditedDocument:
    """Read an exported, perhaps edited file, without headings and with its fields as `[@key]`; blocks.

    Raises `InputError`.
    """

    def keys(field: re.Match[str]) -> str:
        held = document.fields[int(field[1]) :][:1]  # none if a person typed a placeholder
        return f"[{'; '.join('@' + str(item.get('id', '')) for citation in held for item in citation['items'])}]"

    try:
        document = _read_page(file) if file.suffix == ".html" else read_edited(file)
    except FileRefusedError as error:
        raise InputError(f"{file}: {error}.") from error
    except (OSError, PandocError) as error:
        raise InputError(f"{file}: cannot be read ({' '.join(str(error).split())[:160]}).") from error
    cited = [(item["shown"], item["items"]) for item in document.fields]
    labels = [(shown, str(items[0].get("id"))) for shown, items in cited if len(items) == 1]
    return replace(document, text=without_frame(HELD.sub(keys, document.text)), labels=[*document.labels, *labels])


def _read_page(file: Path) -> EditedDocument:
    markdown = _as_markdown(read_regular(file, _MOST_BYTES), "html-native_divs-native_spans")
    return _with_keys(without_images(markdown))


def latex_without_figures(latex: str) -> str:
    """LaTeX without figures, with the number of each figure that the text mentions, and with links for citations.

    With a citation style, pandoc writes these into its own command, which it cannot read back.
    """
    linked = latex.replace("\\citeproc{ref-", "\\hyperlink{ref-")
    return _LATEX_REFERENCE.sub(r" \g<number>", _LATEX_FIGURE.sub("", linked))


def without_frame(markdown: str) -> str:
    """The text of a section's markdown without headings, images, comments and references."""
    return _IMAGE.sub("", _HEADING.sub("", without_comments_and_references(markdown))).strip()


def without_images(markdown: str) -> str:
    """Pandoc's markdown without images; references to figures are their numbers."""
    return _IMAGE.sub("", _FIGURE_NUMBER.sub(r"\g<number>", markdown))


def without_comments_and_references(markdown: str) -> str:
    """The text of a section's markdown without comments and references, but with headings and images."""
    return _REFERENCES.sub("", _without_comments(markdown)).strip()


def _without_comments(markdown: str) -> str:
    text = markdown.replace("\r\n", "\n")
    closed = text.rfind("-->") + len("-->")  # comments are not searched for after the last end mark
    return _COMMENT.sub("", text[:closed]) + text[closed:]


def with_long_keys(text: str, keys: Iterable[str]) -> str:
    """The text with these keys where pandoc hashed their bookmarks, which Word limits to 40 characters."""
    for key in keys:
        hashed = hashlib.sha1(f"ref-{key}".encode(), usedforsecurity=False).hexdigest()
        text = text.replace(f"X{hashed[1:]}", key)
    return text


def links_to_keys(markdown: str) -> str:
    """Replace citations that link to references by `[@key, p. 4; @other]`; their other words stay."""

    def group(found: re.Match[str]) -> str:
        if not (cited := _CITED.findall(found["inner"])):
            return found[0]
        rest = " ".join(filter(None, (words.strip(" ;,") for words in _CITED.split(found["inner"])[::2])))
        return f"[{'; '.join(cited)}]{f' ({rest})' if rest else ''}"

    def link(found: re.Match[str]) -> str:
        pages = _PAGES.search(found["label"])
        return f"[@{found['key']}{f', p. {pages[1]}' if pages else ''}]"

    keyed, links = _LABELLED.subn(link, markdown)
    return _BETWEEN.sub("; @", _BRACKET.sub(group, _PLACE.sub("", keyed))) if links else markdown

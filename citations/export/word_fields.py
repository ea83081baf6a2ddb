"""Word and LibreOffice documents whose citations stay live: fields that Zotero's plugin refreshes and renumbers.

They are put into pandoc's document after its citation processor has rendered every citation, so what a field shows is
what the same style prints elsewhere. The id of a citation field names its evidence (`E3-E5-4`), which Zotero
keeps, so that an edited document leads back to the words that support it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from ...documents.edited_documents import AUTHOR, MARK as MARK
from ...documents.paper_names import zotero_address
from ...documents.safe_files import FileRefusedError, open_office, read_part
from ...errors import InputError
from ...section_kinds import CitationFields
from ...text.sentences import replace_spans
from ..markers import SpanSet
from .plot_figures import find_mentions

Node = dict[str, Any]
_SCHEMA: Final = "https://github.com/citation-style-language/schema/raw/master/csl-citation.json"
_LOCATOR: Final = re.compile(r"\s*,?\s*(?:(?P<page>pp?\.)\s*(?P<pages>\d[\d\s,\u2013-]*)|(?P<suffix>.*))", re.DOTALL)
_STYLE_ID: Final = re.compile(r"<id>\s*([^<\s]{1,300})\s*</id>")
_PROPERTY: Final = 255  # characters of a property that Zotero reads
# A placeholder for the number of a figure or table, to become a field; the slash marks a table's own caption.
_NUMBER: Final = re.compile("\ue200(?P<table>t?)(?P<number>\\d{1,4})(?P<own>/?)\ue201")
_TABLE: Final = re.compile(r"\|[^\n]*\n\|[ :|-]{3,}(?:\n|\Z)")
_GROUP: Final = re.compile(r"\[[^\[\]]*+\]")
_TABLE_CAPTION: Final = re.compile(r"(?P<before>\**)Table (?P<number>\d{1,4})(?=[.:])")
_OWN: Final = re.compile("Table\ue200t\\d{1,4}/\ue201")
_CAPTION: Final = re.compile(r"\d{1,4}\.?")
_FIRST_BOOKMARK: Final[Mapping[str, int]] = {"figure": 20_000, "table": 30_000}


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How a Word or LibreOffice document is written.

    `citations` are fields of Zotero or plain text; by default fields if a cited paper came from Zotero, since its user
    has the plugin. `evidence_comments` adds the words behind each citation, `reference_doc` is the user's template.
    """

    citations: CitationFields | None = None
    evidence_comments: bool = False
    reference_doc: Path | None = None


@dataclass(frozen=True, slots=True)
class CitedEvidence:
    """A citation in the order of the text: its papers' keys, the ids of its evidence, and the remark on it."""

    keys: frozenset[str]
    ids: tuple[str, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class WordFields:
    """What turns pandoc's document into one for Word (`docx`) or LibreOffice (`odt`).

    `items` are the cited works as CSL-JSON by key, `bibtex` their entries, `places` the citations with evidence.
    """

    target: str
    items: Mapping[str, Mapping[str, Any]]
    bibtex: str
    places: Sequence[CitedEvidence]
    style: str
    mark: str
    fields: bool
    comments: bool
    uncited: Sequence[str] = ()

    def add_to(self, document: Node) -> Node:
        """The document with citation fields, bibliography, comments, numbered captions and properties."""
        numbers: list[Node] = []
        waiting = list(self.places)
        captions: Counter[str] = Counter()

        def change(node: Node) -> list[Node] | None:
            if node["t"] == "Cite":
                numbers.append(node)
                keys = frozenset(one["citationId"] for one in node["c"][0])
                found = next((place for place, item in enumerate(waiting) if item.keys == keys), None)
                here = CitedEvidence(keys, ()) if found is None else waiting[found]
                del waiting[: 0 if found is None else found + 1]
                return self._citation(node, here, len(numbers))
            if node["t"] == "Div" and node["c"][0][0] == "refs" and self.fields and node["c"][1]:
                return self._bibliography(node)
            if node["t"] == "Figure":
                return [_map(_marked_caption(node), change)]
            if node["t"] == "Str" and _NUMBER.search(node["c"]):
                return list(_number_captions(node["c"], self.target, captions))
            if node["t"] == "Para" and _OWN.match(plain_words(node["c"][:1])):
                own = {**node, "c": _map(node["c"], change)}
                return [{"t": "Div", "c": [["", [], [["custom-style", "Table Caption"]]], [own]]}]
            if node["t"] in ("Code", "CodeBlock", "Math"):
                return [{**node, "c": [node["c"][0], _NUMBER.sub(r" \g<number>", node["c"][1])]}]
            return None

        shown = {name: value for name, value in document["meta"].items() if name not in _OURS}
        meta, blocks = _map(shown, change), _map(document["blocks"], change)  # an abstract is in `meta`
        properties = {MARK: self.mark} if self.mark else {}
        if self.fields:
            data = self._preferences()
            parts = range(0, len(data), _PROPERTY)
            properties |= {f"ZOTERO_PREF_{n}": data[at : at + _PROPERTY] for n, at in enumerate(parts, 1)}
        meta |= {name: {"t": "MetaString", "c": text} for name, text in properties.items()}
        return {**document, "blocks": blocks, "meta": meta}

    def _citation(self, node: Node, place: CitedEvidence, number: int) -> list[Node]:
        cited, shown = node["c"]
        before, after = self._comment(place, number) if self.comments and place.remark else ([], [])
        if not self.fields or not all(one["citationId"] in self.items for one in cited):
            return [*before, *shown, *after]
        note = next((at for at, one in enumerate(shown) if one["t"] == "Note"), -1)
        if note >= 0:  # of a style with footnotes
            first, *more = shown[note]["c"]
            inside = self._field(cited, first["c"], place, number, note=number)
            noted = {"t": "Note", "c": [{**first, "c": inside}, *more]}
            return [*before, *shown[:note], noted, *shown[note + 1 :], *after]
        split = 0
        if cited[0]["citationMode"]["t"] == "AuthorInText":
            # The field begins after the author of "Lee (2019)".
            opens = [one["t"] == "Superscript" or (one["t"] == "Str" and one["c"][:1] in ("(", "[")) for one in shown]
            split = opens.index(True) if any(opens) else 0
        return [*before, *shown[:split], *self._field(cited, shown[split:], place, number, alone=split > 0), *after]

    def _field(
        self,
        cited: Sequence[Node],
        shown: Sequence[Node],
        place: CitedEvidence,
        number: int,
        *,
        alone: bool = False,
        note: int = 0,
    ) -> list[Node]:
        items: list[dict[str, Any]] = []
        for one in cited:
            key = one["citationId"]
            address = zotero_address(self.bibtex, key) or f"urn:citeloom:{key}"
            given = {name: value for name, value in self.items[key].items() if value not in ("", {"date-parts": []})}
            work = {"type": "document", **given, "id": key, "citation-key": key}  # as CSL has it, also undated works
            item: dict[str, Any] = {"id": key, "uris": [address], "itemData": work}
            if prefix := plain_words(one["citationPrefix"]).strip():
                item["prefix"] = f"{prefix} "
            located = _LOCATOR.fullmatch(plain_words(one["citationSuffix"]))
            if located and located["page"]:
                item |= {"locator": " ".join(located["pages"].split()), "label": "page"}
            elif located and located["suffix"]:
                item["suffix"] = f", {located['suffix'].strip()}"
            if alone or one["citationMode"]["t"] == "SuppressAuthor":
                item["suppress-author"] = True
            items.append(item)
        words = plain_words(shown)
        code = {
            "citationID": "-".join([*place.ids, str(number)]),
            "properties": {"formattedCitation": words, "plainCitation": words, "noteIndex": note},
            "citationItems": items,
            "schema": _SCHEMA,
        }
        begin, end = self._around(f"ZOTERO_ITEM CSL_CITATION {_json(code)}", number)
        return [begin, *shown, end]

    def _around(self, code: str, number: int) -> tuple[Node, Node]:
        """The beginning and the end of a field, for the text between them."""
        if self.target == "docx":
            end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            return _raw(self.target, _field(f"ADDIN {code}", "")), _raw(self.target, end)
        name = quoteattr(f"{code} RND{_token(f'{self.mark} {number}', 10)}")
        return (
            _raw(self.target, f"<text:reference-mark-start text:name={name}/>"),
            _raw(self.target, f"<text:reference-mark-end text:name={name}/>"),
        )

    def _bibliography(self, node: Node) -> list[Node]:
        attributes, entries = node["c"]
        uncited = [[zotero_address(self.bibtex, key) or f"urn:citeloom:{key}"] for key in self.uncited]
        code = f"ZOTERO_BIBL {_json({'uncited': uncited, 'omitted': [], 'custom': []})} CSL_BIBLIOGRAPHY"
        if self.target == "odt":
            name = quoteattr(f"{code} RND{_token(f'{self.mark} list', 10)}")
            begins, ends = f"<text:section text:name={name}>", "</text:section>"
            return [_raw("odt", begins, "RawBlock"), node, _raw("odt", ends, "RawBlock")]
        begin, end = self._around(code, 0)
        paragraphs = [entry["c"][1][0] for entry in entries]
        paragraphs[0] = {**paragraphs[0], "c": [begin, *paragraphs[0]["c"]]}
        paragraphs[-1] = {**paragraphs[-1], "c": [*paragraphs[-1]["c"], end]}
        made = [
            {**entry, "c": [entry["c"][0], [first, *entry["c"][1][1:]]]}
            for entry, first in zip(entries, paragraphs, strict=True)
        ]
        return [{**node, "c": [attributes, made]}]

    def _comment(self, place: CitedEvidence, number: int) -> tuple[list[Node], list[Node]]:
        if self.target == "odt":
            said = f"<dc:creator>{AUTHOR}</dc:creator><text:p>{escape(place.remark)}</text:p>"
            return [_raw("odt", f"<office:annotation>{said}</office:annotation>")], []
        named = [["id", str(number)], ["author", AUTHOR]]
        start = {"t": "Span", "c": [["", ["comment-start"], named], [{"t": "Str", "c": place.remark}]]}
        return [start], [{"t": "Span", "c": [["", ["comment-end"], named[:1]], []]}]

    def _preferences(self) -> str:
        """What Zotero stores of a document: its style, and how its fields are kept."""
        style = _STYLE_ID.search(self.style)
        kind = "Field" if self.target == "docx" else "ReferenceMark"
        notes = int('class="note"' in self.style)
        listed = int("<bibliography" in self.style)
        values = {"fieldType": kind, "noteType": notes, "automaticJournalAbbreviations": "true"}
        prefs = "".join(f'<pref name="{name}" value="{value}"/>' for name, value in values.items())
        return (
            f'<data data-version="3" zotero-version="7.0"><session id="{_token(self.mark, 8)}"/>'
            f'<style id="{escape(style[1] if style else "")}" hasBibliography="{listed}" '
            f'bibliographyStyleHasBeenSet="1"/><prefs>{prefs}</prefs></data>'
        )


def check_reference(path: Path, target: str) -> Path:
    """The template if it can be used for this format; raises `InputError` with the reason in one line."""
    kind = f".{target}"
    try:
        if path.suffix.lower() != kind:
            raise FileRefusedError(f"is not a {kind} file")
        with open_office(path, kind) as archive:
            for name in archive.namelist():
                if name.endswith(".xml"):
                    read_part(archive, name)
        return path.resolve()
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    except FileRefusedError as error:
        reason = str(error)
    help = f"Give a {kind} whose styles the text shall have, or leave the option out."
    raise InputError(f"--reference-doc {path}: {reason}.", help=help)


_FIELD_PARTS: Final = ("begin", "separate", "end")
_OURS: Final = frozenset({"bibliography", "csl", "nocite", "link-citations", "reference-section-title", "pagetitle"})
_RAW: Final = {"docx": "openxml", "odt": "opendocument"}


def plain_words(node: Any) -> str:
    """The words that pandoc's inline elements show: a list of them, or one."""
    if isinstance(node, list):
        return "".join(map(plain_words, node))
    kind = node.get("t") if isinstance(node, dict) else None
    content: Any = node.get("c") if kind else None
    if kind in ("Space", "SoftBreak", "LineBreak"):
        return " "
    if kind == "Quoted":
        opens, closes = "\u2018\u2019" if content[0]["t"] == "SingleQuote" else "\u201c\u201d"
        return f"{opens}{plain_words(content[1])}{closes}"
    if kind in ("Str", "Code", "Math"):
        return str(content if kind == "Str" else content[1])
    return "" if kind in (None, "RawInline") else plain_words(content)


def _map(node: Any, change: Callable[[Node], list[Node] | None]) -> Any:
    """The document with each element replaced by what `change` makes of it, unless that is None."""
    if isinstance(node, list):
        made: list[Any] = []
        for item in node:
            new = change(item) if isinstance(item, dict) and "t" in item else None
            made += [_map(item, change)] if new is None else new
        return made
    return {name: _map(value, change) for name, value in node.items()} if isinstance(node, dict) else node


def mark_tables(source: str) -> str:
    """Mark the numbers of tables in a manuscript: in captions beside a table, and in mentions.

    A mention within a citation names a table of another paper.
    """
    parts = source.split("\n\n")
    captions: dict[str, tuple[int, re.Match[str]]] = {}
    for place, words in enumerate(parts):
        beside = [*parts[max(0, place - 1) : place], *parts[place + 1 : place + 2]]
        found = _TABLE_CAPTION.match(words)
        if found and any(_TABLE.match(part.lstrip("\n")) for part in beside):
            captions.setdefault(found["number"], (place, found))
    own = {place: found.span("number") for place, found in captions.values()}

    def marked(place: int, words: str) -> str:
        cited = SpanSet([group.span() for group in _GROUP.finditer(words) if "@" in group[0]])
        spans = [
            (at - 1, end, f"\ue200t{words[at:end]}{'/' * (own.get(place) == (at, end))}\ue201")
            for at, end in (match.span("number") for match in find_mentions(r"\d{1,4}", words, r"[Tt]ab(?:le|\.)?"))
            if words[at:end] in captions and words[at - 1].isspace() and not cited.holds(at)
        ]
        return replace_spans(words, spans)

    return "\n\n".join(marked(*part) for part in enumerate(parts)) if captions else source


def _marked_caption(figure: Node) -> Node:
    """The figure with a mark at the number of its caption ("Figure 2.")."""
    attributes, (short, caption), body = figure["c"]
    words = caption[0]["c"] if caption else []
    if len(words) < 3 or words[0].get("c") != "Figure" or not _CAPTION.fullmatch(str(words[2].get("c"))):
        return figure
    marked = {"t": "Str", "c": f"Figure\ue200{words[2]['c'].rstrip('.')}/\ue201."}
    return {**figure, "c": [attributes, [short, [{**caption[0], "c": [marked, *words[3:]]}, *caption[1:]]], body]}


def _number_captions(text: str, target: str, captions: Counter[str]) -> Iterator[Node]:
    """A word with numbers of figures and tables, these as sequence fields in captions, else as cross-references.

    `captions` counts those so far; a number that does not continue them is set, so that refreshing changes none.
    """
    done = 0
    for found in _NUMBER.finditer(text):
        name, number = "table" if found["table"] else "figure", found["number"]
        yield {"t": "Str", "c": text[done : found.start()] + ("" if found["own"] else "\u00a0")}
        done = found.end()
        if not found["own"]:
            how = f'text:reference-format="value" text:ref-name="ref{name.title()}{number}"'
            odt = f"<text:sequence-ref {how}>{number}</text:sequence-ref>"
            yield _raw(target, _field(f"REF _Ref_{name}_{number} \\h", number) if target == "docx" else odt)
            continue
        yield {"t": "Space"}
        captions[name] += 1
        follows, title = int(number) == captions[name], name.title()
        captions[name] = int(number)
        if target == "docx":
            bookmark = _FIRST_BOOKMARK[name] + int(number)
            begin = f'<w:bookmarkStart w:id="{bookmark}" w:name="_Ref_{name}_{number}"/>'
            field = _field(f"SEQ {title} \\* ARABIC" if follows else f"SEQ {title} \\r {number}", number)
            yield _raw(target, f'{begin}{field}<w:bookmarkEnd w:id="{bookmark}"/>')
        else:
            formula = f"ooow:{title}+1" if follows else number
            how = f'text:ref-name="ref{title}{number}" text:name="{title}" text:formula="{formula}"'
            yield _raw(target, f'<text:sequence {how} style:num-format="1">{number}</text:sequence>')
    yield {"t": "Str", "c": text[done:]}


def _field(code: str, shown: str) -> str:
    begin, middle, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in _FIELD_PARTS)
    text = f"<w:r><w:t>{escape(shown)}</w:t></w:r>{end}" if shown else ""
    return f'{begin}<w:r><w:instrText xml:space="preserve"> {escape(code)} </w:instrText></w:r>{middle}{text}'


def _raw(target: str, xml: str, kind: str = "RawInline") -> Node:
    return {"t": kind, "c": [_RAW[target], xml]}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _token(seed: str, length: int) -> str:
    """Letters and digits that look random and are the same for the same document."""
    return hashlib.sha256(seed.encode()).hexdigest()[:length]

"""Word documents made of paragraphs in their XML."""

from __future__ import annotations

import base64
import json
import zipfile
from html import escape
from pathlib import Path

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="word/document.xml"/></Relationships>'
)
_EMPTY = '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>'
_STYLE = '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
_STYLES = f"<w:styles {_W}>{_STYLE}</w:styles>"


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def raised(text: str) -> str:
    return run(text, '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>')


def paragraph(*parts: str, style: str = "") -> str:
    shown = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{shown}{''.join(parts)}</w:p>"


def word_field(instruction: str, shown: str, data: str = "") -> str:
    held = f'<w:fldData xml:space="preserve">{data}</w:fldData>' if data else ""
    return (
        f'<w:r><w:fldChar w:fldCharType="begin">{held}</w:fldChar></w:r>'
        f'<w:r><w:instrText xml:space="preserve">{escape(instruction)}</w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r>{run(shown)}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def csl(family: str, year: int, title: str, doi: str = "") -> dict[str, object]:
    author = [{"family": family, "given": "Ada"}]
    return {"itemData": {"title": title, "author": author, "issued": {"date-parts": [[year]]}, "DOI": doi}}


def zotero(*items: dict[str, object], shown: str = "(shown)") -> str:
    citation = {"citationID": "x", "citationItems": list(items)}
    return word_field(f" ADDIN ZOTERO_ITEM CSL_CITATION {json.dumps(citation)} ", shown)


def mendeley_cite(*items: dict[str, object], shown: str = "(shown)") -> str:
    data = base64.b64encode(json.dumps({"citationItems": list(items)}).encode()).decode()
    return (
        f'<w:sdt><w:sdtPr><w:tag w:val="MENDELEY_CITATION_v3_{data}"/></w:sdtPr>'
        f"<w:sdtContent>{run(shown)}</w:sdtContent></w:sdt>"
    )


def endnote(author: str, year: int, title: str, shown: str = "(shown)", *, encoded: bool = False) -> str:
    authors = f"<contributors><authors><author>{author}, A.</author></authors></contributors>"
    record = f"<record>{authors}<titles><title>{title}</title></titles></record>"
    xml = f"<EndNote><Cite><Author>{author}</Author><Year>{year}</Year>{record}</Cite></EndNote>"
    if encoded:
        return word_field(" ADDIN EN.CITE ", shown, base64.b64encode(xml.encode()).decode())
    return word_field(f" ADDIN EN.CITE {xml}", shown)


def write_word(path: Path, *paragraphs: str, comments: str = "", extra: dict[str, str] | None = None) -> Path:
    """Write a document of these paragraphs."""
    body = f'<?xml version="1.0"?><w:document {_W} {_M}><w:body>{"".join(paragraphs)}</w:body></w:document>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("word/_rels/document.xml.rels", _EMPTY)
        archive.writestr("word/document.xml", body)
        archive.writestr("word/styles.xml", _STYLES)
        if comments:
            archive.writestr("word/comments.xml", f'<?xml version="1.0"?><w:comments {_W}>{comments}</w:comments>')
        for name, content in (extra or {}).items():
            archive.writestr(name, content)
    return path

"""Renders a section's markdown as HTML, safe since tags, links and images in the text stay plain characters."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from ...documents.paper_names import is_zotero_address
from ...text.sentences import replace_spans
from ..citation_styles import MARKS

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

# A placeholder for a link during markdown parsing: its number between two characters removed from all text.
_PLACED = re.compile("\ue000(\\d+)\ue001")
_MARK = "|".join(re.escape(mark) for mark in MARKS.values())
# Where a sentence begins and ends: punctuation for markdown, so that emphasis beside it is read as it was.
_BEGIN, _END = "\U00012470", "\U00012471"
_EDGE = re.compile(f"[{_BEGIN}{_END}]\\d+;")
_SPLIT = re.compile(f"(\ue000\\d+\ue001|{_EDGE.pattern}|{_MARK})")
_PRIVATE = re.compile(f"[\ue000\ue001{_BEGIN}{_END}]")
_OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
# A URL in pandoc's references: on its own, or as the target of a link.
_ADDRESS = re.compile(r"<(https?://[^\s<>]+)>|\[([^\[\]]+)\]\(https?://[^\s<>]{0,400}\)(?=[\s.,;]|$)")
# Has no blanks, angle brackets, quotes or control characters, so that it cannot break out of an attribute.
_DOI = re.compile(r"10\.\d{4,9}/[^\s<>\"'\\`{}|^\x00-\x1f\x7f-\x9f]{1,200}")
_RESOLVER = re.compile(r"^(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
_LINKED: Final = "citeloom_linked"
_INSIDE: Final = "citeloom_sentence"

LinkKind = Literal["citation", "finding", "number"]
# The id prefixes of a link in the text and of its target.
ANCHORS: Final[Mapping[LinkKind, str]] = {"citation": "rc", "finding": "gf", "number": "mn"}


@dataclass(frozen=True, slots=True)
class Link:
    """The words `text[start:end]` as a link to their details; `doubtful` if the judge did not find them supported."""

    kind: LinkKind
    number: int
    start: int
    end: int
    doubtful: bool = False

    @property
    def anchor(self) -> str:
        return f"{ANCHORS[self.kind][0]}{self.number}"

    @property
    def opens(self) -> str:
        return f"{ANCHORS[self.kind][1]}{self.number}"


def non_overlapping(text: str, links: Sequence[Link]) -> list[Link]:
    """The links in text order: if some overlap, only the first in `links` is kept; links across lines are dropped."""
    placed: list[Link] = []  # in the order of the text
    for link in links:
        index = bisect_left(placed, link.start, key=lambda other: other.start)
        before, after = placed[max(0, index - 1) : index], placed[index : index + 1]
        disjoint = all(other.end <= link.start for other in before) and all(link.end <= other.start for other in after)
        if disjoint and link.start < link.end and "\n" not in text[link.start : link.end]:
            placed.insert(index, link)
    return placed


def anchor_attributes(link: Link) -> Markup:
    """The attributes of a link to its details in the same document."""
    return Markup('id="{}" href="#{}"').format(link.anchor, link.opens)


@dataclass(frozen=True, slots=True)
class EnclosedSentence:
    """The sentence `text[start:end]` and what encloses it in HTML."""

    start: int
    end: int
    before: Markup
    after: Markup


def section_html(
    text: str,
    placed: Sequence[Link],
    attributes: Callable[[Link], Markup] = anchor_attributes,
    inside: Sequence[EnclosedSentence] = (),
) -> Markup:
    """The text as HTML with these disjoint links in text order; `attributes` gives the attributes of each link.

    The sentences `inside` are enclosed, except rows of tables and sentences that cross emphasis.
    """
    text = shown_text(text)
    shown = {index: (link, text[link.start : link.end]) for index, link in enumerate(placed)}
    edits = [(link.start, 2, link.end, f"\ue000{index}\ue001") for index, link in enumerate(placed)]
    for number, item in enumerate(inside):
        words = text[item.start : item.end]
        crossed = any(link.start < edge < link.end for link in placed for edge in (item.start, item.end))
        if not (crossed or words.startswith("|") or not any(map(str.isalpha, words))):
            edits += [(item.start, 1, item.start, f"{_BEGIN}{number};"), (item.end, 0, item.end, f"{_END}{number};")]
    marked = replace_spans(text, ((start, end, words) for start, _, end, words in sorted(edits)))
    return Markup(_reader().render(marked, {"shown": shown, "attributes": attributes, "inside": inside}))


def reference_html(text: str, doi: str = "") -> Markup:
    """A reference, which is one line of markdown, with its DOI as a link if that is valid."""
    plain = _ADDRESS.sub(r"\1\2", shown_text(text))
    named = _valid_doi(doi)
    if not named:
        return _line(plain)
    written = re.search(rf"(?:https?://(?:dx\.)?doi\.org/|\bdoi:\s*)?{re.escape(named)}(?!\w)", plain, re.IGNORECASE)
    if not written:
        return Markup("{} {}").format(_line(plain), doi_html(doi))
    before, after = plain[: written.start()], plain[written.end() :]
    return _line(before.rstrip(" ")) + " " * before.endswith(" ") + _doi_link(named, written[0]) + _line(after)


def doi_html(doi: str) -> Markup:
    """A DOI as a link to its resolver; plain text if it is invalid."""
    if named := _valid_doi(doi):
        return _doi_link(named, f"doi:{named}")
    return Markup('<span class="id">doi:{}</span>').format(shown_text(doi))


def zotero_html(paper: Mapping[str, Any], page: int | None = None) -> Markup:
    """Links to a paper's Zotero item and to its PDF at a page; empty for a paper that did not come from Zotero."""
    item, pdf = paper.get("zotero"), paper.get("zotero_pdf")
    links = [(item, "Show in Zotero")] if is_zotero_address(item) else []
    if is_zotero_address(pdf):
        links.append((f"{pdf}?page={page}" if isinstance(page, int) else pdf, "Open its PDF in Zotero"))
    return Markup(" · ").join(Markup('<a href="{}" rel="noopener noreferrer">{}</a>').format(*link) for link in links)


def _valid_doi(doi: str) -> str:
    """The DOI without its resolver; empty if it is invalid."""
    named = _RESOLVER.sub("", doi.strip())
    return named if _DOI.fullmatch(named) else ""


def _doi_link(named: str, shown: str) -> Markup:
    address = "https://doi.org/" + quote(named, safe="/:;().-_")
    return Markup('<a class="id" href="{}" rel="noopener noreferrer">{}</a>').format(address, shown_text(shown))


def _line(text: str) -> Markup:
    return Markup(_reader().renderInline(text, {"shown": {}, "inside": ()}))


def shown_text(text: str) -> str:
    """The text without characters that are invalid in HTML or used as placeholders."""
    return _PRIVATE.sub("\ufffd", _OBEYED.sub("\ufffd", text))


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_inline", "html_block", "reference", "entity", "fence"])
    reader.core.ruler.push("links", _place)
    reader.add_render_rule(_LINKED, _render_link)
    reader.add_render_rule(_INSIDE, _render_edge)
    return reader


def _place(state: StateCore) -> None:
    """Turn placeholders in running text into link tokens, and those in code back into words."""
    shown = state.env["shown"]

    def worded(content: str) -> str:
        return _EDGE.sub("", _PLACED.sub(lambda match: shown[int(match[1])][1], content))

    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"  # below the report's own headings
        if token.type == "code_block":
            token.content = worded(token.content)
        if token.children is None:
            continue
        children: list[Token] = []
        whole = _whole_sentences(token.children)
        for child in token.children:
            if child.type != "text":
                child.content = worded(child.content)
                children.append(child)
                continue
            for piece in filter(None, _SPLIT.split(child.content)):
                if _EDGE.fullmatch(piece):
                    children += [Token(_INSIDE, "", 0, content=piece)] if piece[1:] in whole else []
                    continue
                special = _PLACED.fullmatch(piece) or piece in MARKS.values()
                children.append(Token(_LINKED if special else "text", "", 0, content=piece))
        token.children = children


def _whole_sentences(children: Sequence[Token]) -> set[str]:
    """The sentences that begin and end within this text, outside emphasis."""
    edges = [
        edge for child in children if child.type == "text" and not child.level for edge in _EDGE.findall(child.content)
    ]
    return {edge[1:] for edge in edges if edge[0] == _BEGIN} & {edge[1:] for edge in edges if edge[0] == _END}


def _render_edge(_: Any, tokens: Sequence[Token], index: int, __: Any, env: dict[str, Any]) -> str:
    edge = tokens[index].content
    sentence = env["inside"][int(edge[1:-1])]
    return str(sentence.before if edge[0] == _BEGIN else sentence.after)


def _render_link(_: Any, tokens: Sequence[Token], index: int, __: Any, env: dict[str, Any]) -> str:
    content = tokens[index].content
    placed = _PLACED.fullmatch(content)
    if placed is None:
        return f'<strong class="missing">{escape(content)}</strong>'
    link, words = env["shown"][int(placed[1])]
    looks = " doubtful" if link.doubtful else " missing" if words in MARKS.values() else ""
    return Markup('<a class="{}{}" {}>{}</a>').format(link.kind, looks, env["attributes"](link), words)

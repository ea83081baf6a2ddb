"""A section's text as HTML of our own making: every citation a link to its passage, nothing of the text obeyed.

The text is markdown that a model wrote or that quotes papers. Headings, lists, emphasis and tables are shown as such;
HTML, links and images stay the characters that they are, so nothing in the text can become an element or an address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from citeloom.citations.foreign import NEEDED

if TYPE_CHECKING:
    from markdown_it.rules_core import StateCore

# A citation while markdown is read: its number between two characters that no text is left to hold.
_PLACED = re.compile("\ue000(\\d+)\ue001")
_SPLIT = re.compile(f"(\ue000\\d+\ue001|{re.escape(NEEDED)})")
_PRIVATE = re.compile("[\ue000\ue001]")
_OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_ADDRESS = re.compile(r"<(https?://[^\s<>]+)>")
_CITED, _MISSING = "citeloom_cited", "citeloom_missing"


@dataclass(frozen=True, slots=True)
class Link:
    """The citation `text[start:end]`, opened by `#c<number>`; `doubtful` when a judge did not find it borne out."""

    number: int
    start: int
    end: int
    doubtful: bool = False


def section_html(text: str, links: Sequence[Link]) -> Markup:
    """The text as HTML; `links` in the order of the text, none within another."""
    text = shown_text(text)
    shown = {link.number: (link, text[link.start : link.end]) for link in links}
    pieces: list[str] = []
    done = 0
    for link in links:
        pieces += [text[done : link.start], f"\ue000{link.number}\ue001"]
        done = link.end
    return Markup(_reader().render("".join([*pieces, text[done:]]), {"shown": shown}))


def reference_html(text: str) -> Markup:
    """A reference, which is one line of markdown."""
    return Markup(_reader().renderInline(_ADDRESS.sub(r"\1", shown_text(text)), {"shown": {}}))


def shown_text(text: str) -> str:
    """The text, character for character, without those that a page must not hold or that mean something to us."""
    return _PRIVATE.sub("\ufffd", _OBEYED.sub("\ufffd", text))


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_inline", "html_block", "reference", "entity", "fence"])
    reader.core.ruler.push("citations", _place)
    reader.add_render_rule(_CITED, _cited)
    reader.add_render_rule(_MISSING, _missing)
    return reader


def _place(state: StateCore) -> None:
    """Make tokens of the citations in running text, and their words again of those in code."""
    shown = state.env["shown"]

    def worded(content: str) -> str:
        return _PLACED.sub(lambda match: shown[int(match[1])][1], content)

    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"  # below the report's own headings
        if token.type == "code_block":
            token.content = worded(token.content)
        if token.children is None:
            continue
        children: list[Token] = []
        for child in token.children:
            if child.type == "text":
                children += _parts(child)
            else:
                child.content = worded(child.content)
                children.append(child)
        token.children = children


def _parts(token: Token) -> list[Token]:
    """A text token, cut at the citations in it."""
    parts: list[Token] = []
    for piece in _SPLIT.split(token.content):
        placed = _PLACED.fullmatch(piece)
        kind = _CITED if placed else _MISSING if piece == NEEDED else "text"
        if piece:
            parts.append(Token(kind, "", 0, content=piece, meta={"number": int(placed[1])} if placed else {}))
    return parts


def _cited(_: Any, tokens: Sequence[Token], index: int, __: Any, env: dict[str, Any]) -> str:
    link, words = env["shown"][tokens[index].meta["number"]]
    doubtful = " doubtful" if link.doubtful else ""
    return Markup('<a class="cite{}" id="r{}" href="#c{}">{}</a>').format(doubtful, link.number, link.number, words)


def _missing(_: Any, tokens: Sequence[Token], index: int, __: Any, ___: Any) -> str:
    return f'<strong class="missing">{escape(tokens[index].content)}</strong>'

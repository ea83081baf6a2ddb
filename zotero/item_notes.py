"""Turns notes and annotations of an item into the text of the user's note on the paper."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..text.words import unescape_html
from .zotero_records import Annotation, ItemNote

_MOST_HTML: Final = 1_000_000  # characters of one note, without the pictures in it
_MOST_IN_ALL: Final = 2_000_000  # characters of a paper's note
_PICTURE = re.compile(r"data:[a-z]{1,20}/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/=]*+", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)  # always ends with: -->
# A `>` in quotes does not end a tag, unless a quotation mark is left open.
_TAG = re.compile(
    r"<(?:(?P<slash>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?:(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+>|[^<>]*+>)|[!?/][^<>]*+>)"
)
_BLOCKS: Final = (
    "address article aside blockquote dd div dl dt figure footer h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section "
    "table tr ul".split()
)
_AT_END: Final = dict.fromkeys(_BLOCKS, "\n")
_AT_START: Final = {**dict.fromkeys(_BLOCKS, "\n\n"), "br": "\n", "td": "\n", "th": "\n", "li": "\n- "}
_SILENT: Final = frozenset({"script", "style", "head", "title", "template", "noscript"})
_MORE_THAN_ONE = re.compile(r"\n{3,}")


def item_note(notes: Iterable[ItemNote], annotations: Iterable[Annotation]) -> str:
    """The user's note on a paper: the notes as written, then what was marked, in the order of the pages."""
    texts = [html_text(note.html) for note in sorted(notes, key=lambda note: (note.added, note.key))]
    marked = sorted(annotations, key=lambda one: (one.parent, one.place, one.key))
    texts += [line for one in marked if (line := _marked(one))]
    return "\n\n".join(text for text in texts if text)[:_MOST_IN_ALL].strip()


def html_text(html: str) -> str:
    """The visible text of a note, with a line for each block; nothing of its markup."""
    closed, end, rest = _PICTURE.sub("", html)[:_MOST_HTML].rpartition("-->")
    html = f"{_COMMENT.sub('', closed + end)}{rest}"
    parts: list[str] = []
    hidden_by, done = "", 0
    for match in _TAG.finditer(html):
        tag = (match["name"] or "").lower()
        parts += [] if hidden_by else [html[done : match.start()].replace("\n", " ")]
        parts.append((_AT_END if match["slash"] else _AT_START).get(tag, ""))
        done = match.end()
        if match["slash"]:
            hidden_by = "" if tag == hidden_by else hidden_by
        elif tag in _SILENT:
            hidden_by = hidden_by or tag
    parts += [] if hidden_by else [html[done:].replace("\n", " ")]
    lines = (" ".join(unescape_html(line).split()) for line in "".join(parts).split("\n"))
    return _MORE_THAN_ONE.sub("\n\n", "\n".join(lines)).strip()


def _marked(annotation: Annotation) -> str:
    """A line for an annotation: page, the paper's words in quotation marks, and the user's comment."""
    text, comment = " ".join(annotation.text.split()), " ".join(annotation.comment.split())
    if not text and not comment:
        return ""
    page = f"p. {annotation.page}: " if annotation.page else ""
    return page + " – ".join(part for part in (f"“{text}”" if text else "", comment) if part)

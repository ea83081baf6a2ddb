"""Turns notes and annotations of an item into the text of the user's note on the paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from typing import Final

from .zotero_records import Annotation, ItemNote

_MOST_HTML: Final = 1_000_000  # characters of one note, without the pictures in it
_MOST_IN_ALL: Final = 2_000_000  # characters of a paper's note
_PICTURE = re.compile(r"data:[a-z]{1,20}/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/=]*+", re.IGNORECASE)
_BLOCKS: Final = frozenset(
    "address article aside blockquote br dd div dl dt figure footer h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre "
    "section table td th tr ul".split()
)
_OF_A_LINE: Final = frozenset({"br", "li", "td", "th"})
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
    reader = _Reader()
    reader.feed(_PICTURE.sub("", html)[:_MOST_HTML])
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return _MORE_THAN_ONE.sub("\n\n", "\n".join(lines)).strip()


class _Reader(HTMLParser):
    """Collects visible text; blocks are separated by line breaks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = ""

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent = self._silent or tag
        if tag in _BLOCKS:
            self.parts.append("\n- " if tag == "li" else "\n" if tag in _OF_A_LINE else "\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._silent:
            self._silent = ""
        if tag in _BLOCKS and tag not in _OF_A_LINE:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data.replace("\n", " "))


def _marked(annotation: Annotation) -> str:
    """A line for an annotation: page, the paper's words in quotation marks, and the user's comment."""
    text, comment = " ".join(annotation.text.split()), " ".join(annotation.comment.split())
    if not text and not comment:
        return ""
    page = f"p. {annotation.page}: " if annotation.page else ""
    return page + " – ".join(part for part in (f"“{text}”" if text else "", comment) if part)

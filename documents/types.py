"""The types of a library's content; all are frozen. A chunk refers to its paper, which has the metadata, by key."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import IntEnum

Span = tuple[int, int]  # of characters of a text: start and end


class Category(IntEnum):
    """The category of a section; the numbers are stored and must not change."""

    ABSTRACT = 0
    INTRODUCTION = 1
    METHOD = 2
    EVALUATION = 3
    CONCLUSION = 4
    OTHER = 5
    RELATED_WORK = 6


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text under it, up to the next heading of any level.

    `start` and `end` are character offsets of the body in the paper's text. `searchable` is False for sections that
    must not be quoted: reference lists, contributor lists, letters to and from reviewers.
    """

    index: int
    title: str
    parent: str
    level: int
    category: Category
    start: int
    end: int
    searchable: bool = True


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one section: `text == paper_text[start:end]`.

    `page` is the page on which it begins, None for a source without pages; `page_breaks` are the offsets in `text` of
    the following pages.
    """

    id: str
    key: str
    index: int
    text: str
    section: str
    parent: str
    category: Category
    level: int
    page: int | None
    start: int
    end: int
    tokens: int
    page_breaks: tuple[int, ...] = ()

    def page_at(self, offset: int) -> int | None:
        """The page of the character at `offset` of the text; None for a source without pages."""
        return None if self.page is None else self.page + bisect_right(self.page_breaks, offset)


def same_section(one: Chunk, other: Chunk) -> bool:
    """Whether two chunks of a paper are from one section."""
    return (one.section, one.parent, one.level) == (other.section, other.parent, other.level)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper's metadata; `authors` are display names ("Ada Lovelace"), family name last.

    `content_hash` is the sha256 of the indexed text, `bibtex` the entry as the user wrote it (or one generated from
    the front matter), `venue` the journal or book title. `ocr_pages` are the pages whose text was read by OCR.
    """

    key: str
    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""
    doi: str = ""
    url: str = ""
    abstract: str = ""
    bibtex: str = ""
    source: str = ""
    content_hash: str = ""
    pages: int | None = None
    family_names: tuple[str, ...] = field(default=())
    ocr_pages: tuple[int, ...] = ()


def chunk_id(key: str, index: int) -> str:
    """The id of the chunk at `index` (0, 1, 2 ... over the whole paper)."""
    return f"{key}:{index:05d}"


def split_chunk_id(identifier: str) -> tuple[str, int]:
    """The paper's key and the chunk's index; raises ValueError if `identifier` is not a chunk id."""
    key, separator, index = identifier.rpartition(":")
    if not separator or not index.isdigit():
        raise ValueError(f"not a chunk id: {identifier!r}")
    return key, int(index)

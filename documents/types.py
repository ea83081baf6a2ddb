"""The types of a library's content; all are frozen. A chunk refers to its paper, which has the metadata, by key.

Evidence is a finding read from a paper with the exact words that support it.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

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


_TYPE = re.compile(r"\s*@\s*(\w+)")
_LABELS = re.compile(
    r"[,{\n][^\S\n]*+(keywords|groups)\s*+=\s*+(?:\{((?:[^{}]++|\{[^{}]*+\})*+)|\"([^\"]*+)\")", re.IGNORECASE
)
_LABEL = re.compile(r"(?:[^{},;]++|\{[^{}]*+\})++")


def entry_labels(bibtex: str) -> tuple[str, list[str], list[str]]:
    """An entry's type in lower case, its tags (`keywords`), and its collections (`groups`), such as Thesis/Methods."""
    kind, values = _TYPE.match(bibtex), {found[1].lower(): found[2] or found[3] for found in _LABELS.finditer(bibtex)}
    tags, collections = (
        list(dict.fromkeys(filter(None, map(_label, _LABEL.findall(values.get(name) or "")))))
        for name in ("keywords", "groups")
    )
    return kind[1].lower() if kind else "misc", tags, collections


def _label(source: str) -> str:
    return " ".join(re.sub(r"[{}]|\\(?=[&%$#_^])", "", source.replace(r"\textasciitilde", "~")).split())


def chunk_id(key: str, index: int) -> str:
    """The id of the chunk at `index` (0, 1, 2 ... over the whole paper)."""
    return f"{key}:{index:05d}"


def split_chunk_id(identifier: str) -> tuple[str, int]:
    """The paper's key and the chunk's index; raises ValueError if `identifier` is not a chunk id."""
    key, separator, index = identifier.rpartition(":")
    if not separator or not index.isdigit():
        raise ValueError(f"not a chunk id: {identifier!r}")
    return key, int(index)


NOTE_ENDING: Final = ".notes.md"


@dataclass(frozen=True, slots=True)
class Note:
    """The user's note on a paper, `<key>.notes.md` next to it: searched with the summaries, never cited.

    Each of its passages, `text[start:end]`, has its own vector.
    """

    text: str
    spans: tuple[Span, ...]

    @property
    def passages(self) -> tuple[str, ...]:
        return tuple(self.text[start:end] for start, end in self.spans)


def note_stem(file: Path) -> str | None:
    """The key or file stem that a note is named after; None for other files. Extensions ignore case."""
    name = file.name
    return name[: -len(NOTE_ENDING)] if name.lower().endswith(NOTE_ENDING) else None


def text_hash(text: str) -> str:
    """The sha256 of a text, used to reuse vectors and to find evidence again."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class EvidenceSpan:
    """A span of a chunk: `chunk.text[start:end] == quote` for the chunk whose text has the hash `chunk_hash`."""

    chunk_id: str
    start: int
    end: int
    quote: str
    page: int | None
    chunk_hash: str

    @classmethod
    def of(cls, chunk: Chunk, start: int, end: int) -> EvidenceSpan:
        """The span sliced from `chunk`, never copied by a model; raises ValueError for an empty span."""
        if not 0 <= start < end <= len(chunk.text):
            raise ValueError(f"span {start}:{end} is not inside chunk {chunk.id} of {len(chunk.text)} characters")
        return cls(chunk.id, start, end, chunk.text[start:end], chunk.page_at(start), text_hash(chunk.text))


@dataclass(frozen=True, slots=True)
class Evidence:
    """One finding of a paper; `chunk.text[start:end] == quote` always holds.

    `id` is the marker by which a writer cites it (`E1`, `E2` ...), stable within a thread; `summary` is the finding in
    one statement. `section` is the section title, which locates the quote if the source has no pages. `combined_score`
    weights both scores, all in 0-1. A finding may be based on non-adjacent sentences, even in neighbouring chunks:
    `more` are the spans after the first run. `need` is the id of the need that it serves, `also` the ids of further
    needs.
    """

    id: str
    chunk_id: str
    key: str
    summary: str
    quote: str
    start: int
    end: int
    vector_score: float
    llm_score: float
    combined_score: float
    source_query: str
    section: str
    page: int | None
    chunk_hash: str
    need: str = ""
    more: tuple[EvidenceSpan, ...] = ()
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, chunk: Chunk, *, start: int, end: int, **fields: Any) -> Evidence:
        """Evidence whose quote is sliced from `chunk`, never copied by a model; raises ValueError for an empty span."""
        return cls(key=chunk.key, section=chunk.section, **asdict(EvidenceSpan.of(chunk, start, end)), **fields)

    @property
    def chosen(self) -> bool:
        """Whether a person picked this evidence by hand, in which case all its scores are 1."""
        return self.vector_score == self.llm_score == self.combined_score == 1

    @property
    def spans(self) -> tuple[EvidenceSpan, ...]:
        """All spans that support the finding, in the order of the paper."""
        first = EvidenceSpan(self.chunk_id, self.start, self.end, self.quote, self.page, self.chunk_hash)
        return (first, *self.more)

    def as_dict(self) -> dict[str, Any]:
        """The evidence as plain data for graph state."""
        return {**asdict(self), "more": [asdict(span) for span in self.more], "also": list(self.also)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Evidence:
        """Restore evidence from graph state, as stored by `as_dict`."""
        more = tuple(EvidenceSpan(**span) for span in record["more"])
        return cls(**{**record, "more": more, "also": tuple(record["also"])})

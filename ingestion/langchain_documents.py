"""Reads papers given as LangChain documents, one or more per paper (some loaders return one per page)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..documents.bibliography import Bibliography, Refusal
from ..documents.front_matter import find_doi
from ..documents.markdown import ParsedPaper, parse_markdown
from ..documents.paper_metadata import describe
from ..documents.types import Paper

if TYPE_CHECKING:
    from langchain_core.documents import Document

_GAP = "\n\n"
_MOST_PAGES = 100_000
_MOST_NAME = 4_000
MOST_CHARACTERS = 20_000_000  # per paper, about 8,000 pages; beyond that, chunking alone would take minutes


def group_documents(documents: Iterable[Document]) -> tuple[dict[str, list[Document]], list[Refusal]]:
    """Group documents by the key or source in their metadata, in order of first occurrence; refuse those without."""
    groups: dict[str, list[Document]] = {}
    refused: list[Refusal] = []
    for number, document in enumerate(documents):
        try:
            name = str(document.metadata.get("key") or document.metadata.get("source") or "").strip()
        except (ValueError, RecursionError):  # a number with thousands of digits, a list that contains itself
            name = ""
        if len(name) > _MOST_NAME:
            refused.append(
                Refusal(f"document {number}", f"has a 'key' or 'source' of {len(name)} characters in its metadata")
            )
        elif name:
            groups.setdefault(name, []).append(document)
        else:
            refused.append(Refusal(f"document {number}", "has neither 'key' nor 'source' in its metadata"))
    return groups, refused


def read_documents(name: str, parts: Sequence[Document], bibliography: Bibliography) -> SourcePaper | Refusal:
    """The paper in the documents of one group, or the reason why it is refused."""
    given = parts[0].metadata
    size = sum(len(part.page_content) for part in parts)
    if size > MOST_CHARACTERS:
        return Refusal(name, f"is {size / 1e6:.0f} MB, more than the limit of {MOST_CHARACTERS / 1e6:.0f} MB")
    # Page numbers, counted from 0, are kept if each part states its own.
    pages = [part.metadata.get("page") for part in parts]
    numbers = [page for page in pages if isinstance(page, int) and 0 <= page < _MOST_PAGES]
    paged = len(numbers) == len(parts) and numbers == sorted(numbers)
    text, starts = "", list[int]()
    for number, part in enumerate(parts):
        text += _GAP if text else ""
        if paged:
            starts += [len(text)] * (numbers[number] + 1 - len(starts))
        # Without NUL characters, which no store accepts, and lone surrogates, which cannot be encoded.
        text += part.page_content.replace("\0", "").encode("utf-8", "ignore").decode("utf-8").strip()
    parsed = replace(parse_markdown(text), page_starts=tuple(starts))
    if not parsed.text.strip():
        return Refusal(name, "is empty")
    front = parsed.front_matter
    metadata = {field: str(given.get(field) or "").strip() for field in ("title", "author", "doi")}
    authors = tuple(name.strip() for name in re.split(r";|\band\b", metadata["author"]) if name.strip())
    front = replace(
        front,
        title=front.title or metadata["title"],
        authors=front.authors or authors,
        doi=front.doi or find_doi(metadata["doi"]),
    )
    parsed = replace(parsed, front_matter=front, title=parsed.title or front.title)
    # A file name to derive the key from: the key itself, else the last part of the source, which may be a URL.
    last = PurePosixPath(name.replace("\\", "/").split("?")[0].rstrip("/")).name
    path = Path(f"{name}.md" if given.get("key") else last or "document")
    paper, warnings = describe(path, parsed, bibliography)
    source = str(given.get("source") or name)
    return SourcePaper(path, parsed, replace(paper, source=source), notices=tuple(warnings))


@dataclass(frozen=True, slots=True)
class SourcePaper:
    """A paper read from its file, with the user's note on it, and `notices` about its metadata.

    `folder` is the folder of its file; None for a paper given as documents, which has no note.
    """

    path: Path
    parsed: ParsedPaper
    paper: Paper
    folder: Path | None = None
    note: str = ""
    notices: tuple[str, ...] = ()

"""Verifies a result against its own file and the library: its record, and the text that a person reads.

A record is the content of `discussion.json`, an answer, a paper or an exported conversation. The module is pure except
for the library, which is read through `LibraryReader`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, Protocol

from .text_verification import PaperReader, TextCheck

_DIGITS: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ROUNDED: Final = Decimal("0.12")
_POWERS: Final = range(-9, 10)  # 72.5% is 0.725, and 1.2 million is 1,200,000


class LibraryReader(PaperReader, Protocol):
    """The part of a library needed for verification."""

    def chunk(self, chunk_id: str) -> tuple[str, str] | None:
        """The key and text of a chunk; None if there is none with this id."""
        ...


@dataclass
class Verified:
    """The counts of checks, the failures (field and reason), and what a file of an older version lacks."""

    quotes: int = 0
    keys: int = 0
    numbers: int = 0
    mismatches: list[tuple[str, str]] = field(default_factory=list)
    lacks: dict[str, int] = field(default_factory=dict)

    def wrong(self, place: str, why: str) -> None:
        """Record a failure."""
        self.mismatches.append((place, why))

    def lacking(self, what: str) -> None:
        """Record something that could not be checked."""
        self.lacks[what] = self.lacks.get(what, 0) + 1


def verify(
    record: Mapping[str, Any],
    shelf: LibraryReader,
    text: str | None = None,
    labels: Sequence[tuple[str, str]] = (),
) -> Verified:
    """Verify a result with all its parts: the sections of a paper, the turns of a conversation.

    `text` is that of a file exported from the record, with what a reader sees for its linked citations.
    """
    found = Verified()
    if text is not None:
        check = TextCheck(record, shelf, partial(found.wrong, "text"))
        check.check_file(text, labels)
        found.lacks |= {"edited sentences, whose support was not judged": check.edited} if check.edited else {}
    for place, part in _parts(record):
        _check(part, place, shelf, found)
    return found


def is_result(record: object) -> bool:
    """Whether this is a result of Citeloom that can be verified."""
    return isinstance(record, Mapping) and any(map(_is_text, _parts(record)))


def _is_text(part: tuple[str, Mapping[str, Any]]) -> bool:
    return isinstance(part[1].get("text"), str) and isinstance(part[1].get("citations"), list)


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "citations" in record:
        yield "", record
    for name in ("sections", "turns"):
        parts = record.get(name)
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, Mapping):
                yield f"{name}[{number}].", part


def _check(part: Mapping[str, Any], place: str, shelf: LibraryReader, found: Verified) -> None:
    references = {entry.get("key") for entry in _records(part, "references")}
    evidence = {entry.get("id") for entry in _records(part, "evidence")}
    texts: dict[str, str] = {}
    for number, citation in enumerate(_records(part, "citations")):
        at = f"{place}citations[{number}]"
        found.keys += 1
        if citation.get("key") not in references:
            found.wrong(f"{at}.key", f"{citation.get('key')!r} is not among the references of the file")
        if evidence and citation.get("evidence_id") not in evidence:
            found.wrong(f"{at}.evidence_id", f"{citation.get('evidence_id')!r} is not among the evidence of the file")
        own = citation.get("chunk_text")
        if isinstance(own, str):
            texts[str(citation.get("evidence_id"))] = own
        else:
            found.lacking("citations without the text of their chunk")
        _check_quote(citation, at, own, shelf, found)
    for number, entry in enumerate(_records(part, "evidence")):
        _check_quote(entry, f"{place}evidence[{number}]", None, shelf, found)
    for number, entry in enumerate(_records(part, "references")):
        if shelf.paper(str(entry.get("key"))) is None:
            found.wrong(f"{place}references[{number}].key", f"the library has no paper {entry.get('key')!r}")
    _check_own_text(part, place, shelf, found)
    for number, trace in enumerate(_records(part, "numbers")):
        _check_number(trace, str(part.get("text")), f"{place}numbers[{number}]", texts, shelf, found)


def _check_own_text(part: Mapping[str, Any], place: str, shelf: LibraryReader, found: Verified) -> None:
    try:
        check = TextCheck(part, shelf, partial(found.wrong, f"{place}text"))
        check.check_own_text(str(part.get("text")))
    except (KeyError, TypeError, ValueError) as error:
        found.wrong(f"{place}text", f"cannot be compared with its citations ({type(error).__name__}: {error})")


def _check_quote(entry: Mapping[str, Any], at: str, own: object, shelf: LibraryReader, found: Verified) -> None:
    """Check that the quote is at its position in the file's chunk and in the library's."""
    found.quotes += 1
    quote = entry.get("quote")
    if isinstance(own, str) and _slice(own, entry) != quote:
        found.wrong(f"{at}.quote", "is not chunk_text[start:end] of the file")
    held = shelf.chunk(str(entry.get("chunk_id")))
    if held is None:
        found.wrong(f"{at}.chunk_id", f"the library has no chunk {entry.get('chunk_id')!r}")
        return
    key, text = held
    if key != entry.get("key"):
        found.wrong(f"{at}.key", f"the library has this chunk in {key!r}, not in {entry.get('key')!r}")
    if isinstance(own, str) and own != text:
        found.wrong(f"{at}.chunk_text", "is not the text that the library has")
    if _slice(text, entry) != quote:
        found.wrong(f"{at}.quote", "is not at this position in the library")


def _check_number(
    trace: Mapping[str, Any], text: str, at: str, texts: Mapping[str, str], shelf: LibraryReader, found: Verified
) -> None:
    words = trace.get("text")
    if _slice(text, trace) != words:
        found.wrong(f"{at}.text", "is not text[start:end] of the file")
    origin = trace.get("found")
    if not isinstance(origin, Mapping):
        found.lacking("numbers that were found nowhere when the text was written")
        return
    if "evidence_id" not in origin:
        found.lacking("numbers of the experiment, which the file does not hold")
        return
    found.numbers += 1
    held = shelf.chunk(str(origin.get("chunk_id")))
    source = held[1] if held else texts.get(str(origin.get("evidence_id")))
    found_text = None if source is None else _slice(source, origin)
    if found_text is None:
        found.wrong(f"{at}.found", "its passage is not in the library")
    elif not _agree(str(words), found_text, exact=origin.get("how") == "equal"):
        found.wrong(f"{at}.found", f"the passage says {found_text[:40]!r} there, not {str(words)[:40]!r}")


def _slice(text: str, span: Mapping[str, Any]) -> str | None:
    start, end = span.get("start"), span.get("end")
    whole = isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(text)
    return text[start:end] if whole else None


def _agree(claimed: str, found_text: str, *, exact: bool) -> bool:
    """Whether two numbers are equal up to their scale; numbers in words are not compared."""
    ours, theirs = _value(claimed), _value(found_text)
    if ours is None or theirs is None:
        return bool(found_text.strip())
    reach = Decimal(0) if exact else _ROUNDED
    return any(abs(ours - (theirs * Decimal(10) ** power)) <= reach * abs(ours) for power in _POWERS)


def _value(text: str) -> Decimal | None:
    match = _DIGITS.search(text)
    try:
        return Decimal(match[0].replace(",", "")) if match else None
    except InvalidOperation:
        return None


def _records(part: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    given = part.get(name)
    return [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []

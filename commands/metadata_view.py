"""How `papers enrich`, `papers show` and `add` print what is known of a paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from .escaping import one_line

if TYPE_CHECKING:
    from ..metadata.enriching import Enrichment, StoredMetadata

_LONGEST_VALUE: Final = 160
_LABELS: Final = {"open_access": "open access", "type": "kind"}


def enrichment_lines(found: Enrichment) -> Iterator[str]:
    """The result for one paper: its DOI and how it was found, or why it was not, then what is known."""
    known = found.known
    if found.outcome == "known":
        yield one_line(f"{found.key}: {known.doi}")
    elif found.outcome == "found":
        yield one_line(f"{found.key}: {known.doi} (found by title and authors, similarity {found.similarity:.2f})")
    elif found.outcome == "unsure":
        yield one_line(f"{found.key}: unsure, so nothing was changed: {found.why}.")
        yield "  If one of these is the paper, put its DOI into your .bib and ingest it again:"
        for item in found.candidates:
            work = item.work
            shown = f"{work.doi}: {_shortened(work.title)} ({work.year or 'no year'}, {work.venue or 'no venue'})"
            yield one_line(f"  {shown}, similarity {item.similarity:.2f}")
    elif found.outcome == "not-found":
        said = f"no service knows {known.doi}" if known.doi else "no service has a paper with this title"
        yield one_line(f"{found.key}: {said}.")
    else:
        yield one_line(f"{found.key}: not looked up, since no service answered.")
    for line in known_lines(known):
        yield f"  {line}"


def known_lines(known: StoredMetadata) -> Iterator[str]:
    """Notices first, then what the entry lacks and what differs, each with who says so."""
    for line in known.status.lines():
        yield one_line(line)
    for item in known.filled:
        label = _LABELS.get(item.field, item.field)
        yield one_line(f"{label}: {_shown(item.value)} ({item.service})")
    for difference in known.differences:
        own, said = _shown(difference.own), _shown(difference.said)
        yield one_line(f"{difference.field} differs: {own} in your .bib, {said} at {difference.service}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        names = [str(item) for item in value]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{', '.join(names[:3])}{more}"
    return f"{value:,}" if isinstance(value, int) and value > 9999 else _shortened(str(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"

"""How a source is brought in: a sentence of ours that names theme and authors, with the source's words quoted.

The sentence claims no more than it can show: that the authors write these words, and on which theme.
"""

from __future__ import annotations

from collections.abc import Sequence

from citeloom.documents.authors import in_text_name, speaks_as_one
from citeloom.documents.literal_markers import as_text
from citeloom.documents.quoting import shown_quote
from citeloom.models.extractive.matching import Match

_FRAMES = (
    "On {theme}, {authors} {report}: “{quote}” [{marker}].",
    "{Authors} {write} of {theme}: “{quote}” [{marker}].",
    "This can be set beside {authors} on {theme}: “{quote}” [{marker}].",
    "Work by {authors} on {theme} states: “{quote}” [{marker}].",
    "For {theme}, compare {authors}: “{quote}” [{marker}].",
    "{Authors} also {treat} {theme}: “{quote}” [{marker}].",
)
_AGAIN = (
    "{Authors} {add} on {theme}: “{quote}” [{marker}].",
    "Again on {theme}, {authors} {write}: “{quote}” [{marker}].",
)
_VERBS = ("report", "write", "treat", "add")


def source_sentences(matches: Sequence[Match]) -> list[str]:
    """One sentence for each match, in order; a paper named before is brought in as such."""
    seen: set[str] = set()
    made: list[str] = []
    fresh = again = 0
    for match in matches:
        source = match.quotable.source
        if source.paper.key in seen:
            frame = _AGAIN[again % len(_AGAIN)]
            again += 1
        else:
            frame = _FRAMES[fresh % len(_FRAMES)]
            fresh += 1
        seen.add(source.paper.key)
        authors = in_text_name(source.paper)
        ending = "s" if speaks_as_one(source.paper) else ""
        made.append(
            frame.format(
                theme=match.theme.label,
                authors=authors,
                Authors=authors[0].upper() + authors[1:],
                quote=as_text(shown_quote(source.text, match.quotable.passage.start, match.quotable.passage.end)),
                marker=source.evidence.id,
                **{verb: verb + ending for verb in _VERBS},
            )
        )
    return made

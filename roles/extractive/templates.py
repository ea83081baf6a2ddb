"""Sentence templates that introduce a quoted source by its theme and authors.

The sentence claims only what it can show: that the authors write these words, and on which theme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...documents import Category
from ...documents.authors import in_text_name, speaks_as_one
from ...documents.marker_escaping import as_text
from ...documents.quote_display import shown_quote
from ..inputs import Source
from .source_matching import Match

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
    """One sentence for each match, in order; a paper already named is introduced as such."""
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


# By the kind of section that the words come from.
_LEADS: Final[dict[Category, str]] = {
    Category.ABSTRACT: "{who} {sum} up",
    Category.INTRODUCTION: "{who} {write}",
    Category.METHOD: "{who} {describe}",
    Category.EVALUATION: "{who} {report}",
    Category.CONCLUSION: "{who} {conclude}",
    Category.OTHER: "{who} {write}",
    Category.RELATED_WORK: "Of other work, {who} {write}",
}
# After a sentence from the same kind of section.
_MORE: Final = ("{who} {add}", "{who} also {note}", "Further, {who} {write}")
_ANSWER_VERBS: Final = ("sum", "write", "describe", "report", "conclude", "add", "note")
_LONGEST_PARAGRAPH: Final = 3  # sentences


def paragraphs(sources: Sequence[Source]) -> list[str]:
    """The quotations of one paper by kind of section, in the given order; more than three are split by kind."""
    kinds: dict[Category, list[Source]] = {}
    for source in sources:
        kinds.setdefault(source.category, []).append(source)
    groups = list(kinds.values())
    if len(sources) <= _LONGEST_PARAGRAPH:
        groups = [[source for group in groups for source in group]]
    return [" ".join(_sentences(group)) for group in groups]


def _sentences(group: Sequence[Source]) -> list[str]:
    made: list[str] = []
    more = 0
    for place, source in enumerate(group):
        lead = _LEADS[source.category]
        if place and group[place - 1].category is source.category and source.category is not Category.RELATED_WORK:
            lead = _MORE[more % len(_MORE)]
            more += 1
        made.append(_sentence(source, lead, first=place == 0))
    return made


def _sentence(source: Source, lead: str, *, first: bool) -> str:
    alone = speaks_as_one(source.paper)
    who = in_text_name(source.paper) if first or alone else "they"
    said = lead.format(who=who, **{verb: f"{verb}s" if alone else verb for verb in _ANSWER_VERBS})
    said, quote = as_text(said), as_text(shown_quote(source.text, source.evidence.start, source.evidence.end))
    return f"{said[0].upper()}{said[1:]}: “{quote}” [{source.evidence.id}]."

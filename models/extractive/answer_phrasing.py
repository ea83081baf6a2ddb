"""How an answer brings its quotations in: who says it, in which kind of section, and whose work it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from citeloom.documents import Category
from citeloom.documents.authors import in_text_name, speaks_as_one
from citeloom.documents.literal_markers import as_text
from citeloom.documents.quoting import shown_quote
from citeloom.models.briefs import Source

# By the kind of section that the words stand in.
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
_VERBS: Final = ("sum", "write", "describe", "report", "conclude", "add", "note")
_LONGEST_PARAGRAPH: Final = 3  # sentences


def paragraphs(sources: Sequence[Source]) -> list[str]:
    """What one paper says: its quotations by kind of section, in the order given; more than three part by kind."""
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
    said = lead.format(who=who, **{verb: f"{verb}s" if alone else verb for verb in _VERBS})
    said, quote = as_text(said), as_text(shown_quote(source.text, source.evidence.start, source.evidence.end))
    return f"{said[0].upper()}{said[1:]}: “{quote}” [{source.evidence.id}]."

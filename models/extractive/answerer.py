"""Answers a question without a chat model: what the papers say, in their words and under their titles.

Nothing is argued and nothing summed up: each sentence names the authors and quotes one sentence of theirs. A sentence
from a section on other work is brought in as an account of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from citeloom.documents import Category
from citeloom.documents.authors import in_text_name
from citeloom.documents.sentences import sentence_spans
from citeloom.models.roles import AnswerBrief, Draft, Source

# How a quote is brought in, by the kind of section that it stands in: the first time, and after that.
_FRAMES: Final[dict[Category, tuple[str, str]]] = {
    Category.ABSTRACT: ("{authors} {sum} up", "They {sum} up"),
    Category.INTRODUCTION: ("{authors} {write}", "They {write}"),
    Category.METHOD: ("{authors} {describe}", "Of their method they {write}"),
    Category.EVALUATION: ("{authors} {report}", "Of their results they {write}"),
    Category.CONCLUSION: ("{authors} {conclude}", "They {conclude}"),
    Category.OTHER: ("{authors} {write}", "They {write}"),
    Category.RELATED_WORK: ("Of other work, {authors} {write}", "Of other work, they {write}"),
}
_VERBS: Final = ("sum", "write", "describe", "report", "conclude")
_OF_A_PAPER: Final = 3  # sentences of one paper in a survey
_SHOWN: Final = 60  # characters
_HEADED: Final = 2  # papers from which on each has a heading


class ExtractiveAnswerer:
    """Implements `AnswerWriter`; the same brief always gives the same draft."""

    async def write(self, brief: AnswerBrief) -> Draft:
        """The answer, the best paper first; empty when there is no evidence."""
        chosen = chosen_sources(brief)
        headed = len(chosen) >= _HEADED
        parts: list[str] = []
        for sources in chosen:
            if headed:
                parts.append(f"## {_title(sources[0])}")
            parts.append(" ".join(_sentence(source, first=place == 0) for place, source in enumerate(sources)))
        return Draft("\n\n".join(parts))

    async def repair(self, brief: AnswerBrief, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft without the sentences that a problem names, and without headings that are left with nothing."""
        kept: list[str] = []
        for block in draft.text.split("\n\n"):
            if block.startswith("#"):
                kept.append(block)
                continue
            sentences = [block[start:end] for start, end in sentence_spans(block)]
            left = [sentence for sentence in sentences if not any(_beginning(sentence) in line for line in problems)]
            if left:
                kept.append(" ".join(left))
            elif kept and kept[-1].startswith("#"):
                kept.pop()
        return Draft("\n\n".join(kept), notes=draft.notes)


def chosen_sources(brief: AnswerBrief) -> list[list[Source]]:
    """The evidence that is quoted, by paper, the best first, within the length and the number of papers asked."""
    ranked = sorted(brief.sources, key=lambda source: (-source.evidence.combined_score, source.evidence.id))
    by_paper: dict[str, list[Source]] = {}
    said: set[str] = set()
    words = 0
    for source in ranked:
        key, quote = source.paper.key, " ".join(source.evidence.quote.split())
        length = len(quote.split())
        full = key not in by_paper and len(by_paper) >= brief.most_papers
        if quote in said or full or (brief.survey and len(by_paper.get(key, ())) >= _OF_A_PAPER):
            continue
        if words and words + length > brief.words:
            break
        by_paper.setdefault(key, []).append(source)
        said.add(quote)
        words += length
    return list(by_paper.values())


def _sentence(source: Source, *, first: bool) -> str:
    authors = in_text_name(source.paper)
    ending = "s" if first and len(source.paper.authors) == 1 else ""
    frame = _FRAMES[source.category][0 if first else 1]
    if not first and len(source.paper.authors) == 1:
        frame, ending = _FRAMES[source.category][0], "s"
    lead = frame.format(authors=authors, **{verb: verb + ending for verb in _VERBS})
    quote = " ".join(source.evidence.quote.split())
    return f"{lead[0].upper()}{lead[1:]}: “{quote}” [{source.evidence.id}]."


def _beginning(sentence: str) -> str:
    """What a problem shows of a sentence at least."""
    return " ".join(sentence.split())[:_SHOWN]


def _title(source: Source) -> str:
    return " ".join(source.paper.title.split()).rstrip(".") or source.paper.key

"""How a question's sources are laid out for the model that answers it: by paper, in context, apart from older ones."""

from __future__ import annotations

from collections.abc import Sequence

from citeloom.documents import Category
from citeloom.models.briefs import AnswerBrief, Shown, Source, Turn
from citeloom.models.chat.presenting import (
    PresentedSources,
    fenced,
    one_line,
    present_sources,
    shortened,
    surroundings,
    tokens_of,
)

FRESH_TOKENS = 13_000
RECALLED_TOKENS = 5_000
_INTRODUCTION_TOKENS = 300
_LEAST_TOKENS = 120
_MOST_TOKENS = 1_200
_TURN_TOKENS = 400


def present_fresh(brief: AnswerBrief) -> PresentedSources:
    """The sources of this question, the best paper first: its introduction, then its passages with their markers.

    Passages are shortened around their quotes to share `FRESH_TOKENS`; where even that is too much, the papers whose
    evidence is weakest stay out.
    """
    if not brief.sources:
        return PresentedSources("(no sources)")
    by_id = {source.evidence.id: source for source in brief.sources}
    best = {key: max(source.evidence.combined_score for source in of) for key, of in _by_paper(brief.sources).items()}
    shown = [passage for passage in brief.shown if passage.evidence_ids]
    each = max(_LEAST_TOKENS, min(_MOST_TOKENS, FRESH_TOKENS // max(1, len(shown)) - _INTRODUCTION_TOKENS // 2))
    blocks: list[str] = []
    left_out: list[str] = []
    spent = 0
    for key in sorted(best, key=lambda key: (-best[key], key)):
        block = _paper_block([passage for passage in brief.shown if passage.key == key], by_id, each)
        spent += tokens_of(block)
        if blocks and spent > FRESH_TOKENS + RECALLED_TOKENS:
            left_out += [source.evidence.id for source in brief.sources if source.paper.key == key]
            continue
        blocks.append(block)
    return PresentedSources("\n\n".join(blocks), tuple(left_out))


def present_recalled(sources: Sequence[Source]) -> PresentedSources:
    """What earlier answers cited, each source by itself; the weakest stay out where there are too many."""
    return present_sources(sources, RECALLED_TOKENS) if sources else PresentedSources("(none)")


def present_turns(turns: Sequence[Turn]) -> str:
    """The questions asked before with their answers, in order, each in a fence of its own."""
    return "\n\n".join(_turn_block(turn) for turn in turns) or "(this is the first question)"


def turn_tokens(question: str, answer: str) -> int:
    """What a turn takes of a prompt, in approximate tokens."""
    return tokens_of(_turn_block(Turn(question, answer)))


def _turn_block(turn: Turn) -> str:
    # No number: it would change where the oldest turns are dropped.
    return fenced(f"Question: {one_line(turn.question)}\nAnswer:\n{shortened(turn.answer, _TURN_TOKENS)}", "turn")


def _by_paper(sources: Sequence[Source]) -> dict[str, list[Source]]:
    grouped: dict[str, list[Source]] = {}
    for source in sources:
        grouped.setdefault(source.paper.key, []).append(source)
    return grouped


def _paper_block(passages: Sequence[Shown], by_id: dict[str, Source], tokens: int) -> str:
    """One paper: no key and no authors, for a writer that never saw them cites by marker."""
    first = next(by_id[identifier] for passage in passages for identifier in passage.evidence_ids)
    paper = first.paper
    lines = [f"Paper: {one_line(paper.title)}" + (f" ({paper.year})" if paper.year else "")]
    for passage in passages:
        place = one_line(passage.section) + (" (on other papers)" if passage.category is Category.RELATED_WORK else "")
        if not passage.evidence_ids:
            lines.append(f"Background, not to be cited ({place}):\n{shortened(passage.text, _INTRODUCTION_TOKENS)}")
            continue
        said = [by_id[identifier] for identifier in passage.evidence_ids]
        start = passage.text.find(said[0].evidence.quote)
        shown = surroundings(passage.text, max(0, start), max(0, start) + len(said[0].evidence.quote), tokens)
        points = [f"[{item.evidence.id}] {one_line(item.evidence.summary)}" for item in said]
        lines += [f"Section: {place}", "What bears on the question, by marker:", *points, f"Passage:\n{shown}"]
    return fenced("\n".join(lines), "sources of one paper")

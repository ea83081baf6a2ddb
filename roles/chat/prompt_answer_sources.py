"""Formats the sources of a question for the answerer: by need, and separate from recalled ones."""

from __future__ import annotations

from collections.abc import Sequence

from ...models.context_size import WHOLE
from ..inputs import AnswerBrief, Source, Turn
from .prompt_format import PresentedSources, fenced, first_lines, one_line, present_findings, shortened, tokens_of

FRESH_TOKENS = 8_000
RECALLED_TOKENS = 4_000
_TURN_TOKENS = 400


def present_fresh(brief: AnswerBrief, tokens: int = FRESH_TOKENS) -> PresentedSources:
    """The findings for this question by need; the weakest are left out when they do not fit."""
    return present_findings(brief.needs, brief.sources, tokens)


def present_recalled(sources: Sequence[Source], tokens: int = RECALLED_TOKENS) -> PresentedSources:
    """What earlier answers cited, source by source; the weakest are left out when they do not fit."""
    return present_findings((), sources, tokens) if sources else PresentedSources("(none)")


def present_turns(turns: Sequence[Turn], tokens: int = WHOLE) -> str:
    """Earlier questions with their answers, in order, each in its own fence; the latest that fit."""
    latest = first_lines([_turn_block(turn) for turn in reversed(turns)], tokens)
    return "\n\n".join(reversed(latest)) or "(this is the first question)"


def turn_tokens(question: str, answer: str) -> int:
    """The approximate number of tokens that a turn takes in a prompt."""
    return tokens_of(_turn_block(Turn(question, answer)))


def _turn_block(turn: Turn) -> str:
    # Unnumbered: numbers would change whenever the oldest turns are dropped.
    return fenced(f"Question: {one_line(turn.question)}\nAnswer:\n{shortened(turn.answer, _TURN_TOKENS)}", "turn")

"""Removes the user's own results from planned needs: a search for them would find other people's.

The prompt forbids them, but a model may write them all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..citations.checks.number_tracing import trace_numbers
from ..experiment import Experiment
from ..roles.protocols import Need
from ..text.words import is_stop, words_of

_VERDICT: Final = re.compile(
    r"(?:(?<![,;:(\u2013\u2014-])[,;:(\u2013\u2014-]++\s*+|(?<![\s,;:(\u2013\u2014-])\s++)?"
    r"\b(?:(?:is|are|was|were|has|have|had|be|been|being|not|only|partly|partially|largely|in\spart)\s){0,9}"
    r"(?:refuted|confirmed|supported|rejected|falsified)\b"
    # Only as a predicate, or of a hypothesis: "confirmed cases" and "supported by trials" are a paper's words.
    r"(?=\s*(?:$|[.,;:!?)\u2013\u2014]|(?:here|in\s(?:this|our)|and|but|that|hypothes[ie]s|claims?)\b))",
    re.IGNORECASE,
)
_OWN: Final = re.compile(
    r"\b(?:(?:in|of|from|by)\s)?(?:this|our|the\spresent)\s(?:own\s)?(?:study|experiments?|work|paper)\b"
    r"|\b(?:as\s)?we\s(?:find|found|observed?|show(?:ed)?|report(?:ed)?|measured?|reach(?:ed)?)(?:\sthat)?\b"
    r"|\b(?:here|our|ours|we)\b",
    re.IGNORECASE,
)
_LEFT_OVER: Final = re.compile(
    r"\([^\w()]*+\)|\[[^\w\[\]]*+\]|(?<!\w)[%\u00b1~\u2212<>=/\u2248\u2264\u2265+]+(?!\w)"
    r"|\b(?:of|at|by|from|to|than|with|about|only|over|under|between|and|versus|vs\.?)(?=\s*(?:$|[.,;:?!)]))"
    r"|\bfrom\s+to\b|\bbetween\s+and\b|\b(?:of|at|by)(?=\s+(?:at|for|from|in|on|to|with)\b)"
)
_SPACED: Final = re.compile(r"(?<!\s)\s++(?=[,;:.?!)])|(?<=[,;:])(?:\s*+[,;:])++|[,;:]+(?=\.)")
_ROUNDS: Final = 4  # of cleaning: each removal may expose another match


def without_own_results(needs: Sequence[Need], experiment: Experiment) -> tuple[Need, ...]:
    """The needs without the experiment's numbers, verdicts, and words that refer to the user's own work.

    A query that is meaningless without them is dropped, and so is such a need; the remaining needs keep their ids.
    """
    kept: list[Need] = []
    for need in needs:
        texts = [_searchable(text, experiment) for text in (need.text, *need.queries)]
        queries = tuple(dict.fromkeys(filter(None, texts[1:]))) or tuple(filter(None, texts[:1]))
        if queries:
            kept.append(replace(need, text=texts[0] or queries[0], queries=queries))
    return tuple(kept)


def _searchable(text: str, experiment: Experiment) -> str:
    """A need or a query without the user's own results; unchanged when it has none, empty when it has nothing else."""
    own = [
        (trace.start, trace.end)
        for trace in trace_numbers(text, (), experiment)
        if trace.origin and any(map(str.isdigit, text[trace.start : trace.end]))
    ]
    left = text
    for start, end in reversed(own):
        left = f"{left[:start]} {left[end:]}"
    left = _OWN.sub(" ", _VERDICT.sub(" ", left))
    if left == text:
        return text
    for _ in range(_ROUNDS):
        left = " ".join(_SPACED.sub("", _LEFT_OVER.sub(" ", left)).split()).strip(" ,;:\u2013\u2014-")
    return left if any(not is_stop(word) for word in words_of(left)) else ""

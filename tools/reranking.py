"""Re-ranking what a search has found by a cross-encoder, which reads query and text together.

It costs some 50 ms for a text and does not pay for itself on what was measured (docs/decisions/fused-retrieval.md),
so it is off unless asked for, and has a part in the order rather than the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

# Of what the search itself ranks so many are read, for one that is asked for, and at least as many as below.
_POOL: Final = 2
_LEAST_POOL: Final = 20
_SURE: Final = 1e-6  # scores of 0 and 1 are taken for this much less than sure


class PairScorer(Protocol):
    """Scores texts for a query, 0-1, [n] in their order; blocks."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]: ...


def pool_of(k: int) -> int:
    """How many of a ranking are re-ranked when `k` are asked for."""
    return max(_LEAST_POOL, _POOL * k)


def reranked(
    ranking: Sequence[tuple[str, float]], texts: Mapping[str, str], query: str, part: float, scorer: PairScorer
) -> list[tuple[str, float]]:
    """What has a text, by the search's score and the scorer's, each scaled to 0-1 and the latter weighed with `part`.

    With a part of 1 the scorer alone decides. Equal scores go by name.
    """
    known = [(name, score) for name, score in ranking if name in texts]
    if not known:
        return []
    judged = np.clip(scorer.score(query, [texts[name] for name, _ in known]).astype(np.float64), _SURE, 1 - _SURE)
    # Log-odds: most scores of one search are within a hundredth of 0, and their differences tell.
    fused = (1 - part) * _scaled([score for _, score in known]) + part * _scaled(np.log(judged / (1 - judged)))
    scored = [(name, float(score)) for (name, _), score in zip(known, fused, strict=True)]
    return sorted(scored, key=lambda item: (-item[1], item[0]))


def _scaled(scores: Any) -> NDArray[np.float64]:
    """The scores from 0, the least, to 1; all 1 when they are equal."""
    raw = np.asarray(scores, dtype=np.float64)
    spread = float(np.ptp(raw))
    return (raw - raw.min()) / spread if spread else np.ones(len(raw))

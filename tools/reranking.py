"""Re-ranks search results with a cross-encoder, which reads query and text together.

It costs about 50 ms per text and did not pay for itself in measurements (docs/decisions/fused-retrieval.md), so it is
off by default, and its score is combined with that of the search rather than replacing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

# How many results of the search are re-ranked for each one requested, and the minimum in total.
_POOL: Final = 2
_LEAST_POOL: Final = 20
_SURE: Final = 1e-6  # scores are clipped to this distance from 0 and 1


class PairScorer(Protocol):
    """Scores texts for a query, 0-1, [n] in their order; blocks."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]: ...


def pool_of(k: int) -> int:
    """How many results are re-ranked when `k` are requested."""
    return max(_LEAST_POOL, _POOL * k)


def reranked(
    ranking: Sequence[tuple[str, float]], texts: Mapping[str, str], query: str, part: float, scorer: PairScorer
) -> list[tuple[str, float]]:
    """The results with a text, by the scores of search and scorer, each scaled to 0-1, the latter weighted by `part`.

    With a part of 1 the scorer alone decides. Ties are ordered by name.
    """
    known = [(name, score) for name, score in ranking if name in texts]
    if not known:
        return []
    judged = np.clip(scorer.score(query, [texts[name] for name, _ in known]).astype(np.float64), _SURE, 1 - _SURE)
    # Log-odds: most scores of a search are within a hundredth of 0, and their differences matter.
    fused = (1 - part) * _scaled([score for _, score in known]) + part * _scaled(np.log(judged / (1 - judged)))
    scored = [(name, float(score)) for (name, _), score in zip(known, fused, strict=True)]
    return sorted(scored, key=lambda item: (-item[1], item[0]))


def _scaled(scores: Any) -> NDArray[np.float64]:
    """The scores scaled to 0-1; all 1 when they are equal."""
    raw = np.asarray(scores, dtype=np.float64)
    spread = float(np.ptp(raw))
    return (raw - raw.min()) / spread if spread else np.ones(len(raw))

"""Judges without a chat model: on the topic or off it, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from citeloom.models.reranker import Reranker
from citeloom.models.roles import CitedPair, Verdict

_ON_TOPIC: Final = 0.3


class ExtractiveJudge:
    """Implements `SupportJudge` on the bundled cross-encoder.

    The cross-encoder cannot tell a claim from its contradiction (it passed 20 of 22 contradicted ones), so no
    more than the topic is judged, and the verdict says so by its name.
    """

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    async def judge(self, pairs: Sequence[CitedPair]) -> list[Verdict]:
        """`on-topic` or `off-topic` for each pair."""
        return await asyncio.to_thread(lambda: [self._compared(pair) for pair in pairs])

    def _compared(self, pair: CitedPair) -> Verdict:
        texts = [pair.source.evidence.quote, pair.source.text]
        best = float(self._reranker.score(pair.sentence, texts).max())
        return Verdict("on-topic" if best >= _ON_TOPIC else "off-topic", f"cross-encoder {best:.2f}")

"""Summarizes a paper without a chat model: its abstract, else the sentences it begins with."""

from __future__ import annotations

from citeloom.documents import Paper
from citeloom.documents.sentences import sentence_spans


class ExtractiveSummarizer:
    """Implements `PaperSummarizer`."""

    def __init__(self, words: int) -> None:
        self._words = words

    async def summarize(self, paper: Paper, text: str) -> str:
        """At most `words` words of whole sentences; the first sentence is kept whatever its length."""
        source = paper.abstract or text
        kept: list[str] = []
        count = 0
        for start, end in sentence_spans(source):
            sentence = " ".join(source[start:end].split())
            count += len(sentence.split())
            if kept and count > self._words:
                break
            kept.append(sentence)
        return " ".join(kept)

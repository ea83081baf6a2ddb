"""The blocks of a draft between blank lines with their sentences, and which of these fail: for removing sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...text.sentences import sentence_spans

_MARKER = re.compile(r"\[E[1-9]\d{0,5}\]")


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence of a draft; `fails` when it lies in one of the failing spans."""

    text: str
    fails: bool


@dataclass(frozen=True, slots=True)
class DraftBlock:
    """A paragraph, heading or list of a draft."""

    text: str
    sentences: tuple[DraftSentence, ...]


def blocks_of(text: str, failing: Sequence[tuple[int, int]]) -> list[DraftBlock]:
    """The blocks of a draft; `failing` are spans of whole sentences in it."""
    blocks: list[DraftBlock] = []
    place = 0
    for block in text.split("\n\n"):
        spans = [(first - place, last - place) for first, last in failing]
        found = tuple(
            DraftSentence(block[start:end], any(first < end and start < last for first, last in spans))
            for start, end in sentence_spans(block)
        )
        blocks.append(DraftBlock(block, found))
        place += len(block) + 2
    return blocks


def cites(sentence: str) -> bool:
    """Whether a sentence has an evidence marker: it quotes a source."""
    return bool(_MARKER.search(sentence))

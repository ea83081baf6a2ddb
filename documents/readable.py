"""Temporary: replaced by the merged module."""

from __future__ import annotations

from dataclasses import dataclass

from citeloom.documents.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class ReadableUnit:
    start: int
    end: int
    text: str
    kind: str = "sentence"


def readable_units(text: str) -> list[ReadableUnit]:
    return [
        ReadableUnit(s, e, " ".join(text[s:e].split()))
        for s, e in sentence_spans(text)
        if any(map(str.isalpha, text[s:e]))
    ]

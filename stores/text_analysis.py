"""The analysis of texts for BM25, the same in every backend: tantivy's tokenizer and filters."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tantivy import TextAnalyzer


# Stored in the catalog: a different value triggers a rebuild of the index from the stored texts.
FULLTEXT_VERSION: Final = "1"
_LONGEST_WORD = 60
SECTION_WEIGHT: Final = 0.5
K1: Final = 1.2
B: Final = 0.75
_analyzing: Final = threading.Lock()


@functools.cache
def make_analyzer() -> TextAnalyzer:
    """The analyzer of indexed texts and of queries: lowercased, ASCII-folded, stemmed, without English stop words."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(_LONGEST_WORD))
    builder = builder.filter(Filter.lowercase()).filter(Filter.ascii_fold())
    return builder.filter(Filter.stopword("english")).filter(Filter.stemmer("english")).build()


def analyze(text: str) -> list[str]:
    """The terms of a text as indexed: lowercased, ASCII-folded, stemmed, without English stop words; thread-safe."""
    with _analyzing:
        return make_analyzer().analyze(encodable(text).replace("\0", " "))


def encodable(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")

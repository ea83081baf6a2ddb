"""Finds the paper that a question refers to by a unique name: of a method, a data set, a group of people, an author.

A name is a capitalised word that is not in the bundled embedding's vocabulary of 30,000 common words, so
"Clustermatch" or "GABP" is a name and "Bayesian" or "Brown" is not.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from ...documents import split_chunk_id
from ...models.embeddings.bundled_models import EMBEDDER, load_tokenizer
from ...stores.library import Library
from ...stores.text_analysis import analyze
from .author_mentions import folded, led_by

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_YEAR = re.compile(r"\b(?:1[5-9]|20|21)\d\d\b")
_FEWEST_CHUNKS: Final = 3  # in which a paper uses a name of its own
_SHARE: Final = 2 / 3  # of all chunks that contain the name
_MOST_CHUNKS: Final = 500


def paper_of_coined_name(question: str, library: Library) -> str | None:
    """The key of the one paper that all names in a question point to; None when there is none or several. Blocks."""
    meant: set[str] = set()
    for name in coined_names(question):
        # A year next to an author was checked before, and no paper matches both.
        led = set() if _YEAR.search(question) else led_by(name, library.papers())
        owner = next(iter(led)) if len(led) == 1 else None if led else _owner(name, library)
        if owner is not None:
            meant.add(owner)
    return meant.pop() if len(meant) == 1 else None


def coined_names(question: str) -> list[str]:
    """The words of a question that are names, in order, without repeats."""
    tokenizer = load_tokenizer(EMBEDDER)
    names: list[str] = []
    for match in _WORD.finditer(question):
        word = re.sub(r"['’]s$", "", match.group())
        plain = folded(word)
        capital = any(character.isupper() for character in word)
        if capital and len(plain) > 2 and tokenizer.token_to_id(plain) is None and plain not in names:
            names.append(plain)
    return names


def _owner(name: str, library: Library) -> str | None:
    """The paper that has most of the chunks containing a name."""
    terms = analyze(name)
    if not terms:
        return None
    chunks = Counter(split_chunk_id(identifier)[0] for identifier, _ in library.matching(terms, _MOST_CHUNKS))
    if not chunks:
        return None
    key, most = chunks.most_common(1)[0]
    return key if most >= _FEWEST_CHUNKS and most >= _SHARE * chunks.total() else None

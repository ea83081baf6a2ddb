"""Context windows: neighbouring chunks of a section merged into one text and split into sentences.

Search works on chunks of about 400 tokens; an argument is longer. A window joins the chunks around a hit, up to the
boundaries of their section, and shows every sentence once although chunks overlap. Each sentence keeps its position in
a chunk, so that evidence can be sliced from it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .figures import PaperFigure
from .numbered_sentences import readable_units
from .types import Chunk, Paper

_CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class WindowSentence:
    """A sentence, a table or a panel of a caption: `chunk.text[start:end]`, shown as `text`."""

    chunk: Chunk
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive chunks of a section; `hits` are the ids of the search hits among them, best first.

    `cosines` are those of the hits (0-1), `needs` the ids of the needs for which the window was found. `figures` are
    those with their captions in the window that a model has described; no sentence of it is one of their descriptions.
    """

    paper: Paper
    chunks: tuple[Chunk, ...]
    hits: tuple[str, ...]
    cosines: tuple[float, ...]
    needs: tuple[str, ...] = ()
    figures: tuple[PaperFigure, ...] = ()

    @property
    def id(self) -> str:
        """An id from the first chunk and the number of chunks."""
        return f"{self.chunks[0].id}+{len(self.chunks)}"

    @property
    def vector_score(self) -> float:
        """The best cosine of the hits."""
        return max(self.cosines)

    def cosine_of(self, hit: str) -> float:
        """The cosine of a hit."""
        return self.cosines[self.hits.index(hit)]

    @property
    def tokens(self) -> int:
        """The approximate number of tokens, without overlaps, and with descriptions of figures."""
        first, last = self.chunks[0], self.chunks[-1]
        characters = sum(len(chunk.text) for chunk in self.chunks) or 1
        whole = sum(chunk.tokens for chunk in self.chunks)
        described = sum(len(figure.description) for figure in self.figures) // _CHARACTERS_PER_TOKEN
        return max(1, round(whole * min(characters, last.end - first.start) / characters)) + described

    def sentences(self) -> list[WindowSentence]:
        """The readable units in the order of the paper, without duplicates."""
        found: list[WindowSentence] = []
        for chunk in self.chunks:
            for unit in readable_units(chunk.text):
                sentence = WindowSentence(chunk, unit.start, unit.end, unit.text)
                if found and _begin(sentence) <= _begin(found[-1]) and _end(sentence) > _end(found[-1]):
                    found[-1] = sentence  # the previous chunk contained only its beginning
                elif not found or _begin(sentence) >= _end(found[-1]):
                    found.append(sentence)
        return found


def _begin(sentence: WindowSentence) -> int:
    return sentence.chunk.start + sentence.start


def _end(sentence: WindowSentence) -> int:
    return sentence.chunk.start + sentence.end

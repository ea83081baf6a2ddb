"""What is read of a paper at once: neighbouring chunks of one section as one text, in sentences.

Searching works on chunks of some 400 tokens; an argument is longer. A window joins the chunks around a hit, up to the
borders of their section, and shows every sentence once although chunks overlap. Each sentence keeps its place in a
chunk, so that evidence can be sliced from it to the character.
"""

from __future__ import annotations

from dataclasses import dataclass

from .numbered_sentences import readable_units
from .types import Chunk, Paper


@dataclass(frozen=True, slots=True)
class WindowSentence:
    """A sentence, a table or a panel of a caption: `chunk.text[start:end]`, shown as `text`."""

    chunk: Chunk
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive chunks of one section of a paper; `hits` are the ids of those that were searched for, best first.

    `cosines` are those of the hits (0-1), `needs` the ids of the needs that the window was found for.
    """

    paper: Paper
    chunks: tuple[Chunk, ...]
    hits: tuple[str, ...]
    cosines: tuple[float, ...]
    needs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Names the window by its first chunk and the number of its chunks."""
        return f"{self.chunks[0].id}+{len(self.chunks)}"

    @property
    def vector_score(self) -> float:
        """The best cosine of a hit."""
        return max(self.cosines)

    def cosine_of(self, hit: str) -> float:
        """The cosine of the chunk `hit`, which was searched for."""
        return self.cosines[self.hits.index(hit)]

    @property
    def tokens(self) -> int:
        """Tokens of the chunks, about, without what they share."""
        first, last = self.chunks[0], self.chunks[-1]
        characters = sum(len(chunk.text) for chunk in self.chunks) or 1
        whole = sum(chunk.tokens for chunk in self.chunks)
        return max(1, round(whole * min(characters, last.end - first.start) / characters))

    def sentences(self) -> list[WindowSentence]:
        """The readable units in the order of the paper, each once."""
        found: list[WindowSentence] = []
        for chunk in self.chunks:
            for unit in readable_units(chunk.text):
                sentence = WindowSentence(chunk, unit.start, unit.end, unit.text)
                if found and _begin(sentence) <= _begin(found[-1]) and _end(sentence) > _end(found[-1]):
                    found[-1] = sentence  # the chunk before held only its beginning
                elif not found or _begin(sentence) >= _end(found[-1]):
                    found.append(sentence)
        return found


def _begin(sentence: WindowSentence) -> int:
    return sentence.chunk.start + sentence.start


def _end(sentence: WindowSentence) -> int:
    return sentence.chunk.start + sentence.end

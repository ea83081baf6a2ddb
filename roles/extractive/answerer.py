"""Answers a question without a chat model, by quoting the papers under their titles.

Nothing is argued or summed up: each sentence names the authors and quotes one sentence of theirs. A sentence from a
section on other work is introduced as such. When no sentence has the question's words and the kind of its answer, the
heading says that the passages may be relevant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...models.journal.streaming import TextListener
from ...text.question_subject import subject_words
from ..inputs import AnswerBrief, Source
from ..protocols import Draft, FailingSentence
from .answer_kinds import ANSWERS, answers
from .draft_blocks import blocks_of
from .relevance import EVEN, Relevance, odds_of
from .sentence_vectors import SentenceVectors
from .templates import paragraphs

_FAR_BEHIND: Final = 6.0  # of log-odds
_OF_A_PAPER: Final = 3  # sentences per paper in a survey
_ASIDE: Final = re.compile(r" ?\[[^\[\]]*\]$")  # "[update in progress]"
_HEADED: Final = 2  # with this many papers, each gets a heading
_MAY_BEAR: Final = "## Passages that may bear on the question"


class ExtractiveAnswerer:
    """Implements `AnswerWriter`; the same brief always gives the same draft."""

    def __init__(self, vectors: SentenceVectors, relevance: Relevance) -> None:
        self._vectors = vectors
        self._relevance = relevance

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The answer, best paper first; empty when there is no evidence."""
        chosen = chosen_sources(brief, await self._worth(brief))
        headed = len(chosen) >= _HEADED
        parts: list[str] = []
        level = "##"
        if chosen and not any(answers_it(brief.question, source) for sources in chosen for source in sources):
            parts.append(_MAY_BEAR)
            level = "###"
        for sources in chosen:
            if headed:
                parts.append(f"{level} {_title(sources[0])}")
            parts += paragraphs(sources)
        return Draft("\n\n".join(parts))

    async def _worth(self, brief: AnswerBrief) -> dict[str, float]:
        """How well each piece answers; its passage and its quoted words count equally.

        The user's feedback is treated as a question of its own: the piece that answers it best is worth as much as the
        one that answers the question best, and others proportionally less, if their words are relevant to it at all.
        """
        sources = brief.sources
        ids = [source.evidence.id for source in sources]
        passages = np.array([odds_of(source.evidence.llm_score) for source in sources], dtype=np.float64)
        said = await self._relevance_of_quotes(brief.question, sources)
        worth = passages if said is None else (passages + said) / 2
        worth = worth + ANSWERS * np.array([answers_it(brief.question, source) for source in sources], dtype=np.float64)
        lacking = await self._relevance_of_quotes(subject_words(brief.feedback), sources)
        if lacking is not None and lacking.max() >= EVEN:
            level = lacking - lacking.max() + worth.max()
            worth = np.where(lacking >= EVEN, np.maximum(worth, level), worth)
        return dict(zip(ids, worth.tolist(), strict=True))

    async def _relevance_of_quotes(self, words: str, sources: Sequence[Source]) -> NDArray[np.float64] | None:
        """Log-odds that the quoted words of each source are relevant to `words`; None when that cannot be judged."""
        if not sources or not words or not self._relevance.can_judge(words):
            return None
        quotes = [source.evidence.quote for source in sources]
        vectors = await self._vectors.of(quotes)
        return await self._relevance.odds(words, quotes, vectors @ await self._vectors.of_query(words))

    async def repair(
        self, brief: AnswerBrief, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        """The draft without the sentences that fail, and without headings left empty."""
        kept: list[str] = []
        for block in blocks_of(draft.text, failing):
            if block.text.startswith("#"):
                kept.append(block.text)
                continue
            left = [sentence.text for sentence in block.sentences if not sentence.fails]
            if left:
                kept.append(" ".join(left))
            elif kept and kept[-1].startswith("#"):
                kept.pop()
        return Draft("\n\n".join(kept), notes=draft.notes)

    async def repair_sentences(self, brief: AnswerBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """Removes the sentences that fail as a whole."""
        return ["" if item.as_a_whole else None for item in failing]


def answers_it(question: str, source: Source) -> bool:
    """True when the quoted words have those of the question and the kind of its answer."""
    return answers(question, " ".join(source.evidence.quote.split()), source.paper)


def chosen_sources(brief: AnswerBrief, worth: Mapping[str, float]) -> list[list[Source]]:
    """The evidence that is quoted, by paper, best first, within the requested length and number of papers.

    `worth` is that of each piece by id, as log-odds: pieces far behind the best are left out.
    """
    ranked = sorted(brief.sources, key=lambda source: (-worth[source.evidence.id], source.evidence.id))
    ranked = [source for source in ranked if worth[source.evidence.id] >= worth[ranked[0].evidence.id] - _FAR_BEHIND]
    by_paper: dict[str, list[Source]] = {}
    said: set[str] = set()
    words = 0
    for source in ranked:
        key, quote = source.paper.key, " ".join(source.evidence.quote.split())
        length = len(quote.split())
        full = key not in by_paper and len(by_paper) >= brief.most_papers
        if quote in said or full or (brief.survey and len(by_paper.get(key, ())) >= _OF_A_PAPER):
            continue
        if words and words + length > brief.words:
            break
        by_paper.setdefault(key, []).append(source)
        said.add(quote)
        words += length
    return list(by_paper.values())


def _title(source: Source) -> str:
    return _ASIDE.sub("", " ".join(source.paper.title.split())).rstrip(".") or source.paper.key

"""The evidence reader on a chat model: one call for summary, score and the sentences that bear on the query.

The model answers with sentence numbers. The quote is sliced from the chunk by them: it cannot be invented.
"""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import Field

from citeloom.documents.sentences import sentence_spans
from citeloom.documents.wording import plain_wording
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.presenting import fenced
from citeloom.models.chat.presenting_passages import present_passage
from citeloom.models.chat.structured import Note, StructuredAnswer, ask, log_note
from citeloom.models.roles import Candidate, Reading
from citeloom.prompts import PromptLibrary

QUOTED_SENTENCES = 3
# Up to here "no sentence bears on it" is a consistent answer; above it, the sentences must be named.
_HARDLY_RELEVANT = 0.3


class PassageReading(StructuredAnswer):
    """What the reader answers for one passage."""

    summary: str = Field(description="What the passage says that bears on the question, in other words.")
    score: float = Field(ge=0, le=1, description="Relevance to the question, from 0 to 1.")
    first_sentence: int = Field(ge=0, description="Number of the first sentence that bears on it, 0 for none.")
    last_sentence: int = Field(ge=0, description="Number of the last sentence that bears on it, 0 for none.")


class ChatReader:
    """Reads chunks with a chat model.

    Args:
        summary_words: length asked of a summary; one more than twice as long is cut.
        max_tokens: limit of one answer, in tokens of the model.
        note: told, in one line, of each chunk whose reading could not be understood.
    """

    def __init__(
        self,
        caller: ChatCaller,
        prompts: PromptLibrary,
        *,
        summary_words: int,
        max_tokens: int,
        note: Note = log_note,
    ) -> None:
        self._caller = caller
        self._prompts = prompts
        self._summary_words = summary_words
        self._max_tokens = max_tokens
        self._note = note
        self._system = SystemMessage(prompts["reader_system"].render(summary_words=summary_words))

    async def read(self, query: str, candidate: Candidate) -> Reading | None:
        """The reading; None when nothing bears on the query, or when no valid answer came after one retry."""
        text = candidate.chunk.text
        # A table leaves spans that are only its bars.
        spans = [(start, end) for start, end in sentence_spans(text) if any(map(str.isalpha, text[start:end]))]
        if not spans:
            return None
        passage = present_passage(candidate, spans)
        plain = plain_wording(query)
        answer = await ask(
            self._caller,
            self._prompts,
            self._asked(query, passage),
            PassageReading,
            max_tokens=self._max_tokens,
            check=lambda reading: _check_sentences(reading, len(spans)),
            # Whoever asks the same in other typing is given the same reading.
            known_as=None if plain == query else self._asked(plain, passage),
        )
        if answer is None:
            self._note(f"Passage {candidate.chunk.id} was left out: the reader gave no valid answer, twice.")
            return None
        if answer.score == 0 or answer.first_sentence == 0:
            return None
        first = answer.first_sentence - 1
        last = min(answer.last_sentence - 1, first + QUOTED_SENTENCES - 1)
        return Reading(
            summary=_at_most(answer.summary, 2 * self._summary_words),
            score=answer.score,
            start=spans[first][0],
            end=spans[last][1],
        )

    def _asked(self, query: str, passage: str) -> list[BaseMessage]:
        task = self._prompts["reader_task"].render(query=fenced(query, "question"), passage=passage)
        return [self._system, HumanMessage(task)]


def _check_sentences(reading: PassageReading, count: int) -> None:
    first, last = reading.first_sentence, reading.last_sentence
    if reading.score == 0:
        return
    if first == last == 0:
        if reading.score > _HARDLY_RELEVANT:
            raise ValueError(f"score {reading.score} needs the numbers of the sentences, from 1 to {count}")
        return
    if not 1 <= first <= last <= count:
        raise ValueError(f"sentences {first} to {last} are not in the passage, which has 1 to {count}")
    if not reading.summary:
        raise ValueError("the summary is empty")


def _at_most(text: str, words: int) -> str:
    kept = text.split()
    return text if len(kept) <= words else " ".join(kept[:words]) + " ..."

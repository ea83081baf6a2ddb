"""The evidence reader on a chat model: one call for several windows returns a few relevant findings for each.

The model answers with sentence numbers, by which words are sliced from the chunks, so they cannot be invented. Nearly
correct answers are repaired rather than requested again. The screener reads cards of papers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import Field, field_validator, model_validator

from ...documents import Chunk
from ...documents.chunking import Window, WindowSentence
from ...documents.figures import PaperFigure
from ...models.concurrency import gather_all
from ...models.context_size import WHOLE, group_batches
from ...text.words import plain_wording, shorten as shorten_line
from ..protocols import Findings, PaperCard, PassageFinding, Purpose, ScreenedPapers
from .model_answers import MOST_SENTENCES, ChatRole, StructuredAnswer, parse_numbers
from .prompt_format import (
    described_figures,
    estimate_tokens,
    fence,
    first_words,
    present_lines,
    present_windows,
    shorten,
    window_sentences,
)

_FINDINGS_OF_A_WINDOW: Final = 2  # on average; a rich window may give more if others give fewer
_MORE_FINDINGS: Final = 2
_FIGURES: Final = re.compile(r"\d+(?:[.,]\d+)*")
_TELLING: Final = 2  # minimum characters of a number that is not a mere count
_PURPOSE_SHARE: Final = 0.08  # of a prompt


@dataclass(frozen=True)
class ChatReader(ChatRole):
    """Reads windows with a chat model; windows that exceed the context size are read in several calls.

    Args:
        statement_words: requested length of a finding; one more than twice as long is cut.
    """

    statement_words: int = field(kw_only=True)

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> Findings:
        """Return the relevant findings, best first; chunks without a valid answer are unreadable."""
        if self.room.size is None:
            return await self._read(purpose, windows)
        beside = [str(message.content) for message in self._messages(purpose, purpose.text, "", len(windows))]
        tokens = self.room.left(WHOLE, *beside)
        pieces = [piece for window in windows for piece in _pieces(window, tokens)]
        parts = group_batches(pieces, lambda piece: {piece.id: _tokens(piece)}, tokens, len(pieces))
        readings = await gather_all(self._read(purpose, part) for part in parts)
        found = sorted((item for reading in readings for item in reading), key=lambda item: -item.score)
        return Findings(found, (name for reading in readings for name in reading.unreadable))

    async def _read(self, purpose: Purpose, windows: Sequence[Window]) -> Findings:
        sentences = [(window, sentence) for window, own in window_sentences(windows) for sentence in own]
        if not sentences:
            return Findings()
        passages = present_windows(windows)
        plain = plain_wording(purpose.text)
        answer = await self.ask(
            self._messages(purpose, purpose.text, passages, len(windows)),
            PassageReading,
            check=lambda reading: _check_sentences(reading, len(sentences)),
            # The same question typed differently gets the cached reading.
            cache_messages=None if plain == purpose.text else self._messages(purpose, plain, passages, len(windows)),
        )
        if answer is None:
            left_out = ", ".join(window.id for window in windows)
            self.note(f"{left_out}: left out, since the reader gave no valid answer in two attempts.")
            return Findings(unreadable=(chunk.id for window in windows for chunk in window.chunks))
        findings = [self._finding(item, sentences, purpose) for item in answer.findings[: most_findings(len(windows))]]
        return Findings(sorted((item for item in findings if item), key=lambda item: -item.score))

    def _finding(
        self, item: ReadFinding, sentences: Sequence[tuple[Window, WindowSentence]], purpose: Purpose
    ) -> PassageFinding | None:
        carrying = [sentences[number - 1] for number in item.sentences if 1 <= number <= len(sentences)]
        if not carrying or item.score == 0:
            return None
        # A finding belongs to one paper: sentences of other papers are ignored as mistakes.
        window = max((window for window, _ in carrying), key=lambda one: sum(one is other for other, _ in carrying))
        key = window.paper.key
        named = [sentence for other, sentence in carrying if other.paper.key == key][:MOST_SENTENCES]
        shown = [sentence for other, sentence in sentences if other.paper.key == key]
        described = described_figures([other for other, _ in sentences if other.paper.key == key])
        if _only_described(item.statement, purpose, described, shown):
            return None
        words = _add_numbered_sentences(item.statement, named, shown)
        known = [need.id for need in purpose.needs]
        served = item.need if item.need in known else next((need for need in window.needs if need in known), "")
        return PassageFinding(
            paper=window.paper,
            statement=first_words(item.statement, 2 * self.statement_words),
            score=item.score,
            need=served or (known[0] if known else ""),
            spans=merge_sentences(words),
            vector_score=window.vector_score,
        )

    def _messages(self, purpose: Purpose, text: str, passages: str, windows: int) -> list[BaseMessage]:
        text = shorten(text, self.room.left(WHOLE, share=_PURPOSE_SHARE))
        needs = [f"{need.id} ({need.asks}): {need.text}" for need in purpose.needs]
        task = self.prompts["reader_task"].render(
            purpose=fence(text, "purpose"),
            needs=present_lines(needs, "needs"),
            passages=passages,
            most=most_findings(windows),
        )
        return [SystemMessage(self.prompts["reader_system"].render(words=self.statement_words)), HumanMessage(task)]


def _tokens(window: Window) -> int:
    return estimate_tokens(present_windows([window]))


def _pieces(window: Window, tokens: int) -> list[Window]:
    """Split the window into its chunks if it exceeds `tokens`."""
    return [window] if _tokens(window) <= tokens else [replace(window, chunks=(chunk,)) for chunk in window.chunks]


def most_findings(windows: int) -> int:
    """Return the maximum number of findings for this many windows."""
    return _MORE_FINDINGS + _FINDINGS_OF_A_WINDOW * windows


def _add_numbered_sentences(
    statement: str, named: Sequence[WindowSentence], shown: Sequence[WindowSentence]
) -> Sequence[WindowSentence]:
    """Add sentences for the statement's numbers that the named ones lack, since readers name too few."""
    missing = {number for number in _FIGURES.findall(statement) if len(number) >= _TELLING}
    missing -= {number for sentence in named for number in _FIGURES.findall(sentence.text)}
    added: list[WindowSentence] = []
    while missing and len(named) + len(added) < MOST_SENTENCES:
        best = max(shown, key=lambda sentence: len(missing.intersection(_FIGURES.findall(sentence.text))))
        held = missing.intersection(_FIGURES.findall(best.text))
        if not held:
            break
        added.append(best)
        missing -= held
    places = {id(sentence): place for place, sentence in enumerate(shown)}
    return sorted([*named, *added], key=lambda sentence: places[id(sentence)]) if added else named


def _only_described(
    statement: str, purpose: Purpose, figures: Sequence[PaperFigure], shown: Sequence[WindowSentence]
) -> bool:
    """Whether a number in the statement occurs in a figure's description, but in no sentence of the paper."""
    if not figures:
        return False
    numbers = set(_FIGURES.findall(" ".join(figure.description for figure in figures)))
    numbers &= {number for number in _FIGURES.findall(statement) if len(number) >= _TELLING}
    numbers -= {
        number for text in (purpose.text, *(sentence.text for sentence in shown)) for number in _FIGURES.findall(text)
    }
    return bool(numbers)


def merge_sentences(sentences: Sequence[WindowSentence]) -> tuple[tuple[Chunk, int, int], ...]:
    """Merge sentences into runs of words where only white space separates them."""
    runs: list[tuple[Chunk, int, int]] = []
    for sentence in sentences:
        chunk, start, end = runs[-1] if runs else (None, 0, 0)
        if chunk is sentence.chunk and not chunk.text[end : sentence.start].strip():
            runs[-1] = (sentence.chunk, start, sentence.end)
        else:
            runs.append((sentence.chunk, sentence.start, sentence.end))
    return tuple(runs)


def _check_sentences(reading: PassageReading, count: int) -> None:
    numbers = [number for finding in reading.findings for number in finding.sentences]
    if reading.findings and not any(1 <= number <= count for number in numbers):
        raise ValueError(f"none of the given numbers is a sentence of the passages, which have 1 to {count}")


_NAMES: Final = {
    "statement": ("statement", "finding", "summary", "text"),
    "sentences": ("sentences", "sentence", "sentence_numbers", "numbers"),
    "need": ("need", "need_id", "needs", "need_ids"),
    "score": ("score", "relevance"),
}
_NOTHING: Final = frozenset({"", "none", "[]", "{}"})
_MOST_LEVELS: Final = 6  # of lists and objects around a finding
_NEED_ID: Final = re.compile(r"\bN?(\d{1,2})\b", re.IGNORECASE)
_SCORE_NUMBER: Final = re.compile(r"(-?\d+(?:[.,]\d+)?)\s*(?:/\s*(\d+))?")
_UNSCORED: Final = 0.5  # score of a finding without a readable score


class ReadFinding(StructuredAnswer):
    """One finding as the model returns it."""

    statement: str = Field(min_length=3, description="The finding, with its numbers and conditions.")
    sentences: list[int] = Field(min_length=1, description="Numbers of the sentences that carry it.")
    need: str = Field(description="Id of the need that it serves most.")
    score: float = Field(ge=0, le=1, description="How much it helps with that need, from 0 to 1.")

    @model_validator(mode="before")
    @classmethod
    def _by_usual_names(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = {name: value for name, value in _by_plain_names(data).items() if value not in (None, "")}
        if "first_sentence" in given and "last_sentence" in given:
            given.setdefault("sentences", f"{given['first_sentence']}-{given['last_sentence']}")
        return {name: next((given[it] for it in usual if it in given), None) for name, usual in _NAMES.items()}

    _as_numbers = field_validator("sentences", mode="before")(parse_numbers)

    @field_validator("need", mode="before")
    @classmethod
    def _one_need(cls, value: Any) -> Any:
        """Find the id of the first named need: "n2", 2, ["N2", "N3"], "N2 (limit): how far it holds"."""
        given = value[0] if isinstance(value, list) and value else value
        named = _NEED_ID.search(str(given))
        return f"N{int(named[1])}" if named else ""

    @field_validator("score", mode="before")
    @classmethod
    def _in_bounds(cls, value: Any) -> Any:
        """Parse a score from 0 to 1 in any notation: out of ten or a hundred, "80%", "8/10", "0,8", "0.8 (strong)"."""
        number = _SCORE_NUMBER.search(str(value))
        if number is None:
            return _UNSCORED
        score, most = float(number[1].replace(",", ".")), int(number[2] or 0)
        if most:
            score /= most
        elif score > 1:
            score /= 100 if score > 10 else 10
        return score if 0 <= score <= 1 else _UNSCORED


class PassageReading(StructuredAnswer):
    """The reader's answer for the passages of one paper; unreadable findings are left out."""

    findings: list[ReadFinding] = Field(description="What helps with the purpose, the most useful first.")

    @classmethod
    def candidates(cls, objects: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Join separate findings, in a bare list or one per line, to one reading; `{}` is an empty reading."""
        alone: list[dict[str, Any]] = []
        empty = False
        for item in objects:
            if _is_finding(item):
                alone += [item] * (item not in alone)
            elif item:
                yield item
            else:
                empty = True
        if alone or empty:
            yield {"findings": alone}

    @model_validator(mode="before")
    @classmethod
    def _without_the_unreadable(cls, data: Any) -> Any:
        """Find the readable findings under any name and nesting; if none is readable, return all for their errors."""
        items = list(_find_findings(data))
        if not items and _is_empty(data):
            return {"findings": []}
        return {"findings": [item for item in items if _valid(item)] or items} if items else data


def _find_findings(data: Any, levels: int = _MOST_LEVELS) -> Iterator[Any]:
    if _is_finding(data):
        yield data
    elif levels and isinstance(data, Mapping | list):
        for inner in data.values() if isinstance(data, Mapping) else data:
            yield from _find_findings(inner, levels - 1)


def _is_empty(data: Any, levels: int = _MOST_LEVELS) -> bool:
    """Whether an answer says that there are no findings, whatever else it says."""
    if isinstance(data, Mapping):
        given = _by_plain_names(data)
        inside = [given["findings"]] if "findings" in given else given.values()
        return levels > 0 and all(_is_empty(value, levels - 1) for value in inside)
    return data in (None, []) or (isinstance(data, str) and data.strip().lower() in _NOTHING)


def _valid(item: Any) -> bool:
    try:
        ReadFinding.model_validate(item)
    except ValueError:
        return False
    return True


def _is_finding(item: Any) -> bool:
    return isinstance(item, Mapping) and any(name in _by_plain_names(item) for name in _NAMES["statement"])


def _by_plain_names(data: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name).strip().lower(): value for name, value in data.items()}


_BATCH_TOKENS: Final = 16_000  # of cards in one call
_MOST_NEAR: Final = 8  # in all batches
_LONGEST_REASON: Final = 160  # characters
_NO_BRACKETS: Final = {ord(bracket): None for bracket in "[]<>`"}  # keeps reasons from looking like citations


class ScreenedNeed(StructuredAnswer):
    """The papers for one need, by number."""

    need: str = Field(description="The id of the need.")
    papers: list[int] = Field(description="The numbers of the papers that may bear on it, most promising first.")


class NearCase(StructuredAnswer):
    """A near miss."""

    paper: int = Field(description="Its number.")
    why: str = Field(description="In at most fifteen words, what its card shows that it does not meet.")


class Screening(StructuredAnswer):
    """The papers for each need, and near misses."""

    screened: list[ScreenedNeed] = Field(description="One object for each need.")
    near: list[NearCase] = Field(default_factory=list, description="Five at most, the nearest first.")


class ChatScreener(ChatRole):
    """Reads the cards of papers, and names the papers that may meet the needs.

    The role's `note` receives a line if cards were not read.
    """

    async def screen(self, purpose: Purpose, cards: Sequence[PaperCard]) -> ScreenedPapers:
        """Screen papers for the needs; batches without a valid answer stay unread."""
        most = self.room.left(_BATCH_TOKENS, self.prompts["screener_system"].render(), purpose.text)
        batches = list(group_batches(cards, lambda card: {card.key: estimate_tokens(card.text)}, most, len(cards)))
        answers = await gather_all(self._screen_batch(purpose, batch) for batch in batches)
        read = [(batch, answer) for batch, answer in zip(batches, answers, strict=True) if answer is not None]
        screened = {card.key for batch, _ in read for card in batch}
        if unread := tuple(card.key for card in cards if card.key not in screened):
            self.note(f"{len(unread)} of {len(cards)} cards were not screened: no valid answer in two attempts.")
        by_need: dict[str, list[list[str]]] = {}
        near: dict[str, str] = {}
        for batch, answer in read:
            keys = {number: card.key for number, card in enumerate(batch, start=1)}
            for item in answer.screened:
                by_need.setdefault(item.need, []).append([keys[number] for number in item.papers if number in keys])
            for case in answer.near:
                if case.paper in keys:
                    near[keys[case.paper]] = shorten_line(case.why.translate(_NO_BRACKETS), _LONGEST_REASON)
        # The first papers of all batches, then the second ones ...
        turns = {need.id: zip_longest(*by_need.get(need.id, [])) for need in purpose.needs}
        named = {name: tuple(dict.fromkeys(key for turn in of for key in turn if key)) for name, of in turns.items()}
        kept = {key for keys in named.values() for key in keys}
        near = {key: why for key, why in near.items() if key not in kept}
        return ScreenedPapers(named, dict(list(near.items())[:_MOST_NEAR]), len(screened), unread)

    async def _screen_batch(self, purpose: Purpose, cards: Sequence[PaperCard]) -> Screening | None:
        task = self.prompts["screener_task"].render(
            purpose=fence(purpose.text, "purpose"),
            needs=present_lines([f"{need.id} ({need.asks}): {need.text}" for need in purpose.needs], "needs"),
            cards=fence("\n\n".join(f"{number}. {card.text}" for number, card in enumerate(cards, start=1)), "cards"),
        )
        return await self.ask([SystemMessage(self.prompts["screener_system"].render()), HumanMessage(task)], Screening)

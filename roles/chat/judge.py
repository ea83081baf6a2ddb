"""The judge of support on a chat model: several sentences in one call, each with all passages that it cites.

Passages are shown once with numbered sentences, and the judge answers with numbers (`judge_output.py`). Sentences that
an answer omits or garbles are asked again one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import ValidationError

from ...models.chat_caller import ChatCaller
from ...models.concurrency import gather_all
from ...models.context_size import UNLIMITED, Room
from ...prompts import PromptLibrary
from ..protocols import CitedClaim, Verdict
from .clean_output import answer_text
from .judge_output import JudgedPassage, SupportVerdict, SupportVerdicts, verdict_model, verdicts_from, verdicts_model
from .prompt_format import PASSAGE_TOKENS, letter_of, one_line, present_lines, tokens_of, without_markers
from .prompt_passages import present_numbered
from .structured_output import ask, json_objects, schema_of

CLAIMS_AT_ONCE: Final = 16
# Approximate number of tokens of passages and sentences in one call.
_TOKENS_AT_ONCE: Final = 7_000
_LEAST_PASSAGE_TOKENS: Final = 250
_ALONE: Final = 3  # at most so many omitted claims are asked again one by one
_ANSWER_TOKENS: Final = 150  # of an answer, for one verdict
_SHARE_TOKENS: Final = 40  # and for each passage beyond the first
_NO_ANSWER: Final = Verdict("unjudged", "the judge gave no valid answer")
_TOO_LONG: Final = Verdict("unjudged", "its passages are more than the server holds")
_WORDS_SHARE: Final = 0.75  # of a small context; the rest is for titles, sections and numbers
# How a judge names a passage in its reason: "passage B", "C3", "A3-A4", "A: ...", "A says ...".
_NAMED: Final = re.compile(
    r"(?<![\w\[-])(?:(?:[Pp]assages?\s)(?P<named>[A-Z]{1,2})|(?P<numbered>[A-Z]{1,2})\d{1,3}(?:\s?[-\u2013]\s?[A-Z]?\d{1,3})?"
    r"|(?P<speaking>[A-Z]{1,2})(?=:|\s(?:says|states|gives|names|reports|bears|shows|has|only|alone|itself)\b))(?!\w)"
)
_MARKER: Final = re.compile(r"\[(E[1-9]\d{0,5})\]")


@dataclass(frozen=True, slots=True)
class _PreparedClaim:
    """A claim with its index, and the passages that it cites, by the id of their evidence."""

    place: int
    claim: CitedClaim
    passages: Mapping[str, JudgedPassage]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.passages)

    @property
    def words(self) -> int:
        return tokens_of(self.claim.sentence) + tokens_of(self.claim.before)

    def by_letter(self, letters: Mapping[str, str]) -> dict[str, JudgedPassage]:
        return {letters[identifier]: passage for identifier, passage in self.passages.items()}


_Batch = Sequence[_PreparedClaim]


class ChatJudge:
    """Judges support with a chat model; `max_tokens` limits one answer, `room` is the server's context size."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int, room: Room = UNLIMITED) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._room = room

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """A verdict for each source of each claim; "unjudged" when three attempts gave no valid answer."""
        system, task = self._prompts["judge_system"].render(), self._prompts["judge_task"]
        tokens = self._room.left(_TOKENS_AT_ONCE, system, task.render(passages="", sentences=""), share=_WORDS_SHARE)
        asked = _prepared(claims, tokens)
        found: dict[int, tuple[Verdict, ...]] = {}
        for verdicts in await gather_all(self._judged(batch) for batch in _batches(asked, self._max_tokens, tokens)):
            found.update(verdicts)
        return [found[place] for place in range(len(claims))]

    async def _judged(self, batch: _Batch) -> dict[int, tuple[Verdict, ...]]:
        """The verdicts of a whole batch by index."""
        found = await self._together(batch) if len(batch) > 1 else {}
        missing = [item for item in batch if item.place not in found]
        if len(missing) > _ALONE:  # one garbled answer would cost a call for each
            found |= await self._together(missing)
            missing = [item for item in batch if item.place not in found]
        alone = await gather_all(self._alone(item) for item in missing)
        return {**found, **{item.place: verdicts for item, verdicts in zip(missing, alone, strict=True)}}

    async def _together(self, batch: _Batch) -> dict[int, tuple[Verdict, ...]]:
        """The usable verdicts of one answer to a batch, by index."""
        letters = _letters(batch)
        schema = schema_of(_model(batch, letters))
        answer = await self._caller.call(self._messages(batch, letters), schema=schema, max_tokens=self._max_tokens)
        for data in json_objects(answer_text(answer.message)):
            if found := _usable(data, batch, letters):
                return found
        await self._caller.reject(answer)
        return {}

    async def _alone(self, item: _PreparedClaim) -> tuple[Verdict, ...]:
        letters = _letters([item])
        passages = item.by_letter(letters)

        messages = self._messages([item], letters)
        if not self._room.holds(*(str(message.content) for message in messages)):
            return (_TOO_LONG,) * len(item.ids)

        def verdicts(answer: SupportVerdicts) -> tuple[Verdict, ...]:
            said: SupportVerdict = getattr(answer, "P1")  # noqa: B009  # a field that the base does not declare
            return _with_markers(verdicts_from(said, passages), letters)

        def check(answer: SupportVerdicts) -> None:
            verdicts(answer)

        answer = await ask(
            self._caller,
            self._prompts,
            messages,
            _model([item], letters),
            max_tokens=self._max_tokens,
            check=check,
            room=self._room,
        )
        return (_NO_ANSWER,) * len(item.ids) if answer is None else verdicts(answer)

    def _messages(self, batch: _Batch, letters: Mapping[str, str]) -> list[BaseMessage]:
        passages = {letter: passage for item in batch for letter, passage in item.by_letter(letters).items()}
        first: dict[tuple[str, int | None], str] = {}  # the passage that shows title and year of a paper
        shown: list[str] = []
        for letter in letters.values():
            source, name = passages[letter].source, f"passage {letter}"
            same = first.setdefault((source.paper.title, source.paper.year), name)
            shown.append(present_numbered(source, passages[letter].sentences, name, "" if same == name else same))
        task = self._prompts["judge_task"].render(
            passages="\n\n".join(shown),
            sentences=present_lines(list(_lines(batch, letters)), "sentences"),
        )
        return [SystemMessage(self._prompts["judge_system"].render()), HumanMessage(task)]


def _prepared(claims: Sequence[CitedClaim], tokens: int) -> list[_PreparedClaim]:
    """The claims with their passages; a claim that cites many shares the space of a call among them."""
    room: dict[str, int] = {}
    for claim in claims:
        share = min(PASSAGE_TOKENS, tokens // max(1, len(claim.sources)))
        if tokens == _TOKENS_AT_ONCE:
            share = max(_LEAST_PASSAGE_TOKENS, share)
        for source in claim.sources:
            room[source.evidence.id] = min(share, room.get(source.evidence.id, share))
    sources = {source.evidence.id: source for claim in claims for source in claim.sources}
    passages = {identifier: JudgedPassage.of(source, room[identifier]) for identifier, source in sources.items()}
    return [
        _PreparedClaim(place, claim, {source.evidence.id: passages[source.evidence.id] for source in claim.sources})
        for place, claim in enumerate(claims)
    ]


def _letters(batch: _Batch) -> dict[str, str]:
    """The letters of the passages of a call, by the id of their evidence: A to Z, then AA, AB ..."""
    ids = dict.fromkeys(identifier for item in batch for identifier in item.ids)
    return {identifier: letter_of(place) for place, identifier in enumerate(ids)}


def _with_markers(verdicts: Sequence[Verdict], letters: Mapping[str, str]) -> tuple[Verdict, ...]:
    """The verdicts with markers in their reasons in place of passage letters."""
    ids = {letter: identifier for identifier, letter in letters.items()}

    def marker(match: re.Match[str]) -> str:
        letter = match["named"] or match["numbered"] or match["speaking"]
        return f"[{ids[letter]}]" if letter in ids else match[0]

    return tuple(replace(verdict, reason=_NAMED.sub(marker, verdict.reason)) for verdict in verdicts)


def _lines(batch: _Batch, letters: Mapping[str, str]) -> Iterator[str]:
    """Each sentence with the letters of its passages, below the preceding sentence."""
    shown: dict[str, int] = {}
    for number, item in enumerate(batch, 1):
        claim = item.claim
        before = one_line(without_markers(claim.before))
        if before:
            yield f"Before P{number}: " + (f"P{shown[before]}" if before in shown else before)
        cited = ", ".join(letters[identifier] for identifier in item.ids)
        yield f"P{number}, cites passage{'s' if len(item.ids) > 1 else ''} {cited}: {_lettered(item, letters)}"
        shown[one_line(without_markers(claim.sentence))] = number


def _lettered(item: _PreparedClaim, letters: Mapping[str, str]) -> str:
    """The sentence; when it cites several passages, with their letters in place of the markers."""
    if len(item.ids) == 1:
        return one_line(without_markers(item.claim.sentence))

    def letter(marker: re.Match[str]) -> str:
        return f"[{letters[marker[1]]}]" if marker[1] in item.passages else ""

    return one_line(_MARKER.sub(letter, item.claim.sentence))


def _model(batch: _Batch, letters: Mapping[str, str]) -> type[SupportVerdicts]:
    return verdicts_model(tuple(tuple(item.by_letter(letters)) for item in batch))


def _usable(data: Mapping[str, Any], batch: _Batch, letters: Mapping[str, str]) -> dict[int, tuple[Verdict, ...]]:
    """The valid verdicts of an answer object by index, each validated separately."""
    named = {str(name).strip().upper(): value for name, value in data.items()}
    found: dict[int, tuple[Verdict, ...]] = {}
    for number, item in enumerate(batch, 1):
        passages = item.by_letter(letters)
        try:
            said = verdict_model(tuple(passages)).model_validate(named.get(f"P{number}"))
            found[item.place] = _with_markers(verdicts_from(said, passages), letters)
        except (ValidationError, ValueError):
            continue
    return found


def _batches(asked: _Batch, max_tokens: int, tokens: int) -> Iterator[list[_PreparedClaim]]:
    """The claims in calls of about equal length; claims that share a source stay together."""
    if not asked:
        return
    of_answer = _ANSWER_TOKENS + _SHARE_TOKENS * (max(len(item.ids) for item in asked) - 1)
    most = max(1, min(CLAIMS_AT_ONCE, max_tokens // of_answer))
    most = -(-len(asked) // -(-len(asked) // most))
    first: dict[str, int] = {}
    for item in asked:
        for identifier in item.ids:
            first.setdefault(identifier, item.place)
    batch: list[_PreparedClaim] = []
    known: set[str] = set()
    spent = 0
    for item in sorted(asked, key=lambda item: (min(first[identifier] for identifier in item.ids), item.place)):
        cost = item.words + sum(passage.tokens for name, passage in item.passages.items() if name not in known)
        if batch and (len(batch) == most or spent + cost > tokens):
            yield batch
            batch, known, spent = [], set(), 0
            cost = item.words + sum(passage.tokens for passage in item.passages.values())
        batch.append(item)
        known.update(item.ids)
        spent += cost
    yield batch

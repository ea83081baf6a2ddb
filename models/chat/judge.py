"""The judge of support on a chat model: several sentences in one call, each with the passage that it cites.

Passages are shown once, their sentences numbered, and the judge answers with numbers: the words that support a sentence
are sliced from the chunk by them and cannot be invented. What an answer leaves out or garbles is asked again by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import Field, ValidationError, create_model, field_validator, model_validator

from citeloom.models.briefs import Source
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.answers import answer_text
from citeloom.models.chat.presenting import PASSAGE_TOKENS, one_line, present_lines, tokens_of, without_markers
from citeloom.models.chat.presenting_passages import numbered_sentences, present_numbered
from citeloom.models.chat.structured import StructuredAnswer, ask, json_objects, schema_of
from citeloom.models.concurrency import all_settled
from citeloom.models.roles import CitedPair, Verdict
from citeloom.prompts import PromptLibrary

PAIRS_AT_ONCE: Final = 6
# Approximate tokens of passages and sentences in one call: about six chunks.
_TOKENS_AT_ONCE: Final = 3_200
_ANSWER_TOKENS: Final = 150  # what one verdict may take of an answer
_LONGEST_REASON: Final = 300  # characters
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_ANSWER: Final = Verdict("unjudged", "the judge gave no valid answer")


class SupportVerdict(StructuredAnswer):
    """What the judge says of one sentence; the reason comes first, so that the verdict follows from it."""

    reason: str = Field(description="One line: the words of the passage that decide it, or what is missing.")
    verdict: Literal["supported", "partly", "unsupported", "contradicted"] = Field(
        description="Whether the passage supports the sentence."
    )
    first_sentence: int = Field(ge=0, description="Number of the passage's first sentence that decides it, 0 for none.")
    last_sentence: int = Field(ge=0, description="Number of the passage's last sentence that decides it, 0 for none.")

    @field_validator("verdict", mode="before")
    @classmethod
    def _in_small_letters(cls, value: object) -> object:
        return value.strip(" .").lower() if isinstance(value, str) else value


class SupportVerdicts(StructuredAnswer):
    """Base of the answers for one sentence and more: a field P1, P2 ... for each, so that none can be left out where
    a server holds its model to the schema."""

    @model_validator(mode="before")
    @classmethod
    def _by_id(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {"P1": data} if "verdict" in data else {str(name).strip().upper(): data[name] for name in data}


@lru_cache(maxsize=PAIRS_AT_ONCE)
def verdicts_model(count: int) -> type[SupportVerdicts]:
    """The model of an answer for `count` sentences."""
    fields: dict[str, Any] = {f"P{number}": (SupportVerdict, ...) for number in range(1, count + 1)}
    return create_model("SupportVerdicts", __base__=SupportVerdicts, **fields)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A source as the judge sees it: `source.text[start:end]` for each of `spans` is a sentence with a number."""

    source: Source
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, source: Source) -> _Passage:
        evidence = source.evidence
        return cls(source, tuple(numbered_sentences(source.text, evidence.start, evidence.end, PASSAGE_TOKENS)))

    @property
    def tokens(self) -> int:
        return sum(tokens_of(self.source.text[start:end]) for start, end in self.spans)

    def verdict(self, answer: SupportVerdict) -> Verdict:
        """The verdict with the words that decide it; ValueError when it rests on none of the sentences shown."""
        reason = one_line(answer.reason)[:_LONGEST_REASON]
        first, last = answer.first_sentence, answer.last_sentence
        if answer.verdict == "unsupported":
            return Verdict("unsupported", reason)
        if 1 <= first <= last <= len(self.spans):
            return Verdict(answer.verdict, reason, self.spans[first - 1][0], self.spans[last - 1][1])
        if answer.verdict == "contradicted":
            return Verdict("contradicted", reason)
        raise ValueError(
            f"verdict {answer.verdict} needs the numbers of the sentences that support it, from 1 to {len(self.spans)}"
        )


_Asked = tuple[int, CitedPair, _Passage]  # with its place among all pairs


class ChatJudge:
    """Judges support with a chat model; `max_tokens` is the limit of one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def judge(self, pairs: Sequence[CitedPair]) -> list[Verdict]:
        """A verdict for each pair, in their order; "unjudged" where no valid answer came, asked three times."""
        passages: dict[str, _Passage] = {}
        for pair in pairs:
            passages.setdefault(pair.source.evidence.id, _Passage.of(pair.source))
        asked = [(place, pair, passages[pair.source.evidence.id]) for place, pair in enumerate(pairs)]
        most = max(1, min(PAIRS_AT_ONCE, self._max_tokens // _ANSWER_TOKENS))
        found: dict[int, Verdict] = {}
        for verdicts in await all_settled(self._judged(batch) for batch in _batches(asked, most)):
            found.update(verdicts)
        return [found[place] for place in range(len(pairs))]

    async def _judged(self, batch: Sequence[_Asked]) -> dict[int, Verdict]:
        """Verdicts by place, all of the batch."""
        found = await self._together(batch) if len(batch) > 1 else {}
        missing = [item for item in batch if item[0] not in found]
        alone = await all_settled(self._alone(item) for item in missing)
        return {**found, **{item[0]: verdict for item, verdict in zip(missing, alone, strict=True)}}

    async def _together(self, batch: Sequence[_Asked]) -> dict[int, Verdict]:
        """What one answer says of a batch: verdicts by place, without those that cannot be used."""
        schema = schema_of(verdicts_model(len(batch)))
        answer = await self._caller.call(self._messages(batch), schema=schema, max_tokens=self._max_tokens)
        for data in json_objects(answer_text(answer.message)):
            if found := _usable(data, batch):
                return found
        await self._caller.reject(answer)
        return {}

    async def _alone(self, item: _Asked) -> Verdict:
        _, _, passage = item
        model = verdicts_model(1)
        answer = await ask(
            self._caller,
            self._prompts,
            self._messages([item]),
            model,
            max_tokens=self._max_tokens,
            check=lambda answer: _check(passage, answer),
        )
        return _NO_ANSWER if answer is None else passage.verdict(_first(answer))

    def _messages(self, batch: Sequence[_Asked]) -> list[BaseMessage]:
        letters: dict[str, str] = {}
        shown: list[str] = []
        for _, pair, passage in batch:
            if pair.source.evidence.id not in letters:
                letters[pair.source.evidence.id] = letter = _LETTERS[len(letters)]
                shown.append(present_numbered(pair.source, passage.spans, f"passage {letter}"))
        sentences = [
            f"P{number}, cites passage {letters[pair.source.evidence.id]}: {one_line(without_markers(pair.sentence))}"
            for number, (_, pair, _) in enumerate(batch, 1)
        ]
        task = self._prompts["judge_task"].render(
            passages="\n\n".join(shown), sentences=present_lines(sentences, "sentences")
        )
        return [SystemMessage(self._prompts["judge_system"].render()), HumanMessage(task)]


def _first(answer: SupportVerdicts) -> SupportVerdict:
    first: SupportVerdict = getattr(answer, "P1")  # noqa: B009  # a field that the base does not declare
    return first


def _check(passage: _Passage, answer: SupportVerdicts) -> None:
    passage.verdict(_first(answer))


def _usable(data: Mapping[str, Any], batch: Sequence[_Asked]) -> dict[int, Verdict]:
    """The verdicts by place that an object holds, each validated by itself."""
    named = {str(name).strip().upper(): value for name, value in data.items()}
    found: dict[int, Verdict] = {}
    for number, (place, _, passage) in enumerate(batch, 1):
        try:
            found[place] = passage.verdict(SupportVerdict.model_validate(named.get(f"P{number}")))
        except (ValidationError, ValueError):
            continue
    return found


def _batches(asked: Sequence[_Asked], most: int) -> Iterator[list[_Asked]]:
    """The pairs in calls of about equal length, those that cite one source together."""
    if not asked:
        return
    first: dict[str, int] = {}
    for place, pair, _ in asked:
        first.setdefault(pair.source.evidence.id, place)
    calls = -(-len(asked) // most)
    most = -(-len(asked) // calls)
    batch: list[_Asked] = []
    known: set[str] = set()
    spent = 0
    for item in sorted(asked, key=lambda item: (first[item[1].source.evidence.id], item[0])):
        identifier, claim = item[1].source.evidence.id, tokens_of(item[1].sentence)
        cost = claim + (0 if identifier in known else item[2].tokens)
        if batch and (len(batch) == most or spent + cost > _TOKENS_AT_ONCE):
            yield batch
            batch, known, spent = [], set(), 0
            cost = claim + item[2].tokens
        batch.append(item)
        known.add(identifier)
        spent += cost
    yield batch

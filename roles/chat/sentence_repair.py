"""Repairs single sentences, each shown with neighbours, evidence and problems; the rest of a draft is untouched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import Field, create_model, model_validator

from ...models.concurrency import gather_all
from ..protocols import FailingSentence, Source
from .judged_passages import shown_sentences
from .prompt_format import estimate_tokens, one_line, present_lines, present_numbered, strip_markers
from .structured_output import ChatRole, StructuredAnswer, in_batches

_SENTENCES_AT_ONCE: Final = 12
_TOKENS_AT_ONCE: Final = 7_000
_ANSWER_TOKENS: Final = 120  # tokens of an answer, per sentence
_LONGEST: Final = 1_500  # characters of an accepted sentence


class SentenceRepairer(ChatRole):
    """The part of a writer that repairs single sentences."""

    async def replace_sentences(self, failing: Sequence[FailingSentence], experiment: str = "") -> list[str | None]:
        """The replacement of each sentence: new text, "" to remove it, None if two attempts gave no usable answer.

        `experiment` is the fenced experiment, if a problem concerns it. A sentence whose evidence exceeds the context
        size is left unchanged.
        """
        system = self.prompts["repair_system"].render()
        bare = self.prompts["repair_task"].render(experiment=experiment, sources="", sentences="")
        most = max(1, min(_SENTENCES_AT_ONCE, self.max_tokens // _ANSWER_TOKENS))
        batches = in_batches(failing, _parts, self.room.left(_TOKENS_AT_ONCE, system, bare), most)
        answers = await gather_all(self._replace_batch(batch, experiment) for batch in batches)
        return [sentence for answer in answers for sentence in answer]

    async def _replace_batch(self, batch: Sequence[FailingSentence], experiment: str) -> list[str | None]:
        task = self.prompts["repair_task"].render(
            experiment=experiment or "(none of the problems concerns it)",
            sources="\n\n".join(_source_blocks(batch)) or "(no sources)",
            sentences=present_lines(list(_lines(batch)), "sentences"),
        )
        messages: list[BaseMessage] = [SystemMessage(self.prompts["repair_system"].render()), HumanMessage(task)]
        asked = [str(message.content) for message in messages]
        if not self.room.holds(*asked):
            return [None] * len(batch)
        answer = await self.ask(messages, _model(len(batch)), check=_check_any)
        return [None if answer is None else getattr(answer, f"S{number}") for number in range(1, len(batch) + 1)]


class RepairedSentences(StructuredAnswer):
    """Base of the answers: a field S1, S2 ... for each sentence; None for one that was left out or garbled."""

    @model_validator(mode="before")
    @classmethod
    def _by_id(cls, data: Any) -> Any:
        usable = {name: value for name, value in data.items() if isinstance(value, str) and len(value) <= _LONGEST}
        return {str(name).strip().upper(): one_line(value) for name, value in usable.items()}

    @classmethod
    def when_cut_off(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Without the last sentence, which may be incomplete."""
        return dict(list(data.items())[:-1])


@lru_cache(maxsize=_SENTENCES_AT_ONCE)
def _model(count: int) -> type[RepairedSentences]:
    fields: dict[str, Any] = {f"S{number}": (str, Field(default=None)) for number in range(1, count + 1)}
    return create_model("RepairedSentences", __base__=RepairedSentences, **fields)


def _check_any(answer: RepairedSentences) -> None:
    if all(sentence is None for _, sentence in answer):
        raise ValueError("it holds no sentence under the ids that were given")


def _parts(item: FailingSentence) -> dict[str, int]:
    blocks = (_source_block(source, [strip_markers(item.text)]) for source in item.sources)
    own = {source.evidence.id: estimate_tokens(block) for source, block in zip(item.sources, blocks, strict=True)}
    return {**own, item.text: sum(map(estimate_tokens, _lines([item])))}


def _source_blocks(batch: Sequence[FailingSentence]) -> list[str]:
    said: dict[str, list[str]] = {}
    for item in batch:
        for source in item.sources:
            said.setdefault(source.evidence.id, []).append(strip_markers(item.text))
    sources = {source.evidence.id: source for item in batch for source in item.sources}
    return [_source_block(source, said[name]) for name, source in sources.items()]


def _source_block(source: Source, said: Sequence[str]) -> str:
    return present_numbered(source, shown_sentences(source, said), f"source [{source.evidence.id}]")


def _lines(batch: Sequence[FailingSentence]) -> Iterator[str]:
    """Each sentence with its neighbours and its problems; problems do not repeat the sentence."""
    for number, item in enumerate(batch, 1):
        if item.before:
            yield f"before S{number}: {item.before}"
        yield f"S{number}: {item.text}"
        if item.after:
            yield f"after S{number}: {item.after}"
        quoted = f'"{one_line(item.text)}" '
        for problem in item.problems:
            yield f"problem of S{number}: {problem.replace(quoted, 'It ')}"

"""Repairs single sentences of a draft: each is shown with its neighbours, its evidence and its problems.

The answer rewrites only these sentences, so the rest of the draft is untouched. A sentence that an answer omits or
garbles is left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import create_model

from ...models.concurrency import gather_all
from ..protocols import FailingSentence, Source
from .clean_output import answer_text, was_cut_off
from .judged_passages import shown_sentences
from .prompt_format import (
    SOURCE_TOKENS,
    estimate_tokens,
    fence,
    full_heading,
    one_line,
    present_lines,
    section_label,
    strip_markers,
    surroundings,
)
from .structured_output import ChatRole, StructuredAnswer, build_schema, json_objects

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
        batches = _batches(failing, self.max_tokens, self.room.left(_TOKENS_AT_ONCE, system, bare))
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
        schema = build_schema(_model(len(batch)))
        for _ in range(2):
            answer = await self.caller.call(messages, schema=schema, max_tokens=self.max_tokens)
            text = answer_text(answer.message)
            for data in json_objects(text):
                found = _usable(data, len(batch), cut=was_cut_off(answer.message))
                if any(sentence is not None for sentence in found):
                    return found
            await self.caller.reject(answer)
            complaint = self.prompts["json_again"].render(problem="it holds no sentence under the ids that were given")
            shown = text[: self.room.left(_LONGEST, complaint, *asked)]
            messages = [*messages[:2], AIMessage(shown or "(empty)"), HumanMessage(complaint)]
        return [None] * len(batch)


@lru_cache(maxsize=_SENTENCES_AT_ONCE)
def _model(count: int) -> type[StructuredAnswer]:
    fields: dict[str, Any] = {f"S{number}": (str, ...) for number in range(1, count + 1)}
    return create_model("RepairedSentences", __base__=StructuredAnswer, **fields)


def _usable(data: dict[str, Any], count: int, *, cut: bool) -> list[str | None]:
    """The sentences of an answer by id; in an answer that was cut off, the last one may be incomplete."""
    named = {str(name).strip().upper(): value for name, value in data.items()}
    if cut and named:
        named.popitem()
    given = (named.get(f"S{number}") for number in range(1, count + 1))
    return [one_line(value) if isinstance(value, str) and len(value) <= _LONGEST else None for value in given]


def _batches(failing: Sequence[FailingSentence], max_tokens: int, at_once: int) -> Iterator[list[FailingSentence]]:
    """Group the sentences, in order, into calls whose answers and evidence fit the limits."""
    most = max(1, min(_SENTENCES_AT_ONCE, max_tokens // _ANSWER_TOKENS))
    batch: list[FailingSentence] = []
    for item in failing:
        tokens = sum(map(estimate_tokens, _source_blocks([*batch, item])))
        if at_once < _TOKENS_AT_ONCE:
            tokens += sum(estimate_tokens(line) for line in _lines([*batch, item]))
        if batch and (len(batch) == most or tokens > at_once):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def _source_blocks(batch: Sequence[FailingSentence]) -> list[str]:
    """Each source of the sentences, with the words of its window that they take from it."""
    said: dict[str, list[str]] = {}
    for item in batch:
        for source in item.sources:
            said.setdefault(source.evidence.id, []).append(strip_markers(item.text))
    sources = {source.evidence.id: source for item in batch for source in item.sources}
    return [_source_block(source, said[name]) for name, source in sources.items()]


def _source_block(source: Source, said: Sequence[str]) -> str:
    """A source with its marker, without key and authors."""
    evidence, paper = source.evidence, source.paper
    passage = (
        "\n".join(one_line(sentence.text) for sentence in shown_sentences(source, said))
        if source.passage
        else surroundings(source.text, evidence.start, evidence.end, SOURCE_TOKENS)
    )
    lines = [
        f"Marker: [{evidence.id}]",
        f"Paper: {one_line(paper.title)}" + (f" ({paper.year})" if paper.year else ""),
        f"Section: {section_label(full_heading(source.parent, evidence.section), source.category)}",
        f"Passage:\n{passage}",
    ]
    return fence("\n".join(lines), f"source {evidence.id}")


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

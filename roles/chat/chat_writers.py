"""The writers on a chat model: of sections and answers, which cite by marker and never see a key, and of summaries.

A repair shows single sentences with neighbours, evidence and problems; the rest of the draft stays unchanged.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.content import create_image_block
from pydantic import Field, create_model, model_validator

from ...documents import Paper
from ...documents.figures import PaperFigure
from ...documents.plain_text import plain_text
from ...models.concurrency import gather_all
from ...models.context_size import WHOLE, Room, group_batches
from ...models.journal.streaming import TextListener
from ...plurals import counted
from ..protocols import AnswerBrief, Brief, Draft, FailingSentence, SectionBrief, Source
from .judged_passages import shown_sentences
from .model_answers import ChatRole, CleanStream, NumberedAnswer, extract_answer, prose, was_cut_off
from .prompt_format import (
    EARLIER_TOKENS,
    FRESH_TOKENS,
    PAPER_TOKENS,
    PLANNER_FIELD_TOKENS,
    RECALLED_TOKENS,
    SOURCES_TOKENS,
    SURVEY_TOKENS,
    WRITER_FIELD_TOKENS,
    PresentedSources,
    estimate_tokens,
    fence,
    first_lines,
    first_words,
    one_line,
    present_earlier,
    present_experiment,
    present_findings,
    present_frame,
    present_lines,
    present_numbered,
    present_paper,
    present_turns,
    shorten,
    strip_markers,
)

_USUAL: Final = {"brief": 120, "standard": 500, "thorough": 1_000}  # words of an answer
# Shares of a prompt.
_DRAFT_SHARE: Final = 0.2
_PROBLEMS_SHARE: Final = 0.05
# Shares of the context left after the instructions; the rest is for the findings.
_EXPERIMENT_SHARE: Final = 0.3
_EARLIER_SHARE: Final = 0.25
_TURNS_SHARE: Final = 0.2
_RECALLED_SHARE: Final = 0.35
_SENTENCES_AT_ONCE: Final = 12
_TOKENS_AT_ONCE: Final = 7_000
_ANSWER_TOKENS: Final = 120  # tokens of an answer, per sentence
_LONGEST: Final = 1_500  # characters of an accepted sentence


class ChatWriter(ChatRole):
    """Implements `Writer`; the text is empty if two attempts give none, or the sources do not answer the question."""

    async def write(self, brief: Brief, listener: TextListener | None = None) -> Draft:
        return await self._generate(brief, *self._task(brief), listener)

    async def repair(self, brief: Brief, draft: Draft, problems: Sequence[str]) -> Draft:
        """Rewrite the draft; returns it unchanged, with a note, if two attempts give no text."""
        text = shorten(draft.text, self.room.left(WHOLE, share=_DRAFT_SHARE))
        lines = first_lines(problems, self.room.left(WHOLE, share=_PROBLEMS_SHARE))
        request = self._prompt(brief, "repair", draft=fence(text, "draft"), problems=present_lines(lines, "problems"))
        task, notes = self._task(brief, request)
        # One message that starts like the first request: chat templates of some local models refuse two user
        # messages in a row, and the server has the common prefix in its cache.
        rewritten = await self._generate(brief, f"{task}\n\n{request}", notes)
        return rewritten if rewritten.text else replace(draft, notes=(*draft.notes, *rewritten.notes))

    async def repair_sentences(self, brief: Brief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `Writer`; None also if two attempts give no usable answer, or the evidence exceeds the context.

        The experiment is shown if a number was not found in the evidence, since it may come from there.
        """
        system, experiment = self.prompts["repair_system"].render(), ""
        if isinstance(brief, SectionBrief) and any(item.of_number for item in failing):
            total = self.room.left(WHOLE, system, share=_EXPERIMENT_SHARE)
            experiment = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        bare = self.prompts["repair_task"].render(experiment=experiment, sources="", sentences="")
        most = max(1, min(_SENTENCES_AT_ONCE, self.max_tokens // _ANSWER_TOKENS))
        batches = group_batches(failing, _parts, self.room.left(_TOKENS_AT_ONCE, system, bare), most)
        answers = await gather_all(self._replace_batch(batch, experiment) for batch in batches)
        return [sentence for answer in answers for sentence in answer]

    async def _replace_batch(self, batch: Sequence[FailingSentence], experiment: str) -> list[str | None]:
        task = self.prompts["repair_task"].render(
            experiment=experiment or "(none of the problems concerns it)",
            sources="\n\n".join(_source_blocks(batch)) or "(no sources)",
            sentences=present_lines(list(_lines(batch)), "sentences"),
        )
        messages = [SystemMessage(self.prompts["repair_system"].render()), HumanMessage(task)]
        if not self.room.holds(*(str(message.content) for message in messages)):
            return [None] * len(batch)
        fields: dict[str, Any] = {f"S{number}": (str, Field(default=None)) for number in range(1, len(batch) + 1)}
        model = create_model("RepairedSentences", __base__=RepairedSentences, **fields)
        answer = await self.ask(messages, model, check=_check_any)
        return [None if answer is None else getattr(answer, name) for name in fields]

    def _prompt(self, brief: Brief, part: str, **given: str) -> str:
        return self.prompts[f"{'answer' if isinstance(brief, AnswerBrief) else 'writer'}_{part}"].render(**given)

    async def _generate(
        self, brief: Brief, task: str, notes: tuple[str, ...], listener: TextListener | None = None
    ) -> Draft:
        """Return the model's text for a task; empty, with a note, if two attempts give none."""

        def clean(draft: Draft) -> Draft:
            return extract_answer(draft) if isinstance(brief, AnswerBrief) else draft

        truncated = False
        system, again = self._prompt(brief, "system"), self._prompt(brief, "again")
        for request in (task, f"{task}\n\n{again}"):
            messages: list[BaseMessage] = [SystemMessage(system), HumanMessage(request)]
            stream = None if listener is None else CleanStream(listener, lambda text: clean(Draft(prose(text))).text)
            answer = await self.caller.call(messages, max_tokens=self.max_tokens, listener=stream)
            if stream is not None:
                stream.finish()
            text, truncated = prose(str(answer.message.text)), was_cut_off(answer.message)
            if text:
                return clean(Draft(text, truncated=truncated, notes=notes))
            await self.caller.reject(answer)
        reason = ", cut off at its output limit before the first word" if truncated else ""
        complaint = f"The writer answered twice without any text{reason}."
        return Draft("", truncated=truncated, notes=(*notes, complaint))

    def _task(self, brief: Brief, *beside: str) -> tuple[str, tuple[str, ...]]:
        """Make the task, shortened to fit into the context with `beside`, and notes on what was left out."""
        known = (self._prompt(brief, "system"), *beside)
        if isinstance(brief, AnswerBrief):
            return self._answer_task(brief, *known)
        plan = self.prompts[f"writer_plan_{brief.kind}"].render()

        def task(experiment: str = "", sources: str = "", earlier: str = "") -> str:
            given = {"experiment": experiment, "sources": sources, "earlier": earlier}
            depth = self._length(brief)
            return self.preamble(brief) + self._prompt(brief, "task", kind=brief.kind, depth=depth, plan=plan, **given)

        known = (*known, task())
        total = self.room.left(WHOLE, *known, share=_EXPERIMENT_SHARE)
        experiment = present_experiment(brief.experiment, brief.kind, WRITER_FIELD_TOKENS, total)
        total = self.room.left(EARLIER_TOKENS, *known, share=_EARLIER_SHARE)
        if earlier := present_earlier(brief.earlier or (), brief.kind, total):
            earlier = self.prompts["writer_earlier"].render(sections=earlier)
        total = self.room.left(SOURCES_TOKENS, *known, experiment, earlier, present_frame(brief.needs))
        sources = present_findings(brief.needs, brief.sources, total)
        return task(experiment, sources.text, earlier), note_left_out(sources.left_out, self.room)

    def _answer_task(self, brief: AnswerBrief, *beside: str) -> tuple[str, tuple[str, ...]]:
        def task(turns: str = "", recalled: str = "", sources: str = "") -> str:
            given = {"turns": turns, "recalled": recalled, "sources": sources}
            question, depth = fence(brief.question, "question"), self._answer_length(brief)
            shown = self.preamble(brief) + self._prompt(brief, "task", question=question, depth=depth, **given)
            if not brief.feedback:
                return shown
            return f"{shown}\n\n{self._prompt(brief, 'improve', feedback=fence(brief.feedback, 'feedback'))}"

        known = (*beside, task())
        turns = present_turns(brief.turns, self.room.left(WHOLE, *known, share=_TURNS_SHARE))
        total = self.room.left(RECALLED_TOKENS, *known, turns, share=_RECALLED_SHARE)
        recalled = present_findings((), brief.recalled, total) if brief.recalled else PresentedSources("(none)")
        total = self.room.left(
            SURVEY_TOKENS if brief.survey else FRESH_TOKENS, *known, turns, recalled.text, present_frame(brief.needs)
        )
        sources = present_findings(brief.needs, brief.sources, total)
        unseen = (*sources.left_out, *(recalled.left_out if self.room.size is not None else ()))
        return task(turns, recalled.text, sources.text), note_left_out(unseen, self.room)

    def _length(self, brief: Brief) -> str:
        return self.prompts[f"depth_{brief.depth}"].render(words=self.room.words(brief.words or _USUAL[brief.depth]))

    def _answer_length(self, brief: AnswerBrief) -> str:
        """Describe the length: set by the findings, unless the user asked for a number of words or a brief answer."""
        if not brief.writable:
            return self.prompts["answer_nearest"].render()
        named = "answer_table" if brief.tabled else "answer_inventory"
        form = [self.prompts[named].render()] if brief.inventory else []
        if brief.words or brief.depth == "brief" or self.room.is_small:
            return "\n\n".join([*form, self._length(brief)])
        if form:
            return form[0]
        detail = self.prompts["answer_thorough"].render() if brief.depth == "thorough" else ""
        return self.prompts["answer_length"].render(detail=detail).strip()


def note_left_out(left_out: Sequence[str], room: Room) -> tuple[str, ...]:
    """Note the sources, by id, that were not shown to the model, if any."""
    count, names = len(left_out), ", ".join(left_out)
    if room.size is not None and (count or room.is_small):
        lost = f"{counted(count, 'finding')} {'was' if count == 1 else 'were'} left out of the writer's prompt"
        said = f"{lost}, the weakest first: {names}" if count else "prompts were shortened; no finding was left out"
        return (f"The server holds {room.size:,} tokens: {said}.",)
    return (f"{count} of the weakest sources did not fit into the writer's prompt: {names}.",) if count else ()


class RepairedSentences(NumberedAnswer):
    """Base of the answers for several sentences; None for an omitted or garbled sentence."""

    @model_validator(mode="before")
    @classmethod
    def _usable(cls, data: Any) -> Any:
        return {name: one_line(it) for name, it in data.items() if isinstance(it, str) and len(it) <= _LONGEST}

    @classmethod
    def usable_part(cls, data: dict[str, Any]) -> dict[str, Any]:
        """Drop the last sentence, which may be incomplete."""
        return dict(list(data.items())[:-1])


def _check_any(answer: RepairedSentences) -> None:
    if all(sentence is None for _, sentence in answer):
        raise ValueError("it has no sentence under any of the given ids")


def _parts(item: FailingSentence) -> dict[str, int]:
    said = [strip_markers(item.text)]
    own = {source.evidence.id: estimate_tokens(_source_block(source, said)) for source in item.sources}
    return {**own, item.text: sum(map(estimate_tokens, _lines([item])))}


def _source_blocks(batch: Sequence[FailingSentence]) -> list[str]:
    cited: dict[str, list[tuple[Source, str]]] = {}
    for item in batch:
        for source in item.sources:
            cited.setdefault(source.evidence.id, []).append((source, strip_markers(item.text)))
    return [_source_block(of[-1][0], [said for _, said in of]) for of in cited.values()]


def _source_block(source: Source, said: Sequence[str]) -> str:
    return present_numbered(source, shown_sentences(source, said), f"source [{source.evidence.id}]")


def _lines(batch: Sequence[FailingSentence]) -> Iterator[str]:
    """Format each sentence with its neighbours and problems; problems do not repeat the sentence."""
    for number, item in enumerate(batch, 1):
        if item.before:
            yield f"before S{number}: {item.before}"
        yield f"S{number}: {item.text}"
        if item.after:
            yield f"after S{number}: {item.after}"
        quoted = f'"{one_line(item.text)}" '
        for problem in item.problems:
            yield f"problem of S{number}: {problem.replace(quoted, 'It ')}"


@dataclass(frozen=True)
class ChatSummarizer(ChatRole):
    """Summarizes papers with a chat model; `words` is the requested length of a summary."""

    words: int = field(kw_only=True)

    async def summarize(self, paper: Paper, text: str) -> str:
        """Summarize the beginning of the paper's `text` in one paragraph; the abstract if the model gives none."""
        system = SystemMessage(self.prompts["summarizer_system"].render(words=self.words))
        prompt = self.prompts["summarizer_task"]
        tokens = self.room.left(PAPER_TOKENS, str(system.content), prompt.render(paper=""), paper.abstract)
        task = prompt.render(paper=present_paper(paper, text, tokens))
        answer = await self.caller.call([system, HumanMessage(task)], max_tokens=self.max_tokens)
        summary = one_line(prose(str(answer.message.text)))
        if summary and not was_cut_off(answer.message):
            return summary
        await self.caller.reject(answer)
        self.note(f"Paper {paper.key}: the model gave no complete summary, so its abstract is used.")
        return one_line(paper.abstract)


DESCRIPTION_WORDS: Final = 120
_MOST_WORDS: Final = 2 * DESCRIPTION_WORDS
_LONGEST_DESCRIPTION: Final = 12 * _MOST_WORDS  # characters, for answers without blanks
_READ: Final = 40_000  # characters of an answer that are considered
_CAPTION_TOKENS: Final = 600


@dataclass(frozen=True)
class FigureDescriber(ChatRole):
    """Describes one figure at a time."""

    async def describe(self, figure: PaperFigure, image: bytes) -> str:
        """Describe the image in one paragraph; empty if the model gives none. Raises what the caller raises.

        Only later runs request an empty answer again, since a run keeps the answers it has received.
        """
        system = SystemMessage(self.prompts["describer_system"].render(words=DESCRIPTION_WORDS))
        task = self.prompts["describer_task"].render(
            caption=fence(shorten(figure.caption or figure.name, _CAPTION_TOKENS), "caption")
        )
        # The cache key contains the image's hash instead of a megabyte of base64.
        said, named = ({"type": "text", "text": text} for text in (task, f"image {figure.image_hash}"))
        key: list[BaseMessage] = [system, HumanMessage([said, named])]
        image_block = create_image_block(base64=base64.b64encode(image).decode(), mime_type=figure.media_type)
        messages: list[BaseMessage] = [system, HumanMessage([said, dict(image_block)])]
        answer = await self.caller.call(messages, max_tokens=self.max_tokens, cache_messages=key)
        plain = one_line(plain_text(prose(str(answer.message.text))[:_READ]))
        shown = first_words(plain[:_LONGEST_DESCRIPTION], _MOST_WORDS).strip()
        if not shown:
            await self.caller.reject(answer)
        return shown

"""Judges on a chat model: several sentences in one call, each with all passages that it cites.

Passages are shown once, by citation id, with numbered sentences; the judge answers with numbers. Sentences omitted or
garbled in an answer are judged again one by one. A small checker answers Yes or No to a document and a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BeforeValidator, Field, create_model, field_validator, model_validator

from ...models.concurrency import gather_all
from ...models.context_size import group_batches
from ...text.wordings import weighs_sources
from ...text.words import shorten
from ..protocols import CitedClaim, Source, UncitedKind, UncitedSentence, Verdict, VerdictLabel
from .judged_passages import JudgedPassage
from .model_answers import (
    ChatRole,
    NumberedAnswer,
    StructuredAnswer,
    answer_text,
    build_schema,
    json_objects,
    lowercase,
    parse_numbers,
)
from .prompt_format import (
    PASSAGE_TOKENS,
    estimate_tokens,
    one_line,
    present_lines,
    present_numbered,
    strip_markers,
)

CLAIMS_AT_ONCE: Final = 24
# Approximate number of tokens of passages and sentences in one call.
_TOKENS_AT_ONCE: Final = 10_000
_LEAST_PASSAGE_TOKENS: Final = 250
_ALONE: Final = 3  # at most this many omitted claims are judged again one by one
_SUMMED_UP: Final = 3  # passages that a sentence cites if its place lets it sum them up
_ANSWER_TOKENS: Final = 110  # tokens of an answer per verdict, twice what most need
_SHARE_TOKENS: Final = 25  # further tokens for each passage after the first
_NO_ANSWER: Final = Verdict("unjudged", "the judge gave no valid answer")
_TOO_LONG: Final = Verdict("unjudged", "its passages do not fit into the server's context")
_WORDS_SHARE: Final = 0.75  # of a small context; the rest is for titles, sections and numbers
# How a judge names a passage or a sentence in its reason: "passage E3", "[E3]", "E3:", "P2".
_NAMED: Final = re.compile(
    r"(?:\b[Pp]assages?\s)?\[?(?<![\w-])(E[1-9]\d{0,5})(?![\w-])\]?|(?<![\w-])P[1-9]\d?(?![\w-])"
)
_MARKER: Final = re.compile(r"\[(E[1-9]\d{0,5})\]")


@dataclass(frozen=True, slots=True)
class Rubric:
    """A judge's task: the names of its prompts, and the verdicts that it may give."""

    system: str
    task: str
    verdicts: tuple[str, ...]


DRAFTS: Final = Rubric("judge_system", "judge_task", ("supported", "partly", "unsupported", "contradicted"))
CLAIMS: Final = Rubric(
    "claim_system", "claim_task", ("supported", "overstated", "not_found", "contradicted", "indirect")
)
# The labels of verdicts that only claims have; an overstated claim is partly supported.
_LABELS: Final[Mapping[str, VerdictLabel]] = MappingProxyType({"overstated": "partly", "not_found": "unsupported"})


@dataclass(frozen=True, slots=True)
class _PreparedClaim:
    """A claim with its index, and its cited passages by the id of their evidence."""

    place: int
    claim: CitedClaim
    passages: Mapping[str, JudgedPassage]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.passages)

    @property
    def costs(self) -> dict[str, int]:
        """The tokens of its shown parts, by name."""
        words = estimate_tokens(self.claim.sentence) + estimate_tokens(self.claim.before)
        return {**{name: passage.tokens for name, passage in self.passages.items()}, str(self.place): words}

    @property
    def shown(self) -> str:
        """The sentence, with markers if it cites several passages, to tell which part rests on which."""
        if len(self.ids) == 1:
            return one_line(strip_markers(self.claim.sentence))
        return one_line(_MARKER.sub(lambda it: it[0] if it[1] in self.passages else "", self.claim.sentence))


_Batch = Sequence[_PreparedClaim]


@dataclass(frozen=True)
class ChatJudge(ChatRole):
    """Judges support with a chat model, by the rubric for our own drafts, or for claims in users' texts."""

    rubric: Rubric = field(default=DRAFTS, kw_only=True)

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """Return a verdict for each source of each claim; "unjudged" if three attempts give no valid answer."""
        system, task = self.prompts[self.rubric.system].render(), self.prompts[self.rubric.task]
        tokens = self.room.left(_TOKENS_AT_ONCE, system, task.render(passages="", sentences=""), share=_WORDS_SHARE)
        asked = _prepare_claims(claims, tokens)
        found: dict[int, tuple[Verdict, ...]] = {}
        batches = _batches(asked, self.max_tokens, tokens)
        for verdicts in await gather_all(self._judge_batch(batch) for batch in batches):
            found.update(verdicts)
        return [found[place] for place in range(len(claims))]

    async def _judge_batch(self, batch: _Batch) -> dict[int, tuple[Verdict, ...]]:
        found = await self._together(batch) if len(batch) > 1 else {}
        missing = [item for item in batch if item.place not in found]
        if len(missing) > _ALONE:  # one garbled answer would otherwise cost a call per claim
            found |= await self._together(missing)
            missing = [item for item in batch if item.place not in found]
        alone = await gather_all(self._alone(item) for item in missing)
        return {**found, **{item.place: verdicts for item, verdicts in zip(missing, alone, strict=True)}}

    async def _together(self, batch: _Batch) -> dict[int, tuple[Verdict, ...]]:
        schema = build_schema(self._model(batch))
        answer = await self.caller.call(self._messages(batch), schema=schema, max_tokens=self.max_tokens)
        for data in json_objects(answer_text(answer.message)):
            if found := _usable_verdicts(data, batch, self.rubric):
                return found
        await self.caller.reject(answer)
        return {}

    async def _alone(self, item: _PreparedClaim) -> tuple[Verdict, ...]:
        messages = self._messages([item])
        if not self.room.holds(*(str(message.content) for message in messages)):
            return (_TOO_LONG,) * len(item.ids)

        def verdicts(answer: SupportVerdicts) -> tuple[Verdict, ...]:
            ((_, said),) = answer  # its only field, P1
            return to_verdicts(said, item.passages)

        answer = await self.ask(messages, self._model([item]), check=verdicts)
        return (_NO_ANSWER,) * len(item.ids) if answer is None else verdicts(answer)

    def _model(self, batch: _Batch) -> type[SupportVerdicts]:
        return verdicts_model(tuple(item.ids for item in batch), self.rubric.verdicts)

    def _messages(self, batch: _Batch) -> list[BaseMessage]:
        passages = {identifier: passage for item in batch for identifier, passage in item.passages.items()}
        first: dict[tuple[str, int | None], str] = {}  # the passage that shows a paper's title and year
        shown: list[str] = []
        for identifier, passage in passages.items():
            source, name = passage.source, f"passage {identifier}"
            same = first.setdefault((source.paper.title, source.paper.year), name) if source.paper.title else name
            shown.append(present_numbered(source, passage.sentences, name, "" if same == name else same))
        task = self.prompts[self.rubric.task].render(
            passages="\n\n".join(shown),
            sentences=present_lines(list(_lines(batch)), "sentences"),
        )
        return [SystemMessage(self.prompts[self.rubric.system].render()), HumanMessage(task)]


def _prepare_claims(claims: Sequence[CitedClaim], tokens: int) -> list[_PreparedClaim]:
    """Add the passages to the claims; a claim with many passages divides the space of a call among them."""
    room: dict[str, int] = {}
    said: dict[str, list[str]] = {}
    sources: dict[str, Source] = {}
    for claim in claims:
        share = min(PASSAGE_TOKENS, tokens // max(1, len(claim.sources)))
        if tokens == _TOKENS_AT_ONCE:
            share = max(_LEAST_PASSAGE_TOKENS, share)
        for source in claim.sources:
            name = source.evidence.id
            room[name] = min(share, room.get(name, share))
            said.setdefault(name, []).append(strip_markers(claim.sentence))
            known = sources.setdefault(name, source)
            if known.passage != source.passage:  # claims may need different sentences of a passage
                together = sorted({*known.passage, *source.passage}, key=lambda item: item.start)
                sources[name] = replace(known, passage=tuple(together))
    passages = {name: JudgedPassage.of(source, room[name], said[name]) for name, source in sources.items()}
    return [
        _PreparedClaim(place, claim, {source.evidence.id: passages[source.evidence.id] for source in claim.sources})
        for place, claim in enumerate(claims)
    ]


def _lines(batch: _Batch) -> Iterator[str]:
    """Format each sentence with the ids of its passages, after the preceding sentence as context."""
    shown: dict[str, int] = {}
    for number, item in enumerate(batch, 1):
        claim = item.claim
        before = one_line(strip_markers(claim.before))
        if before:
            yield f"Before P{number}: " + (f"P{shown[before]}" if before in shown else before)
        several = len(item.ids) > 1
        sums_up = weighs_sources(claim.sentence) or (claim.may_sum_up and len(item.ids) >= _SUMMED_UP)
        does = "weighs" if several and sums_up else "cites"
        yield f"P{number}, {does} passage{'s' if several else ''} {', '.join(item.ids)}: {item.shown}"
        shown[one_line(strip_markers(claim.sentence))] = number


def _usable_verdicts(data: Mapping[str, Any], batch: _Batch, rubric: Rubric) -> dict[int, tuple[Verdict, ...]]:
    """Return the valid verdicts of an answer object by index, each validated separately."""
    named = {str(name).strip().upper(): value for name, value in data.items()}
    found: dict[int, tuple[Verdict, ...]] = {}
    for number, item in enumerate(batch, 1):
        with suppress(ValueError):
            said = verdict_model(item.ids, rubric.verdicts).model_validate(named.get(f"P{number}"))
            found[item.place] = to_verdicts(said, item.passages)
    return found


def _batches(asked: _Batch, max_tokens: int, tokens: int) -> Iterator[list[_PreparedClaim]]:
    """Group the claims into calls of about equal length, keeping claims that share a source together."""
    if not asked:
        return
    shares = sum(len(item.ids) - 1 for item in asked) / len(asked)
    most = max(1, min(CLAIMS_AT_ONCE, int(max_tokens // (_ANSWER_TOKENS + _SHARE_TOKENS * shares))))
    most = -(-len(asked) // -(-len(asked) // most))
    first: dict[str, int] = {}
    for item in asked:
        for identifier in item.ids:
            first.setdefault(identifier, item.place)
    ordered = sorted(asked, key=lambda item: (min(first[identifier] for identifier in item.ids), item.place))
    yield from group_batches(ordered, lambda item: item.costs, tokens, most)


_LONGEST_REASON: Final = 500  # characters
_LABELLED: Final = re.compile(r"^\s*(?:passage\s+)?\[?(e\d{1,6})\]?\s*$", re.IGNORECASE)


class PassageShare(StructuredAnswer):
    """A passage's contribution to a sentence, and the numbers of its deciding sentences.

    The prompt describes the fields, since descriptions here would be sent once for each passage of each sentence.
    """

    does: Literal["supports", "idle", "contradicts"]
    sentences: tuple[int, ...]

    _lowercase = field_validator("does", mode="before")(lowercase)

    _as_numbers = field_validator("sentences", mode="before")(parse_numbers)


class SupportVerdict(StructuredAnswer):
    """The judge's verdict on one sentence; the reason comes first, so that the verdict follows from it.

    `verdict_model` adds a field for each passage, by its id, and the verdict.
    """

    reason: str

    _lowercase = field_validator("verdict", mode="before", check_fields=False)(lowercase)

    @model_validator(mode="before")
    @classmethod
    def _by_id(cls, data: Any) -> Any:
        """Normalise ids ("passage e2" is E2), and drop null values."""
        if not isinstance(data, Mapping):
            return data
        return {
            _LABELLED.sub(lambda name: name[1].upper(), str(key)): value
            for key, value in data.items()
            if value is not None
        }

    @property
    def label(self) -> VerdictLabel:
        """The verdict on the whole sentence."""
        said: VerdictLabel = getattr(self, "verdict")  # noqa: B009
        return _LABELS.get(said, said)


class SupportVerdicts(NumberedAnswer):
    """Base of the answers for one or more sentences, P1, P2 ...; the id of a single one may be missing."""

    @model_validator(mode="before")
    @classmethod
    def _alone(cls, data: Any) -> Any:
        return {"P1": data} if isinstance(data, Mapping) and "verdict" in data else data


@lru_cache(maxsize=256)
def verdict_model(ids: tuple[str, ...], verdicts: tuple[str, ...] = DRAFTS.verdicts) -> type[SupportVerdict]:
    """Create the answer model for a sentence that cites these passages."""
    fields: dict[str, Any] = {name: (PassageShare, Field(default=None)) for name in ids}
    fields["verdict"] = (Literal[verdicts], ...)
    return create_model("SupportVerdict", __base__=SupportVerdict, **fields)


@lru_cache(maxsize=256)
def verdicts_model(
    ids: tuple[tuple[str, ...], ...], verdicts: tuple[str, ...] = DRAFTS.verdicts
) -> type[SupportVerdicts]:
    """Create the answer model for several sentences, each with the ids of its cited passages."""
    fields: dict[str, Any] = {f"P{number}": (verdict_model(of, verdicts), ...) for number, of in enumerate(ids, 1)}
    return create_model("SupportVerdicts", __base__=SupportVerdicts, **fields)


def to_verdicts(answer: SupportVerdict, passages: Mapping[str, JudgedPassage]) -> tuple[Verdict, ...]:
    """Return the verdict for each passage; raises ValueError if a supporting verdict names none of their sentences.

    A passage with a deciding sentence never counts as idle.
    """
    shares: dict[str, PassageShare | None] = {name: getattr(answer, name) for name in passages}  # None if omitted
    against = {name for name, share in shares.items() if share and share.does == "contradicts"}
    spans = {name: passages[name].spans(share.sentences) if share else () for name, share in shares.items()}
    carried = any(spans[name] for name in passages if name not in against)
    if answer.label in ("supported", "partly", "indirect") and not carried:
        known = ", ".join(f"{name} from 1 to {len(passage.sentences)}" for name, passage in passages.items())
        raise ValueError(f"verdict {answer.label} needs the numbers of the sentences that support it, {known}")
    adds: dict[str, Literal["idle", "contradicts"]] = dict.fromkeys(against, "contradicts")
    adds |= {name: "idle" for name, share in shares.items() if share and share.does == "idle" and not spans[name]}
    texts = [sentence.text for passage in passages.values() for sentence in passage.sentences]
    words = set(re.findall(r"\w+", " ".join(texts)))

    def by_marker(match: re.Match[str]) -> str:
        """Name passages by their markers, and the sentence without its id, since a repair shows other ids."""
        return f"[{match[1]}]" if match[1] else match[0] if match[0] in words else "the sentence"

    reason = shorten(_NAMED.sub(by_marker, one_line(answer.reason)), _LONGEST_REASON)

    def verdict(name: str) -> Verdict:
        label: VerdictLabel = "contradicted" if name in against else answer.label
        placed = () if label == "unsupported" else spans[name]
        chunk = passages[name].source.evidence.chunk_id
        start, end = next(((span.start, span.end) for span in placed if span.chunk_id == chunk), (None, None))
        return Verdict(label, reason, start, end, adds.get(name, ""), placed)

    return tuple(map(verdict, passages))


_UNCITED_AT_ONCE: Final = 60  # sentences in one call
_LONGEST_UNCITED: Final = 600  # shown characters of a sentence
_YES_OR_NO: Final = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_DOCUMENT: Final = 3_000  # tokens; small checkers were trained on shorter documents
_CHARACTERS: Final = 4  # per token
_YES_TOKENS: Final = 16


@dataclass(frozen=True)
class ChatClaimJudge(ChatJudge):
    """Implements `ClaimJudge` on a chat model."""

    rubric: Rubric = field(default=CLAIMS, kw_only=True)

    async def classify(self, sentences: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        """Return the kinds of sentences, in batches; None where two attempts give no valid answer."""
        batches = [sentences[start : start + _UNCITED_AT_ONCE] for start in range(0, len(sentences), _UNCITED_AT_ONCE)]
        found = await gather_all(self._kinds(batch) for batch in batches)
        return [kind for kinds in found for kind in kinds]

    async def _kinds(self, batch: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        task = self.prompts["uncited_task"].render(sentences=present_lines(list(_number_sentences(batch)), "sentences"))
        messages = [SystemMessage(self.prompts["uncited_system"].render()), HumanMessage(task)]
        names = [f"S{number}" for number in range(1, len(batch) + 1)]
        fields: dict[str, Any] = dict.fromkeys(names, (Annotated[UncitedKind, BeforeValidator(lowercase)], ...))
        answer = await self.ask(messages, create_model("UncitedKinds", __base__=NumberedAnswer, **fields))
        return [None if answer is None else getattr(answer, name) for name in names]


def _number_sentences(batch: Sequence[UncitedSentence]) -> Iterator[str]:
    section = ""
    for number, sentence in enumerate(batch, 1):
        if sentence.section != section:
            section = sentence.section
            yield f"Section: {one_line(section)[:_LONGEST_UNCITED]}"
        yield f"S{number}: {one_line(sentence.text)[:_LONGEST_UNCITED]}"


class SmallClaimJudge(ChatRole):
    """Implements `ClaimJudge` on a checker with MiniCheck's protocol: Yes or No to "Document: ... Claim: ...".

    It cannot tell contradiction or overstatement from missing support, and does not classify.
    """

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """Judge whether each source's paper supports the claim; if no paper does alone, all papers together."""
        return list(await gather_all(self._judge(claim) for claim in claims))

    async def _judge(self, claim: CitedClaim) -> tuple[Verdict, ...]:
        texts: dict[str, list[str]] = {}
        for source in claim.sources:
            shown = [item.text for item in source.passage] or [source.text]
            texts.setdefault(source.paper.key, []).append(" ".join(shown))
        sentence = one_line(strip_markers(claim.sentence))
        said = dict(zip(texts, await gather_all(self._ask(parts, sentence) for parts in texts.values()), strict=True))
        if len(texts) > 1 and "yes" not in said.values():
            together = await self._ask([part for parts in texts.values() for part in parts], sentence)
            said = dict.fromkeys(said, together) if together == "yes" else said
        any_yes = "yes" in said.values()
        verdicts = {
            "yes": Verdict("supported", "the checker found it in the passages"),
            "no": Verdict("supported" if any_yes else "unsupported", "the checker did not find it", adds="idle"),
            "": Verdict("unjudged", "the checker answered neither Yes nor No"),
        }
        return tuple(verdicts[said[source.paper.key]] for source in claim.sources)

    async def _ask(self, passages: Sequence[str], claim: str) -> Literal["yes", "no", ""]:
        document = one_line("\n".join(passages))[: _CHARACTERS * self.room.left(_DOCUMENT, claim)]
        task = self.prompts["small_judge_task"].render(document=document, claim=claim)
        answer = await self.caller.call([HumanMessage(task)], max_tokens=_YES_TOKENS)
        found = _YES_OR_NO.match(answer_text(answer.message))
        if found is None:
            await self.caller.reject(answer)
            return ""
        return "yes" if found[1].lower() == "yes" else "no"

    async def classify(self, sentences: Sequence[UncitedSentence]) -> list[UncitedKind | None]:
        """Return None for each, since the checker was trained for support alone."""
        return [None for _ in sentences]

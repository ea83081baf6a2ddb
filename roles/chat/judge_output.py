"""The answer format of the judge of support, and how its numbers become spans of the papers.

A sentence is judged against all passages that it cites. The answer says for each passage what it contributes, and the
numbers of its deciding sentences; the words are sliced from the chunks by number and cannot be invented.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import Field, create_model, field_validator, model_validator

from ..inputs import PassageSentence, Source
from ..protocols import DecidingSpan, Verdict
from .prompt_format import one_line, tokens_of
from .prompt_passages import numbered_sentences
from .structured_output import StructuredAnswer, lowercase

_LONGEST_REASON: Final = 300  # characters
_GAP: Final = 3  # characters between neighbouring sentences, at most the end of a paragraph
_MOST_NUMBERS: Final = 40
_NUMBERS: Final = re.compile(r"(?<!\d)(\d{1,4})(?:\s?[-\u2013]\s?(\d{1,4}))?(?!\d)")
_LETTERED: Final = re.compile(r"^\s*(?:passage\s+)?([a-z]{1,2})\s*$", re.IGNORECASE)


class PassageShare(StructuredAnswer):
    """What one passage contributes to a sentence, and the numbers of its deciding sentences.

    The prompt describes the fields: a description here would be sent once for each passage of each sentence.
    """

    does: Literal["supports", "idle", "contradicts"]
    sentences: tuple[int, ...]

    _lowercase = field_validator("does", mode="before")(lowercase)

    @field_validator("sentences", mode="before")
    @classmethod
    def _as_numbers(cls, value: object) -> object:
        """Numbers in any notation: 3, "2-4", ["1", 2]."""
        given = list(value) if isinstance(value, (list, tuple)) else [value]
        written = " ".join(str(item) for item in given[:_MOST_NUMBERS] if isinstance(item, (int, str)))[:400]
        numbers: list[int] = []
        for match in _NUMBERS.finditer(written):
            first, last = int(match[1]), int(match[2] or match[1])
            numbers += range(first, min(last, first + _MOST_NUMBERS) + 1)
        return numbers


class SupportVerdict(StructuredAnswer):
    """The judge's verdict on one sentence; the reason comes first, so that the verdict follows from it.

    The models of `verdict_model` add a field for each passage, by its letter, between the two.
    """

    reason: str

    _lowercase = field_validator("verdict", mode="before", check_fields=False)(lowercase)

    @model_validator(mode="before")
    @classmethod
    def _by_letter(cls, data: Any) -> Any:
        """ "passage b" is B, and null means that nothing was said."""
        if not isinstance(data, Mapping):
            return data
        return {
            _LETTERED.sub(lambda name: name[1].upper(), str(key)): value
            for key, value in data.items()
            if value is not None
        }

    def share(self, letter: str) -> PassageShare | None:
        """The answer for a passage; None when it was omitted."""
        found: PassageShare | None = getattr(self, letter)
        return found

    @property
    def label(self) -> Literal["supported", "partly", "unsupported", "contradicted"]:
        """The verdict on the whole sentence."""
        said: Literal["supported", "partly", "unsupported", "contradicted"] = getattr(self, "verdict")  # noqa: B009
        return said


class SupportVerdicts(StructuredAnswer):
    """Base of the answers for one or more sentences: a field P1, P2 ... for each.

    Separate fields ensure that a server that enforces the schema cannot omit one.
    """

    @model_validator(mode="before")
    @classmethod
    def _by_id(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {"P1": data} if "verdict" in data else {str(name).strip().upper(): data[name] for name in data}


@lru_cache(maxsize=256)
def verdict_model(letters: tuple[str, ...]) -> type[SupportVerdict]:
    """The answer model for a sentence that cites these passages."""
    fields: dict[str, Any] = {letter: (PassageShare, Field(default=None)) for letter in letters}
    fields["verdict"] = (Literal["supported", "partly", "unsupported", "contradicted"], ...)
    return create_model("SupportVerdict", __base__=SupportVerdict, **fields)


@lru_cache(maxsize=256)
def verdicts_model(letters: tuple[tuple[str, ...], ...]) -> type[SupportVerdicts]:
    """The answer model for several sentences, each with the letters of the passages that it cites."""
    fields: dict[str, Any] = {f"P{number}": (verdict_model(of), ...) for number, of in enumerate(letters, 1)}
    return create_model("SupportVerdicts", __base__=SupportVerdicts, **fields)


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """A source as the judge sees it, with sentences numbered from 1."""

    source: Source
    sentences: tuple[PassageSentence, ...]

    @classmethod
    def of(cls, source: Source, tokens: int) -> JudgedPassage:
        """The sentences that the writer was shown; without a passage, those of the source's chunk within `tokens`."""
        evidence = source.evidence
        if source.passage:
            return cls(source, _within(source.passage, tokens))
        spans = numbered_sentences(source.text, evidence.start, evidence.end, tokens)
        return cls(
            source,
            tuple(PassageSentence(evidence.chunk_id, start, end, source.text[start:end]) for start, end in spans),
        )

    @property
    def tokens(self) -> int:
        return sum(tokens_of(sentence.text) for sentence in self.sentences)

    def spans(self, numbers: Sequence[int]) -> tuple[DecidingSpan, ...]:
        """The spans with these numbers; adjacent sentences are merged, unknown numbers are ignored."""
        found: list[DecidingSpan] = []
        for number in sorted(set(numbers)):
            if not 1 <= number <= len(self.sentences):
                continue
            item = self.sentences[number - 1]
            last = found[-1] if found else None
            if last is not None and last.chunk_id == item.chunk_id and 0 <= item.start - last.end <= _GAP:
                found[-1] = DecidingSpan(last.chunk_id, last.start, item.end)
            else:
                found.append(DecidingSpan(item.chunk_id, item.start, item.end))
        return tuple(found)


def _within(sentences: Sequence[PassageSentence], tokens: int) -> tuple[PassageSentence, ...]:
    """The sentences that fit: first the context is dropped, then the last sentences."""
    if sum(tokens_of(item.text) for item in sentences) <= tokens:
        return tuple(sentences)
    kept: list[PassageSentence] = []
    for item in [item for item in sentences if item.carries] or sentences:
        tokens -= tokens_of(item.text)
        if kept and tokens < 0:
            break
        kept.append(item)
    return tuple(kept)


def verdicts_from(answer: SupportVerdict, passages: Mapping[str, JudgedPassage]) -> tuple[Verdict, ...]:
    """The verdict for each of `passages` by letter; ValueError when it rests on none of their sentences.

    A passage with a deciding sentence is not idle, whatever the answer says about it.
    """
    shares = {letter: answer.share(letter) for letter in passages}
    against = {letter for letter, share in shares.items() if share and share.does == "contradicts"}
    spans = {letter: passages[letter].spans(share.sentences) if share else () for letter, share in shares.items()}
    carried = any(spans[letter] for letter in passages if letter not in against)
    if answer.label in ("supported", "partly") and not carried:
        raise ValueError(
            f"verdict {answer.label} needs the numbers of the sentences that support it, {_known(passages)}"
        )
    idle = {letter for letter, share in shares.items() if share and share.does == "idle" and not spans[letter]}
    reason = one_line(answer.reason)[:_LONGEST_REASON]

    def verdict(letter: str) -> Verdict:
        if letter in against:
            return _placed(Verdict("contradicted", reason, adds="contradicts"), passages[letter], spans[letter])
        adds: Literal["", "idle"] = "idle" if letter in idle else ""
        if answer.label == "unsupported":
            return Verdict("unsupported", reason, adds=adds)
        return _placed(Verdict(answer.label, reason, adds=adds), passages[letter], spans[letter])

    return tuple(map(verdict, passages))


def _placed(verdict: Verdict, passage: JudgedPassage, spans: tuple[DecidingSpan, ...]) -> Verdict:
    own = next((span for span in spans if span.chunk_id == passage.source.evidence.chunk_id), None)
    start, end = (own.start, own.end) if own else (None, None)
    return Verdict(verdict.label, verdict.reason, start, end, verdict.adds, spans)


def _known(passages: Mapping[str, JudgedPassage]) -> str:
    return ", ".join(f"{letter} from 1 to {len(passage.sentences)}" for letter, passage in passages.items())

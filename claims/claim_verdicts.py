"""Judges claims in batches, and decides what a sentence without a citation is ("own" or "other" when in doubt).

Claims judged before are not judged again, and claims beyond a budget stay unjudged.
A verdict is remembered in the journal under everything that it depends on: model, prompts, sentence, and the sentences
of the passages. So a check after edits asks only about the sentences that changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pydantic import TypeAdapter

from ..citations.checks.citation_coverage import reports_others_work
from ..citations.markers import MARKER, MARKER_LIST, marker_ids
from ..documents.categories import standard_section
from ..documents.types import Category
from ..models.concurrency import gather_all
from ..models.context_size import group_batches
from ..models.http.endpoints import hash_key
from ..models.journal.budget import BudgetReachedError
from ..models.journal.journal import Journal
from ..models.journal.records import RunScope
from ..plurals import join_words
from ..roles.chat.prompt_format import estimate_tokens
from ..roles.protocols import CitedClaim, ClaimJudge, PassageSentence, UncitedKind, UncitedSentence, Verdict
from ..text.words import one_of, read_rules, split_words
from .claim_passages import ClaimPassage, cited_in
from .claim_records import ClaimLabel, Does, PassageRecord, SourceRecord

_BATCH_TOKENS: Final = 9_500  # of one call's passages
_BATCH_CLAIMS: Final = 14
_VERDICTS: Final = TypeAdapter(tuple[Verdict, ...])
_LABELS: Final[Mapping[str, ClaimLabel]] = {
    "supported": "supported",
    "partly": "overstated",
    "unsupported": "not_found",
    "contradicted": "contradicted",
    "indirect": "indirect",
}


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim with its passages, in the order of `cited.sources`; `verdicts` are None until it is judged."""

    cited: CitedClaim
    passages: tuple[ClaimPassage, ...]
    verdicts: tuple[Verdict, ...] | None = None

    @property
    def wording(self) -> str:
        """The sentence with its markers numbered from 1, whatever precedes it in the text."""
        place = {source.evidence.id: number for number, source in enumerate(self.cited.sources, 1)}
        return MARKER.sub(lambda marker: f"[{place.get(marker[1], 0)}]", self.cited.sentence)

    def name_papers(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        """Replace the markers in the reasons of verdicts by keys of papers, each once in a list of markers."""
        keys = {source.evidence.id: source.paper.key for source in self.cited.sources}

        def list_keys(markers: re.Match[str]) -> str:
            return join_words([*dict.fromkeys(keys.get(name, f"[{name}]") for name in marker_ids(markers[0]))])

        return tuple(replace(verdict, reason=MARKER_LIST.sub(list_keys, verdict.reason)) for verdict in verdicts)

    @property
    def shown(self) -> dict[PassageSentence | str, int]:
        """What the judge is shown of the claim, with the tokens of each part."""
        parts: list[PassageSentence | str] = [self.cited.sentence, self.cited.before]
        parts += [one for item in self.passages for one in item.sentences]
        return {part: estimate_tokens(part if isinstance(part, str) else part.text) for part in parts}

    @property
    def label(self) -> ClaimLabel:
        """The verdict on the sentence by all passages together."""
        given = [verdict for verdict in self.verdicts or () if verdict.adds != "contradicts"] or self.verdicts or ()
        label = _LABELS.get(given[0].label, "unjudged") if given else "unjudged"
        cites = [works for _, works in self._relied_on()]
        relies = bool(cites) and all(cites)
        return "supported" if label == "indirect" and not relies else label

    def _relied_on(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """For each run of deciding words, the key of its paper and the works that the words cite."""
        for item, verdict in zip(self.passages, self.verdicts or (), strict=False):
            for span in verdict.spans:
                yield item.chunk.key, cited_in(item.chunk.text[span.start : span.end])

    @property
    def reason(self) -> str:
        """The judge's reason, without names of passages."""
        return self.verdicts[0].reason if self.verdicts else ""

    def records(self, key: str) -> list[PassageRecord]:
        """The passages of a paper, deciding ones first."""
        judged = self.verdicts or tuple(Verdict("unjudged") for _ in self.passages)
        made = [
            (not verdict.spans, passage.record([(span.start, span.end) for span in verdict.spans], does_of(verdict)))
            for passage, verdict in zip(self.passages, judged, strict=True)
            if passage.chunk.key == key
        ]
        return [record for _, record in sorted(made, key=lambda item: item[0])]

    def source(self, key: str, written: str, entry: str) -> SourceRecord:
        """The record of one cited paper: its label and its passages."""
        passages = self.records(key)
        does = {passage["does"] for passage in passages}
        label: ClaimLabel = "unjudged" if passages else "unread"
        if passages and any(verdict.label != "unjudged" for verdict in self.verdicts or ()):
            agrees = self.label if self.label in ("supported", "overstated", "indirect") else "supported"
            label = "contradicted" if "contradicts" in does else agrees if "supports" in does else "not_found"
        relied = [work for paper, works in self._relied_on() if paper == key for work in works]
        cites = list(dict.fromkeys(relied)) if self.label == "indirect" else []
        return SourceRecord(written=written, key=entry, paper=key, label=label, passages=passages, cites=cites)


def does_of(verdict: Verdict) -> Does:
    """What a passage says about its claim, by the judge's verdict."""
    if verdict.label == "unjudged":
        return ""
    if verdict.adds == "contradicts":
        return "contradicts"
    return "supports" if verdict.spans and verdict.label != "contradicted" and verdict.adds != "idle" else "idle"


@dataclass(frozen=True, slots=True)
class VerdictMemory:
    """Verdicts in the journal, by what they depend on; `judge_id` names the model and its prompts."""

    journal: Journal
    scope: RunScope
    judge_id: str

    def claim_key(self, claim: JudgedClaim) -> str:
        shown = [
            [item.paper.title, item.paper.year, item.chunk.section, [sentence.text for sentence in item.sentences]]
            for item in claim.passages
        ]
        return hash_key(["claim", self.judge_id, claim.wording, claim.cited.before, shown])

    def kind_key(self, sentence: UncitedSentence) -> str:
        return hash_key(["kind", self.judge_id, sentence.text, sentence.section])

    async def recall(self, keys: Sequence[str]) -> dict[str, Any]:
        found = await self.journal.recall(keys, self.scope)
        return {key: json.loads(payload) for key, payload in found.items()}

    async def remember(self, made: Mapping[str, Any]) -> None:
        if made:
            await self.journal.remember({key: json.dumps(value) for key, value in made.items()}, self.judge_id)


@dataclass(slots=True)
class Progress:
    """How far a check has come: one line for each step, and why a budget stopped it, if it did."""

    on_notice: Callable[[str], None] = lambda _: None
    stopped: str = ""


async def judge_claims(
    judge: ClaimJudge, claims: Sequence[JudgedClaim], memory: VerdictMemory, progress: Progress
) -> list[JudgedClaim]:
    """The claims with verdicts: remembered ones, else new ones; claims beyond a budget have none."""
    keys = [memory.claim_key(claim) for claim in claims]
    known = await memory.recall(keys)
    verdicts = {key: _VERDICTS.validate_python(record) for key, record in known.items()}
    whole: list[list[tuple[str, JudgedClaim]]] = []
    changed: dict[str, JudgedClaim] = {}
    # After a kill the same batches are asked again, since the journal may hold their answers; after edits, the rest.
    for batch in _batches({key: claim for key, claim in zip(keys, claims, strict=True) if claim.passages}):
        missing = [item for item in batch if item[0] not in verdicts]
        if len(missing) == len(batch):
            whole.append(batch)
        else:
            changed.update(missing)

    async def ask(batch: Sequence[tuple[str, JudgedClaim]]) -> None:
        try:
            given = await judge.judge([claim.cited for _, claim in batch])
        except BudgetReachedError as error:
            progress.stopped = error.message
            return
        made = {key: claim.name_papers(verdict) for (key, claim), verdict in zip(batch, given, strict=True)}
        verdicts.update(made)
        await memory.remember(
            {key: [asdict(item) for item in of] for key, of in made.items() if of[0].label != "unjudged"}
        )

    await gather_all(ask(batch) for batch in (*whole, *_batches(changed)))
    given = [(claim, verdicts.get(key)) for key, claim in zip(keys, claims, strict=True)]
    return [
        replace(claim, verdicts=made if made is not None and len(made) == len(claim.passages) else None)
        for claim, made in given
    ]


def _batches(claims: Mapping[str, JudgedClaim]) -> Iterator[list[tuple[str, JudgedClaim]]]:
    first: dict[str, int] = {}
    for claim in claims.values():
        first.setdefault(claim.passages[0].chunk.key, len(first))
    ordered = sorted(claims.items(), key=lambda item: first[item[1].passages[0].chunk.key])
    yield from group_batches(ordered, lambda item: item[1].shown, _BATCH_TOKENS, _BATCH_CLAIMS)


async def classify_sentences(
    judge: ClaimJudge, sentences: Sequence[UncitedSentence], memory: VerdictMemory, progress: Progress
) -> list[UncitedKind | None]:
    """Classify sentences without a citation; None where the kind is unknown."""
    keys = [memory.kind_key(sentence) for sentence in sentences]
    known: dict[str, Any] = dict(await memory.recall(keys))
    missing = {key: sentence for key, sentence in zip(keys, sentences, strict=True) if key not in known}
    try:
        given = await judge.classify(list(missing.values())) if missing else []
        made = {key: kind for key, kind in zip(missing, given, strict=False) if kind is not None}
        await memory.remember(made)
        known |= made
    except BudgetReachedError as error:
        progress.stopped = error.message
    return [known.get(key) for key in keys]


_RULES: Final = read_rules(__file__, "sentence_rules")["uncited"]
_OWN, _OPINION, _MEASURED, _FIELD = (
    one_of(_RULES[name], re.IGNORECASE) for name in ("own", "opinion", "measured", "field")
)
_THANKS: Final = re.compile(_RULES["thanks"], re.IGNORECASE)
_VERB, _PAST, _PRESENT = (re.compile(_RULES[name]) for name in ("verb", "past", "present"))
_WEIGHTS: Final[Mapping[str, float]] = _RULES["weights"]
_ET_AL: Final = 1.4
_OF_SECTIONS: Final = {Category.INTRODUCTION: 0.9, Category.RELATED_WORK: 0.9, Category.ABSTRACT: -1.0}
_OF_NO_SECTION: Final = 0.15
_OF_LENGTH: Final = (-0.9, 0.5)  # weights of a short and of a long sentence
_READ: Final = 600  # characters
_SHORT, _LONG = 12, 25  # words
_ENOUGH: Final = 0.45
_OF_ITSELF: Final = frozenset({Category.METHOD, Category.EVALUATION, Category.CONCLUSION, Category.ABSTRACT})
_FEWEST_WORDS: Final = 5


def uncited_kind(text: str, section: str) -> UncitedKind:
    """The kind of a sentence without a citation, in the section of this title."""
    words = text[:2_000]
    if len(words.split()) < _FEWEST_WORDS or not _VERB.search(words):
        return "opinion" if _OPINION.search(words) else "other"
    if _OPINION.search(words):
        return "opinion"
    if _OWN.search(words) or _THANKS.search(words):
        return "own"
    if reports_others_work(words):
        return "needs"
    # Such sections report what was done and found, but may also make statements about the world.
    placed = standard_section(section)
    if placed in _OF_ITSELF and _PAST.search(words) and not _PRESENT.search(words):
        return "own"
    if _MEASURED.search(words) or _FIELD.search(words):
        return "needs"
    forms = [word.form for word in split_words(words[:_READ])]
    score = sum(_WEIGHTS.get(form, 0.0) for form in set(forms)) + _ET_AL * ("et al" in words[:_READ])
    score += _OF_SECTIONS.get(placed, 0.0) if placed else _OF_NO_SECTION
    score += _OF_LENGTH[0] if len(forms) < _SHORT else _OF_LENGTH[1] if len(forms) > _LONG else 0.0
    return "needs" if score >= _ENOUGH else "common"


def is_plainly_own(text: str) -> bool:
    """Whether a sentence speaks of its authors or their figures, or thanks, so that no model need classify it."""
    return bool(_OWN.search(text[:2_000]) or _THANKS.search(text[:2_000]))

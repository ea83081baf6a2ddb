"""Checks a text: its sentences, each with passages and a verdict, its details, its references.

Everything up to the judge works without a model: then labels are "unjudged" and passages are candidates.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ..citations.cited_works import CitedWork
from ..documents import Chunk, Paper
from ..experiment import Experiment
from ..metadata.services import Services
from ..models.concurrency import gather_all
from ..plurals import counted
from ..roles.protocols import CitedClaim, ClaimJudge, Source, UncitedKind, UncitedSentence
from ..stores.library import Library
from ..stores.metadata_store import MetadataStore
from ..text.sentences import is_context_dependent
from ..text.words import shorten
from ..tools.paper_search import NEAR_PASSAGE, nearness_to
from ..tools.retrieval import DEFAULT_OPTIONS, Retrieval, retrieve
from ..tools.scope import Scope
from .claim_passages import (
    SAME_WORDS,
    SHOWN_WORDS,
    ClaimPassage,
    NearSentence,
    SentenceIndex,
    choose_sentences,
    claim_query,
    nearest_in_library,
    nearest_passage,
    needed_context,
    paper_sentences,
    passages_elsewhere,
)
from .claim_records import ClaimLabel, FaultRecord, PassageRecord, ReferenceCheck, SentenceRecord, SourceRecord, fault
from .claim_verdicts import (
    JudgedClaim,
    Progress,
    VerdictMemory,
    classify_sentences,
    is_plainly_own,
    judge_claims,
    uncited_kind,
)
from .detail_checks import (
    FIRST_PERSON,
    name_faults,
    number_faults,
    own_number_faults,
    quote_faults,
    whole_chunk,
    whole_source,
    wording_faults,
)
from .manuscript import Manuscript, ManuscriptSentence, written_citation
from .reference_entries import ReferenceList, citation_faults, entry_faults, pointer_faults, unknown_entries

# What is checked: sentences with citations, sentences without, numbers and other details, the reference list.
CheckPart = Literal["claims", "uncited", "numbers", "references"]
CHECK_PARTS: Final[tuple[CheckPart, ...]] = ("claims", "uncited", "numbers", "references")

MOST_PASSAGES: Final = 8  # per cited paper
_FEWEST_PASSAGES: Final = 2
_MOST_ELSEWHERE: Final = 24  # sentences for which a judge reads other papers
_ELSEWHERE_TOKENS: Final = 420
# A sentence may cite the wrong paper if another one is nearer by this much, and its own this far away.
_NEARER: Final = 0.12
_FAR: Final = 0.75
_MORE_WORDS: Final = 0.25  # by which another paper's sentence must share more of its words than the cited paper's


@dataclass(frozen=True)
class ClaimChecker:
    """What a check works with; `judge` is None if there is no chat model."""

    library: Library
    judge: ClaimJudge | None
    memory: VerdictMemory
    progress: Progress = field(default_factory=Progress)
    options: Retrieval = DEFAULT_OPTIONS
    most: int = MOST_PASSAGES
    ids: dict[Chunk, str] = field(default_factory=dict)

    async def find(self, text: str, before: str, keys: Sequence[str], most: int) -> dict[str, list[ClaimPassage]]:
        """The passages of each cited paper that are nearest to a claim, best first, by key."""
        query, papers = claim_query(text, before), list(dict.fromkeys(keys))
        found = await gather_all(
            retrieve(self.library, query, most, Scope(papers=(key,)), self.options) for key in papers
        )
        return {
            key: [ClaimPassage(hit.chunk, hit.paper, hit.vector_score) for hit in hits]
            for key, hits in zip(papers, found, strict=True)
        }

    async def elsewhere(self, text: str, before: str, without: Collection[str]) -> list[ClaimPassage]:
        """The nearest passages of other papers, with the sentences to show; without a judge, only the near ones."""
        query = claim_query(text, before)
        found = await passages_elsewhere(self.library, query, without, self.options)
        if found and self.judge is None:
            is_near = await asyncio.to_thread(nearness_to, self.library, query, NEAR_PASSAGE)
            found = [item for item in found if is_near(item.chunk.text, item.cosine)]
        return choose_sentences(text, found, _ELSEWHERE_TOKENS)

    def claim(self, marked: str, before: str, passages: Sequence[ClaimPassage]) -> JudgedClaim:
        """A claim about passages; without markers in it, they are put at its end."""
        sources = self.sources(passages)
        markers = "".join(f"[{source.evidence.id}]" for source in sources)
        shown = marked.replace(OTHER_MARK, OTHER_SOURCE)
        sentence = shown.replace(OWN_MARK, markers) if OWN_MARK in shown else f"{shown} {markers}"
        return JudgedClaim(CitedClaim(sentence, sources, needed_context(marked, before)), tuple(passages))

    def sources(self, passages: Sequence[ClaimPassage]) -> tuple[Source, ...]:
        """The passages as evidence; one shared by several claims has one id, so that a judge is shown it once."""
        return tuple(item.source(self.ids.setdefault(item.chunk, f"E{len(self.ids) + 1}")) for item in passages)

    async def judge_claims(self, claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
        """The claims with verdicts, as far as there is a judge and a budget."""
        if self.judge is None:
            return list(claims)
        return await judge_claims(self.judge, claims, self.memory, self.progress)


# Where a claim cites what it is compared with, and where it cites anything else.
OWN_MARK: Final = "[@]"
OTHER_MARK: Final = "[@other]"
OTHER_SOURCE: Final = "[other source]"  # as in the judge's prompt


@dataclass(frozen=True, slots=True)
class _CitedWorkAt:
    written: str
    entry: str
    paper: str
    mark: int


@dataclass
class _SentenceCheck:
    """What was found for one sentence so far; `text` is the sentence without its citations."""

    sentence: ManuscriptSentence
    works: list[_CitedWorkAt]
    text: str
    passages: dict[str, list[ClaimPassage]] = field(default_factory=dict)
    claim: JudgedClaim | None = None
    elsewhere: list[PassageRecord] = field(default_factory=list)
    kind: UncitedKind | None = None
    said: NearSentence | None = None  # the sentence of its cited papers that is nearest by words
    faults: list[FaultRecord] = field(default_factory=list)

    @property
    def papers(self) -> list[str]:
        return list(dict.fromkeys(work.paper for work in self.works if work.paper))

    @property
    def missing(self) -> list[str]:
        return list(dict.fromkeys(work.written for work in self.works if not work.paper))

    @property
    def label(self) -> ClaimLabel:
        if not self.papers:
            return "not_in_library"
        if self.claim is None:
            return "unread"
        # What the papers at hand do not say may be in a paper that the library lacks.
        return "not_in_library" if self.missing and self.claim.label == "not_found" else self.claim.label

    @property
    def reason(self) -> str:
        if self.missing and (self.claim is None or self.label == "not_in_library"):
            return f"{', '.join(self.missing)} {'is' if len(self.missing) == 1 else 'are'} not in the library."
        return self.claim.reason if self.claim is not None else "No passage of the cited paper could be read."

    def source(self, work: _CitedWorkAt) -> SourceRecord:
        """What one cited work alone gives."""
        if work.paper and self.claim is not None:
            return self.claim.source(work.paper, work.written, work.entry)
        label: ClaimLabel = "unread" if work.paper else "not_in_library"
        return SourceRecord(written=work.written, key=work.entry, paper=work.paper, label=label, passages=[], cites=[])

    def markers(self, ids: Mapping[str, str]) -> list[str]:
        """For each citation, the markers of its papers, by key; "" is a paper that the library lacks."""
        papers: list[dict[str, None]] = [{} for _ in self.sentence.marks]
        for work in self.works:
            papers[work.mark][work.paper] = None
        return ["".join(ids.get(key, "") for key in keys) for keys in papers]


@dataclass(frozen=True)
class ManuscriptCheck:
    """The check of one text's `parts`; `services`, if any, are asked for entries that the library lacks."""

    manuscript: Manuscript
    references: ReferenceList
    checker: ClaimChecker
    parts: frozenset[CheckPart]
    experiment: Experiment | None = None
    store: MetadataStore | None = None
    services: Services | None = None

    async def run(self) -> tuple[list[SentenceRecord], list[ReferenceCheck]]:
        """The records of all sentences and references."""
        sentences = await asyncio.to_thread(self.manuscript.sentences, tuple(self.references.entries.values()))
        papers = {paper.key: paper for paper in await asyncio.to_thread(self.checker.library.papers)}
        in_library = {**{key: key for key in papers}, **self.references.in_library}
        checks = [
            _SentenceCheck(
                sentence,
                [
                    _CitedWorkAt(work.shown, key, in_library.get(key, ""), number)
                    for number, mark in enumerate(sentence.marks)
                    for work in mark.works
                    if work != CitedWork()
                    for key in [self.references.key_of(work) or work.key]
                ],
                self.manuscript.with_markers(sentence, ()),
            )
            for sentence in sentences
        ]
        cited = [check for check in checks if check.works]
        how = "with their nearest passages; no model judges them" if self.checker.judge is None else "to be judged"
        self.checker.progress.on_notice(f"{counted(len(checks), 'sentence')}, {len(cited)} with citations {how}.")
        if self.parts & {"claims", "numbers"}:
            keys = {key for check in cited for key in check.papers}
            texts = await asyncio.to_thread(lambda: {key: paper_sentences(self.checker.library, key) for key in keys})
            found = await gather_all(
                self.checker.find(check.text, check.sentence.before, check.papers, MOST_PASSAGES) for check in cited
            )
            for check, passages in zip(cited, found, strict=True):
                check.passages = passages
                near = [said for key in check.papers if (said := texts[key].nearest(check.text))]
                check.said = max(near, key=lambda item: item.share, default=None)
        if "claims" in self.parts:
            await self._judge_cited(cited)
        if "numbers" in self.parts:
            await asyncio.to_thread(self._check_details, checks, papers, texts)
        if "uncited" in self.parts:
            await self._check_uncited(checks)
        references: list[ReferenceCheck] = []
        if "references" in self.parts:
            unknown = await unknown_entries(self.references, self.services) if self.services else {}
            references = await asyncio.to_thread(self._check_references, checks, papers, unknown)
        return [self._record(check, papers) for check in checks], references

    async def _judge_cited(self, cited: Sequence[_SentenceCheck]) -> None:
        asked = [check for check in cited if any(check.passages.values())]
        made = await self.checker.judge_claims([self._claim(check) for check in asked])
        for check, claim in zip(asked, made, strict=True):
            check.claim = claim
        if self.checker.judge is None:
            await gather_all(self._suspect_key(check) for check in asked)
            return
        failing = [check for check in cited if check.label in ("not_found", "not_in_library")]
        await self._look_elsewhere(failing[:_MOST_ELSEWHERE])

    def _claim(self, check: _SentenceCheck) -> JudgedClaim:
        most = max(_FEWEST_PASSAGES, self.checker.most // len(check.papers))
        chosen = choose_sentences(check.text, [item for found in check.passages.values() for item in found[:most]])
        sources = self.checker.sources(chosen)
        ids = dict.fromkeys(check.papers, "") | {"": OTHER_SOURCE}
        for source in sources:
            ids[source.paper.key] += f"[{source.evidence.id}]"
        names = [
            written_citation(self.manuscript.text, mark, self.references.entries) if mark.narrative else ""
            for mark in check.sentence.marks
        ]
        cited = [f"{name} {markers}".strip() for name, markers in zip(names, check.markers(ids), strict=True)]
        before = needed_context(check.text, check.sentence.before)
        return JudgedClaim(
            CitedClaim(self.manuscript.with_markers(check.sentence, cited), sources, before), tuple(chosen)
        )

    async def _suspect_key(self, check: _SentenceCheck) -> None:
        """Without a judge: note other papers that are much nearer to a sentence than those that it cites."""
        best = max((item.cosine for found in check.passages.values() for item in found), default=0.0)
        if len(check.papers) != len({work.entry for work in check.works}):
            return
        text = check.text
        own = check.said.share if check.said is not None else 0.0
        other = await asyncio.to_thread(nearest_in_library, self.checker.library, text, check.papers)
        if other is not None and other.share >= SAME_WORDS and other.share - own >= _MORE_WORDS:
            check.elsewhere = [(await nearest_passage(self.checker.library, other, text)).record()]
            message = f"{', '.join(check.papers)} does not have these words; {other.chunk.key} has nearly the same."
            check.faults.append(fault("wrong-key", message))
            return
        if best >= _FAR:
            return
        found = await self.checker.elsewhere(text, check.sentence.before, check.papers)
        if found and found[0].cosine - best >= _NEARER:
            check.elsewhere = [item.record() for item in found if item.cosine - best >= _NEARER]
            nearer = check.elsewhere[0]
            message = f"No passage of {', '.join(check.papers)} is near to this sentence; {nearer['key']} has one."
            check.faults.append(fault("wrong-key", message))

    async def _look_elsewhere(self, checks: Sequence[_SentenceCheck]) -> None:
        given = [(check.text, check.sentence.before) for check in checks]
        found = await gather_all(
            self.checker.elsewhere(*item, check.papers) for item, check in zip(given, checks, strict=True)
        )
        claims = [self.checker.claim(*item, passages) for item, passages in zip(given, found, strict=True)]
        for check, claim in zip(checks, await self.checker.judge_claims(claims), strict=True):
            check.elsewhere = elsewhere_records(claim)

    async def _check_uncited(self, checks: Sequence[_SentenceCheck]) -> None:
        own = self.experiment.words if self.experiment is not None else ""
        uncited = [check for check in checks if not check.works]
        asked: list[_SentenceCheck] = []
        await gather_all(self._find_copied(check, own) for check in uncited)
        for check in uncited:
            sentence = check.sentence
            if sentence.marks:  # its citation names no work
                check.kind = "needs"
            if check.kind is not None:
                continue
            check.kind = uncited_kind(sentence.shown, sentence.section)
            # A sentence that continues a citing sentence is covered by that citation.
            last = checks[sentence.position - 1] if sentence.position else None
            follows = last is not None and last.works and sentence.before == last.sentence.shown
            covered = follows and is_context_dependent(sentence.shown)
            if check.kind == "needs" and (covered or sentence.shown.strip(" .") in own):
                check.kind = "other"
            if check.kind not in ("other", "opinion") and not is_plainly_own(sentence.shown):
                asked.append(check)
        if self.checker.judge is not None and asked:
            given = [UncitedSentence(one.shown, one.section, one.before) for one in (item.sentence for item in asked)]
            kinds = await classify_sentences(self.checker.judge, given, self.checker.memory, self.checker.progress)
            for check, kind in zip(asked, kinds, strict=True):
                check.kind = kind or check.kind
        needing = [check for check in uncited if check.kind == "needs" and not check.elsewhere]
        for check in needing:
            if check.sentence.marks:  # the fault of its citation says that already
                continue
            check.faults.append(fault("needs-citation", "It speaks of others' work or of the world and cites nothing."))
        await self._look_elsewhere(needing[:_MOST_ELSEWHERE])

    async def _find_copied(self, check: _SentenceCheck, own: str) -> None:
        text = check.sentence.shown
        near = await asyncio.to_thread(nearest_in_library, self.checker.library, text)
        if near is not None and near.is_copied and text.strip(" .") not in own:
            check.kind = "needs"
            passage = (await nearest_passage(self.checker.library, near, text)).record()
            check.elsewhere = [passage]
            page = "" if passage["page"] is None else f", p. {passage['page']}"
            words = shorten(near.text, SHOWN_WORDS)
            message = f'{near.chunk.key}{page} has nearly these words: "{words}". It needs a citation.'
            check.faults.append(fault("copied-uncited", message))

    def _check_details(
        self, checks: Iterable[_SentenceCheck], papers: Mapping[str, Paper], texts: Mapping[str, SentenceIndex]
    ) -> None:
        known = tuple(self.references.entries.values())
        own = SentenceIndex([] if self.experiment is None else [whole_chunk(self.experiment.words)])
        for check in checks:
            entries = self.references.entries
            cited = [entries[work.entry] for work in check.works if work.entry in entries]
            read = [texts[key].text for key in check.papers if texts[key].text]
            readable = read if len(read) == len(cited) else []
            check.faults += name_faults(check.sentence, self.manuscript.text, cited, known, readable)
            if check.missing:
                continue  # its numbers may come from a paper that the library lacks
            shown, section, said = check.sentence.shown, check.sentence.section, check.said
            near_own = None if check.works else own.nearest(check.text)
            if near_own and (differing := list(own_number_faults(check.text, near_own))):
                check.faults += differing
                continue
            if not check.works and (self.experiment is None or uncited_kind(shown, section) != "own"):
                continue
            ids = {key: f"E{number}" for number, key in enumerate(check.papers, 1)}
            whole = [whole_source(papers[key], texts[key].text, ids[key]) for key in check.papers if texts[key].text]
            near = [
                whole_source(papers[key], "\n\n".join(item.chunk.text for item in found), ids[key])
                for key, found in check.passages.items()
                if found and key in papers
            ]
            markers = check.markers({key: f"[{name}]" for key, name in ids.items()})
            marked = self.manuscript.with_markers(check.sentence, markers)
            same = said is not None and said.share >= SAME_WORDS
            may_be_own = check.works and self.experiment is None and not same and FIRST_PERSON.search(shown)
            found = number_faults(marked, near, whole, self.experiment, said)
            check.faults += [item for item in found if not (may_be_own and item["rule"] == "number-not-found")]
            if said is not None:
                check.faults += wording_faults(check.text, said, said.chunk.key, texts[said.chunk.key].text)
            if check.works:
                check.faults += quote_faults(marked, whole)

    def _check_references(
        self, checks: Sequence[_SentenceCheck], papers: Mapping[str, Paper], unknown: Mapping[str, FaultRecord]
    ) -> list[ReferenceCheck]:
        cited = Counter(work.entry for check in checks for work in check.works if work.entry)
        for check in checks:
            check.faults += citation_faults(check.sentence, self.references, papers)
        dangling = pointer_faults(self.manuscript, [check.sentence for check in checks])
        for check in checks:
            check.faults += dangling.get(check.sentence.position, [])
        found = entry_faults(self.references, cited, self.manuscript.cited_silently, papers, self.store)
        shown = found if self.references.complete else {key: found[key] for key in found if cited[key]}
        return [
            {
                "key": key,
                "text": self.references.texts.get(key) or self.references.entries[key].title,
                "cited": cited[key],
                "paper": self.references.in_library.get(key, ""),
                "faults": [*faults, *([unknown[key]] if key in unknown else [])],
            }
            for key, faults in shown.items()
        ]

    def _record(self, check: _SentenceCheck, papers: Mapping[str, Paper]) -> SentenceRecord:
        sentence = check.sentence
        cited = bool(check.works)
        judged = "claims" in self.parts
        once = {(work.entry or work.written): work for work in reversed(check.works)}
        return {
            "position": sentence.position,
            "claim": sentence.shown,
            "section": sentence.section,
            "place": self.manuscript.place(sentence.start, sentence.end),
            "kind": "cited" if cited else check.kind or "other",
            "label": check.label if cited and judged else "unjudged",
            "reason": check.reason if cited and judged else "",
            "sources": [check.source(work) for work in reversed(once.values())] if judged else [],
            "elsewhere": check.elsewhere,
            "faults": check.faults,
        }


def elsewhere_records(claim: JudgedClaim) -> list[PassageRecord]:
    """The passages of other papers: those that say the claim, or all, unjudged, if nothing was judged."""
    records = [
        record for key in dict.fromkeys(item.chunk.key for item in claim.passages) for record in claim.records(key)
    ]
    if claim.verdicts is None or claim.label == "unjudged":
        return records
    return [record for record in records if record["does"] == "supports"]

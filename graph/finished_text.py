"""The draft as the reader may see it: invalid citations replaced, and what remains found.

With `strict`, sentences that fail a check are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..citations.checks.absence import absence_findings
from ..citations.checks.draft_checks import check_draft, replace_invalid_citations
from ..citations.checks.findings import Finding
from ..citations.checks.support_findings import PairKey, support_findings
from ..citations.marking import MarkedSentence, leave_out, marked_sentences
from ..roles.protocols import Brief, Draft, Source, Verdict
from .role_inputs import brief_of, draft_of, with_chosen_quotes
from .session import Session
from .state import RunState
from .state_conversion import searched_in_vain
from .text_rules import TextRules, rules_of
from .verdicts import still_placed, verdicts_of


@dataclass(frozen=True, slots=True)
class FinishedText:
    """A draft as the reader may see it, with its markers.

    `replaced` are findings whose words were replaced, `left` those that
    remain in the text, and `out` the sentences that a strict run leaves out; the spans `unmarked` get no marks.
    """

    state: RunState
    brief: Brief
    draft: Draft
    sources: Sequence[Source]
    verdicts: Mapping[PairKey, Verdict]
    lost: Sequence[str]
    text: str = ""
    replaced: Sequence[Finding] = ()
    left: Sequence[Finding] = ()
    out: Sequence[MarkedSentence] = ()
    unmarked: Sequence[tuple[int, int]] = ()

    @property
    def rules(self) -> TextRules:
        """The rules for this kind of text."""
        return rules_of(self.brief)


async def finished_text(state: RunState, session: Session, earlier: Mapping[str, str] | None = None) -> FinishedText:
    """The draft without what must not reach the reader.

    `earlier` are the finished texts of a paper's previous sections by name; repeating them is a finding.
    """
    brief, lost = await brief_of(state, session)
    draft = draft_of(state)
    sources = with_chosen_quotes(brief.citable, draft)
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    verdicts = still_placed(verdicts_of(state), sources)
    rules = rules_of(brief)
    final = FinishedText(state, brief, draft, sources, verdicts, lost=lost)
    extractive = "writer" in session.extractive
    if instead := rules.text_without_sources(state, draft.text, sources, len(keys), judged=not extractive):
        return replace(final, text=instead)
    if extractive:
        return replace(final, text=draft.text)
    text, replaced = await asyncio.to_thread(
        replace_invalid_citations,
        draft.text,
        sources,
        brief.experiment.words(),
        known_keys=keys,
        word_for_word=brief.word_for_word,
    )
    before = list((earlier or {}).values())
    text = await asyncio.to_thread(rules.with_own_statements, text, before, keys)
    lost = [*lost, *await asyncio.to_thread(rules.left_to_others, text, before, keys)]

    def check(text: str) -> list[Finding]:
        # Marking may fix more than it names, or less: what is reported is what remains in the text.
        written = Draft(text, draft.truncated)
        found = check_draft(
            written, sources, kind=brief.kind, experiment=brief.experiment, known_keys=keys, earlier=earlier
        )
        return [*found, *support_findings(text, verdicts), *absence_findings(text, searched_in_vain(state))]

    strict = session.settings.strict
    text, left, out = await asyncio.to_thread(_checked_text, text, check, strict=strict, kind=brief.kind)
    return replace(final, lost=lost, text=text or rules.when_empty, replaced=replaced, left=left, out=out)


def _checked_text(
    text: str, check: Callable[[str], list[Finding]], *, strict: bool, kind: str
) -> tuple[str, list[Finding], list[MarkedSentence]]:
    """The text with its findings and, with `strict`, the sentences left out until nothing in it fails.

    Leaving a sentence out may break another one that depends on it, such as on the first mention of a number.
    """
    out: list[MarkedSentence] = []
    while True:
        found = check(text)
        failing = marked_sentences(text, found) if strict else []
        if not failing:
            return text, found, out
        out += failing
        text = leave_out(text, failing)
        if not any(map(str.isalnum, text)):
            nothing = f"Nothing is left of the {kind}: every sentence failed a check and was left out."
            return "", [Finding("empty", nothing)], out

"""generate, check and repair: writes a draft, checks it, and repairs it a limited number of times."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from langgraph.runtime import Runtime

from ...citations.checks.draft_checks import check_draft, replace_invalid_citations
from ...citations.checks.findings import Finding, FindingRecord, for_writer
from ...citations.checks.support_findings import absence_findings, cited_claims, support_findings
from ...citations.markers import normalise_markers
from ...citations.user_citations import with_literal_markers, with_literal_quotes
from ...drafts.draft_stream import DraftEventStream
from ...drafts.sentence_edits import (
    IDLE,
    OF_THE_WHOLE,
    SHOWN_IN_REPAIR,
    Attempt,
    apply_edits,
    carry_verdicts,
    complete_citations,
    failing_sentences,
    keep_improvements,
    make_edits,
    map_findings,
)
from ...drafts.written_draft import draft_from, draft_record, judge_text, verdicts_from
from ...plurals import counted
from ...roles.protocols import Brief, Draft
from ..role_inputs import brief_of
from ..run_events import progress
from ..session import Session
from ..state import ResearchState, RunState, Update, needs_in_vain
from .ask import doubtful_sentences
from .finish import page_options


async def generate(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Write the section or the answer from the evidence, streaming it as events.

    For a question without enough evidence the writer only names the nearest; without any evidence it is not called.
    """
    roles = await session.roles(runtime)
    brief, warnings = await brief_of(state, session)
    thin = not brief.writable
    nothing = thin and (not brief.citable or "writer" in session.extractive)
    findings = counted(len(brief.citable), "finding")
    said = "too little was found for an answer" if nothing else f"writing the {brief.kind} from {findings}"
    runtime.stream_writer(progress("writing", said, passages=0 if nothing else len(brief.citable)))
    if nothing:
        return {"draft": draft_record(Draft("")), "warnings": warnings}
    style = page_options(session, brief.kind).style
    before = cast(ResearchState, state).get("numbering", ())
    stream = DraftEventStream(brief.citable, style, runtime.stream_writer, before)
    draft = await roles.writer.write(brief, stream)
    draft = replace(draft, declined=draft.declined or thin)
    stream.finish(draft)
    draft = await asyncio.to_thread(_normalise_markers, draft, brief, session)
    return {"draft": draft_record(draft), "warnings": warnings}


async def check(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Check the draft, and have the judge compare each cited sentence with its sources.

    A repair is kept only if it is better, judged by sentence, or as a whole if the whole draft was rewritten. A repair
    that changed nothing is not requested again, since the request would be the same.
    """
    if "writer" in session.extractive:  # the text makes no claims about sources
        said = "verbatim quotes" if "question" in state else "your own words and verbatim quotes"
        runtime.stream_writer(progress("checked", f"{said}; nothing was judged"))
        return {"findings": [], "repairing": False}
    brief, warnings = await brief_of(state, session)
    draft = draft_from(state["draft"])
    own = await asyncio.to_thread(_check_findings, draft, brief)
    runtime.stream_writer(progress("checked", _summarise_rules(own)))
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    new = await _judge_new(state, draft, brief, keys, runtime, session)
    verdicts = verdicts_from([*state.get("verdicts", []), *new])
    open_needs = needs_in_vain(state)

    def evaluate(text: str) -> list[FindingRecord]:
        written = replace(draft, text=text)
        seen = _clean_text(written, brief, keys)
        judged = [*support_findings(seen, verdicts), *absence_findings(seen, open_needs)]
        return [*(finding.as_dict() for finding in _check_findings(written, brief)), *map_findings(text, seen, judged)]

    now: Attempt = {"draft": state["draft"], "findings": await asyncio.to_thread(evaluate, draft.text)}
    before = state.get("before_repair")
    stuck = before is not None and now["draft"]["text"] == before["draft"]["text"]
    if before is not None and "edits" in before:
        now, kept = await asyncio.to_thread(keep_improvements, before, evaluate)
        stuck = not kept
        if reverted := len(before["edits"]) - kept:
            warnings.append(f"The repair of {counted(reverted, 'sentence')} was no improvement and was reverted.")
    elif before is not None and _severity(now) > _severity(before):
        now, stuck = before, True
        warnings.append("A repair made the draft worse and was reverted.")
    wanted = bool(_to_repair(now)) or any(finding["rule"] == IDLE for finding in now["findings"])
    return {
        **now,
        "verdicts": new,
        "repairing": wanted and not stuck and state.get("repairs", 0) < session.settings.max_repairs,
        "warnings": warnings,
    }


def _check_findings(draft: Draft, brief: Brief) -> tuple[Finding, ...]:
    """Run the checks; an answer may be empty, which means that the sources contain no answer."""
    if not draft.text and brief.kind == "answer":
        return ()
    earlier: dict[str, str] | None = None
    if brief.earlier is not None:
        earlier = {section.kind: section.text for section in brief.earlier}
    known: dict[str, Any] = {"experiment": brief.experiment, "earlier": earlier, "preferences": brief.preferences}
    return check_draft(draft, brief.citable, kind=brief.kind, **known)


def to_repair_or_render(state: RunState) -> Literal["repair", "ask_sentences", "render"]:
    """Go to `repair` while something needs it and repairs are left, then to `render`.

    In between, a person may be asked about the sentences that still fail.
    """
    if state.get("repairing"):
        return "repair"
    asks = "sentences" in state.get("interrupts", ()) and not state.get("reviewed")
    return "ask_sentences" if asks and doubtful_sentences(state) else "render"


async def repair(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Have the writer repair the failing sentences, or rewrite the draft if a problem concerns all of it."""
    roles = await session.roles(runtime)
    brief, warnings = await brief_of(state, session)
    before: Attempt = {"draft": state["draft"], "findings": state["findings"]}
    wanted = [*_to_repair(before), *(item for item in before["findings"] if item["rule"] == IDLE)]
    runtime.stream_writer(progress("repairing", f"repairing {counted(len(wanted), 'finding')}"))
    again: Update = {"repairs": state.get("repairs", 0) + 1, "warnings": warnings}
    settled = state.get("settled", ())  # sentences that a person decided on; if there are any, no rewriting
    if not settled and any(finding["rule"] in OF_THE_WHOLE for finding in before["findings"]):
        # Since the whole draft is rewritten, possible improvements are shown too.
        found = [*_to_repair(before), *(item for item in before["findings"] if item["rule"] in SHOWN_IN_REPAIR)]
        draft = await roles.writer.repair(brief, draft_from(state["draft"]), list(map(for_writer, found)))
        normalised = await asyncio.to_thread(_normalise_markers, draft, brief, session)
        return {**again, "draft": draft_record(normalised), "before_repair": before}
    text = before["draft"]["text"]
    failing = await asyncio.to_thread(failing_sentences, before, brief.citable, state.get("before_repair"))
    failing = [item for item in failing if text[item.start : item.end] not in settled]
    asked = [item.shown for item in failing if item.shown.problems]
    answers = iter(await roles.writer.repair_sentences(brief, asked) if asked else [])
    given = [next(answers) if item.shown.problems else None for item in failing]
    given = await asyncio.to_thread(lambda: [answer and _complete_markers(answer, brief) for answer in given])
    edits = await asyncio.to_thread(make_edits, text, failing, given, brief.experiment.words)
    return {
        **again,
        "draft": {**before["draft"], "text": await asyncio.to_thread(apply_edits, text, edits)},
        "before_repair": {**before, "edits": edits},
        "verdicts": carry_verdicts(verdicts_from(state.get("verdicts", [])), text, failing, edits),
    }


def _clean_text(draft: Draft, brief: Brief, keys: Sequence[str]) -> str:
    """Return the text as the reader will see it, without invented citations, for judging."""
    sources = brief.citable
    return replace_invalid_citations(
        draft.text, sources, brief.experiment.words, known_keys=keys, word_for_word=brief.word_for_word
    )[0]


async def _judge_new(
    state: RunState, draft: Draft, brief: Brief, keys: Sequence[str], runtime: Runtime[Any], session: Session
) -> list[dict[str, Any]]:
    """Judge the draft's sentences that have no verdict yet."""
    roles = await session.roles(runtime)
    sources = brief.citable
    text = await asyncio.to_thread(_clean_text, draft, brief, keys)
    new = await judge_text(roles.judge, text, sources, verdicts_from(state.get("verdicts", [])))
    verdicts = verdicts_from([*state.get("verdicts", []), *new])
    here = [
        verdicts[sentence, source.evidence.id].label
        for sentence, claim in cited_claims(text, sources).items()
        for source in claim.sources
    ]
    topics = bool(here) and all(label in ("on-topic", "off-topic") for label in here)
    done = f"{counted(len(here), 'citation')} {'compared with their sources by topic' if topics else 'judged'}"
    found = support_findings(text, verdicts)
    runtime.stream_writer(progress("judged", f"{done}: {_summarise_rules(found)}" if found else done))
    return new


def _to_repair(attempt: Attempt) -> list[FindingRecord]:
    return [finding for finding in attempt["findings"] if finding["severity"] != "note"]


def _severity(attempt: Attempt) -> tuple[bool, int, int]:
    """Return a sort key for how bad a draft is: empty drafts are worst, then by errors, then by warnings."""
    severities = Counter(finding["severity"] for finding in attempt["findings"])
    empty = any(finding["rule"] == "empty" for finding in attempt["findings"])
    return empty, severities["error"], severities["warning"]


def _summarise_rules(findings: Sequence[Finding]) -> str:
    """Count the findings of each rule: "2 x number not found, 1 x copied run"."""
    rules = Counter(finding.rule.replace("-", " ") for finding in findings)
    return ", ".join(f"{count} x {rule}" for rule, count in rules.items()) or "no problem found"


def _normalise_markers(draft: Draft, brief: Brief, session: Session) -> Draft:
    # Without a chat model, brackets in the user's words were already escaped when the text was composed.
    text = normalise_markers(draft.text) if "writer" in session.extractive else _complete_markers(draft.text, brief)
    return replace(draft, text=text)


def _complete_markers(text: str, brief: Brief) -> str:
    """Normalise and complete the markers of a writer's text; brackets in the user's words and quotes stay literal."""
    passages = [passage for source in brief.citable for passage in source.passages]
    literal = with_literal_quotes(with_literal_markers(text, brief.experiment.words), passages)
    return complete_citations(
        normalise_markers(literal), brief.citable, brief.experiment, answer=brief.kind == "answer" and brief.writable
    )

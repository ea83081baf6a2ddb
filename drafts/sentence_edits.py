"""Repair by sentence: selects the failing sentences of a draft, applies their replacements, and keeps the better ones.

A sentence that does not fail is never rewritten: replacements are applied by span. Each edit is reverted separately if
its sentence is no better, or if it makes a neighbouring sentence worse. Before that, markers that can be found without
a model are added (`complete_citations`); the judge then compares the sentences with them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NotRequired

from typing_extensions import TypedDict

from ..citations.checks.citation_coverage import unsupported_findings
from ..citations.checks.fabricated_citations import NEEDED
from ..citations.checks.findings import Finding, FindingRecord, for_writer
from ..citations.checks.number_tracing import number_findings
from ..citations.checks.support_findings import PairKey
from ..citations.citation_styles import without_spans
from ..citations.markers import CitedSentence, line_start, marker_ids, normalise_markers, sentences
from ..documents.paper_names import in_text_name
from ..experiment import Experiment
from ..roles.protocols import FailingSentence, Source, Verdict
from ..text.wordings import telling_words
from .written_draft import verdict_record

# Problems of the draft as a whole; they cause a complete rewrite.
OF_THE_WHOLE: Final = frozenset({"empty", "truncated", "no-citation"})
# Notes shown to the writer during a repair, although they do not trigger one.
SHOWN_IN_REPAIR: Final = frozenset({"partly-supported", "other-side-unsaid"})
IDLE: Final = "idle-marker"

_OFFERED: Final = 3  # sources for a sentence that cites none
_BEARING: Final = 2  # sources beside those that a sentence cites
_BEARS: Final = 0.4  # share of a sentence's words that such a source has
_SAME_CLAIM: Final = 0.6
# Characters read when looking for edits that change other sentences: a base amount, and a factor of the text length.
_READ_AT_LEAST: Final = 8_000
_READINGS: Final = 30
_MARKERS = re.compile(r"(?<![ \t])[ \t]*+((?:\[E[1-9]\d{0,5}\])+)")
_WORD = re.compile(r"[^\W\d_]{4,}")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
BLANK_LINE = re.compile(r"\n[ \t]*\n")
_LEADING_MARK = re.compile(r"^(?:(?:#{1,6}|[-*+>]|\d{1,3}[.)])\s+)+")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_COLON = re.compile(r":[*_]{0,3}(?:\s*\[E[1-9]\d{0,5}\])*[*_]{0,3}\s*$")
_ENDS = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_]*$")

Weight = tuple[int, int, int]


class EditRecord(TypedDict):
    """A sentence that a repair replaced: its span in the draft before, and its replacement; empty if removed."""

    start: int
    end: int
    text: str


class Attempt(TypedDict):
    """A draft with its findings; `edits` are what its repair replaced, absent when the whole draft was rewritten."""

    draft: dict[str, Any]
    findings: list[FindingRecord]
    edits: NotRequired[list[EditRecord]]


@dataclass(frozen=True, slots=True)
class Failing:
    """A failing sentence, `text[start:end]` of the draft; the writer is shown it without markers that add nothing."""

    start: int
    end: int
    shown: FailingSentence
    idle: tuple[str, ...] = ()


def failing_sentences(attempt: Attempt, sources: Sequence[Source], before: Attempt | None = None) -> list[Failing]:
    """The sentences to repair, in order; if there are any, also those that could be improved.

    A sentence that the repair of the attempt `before` left as it was is not improved again.
    """
    tried = {item.text for item in sentences(before["draft"]["text"])} if before and "edits" in before else set()
    text, findings = attempt["draft"]["text"], attempt["findings"]
    by_id = {source.evidence.id: source for source in sources}
    placed = sentences(text)
    here = findings_in(findings, placed, text)
    fails = any(item["severity"] != "note" for found in here for item in found)
    leads = _list_introductions(text, placed)
    found: list[Failing] = []
    for place, sentence in enumerate(placed):
        shows = SHOWN_IN_REPAIR if sentence.text not in tried else ()
        reported = [item for item in here[place] if item["severity"] != "note" or item["rule"] in shows]
        idle = tuple(identifier for item in here[place] if item["rule"] == IDLE for identifier in item["ids"])
        if not idle and not (fails and reported):
            continue
        lead = leads[place]
        near = lead.ids if lead else _cited_next_to(text, placed, place)
        problems = reported if fails else []
        named = [name for item in problems for name in (*item["ids"], *marker_ids(item["message"]))]
        shown = FailingSentence(
            without_markers_of(sentence.text, idle),
            tuple(for_writer(item) for item in reported) if fails else (),
            *_neighbours(text, placed, place, lead),
            sources=_evidence_for(sentence, [*named, *near], by_id),
            of_number=any(item["rule"] == "number-not-found" for item in reported),
        )
        found.append(Failing(sentence.start, sentence.end, shown, idle))
    return found


def make_edits(
    text: str, failing: Sequence[Failing], answers: Sequence[str | None], own_words: str
) -> list[EditRecord]:
    """Turn a writer's answers into edits, in order, dropping those that would change another sentence."""
    edits: list[EditRecord] = []
    for item, answer in zip(failing, answers, strict=True):
        new = _clean_answer(answer, item.shown.text)
        if new is None or (new and _drops_source(item.shown.text, new, own_words)):
            new = item.shown.text
        if new != text[item.start : item.end]:
            edits.append({"start": item.start, "end": item.end, "text": new})
    if _leaves_others(text, edits):
        return edits
    safe = _select_safe(text, edits)
    return safe if _leaves_others(text, safe) else []


def apply_edits(text: str, edits: Sequence[EditRecord]) -> str:
    """Apply all edits to the text; blank lines and list items left empty by a removed sentence are removed too."""
    pieces: list[str] = []
    removed: list[tuple[int, int]] = []
    done = length = 0
    for edit in edits:
        put = edit["text"] or text[edit["start"] : edit["end"]]
        pieces += [text[done : edit["start"]], put]
        length += edit["start"] - done
        if not edit["text"]:
            removed.append((length, length + len(put)))
        length += len(put)
        done = edit["end"]
    whole = "".join([*pieces, text[done:]])
    return without_spans(whole, removed) if removed else whole


def without_markers_of(sentence: str, ids: Sequence[str]) -> str:
    """The sentence without the markers of these ids; nothing else changes."""
    if not ids:
        return sentence

    def left(match: re.Match[str]) -> str:
        kept = "".join(f"[{identifier}]" for identifier in marker_ids(match[1]) if identifier not in ids)
        blank = match[0][: match.start(1) - match.start()]
        return f"{blank}{kept}" if kept else ""

    return _MARKERS.sub(left, sentence)


def findings_in(
    findings: Sequence[FindingRecord], placed: Sequence[CitedSentence], text: str
) -> list[list[FindingRecord]]:
    """For each sentence, the findings that touch one of its letters, digits or markers."""
    starts = [sentence.start for sentence in placed]
    found: list[list[FindingRecord]] = [[] for _ in placed]
    for item in findings:
        start, end = item["start"], item["end"]
        if start is None or end is None:
            continue
        for place in range(max(0, bisect_right(starts, start) - 1), bisect_left(starts, end)):
            if any(map(str.isalnum, text[max(start, starts[place]) : min(end, placed[place].end)])):
                found[place].append(item)
    return found


def keep_improvements(before: Attempt, evaluate: Callable[[str], list[FindingRecord]]) -> tuple[Attempt, int]:
    """The draft with the edits that improve their sentence without making another one worse, and their number."""
    edits = list(before.get("edits", ()))
    while edits:
        new = apply_edits(before["draft"]["text"], edits)
        after: Attempt = {"draft": {**before["draft"], "text": new}, "findings": evaluate(new)}
        back = _edits_to_revert(before, edits, after)
        if not back:
            return after, len(edits)
        edits = [edit for place, edit in enumerate(edits) if place not in back]
    return {"draft": before["draft"], "findings": before["findings"]}, 0


def carry_verdicts(
    known: Mapping[PairKey, Verdict], text: str, failing: Sequence[Failing], edits: Sequence[EditRecord]
) -> list[dict[str, Any]]:
    """Carry over verdicts of sentences that lost only idle markers, so that they are not judged again."""
    put = {edit["start"]: edit["text"] for edit in edits}
    return [
        verdict_record((item.shown.text, identifier), known[old, identifier])
        for item in failing
        if item.idle and put.get(item.start) == item.shown.text
        for old in [text[item.start : item.end]]
        for identifier in marker_ids(item.shown.text)
        if (old, identifier) in known
    ]


def map_findings(text: str, judged: str, findings: Sequence[Finding]) -> list[FindingRecord]:
    """Findings of the judged text with their spans mapped to the draft, which still contains invented citations."""
    if text == judged:
        return [finding.as_dict() for finding in findings]
    drafted, seen = sentences(text), sentences(judged)
    by_text = {sentence.text: sentence for sentence in drafted}
    starts = [sentence.start for sentence in seen]
    records: list[FindingRecord] = []
    for finding in findings:
        record = finding.as_dict()
        if finding.span is not None:
            place = max(0, bisect_right(starts, finding.span[0]) - 1)
            same = by_text.get(seen[place].text) or (drafted[place] if len(drafted) == len(seen) else None)
            record["start"], record["end"] = (same.start, same.end) if same else (None, None)
        records.append(record)
    return records


def _edits_to_revert(before: Attempt, edits: Sequence[EditRecord], new: Attempt) -> set[int]:
    """Indices of the edits that are no better, or that made another sentence or the whole draft worse."""
    text, after = before["draft"]["text"], sentences(new["draft"]["text"])
    old, found = sentences(text), findings_in(new["findings"], after, new["draft"]["text"])
    weights = map(_weight, findings_in(before["findings"], old, text))
    edited = {edit["start"]: place for place, edit in enumerate(edits)}
    back: set[int] = set()
    at = 0
    for sentence, weight in zip(old, weights, strict=True):
        place = edited.get(sentence.start)
        if place is None and is_heading(text, sentence):
            at += at < len(after) and after[at].text == sentence.text
            continue
        count = 1 if place is None else len(sentences(edits[place]["text"]))
        now = _weight([item for put in found[at : at + count] for item in put])
        at += count
        if place is not None and now >= weight:
            back.add(place)
        elif place is None and now > weight:
            start, end = _paragraph(text, sentence.start, sentence.end)
            paragraph = {number for number, edit in enumerate(edits) if start <= edit["start"] < end}
            back |= paragraph or set(range(len(edits)))
    if _whole_draft_rules(new["findings"]) - _whole_draft_rules(before["findings"]):
        removals = {place for place, edit in enumerate(edits) if not edit["text"]}
        back |= removals or set(range(len(edits)))
    return back


def _whole_draft_rules(findings: Sequence[FindingRecord]) -> set[str]:
    return {item["rule"] for item in findings if item["start"] is None and item["severity"] != "note"}


def _weight(findings: Sequence[FindingRecord]) -> Weight:
    """How bad a sentence is: the numbers of its errors, warnings and optional improvements."""
    severities = [item["severity"] for item in findings]
    notes = sum(item["rule"] == IDLE or item["rule"] in SHOWN_IN_REPAIR for item in findings)
    return severities.count("error"), severities.count("warning"), notes


def _list_introductions(text: str, placed: Sequence[CitedSentence]) -> list[CitedSentence | None]:
    """For each sentence the one that introduces its list, such as "They differ in three ways [E1]:"."""
    leads: list[CitedSentence | None] = []
    above = 0  # the sentence that starts the line of the previous one
    for place, sentence in enumerate(placed):
        begin = line_start(text, sentence.start)
        item = _ITEM.match(text, begin)
        if not place or item is None:
            leads.append(None)
        elif _COLON.search(placed[place - 1].text):
            leads.append(placed[place - 1])
        else:  # an item may have further sentences after the one that starts its line
            leads.append(leads[above])
        above = place if sentence.start <= (item.end() if item else begin) else above
    return leads


def _neighbours(text: str, placed: Sequence[CitedSentence], place: int, lead: CitedSentence | None) -> tuple[str, str]:
    """The sentences before and after; before the first is the heading, before a list item also its introduction."""
    here = placed[place]
    before = placed[place - 1] if place else None
    after = placed[place + 1] if place + 1 < len(placed) else None
    if before and BLANK_LINE.search(text, before.end, here.start) and not is_heading(text, before):
        before = None
    if after and (BLANK_LINE.search(text, here.end, after.start) or is_heading(text, after)):
        after = None
    said = [sentence.text for sentence in (lead, before if before != lead else None) if sentence]
    return " ".join(said), after.text if after else ""


def _cited_next_to(text: str, placed: Sequence[CitedSentence], place: int) -> tuple[str, ...]:
    here = placed[place]
    if here.ids:
        return ()
    near = [placed[other] for other in (place - 1, place + 1) if 0 <= other < len(placed)]
    same = [one for one in near if not BLANK_LINE.search(text, min(one.end, here.end), max(one.start, here.start))]
    return tuple(identifier for one in same for identifier in one.ids)


def sources_to_rewrite(sentence: str, sources: Sequence[Source], *, others: bool) -> tuple[Source, ...]:
    """The sources of a sentence with markers, or `others` that bear on it, of papers that it does not cite."""
    cited = marker_ids(sentence)
    papers = {source.evidence.key for source in sources if others and source.evidence.id in cited}
    by_id = {source.evidence.id: source for source in sources if source.evidence.key not in papers}
    return _evidence_for(CitedSentence(sentence, 0, len(sentence), cited), (), by_id)


def _evidence_for(sentence: CitedSentence, named: Sequence[str], by_id: Mapping[str, Source]) -> tuple[Source, ...]:
    """The sources for a repair: those cited, those `named` and others that bear on it, else the most alike."""
    ids = dict.fromkeys([*sentence.ids, *named])
    found = tuple(by_id[identifier] for identifier in ids if identifier in by_id)
    words = _words(sentence.text)
    others = [source for name, source in by_id.items() if name not in ids or not found]
    # The statement of a finding and the words that carry it.
    carried = {
        source.evidence.id: " ".join([source.evidence.summary, *(span.quote for span in source.evidence.spans)])
        for source in others
    }
    shared = {name: len(words & _words(text)) for name, text in carried.items()}
    ranked = sorted(others, key=lambda source: -shared[source.evidence.id])
    if not found:
        return tuple(ranked[:_OFFERED])
    bearing = [source for source in ranked[:_BEARING] if shared[source.evidence.id] >= max(1, _BEARS * len(words))]
    return (*found, *bearing)


def _clean_answer(answer: str | None, old: str) -> str | None:
    if answer is None:
        return None
    new = _LEADING_MARK.sub("", normalise_markers(" ".join(answer.split())))
    if not new:
        return ""
    if not any(map(str.isalpha, new)):
        return None
    return new if _ENDS.search(new) or not _ENDS.search(old) else f"{new}."


def _drops_source(old: str, new: str, own_words: str) -> bool:
    if not marker_ids(old) or marker_ids(new) or NEEDED in new:
        return False
    words = _words(new)
    return bool(words) and (len(words & _words(old)) >= _SAME_CLAIM * len(words) > len(words & _words(own_words)))


def _select_safe(text: str, edits: Sequence[EditRecord]) -> list[EditRecord]:
    """The edits that leave the other sentences of their paragraphs unchanged, as far as the reading limit goes."""
    left = _READ_AT_LEAST + _READINGS * len(text)
    safe: list[EditRecord] = []
    for edit in edits:
        start, end = _paragraph(text, edit["start"], edit["end"])
        left -= end - start + len(edit["text"])
        moved: EditRecord = {"start": edit["start"] - start, "end": edit["end"] - start, "text": edit["text"]}
        if left >= 0 and _leaves_others(text[start:end], [moved]):
            safe.append(edit)
    return safe


def _paragraph(text: str, start: int, end: int) -> tuple[int, int]:
    first = max((match.end() for match in BLANK_LINE.finditer(text, 0, start)), default=0)
    following = BLANK_LINE.search(text, end)
    return first, following.start() if following else len(text)


def _leaves_others(text: str, edits: Sequence[EditRecord]) -> bool:
    by_start = {edit["start"]: edit["text"] for edit in edits}
    wanted: list[str] = []
    for sentence in sentences(text):
        if sentence.start in by_start:
            wanted += [item.text for item in sentences(by_start[sentence.start])]
        elif not is_heading(text, sentence):
            wanted.append(sentence.text)
    new = apply_edits(text, edits)
    return wanted == [sentence.text for sentence in sentences(new) if not is_heading(new, sentence)]


def is_heading(text: str, sentence: CitedSentence) -> bool:
    return bool(_HEADING.match(text, line_start(text, sentence.start)))


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


_BREAK: Final = re.compile(r"\n[ \t]*(?:\n|(?:[-*+]|\d{1,3}[.)])[ \t])")
_LIST_MARK: Final = 5  # length of a list mark, which may belong to the break before the sentence
_MOST: Final = 4  # markers for a sentence that sums up
_AFTER_WORDS: Final = " \t\n.!?\u2026*_"


def complete_citations(text: str, sources: Sequence[Source], experiment: Experiment, *, answer: bool) -> str:
    """A normalised text with the markers added; only an `answer` needs one in every sentence."""
    known = {source.evidence.id: in_text_name(source.paper) for source in sources}
    added = _of_paragraphs(text) if answer else {}
    placed = sentences(text)
    for place, sentence in enumerate(placed):
        # A study is often named in the sentence before the one that cites it.
        near = () if sentence.ids else [*placed[place + 1 : place + 2], *placed[max(0, place - 1) : place]]
        near = [other for other in near if not BLANK_LINE.search(text, *sorted((sentence.start, other.start)))]
        beside = [name for other in near for name in other.ids if name in known]
        named = [name for name in beside if re.search(rf"(?<!\w){re.escape(known[name])}(?!\w)", sentence.text)]
        # Passages of its papers that have a number which no passage cited by the sentence has.
        papers = {source.paper.key for source in sources if source.evidence.id in sentence.ids}
        same = [source for source in sources if source.paper.key in papers]
        of_numbers = [name for finding in number_findings(sentence.text, same, experiment) for name in finding.ids]
        added.setdefault(sentence.start, []).extend([*named, *of_numbers])
    for sentence in reversed(placed):
        if names := [name for name in dict.fromkeys(added[sentence.start]) if name in known]:
            place = sentence.start + len(sentence.text.rstrip(_AFTER_WORDS))
            blank = "" if text[place - 1] == "]" else " "
            text = f"{text[:place]}{blank}{''.join(f'[{name}]' for name in names)}{text[place:]}"
    return text


def _of_paragraphs(text: str) -> dict[int, list[str]]:
    """What the rest of a paragraph or list item cites, for each first sentence that needs a citation, by its start."""
    lacking = {finding.span for finding in unsupported_findings(text)}
    breaks = [match.start() for match in _BREAK.finditer(text)]
    found: dict[int, list[str]] = {}
    for _, group in groupby(sentences(text), lambda it: sum(place < it.start + _LIST_MARK for place in breaks)):
        first, *others = group
        if (first.start, first.end) in lacking:
            words = telling_words(first.text).keys()
            near = sorted(others, key=lambda other: -len(words & telling_words(other.text).keys()))
            found[first.start] = list(dict.fromkeys(name for other in near for name in other.ids))[:_MOST]
    return found

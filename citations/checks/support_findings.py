"""Turns verdicts on citations into findings, and finds statements of absence that no search supports.

Statements of absence are recognised by English patterns of bounded length, one sentence at a time; only searches
without results can support them. "The sources do not report X" is such a statement (also: state, compare); "a paper did
not find X" is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...roles.protocols import CitedClaim, Source, Verdict
from ...text.wordings import weighs_sources
from ...text.words import is_generic, is_stop, one_line, one_of, read_rules, split_words, stem
from ..markers import MARKER, CitedSentence, line_start, sentences
from .fabricated_citations import NEEDED
from .findings import Finding, Rule

_WORDINGS: Final = read_rules(__file__, "claim_wordings")["absence"]
_ABSENCE: Final = re.compile("|".join(_WORDINGS["said"]), re.IGNORECASE)  # bounded: 2,000 characters
_NO_PAPER: Final = re.compile(_WORDINGS["of_papers"], re.IGNORECASE)
_CLAUSE: Final = one_of(_WORDINGS["clause"], re.IGNORECASE)
_OF_SAYING: Final = frozenset(map(stem, _WORDINGS["of_saying"].split()))
_LONGEST: Final = 2_000  # characters of a sentence that are examined
_FEWEST_LEFT: Final = 4
_FEWEST_SHARED: Final = 2
_SHARE: Final = 0.4


def states_absence(sentence: CitedSentence) -> bool:
    """Whether a sentence says that the library or the sources lack something."""
    words = MARKER.sub("", sentence.text[:_LONGEST])
    return bool(_ABSENCE.search(words)) or (not sentence.ids and bool(_NO_PAPER.search(words)))


def states_only_absence(sentence: CitedSentence) -> bool:
    """Whether the sentence, apart from absence, says nothing that a passage could support."""
    if not states_absence(sentence):
        return False
    clauses = _CLAUSE.split(MARKER.sub("", sentence.text[:_LONGEST]))
    rest = [clause for clause in clauses if not _ABSENCE.search(clause) and not _NO_PAPER.search(clause)]
    return len(_subject_stems(" ".join(rest))) < _FEWEST_LEFT


def absence_findings(text: str, open_needs: Sequence[str] | None) -> list[Finding]:
    """A finding for each statement of absence that no search supports.

    `open_needs` are the needs for which searches found nothing; None (no needs were planned) yields no findings.
    """
    if open_needs is None:
        return []
    needs = [_subject_stems(need) for need in open_needs]
    found: list[Finding] = []
    for sentence in sentences(text):
        subject = _subject_stems(MARKER.sub("", sentence.text[:_LONGEST]))
        if states_absence(sentence) and not any(_matches_need(subject, need) for need in needs):
            message = (
                f'"{one_line(sentence.text)}" says that the sources lack something, but no search for it came back'
                " empty; say what they do report, or take the sentence out."
            )
            found.append(Finding("absence-unsearched", message, (sentence.start, sentence.end)))
    return found


def _matches_need(subject: frozenset[str], need: frozenset[str]) -> bool:
    """Whether a need is about the absent subject; a statement without a subject matches any need."""
    if not subject:
        return True
    shared = subject & need
    own = {form for form in subject if not is_generic(form)}
    least = min(_FEWEST_SHARED, len(subject), len(need))
    return len(shared) >= max(1, least, _SHARE * min(len(subject), len(need))) and (not own or bool(own & need))


def _subject_stems(text: str) -> frozenset[str]:
    return frozenset(
        form for word in split_words(text) if not is_stop(word) and (form := stem(word.surface)) not in _OF_SAYING
    )


# A sentence with its markers, and the evidence id.
PairKey = tuple[str, str]

BY_SEARCHES = Verdict("unjudged", "what sources do not report is judged by the searches, not by a passage")

# Verdicts that a reader should check, with the rule of their finding.
DOUBTFUL: Final[Mapping[str, Rule]] = {
    "unsupported": "unsupported",
    "contradicted": "contradicted",
    "partly": "partly-supported",
    "off-topic": "off-topic",
}
_SAID: Final = read_rules(__file__, "finding_rules")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")


def cited_claims(text: str, sources: Sequence[Source]) -> dict[str, CitedClaim]:
    """The cited sentences with their sources, in reading order, but for those that `absence_findings` checks."""
    known = {source.evidence.id: source for source in sources}
    claims: dict[str, CitedClaim] = {}
    heading, last = "", None
    closing = max((match.end() for match in _BLANK_LINE.finditer(text.rstrip())), default=len(text))
    for sentence in sentences(text):
        if _HEADING.match(text, line_start(text, sentence.start)):
            heading, last = sentence.text, None
            continue
        opens = last is None or _BLANK_LINE.search(text, last.end, sentence.start) is not None
        before = last.text if last and not opens else heading
        cited = tuple(known[identifier] for identifier in sentence.ids if identifier in known)
        if cited and sentence.text not in claims and not states_only_absence(sentence):
            plain, context = (words.replace(NEEDED, "").strip() for words in (sentence.text, before))
            claims[sentence.text] = CitedClaim(plain, cited, context, opens or sentence.start >= closing)
        # Only the first sentence of a section depends on its heading.
        heading, last = "", sentence
    return claims


def absence_pairs(text: str, sources: Sequence[Source]) -> list[PairKey]:
    """The cited statements of absence, which no passage can support, with each of their sources."""
    known = {source.evidence.id for source in sources}
    return [
        (sentence.text, identifier)
        for sentence in sentences(text)
        if sentence.ids and states_only_absence(sentence)
        for identifier in sentence.ids
        if identifier in known
    ]


def support_findings(text: str, verdicts: Mapping[PairKey, Verdict]) -> list[Finding]:
    """The findings in reading order: one for each negative verdict, one for the markers that add nothing."""
    found: list[Finding] = []
    for sentence in sentences(text):
        of_it = {id: verdicts[sentence.text, id] for id in sentence.ids if (sentence.text, id) in verdicts}
        against = any(verdict.adds == "contradicts" for verdict in of_it.values())
        grouped: dict[tuple[Rule, str], list[str]] = {}
        for identifier, verdict in of_it.items():
            rule: Rule | None = DOUBTFUL.get(verdict.label, "unjudged" if verdict.label == "unjudged" else None)
            # If one source contradicts, only that one is named.
            if rule and not (against and rule == "contradicted" and verdict.adds != "contradicts"):
                grouped.setdefault((rule, verdict.reason), []).append(identifier)
        found += [_finding(sentence, rule, ids, reason) for (rule, reason), ids in grouped.items()]
        if len(of_it) > 1 and weighs_sources(sentence.text):
            continue  # without one of its sources, what the sentence counts or compares would change
        idle = [identifier for identifier, verdict in of_it.items() if verdict.adds == "idle"]
        # If no source supports the sentence, the finding above is enough.
        if idle and len(idle) < len(of_it) and all(verdict.label != "unsupported" for verdict in of_it.values()):
            found.append(_finding(sentence, "idle-marker", idle))
    return found


def _finding(sentence: CitedSentence, rule: Rule, ids: Sequence[str], reason: str = "") -> Finding:
    because = f": {reason.rstrip('.')}" if reason else ""
    named = " and ".join(f"[{identifier}]" for identifier in ids)
    several = len(sentence.ids) > 1 and rule in _SAID["verdicts_on_sums"] and weighs_sources(sentence.text)
    wording = _SAID["verdicts_on_sums" if several else "verdicts"][rule]
    message = f'"{one_line(sentence.text)}" {wording.format(ids=named, reason=because)}'
    return Finding(rule, message, (sentence.start, sentence.end), tuple(ids))

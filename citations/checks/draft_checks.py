"""Runs all checks on a draft, and replaces invalid citations that repair did not fix.

After `replace_invalid_citations` no invented citation and no unknown marker is left: each is replaced by
`[citation needed]` and reported, so that neither an invented source nor a bare claim reaches the reader. Verbatim
quotations stay as they are, with the citations that the quoted paper makes in them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, Literal

from ...experiment import Experiment, SectionKind
from ...roles.extractive.passage_details import blank_details
from ...roles.protocols import Draft, Source
from ...section_kinds import SECTIONS
from ...text.sentences import replace_spans
from ...text.words import read_rules
from ..citation_patterns import NamedSource
from ..markers import MARKER, SpanSet, marker_ids, normalise_markers, sentence_at, verbatim_spans
from .citation_coverage import balance_findings, other_side_findings, uncited_sentences, unsupported_findings
from .fabricated_citations import NEEDED, FabricatedCitation, find_fabricated
from .findings import SHOWN, Finding, shorten_words
from .number_tracing import number_findings
from .preferences import preference_findings
from .repetition import copied_findings, repeated_findings
from .unicode_folding import fold

# The kind of a draft: a section, or the answer to a question, each of whose statements needs a source.
DraftKind = SectionKind | Literal["answer"]
CITING_KINDS: frozenset[DraftKind] = frozenset({"answer", *(kind for kind, spec in SECTIONS.items() if spec.must_cite)})

_PATTERNS: Final = {name: re.compile(rule) for name, rule in read_rules(__file__, "finding_rules")["patterns"].items()}
_FEWEST_WORDS = 2
_MOST_COLLAPSES = 24


def check_draft(
    draft: Draft,
    sources: Sequence[Source],
    *,
    kind: DraftKind | None,
    experiment: Experiment,
    known_keys: Collection[str] = (),
    earlier: Mapping[str, str] | None = None,
    preferences: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """The findings of a draft: those about the whole first, then in reading order.

    Args:
        draft: its markers may have any form; spans refer to `normalise_markers(draft.text)`.
        sources: the evidence that was shown to the writer.
        kind: the section type, or "answer": decides where a citation is expected; None expects none.
        experiment: the user's own text, which may be repeated verbatim and whose numbers may be used; for an answer, it
            contains only the question.
        known_keys: keys of the library besides those of `sources`.
        earlier: the texts of sections of the paper that are already written, by name; None outside a paper.
        preferences: what the author wants of every text, in lines of the memory.
    """
    text = blank_details(normalise_markers(draft.text))
    whole = list(_whole_draft_findings(text, draft.truncated))
    if whole and whole[0].rule == "empty":
        return tuple(whole)
    own_words = experiment.words
    faults = _faults(text, sources, own_words, known_keys, word_for_word=kind != "answer")
    known = {source.evidence.id for source in sources}
    if sources and kind in CITING_KINDS and not known.intersection(marker_ids(text)):
        whole.append(Finding("no-citation", f"The {kind} cites no evidence."))
    whole += balance_findings(text, sources)
    given = "question" if kind == "answer" else "experiment"
    headings = [match.span() for match in _PATTERNS["heading"].finditer(text)] if kind == "answer" else []
    said_of = SpanSet([*((fault.start, fault.end) for fault in faults), *headings])
    placed = [_finding(text, fault) for fault in faults]
    placed += _bare_markers(text, sources, own_words)
    # Problems inside an invented citation are reported once, as the citation.
    placed += [
        finding
        for finding in number_findings(text, sources, experiment, given=given)
        # An answer's headings may name papers, whose titles may contain numbers.
        if finding.span is not None and not said_of.meets(*finding.span)
    ]
    placed += copied_findings(text, sources, own_words)
    placed += preference_findings(text, preferences)
    if earlier is not None:
        placed += repeated_findings(text, {} if kind == "abstract" else earlier)  # an abstract repeats by nature
    placed += other_side_findings(text, sources)
    if kind == "answer":
        placed += unsupported_findings(text, declined=draft.declined)
    elif sources and kind in CITING_KINDS:
        said = "reports others' work but cites nothing."
        uncited = uncited_sentences(text, own_words)
        placed += [Finding.about(sentence, "citation-missing", said) for sentence in uncited]
    return (*whole, *sorted(placed, key=lambda finding: finding.span or (0, 0)))


def replace_invalid_citations(
    text: str,
    sources: Sequence[Source],
    experiment_text: str,
    *,
    known_keys: Collection[str] = (),
    word_for_word: bool = True,
) -> tuple[str, tuple[Finding, ...]]:
    """Replace unknown markers and invented citations by `[citation needed]`; returns the draft and the findings.

    Known markers and words that are not a citation stay; so do the user's own citations, with `word_for_word` only in
    the user's own sentences. Spans of the findings refer to the text of the round in which they were found; their
    message quotes the text.
    """

    findings: list[Finding] = []

    def faults_of(text: str) -> list[FabricatedCitation]:
        faults = _faults(text, sources, experiment_text, known_keys, word_for_word=word_for_word)
        findings.extend(_finding(text, item) for item in faults)
        return faults

    known = {source.evidence.id for source in sources}
    text = normalise_markers(text)
    # Each round leaves fewer characters outside placeholders; nested constructions take one round per level.
    for _ in range(12):
        if not (faults := faults_of(text)):
            return text, tuple(findings)
        text = _replace_faults(text, faults, known)
        for _ in range(_MOST_COLLAPSES):  # adjacent placeholders become one, other brackets around them go
            text = _PATTERNS["needed_again"].sub(NEEDED, _PATTERNS["bracketed"].sub(NEEDED, text))
        text = normalise_markers(text)
    # Text crafted to defeat the rounds loses whole paragraphs.
    kept = (NEEDED if faults_of(paragraph) else paragraph for paragraph in re.split(r"\n\s*\n", text))
    whole = normalise_markers("\n\n".join(kept))
    return (NEEDED if faults_of(whole) else whole), tuple(findings)


def _faults(
    text: str, sources: Sequence[Source], experiment_text: str, known_keys: Collection[str], *, word_for_word: bool
) -> list[FabricatedCitation]:
    """Unknown markers and invented citations outside verbatim quotations, in order, without overlap."""
    keys = {source.paper.key for source in sources} | set(known_keys)
    named = {source.evidence.id: NamedSource.of(source.paper, source.shown) for source in sources}

    def names_at(position: int) -> list[NamedSource]:
        sentence = sentence_at(text, position)
        return [named[identifier] for identifier in sentence.ids if identifier in named] if sentence else []

    faults = find_fabricated(text, keys, experiment_text, names_at=names_at, word_for_word=word_for_word)
    taken = SpanSet((fault.start, fault.end) for fault in faults)
    # Markers that name no evidence (also those in comments, which the view omits), and brackets that start like one.
    view = fold(text)
    seen = [view.span(*match.span()) for match in _PATTERNS["marker_like"].finditer(view.text)]
    covered = SpanSet(seen)
    for start, end in (*seen, *(match.span() for match in MARKER.finditer(text) if not covered.meets(*match.span()))):
        marker = MARKER.fullmatch(text[start:end])
        if not (marker and marker[1] in named) and not taken.meets(start, end):
            faults.append(FabricatedCitation("marker", start, end))
    quoted = verbatim_spans(text, [passage for source in sources for passage in source.passages]) if faults else []
    return sorted(
        (fault for fault in faults if not any(start <= fault.start and fault.end <= end for start, end in quoted)),
        key=lambda fault: fault.start,
    )


def _replace_faults(text: str, faults: Sequence[FabricatedCitation], known: Collection[str]) -> str:
    edits: list[tuple[int, int, str]] = []
    for fault in faults:
        words, after = text[fault.start : fault.end], text[fault.end : fault.end + 1]
        kept = f"{text[slice(*fault.keep)]} " if fault.keep else ""
        # A valid marker inside an invalid citation still supports the sentence.
        good = "" if fault.keep else "".join(f"[{found}]" for found in marker_ids(words) if found in known)
        before = text[edits[-1][1] if edits else 0 : fault.start][-1:]
        blank = " " if before.isalnum() or before in {"]", "."} else ""
        edits.append((fault.start, fault.end, f"{blank}{kept}{NEEDED}{good}{' ' * after.isalnum()}"))
    return replace_spans(text, edits)


def _whole_draft_findings(text: str, cut_off: bool) -> Iterator[Finding]:
    prose = MARKER.sub(" ", _PATTERNS["heading"].sub(" ", text)).replace(NEEDED, " ")
    if len(re.findall(r"[^\W\d_]+", prose)) < _FEWEST_WORDS:
        yield Finding("empty", "The draft has no text; write the section.")
        return
    end = text.rstrip()
    last = end.rsplit("\n", 1)[-1]
    words = last[-SHOWN:].strip()
    span = None
    if cut_off:
        message = f'The draft was cut off at the output limit, after "{words}"; write it shorter.'
    elif len(_PATTERNS["fence"].findall(text)) % 2:
        message = "A code fence is opened and not closed; close it or write without code."
    elif last.lstrip().startswith("#"):
        message = f'The draft ends with the heading "{words}"; write what belongs under it.'
    elif not _PATTERNS["ending"].search(end) and not _PATTERNS["list_item"].match(last):
        message, span = f'The draft breaks off after "{words}"; end the sentence.', (len(end) - len(last), len(end))
    else:
        return
    yield Finding("truncated", message, span)


def _bare_markers(text: str, sources: Sequence[Source], experiment_text: str) -> list[Finding]:
    """Find ids used as names, such as "As E3 shows": they are internal and mean nothing to a reader."""
    own = [experiment_text, *(source.text for source in sources)]
    found = {match[0] for match in _PATTERNS["bare_marker"].finditer(text)} & {source.evidence.id for source in sources}
    # Once per id: the output of an experiment may be megabytes.
    named = {name for name in found if not any(re.search(rf"\b{name}\b", words) for words in own)}
    return [
        Finding("bare-marker", f'"{match[0]}" is used as a word of the sentence.', match.span(), (match[0],))
        for match in _PATTERNS["bare_marker"].finditer(text)
        if match[0] in named
    ]


def _finding(text: str, fault: FabricatedCitation) -> Finding:
    words = shorten_words(text[fault.start : fault.end])
    span = (fault.start, fault.end)
    if fault.kind == "marker":
        return Finding("unknown-marker", f"{words} refers to no evidence that was found.", span)
    of_user = "is cited by the experiment, but in a sentence that is not in this text."
    said = of_user if fault.of_user else "is a citation that was not made from evidence."
    return Finding("foreign-citation", f'"{words}" {said}', span)

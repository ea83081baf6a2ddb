"""What is wrong with a draft, and the last resort when repair did not mend it.

After `neutralise` no foreign citation and no unknown marker is left: what failed stands as
`[citation needed]` and is reported, so that neither an invented source nor a bare claim reaches the reader.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from citeloom.citations.folding import fold
from citeloom.citations.foreign import NEEDED, Foreign, NamesAt, find_foreign
from citeloom.citations.markers import MARKER, marker_ids, normalise_markers, sentences
from citeloom.citations.names import NamedSource
from citeloom.experiment import SectionKind
from citeloom.models.roles import Draft, Source

ProblemCode = Literal["unknown-marker", "foreign-citation", "bare-marker", "empty", "truncated", "no-citation"]
CITING_KINDS: frozenset[SectionKind] = frozenset({"introduction", "discussion"})

# Brackets that begin like a marker, in the folded view: `[E99]`, `[E3x]`, `[Evidence 3]`, `(E9)`.
_MARKER_LIKE = re.compile(
    r"\[\s*(?:[EeЕеΕ][\s_-]?\d[^\[\]]{0,60}|(?:evidence|source|chunk|doc(?:ument)?)\s*[#:]?\s*\d[^\[\]]{0,20})\]"
    r"|\(\s*[EЕΕ]\d{1,6}\s*\)",
    re.IGNORECASE,
)
_BARE_MARKER = re.compile(r"(?<![\w\[-])E[1-9]\d{0,3}(?![\w\]-])(?!\.\d)(?!\s(?:ligase|ubiquitin|enzyme))")
_HEADING = re.compile(r"(?m)^[ \t]*#{1,6}[ \t].*$")
_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_ENDING = re.compile(
    r"(?:[.!?\u2026\u3002\uff1f\uff01](?:[\"'\u201d\u2019)\]*_`]|\s*\[E\d+\]|\s*\[citation needed\])*"
    r"|\||\$\$|```|~~~|\\end\{\w+\*?\})$"
)
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S")
_FEWEST_WORDS = 2
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a draft; `message` names the words, `span` places them in the normalised text."""

    code: ProblemCode
    message: str
    span: tuple[int, int] | None = None


def check_draft(
    draft: Draft,
    sources: Sequence[Source],
    *,
    kind: SectionKind | None,
    experiment_text: str,
    known_keys: Collection[str] = (),
) -> tuple[Problem, ...]:
    """The problems of a draft, in reading order after those of the whole.

    Args:
        draft: its markers may be written in any way; spans refer to `normalise_markers(draft.text)`.
        sources: the evidence that the writer was shown.
        kind: the section type, which decides whether a citation is expected; None when none is.
        experiment_text: the user's own words, which may be repeated verbatim.
        known_keys: keys of the library beyond those of `sources`.
    """
    text = normalise_markers(draft.text)
    problems = list(_whole(text, draft.truncated))
    if problems and problems[0].code == "empty":
        return tuple(problems)
    problems += [_problem(text, item, sources) for item in _faults(text, sources, experiment_text, known_keys)]
    problems += _bare_markers(text, sources, experiment_text)
    known = {source.evidence.id for source in sources}
    if sources and kind in CITING_KINDS and not known.intersection(marker_ids(text)):
        problems.append(
            Problem(
                "no-citation",
                f"The {kind} cites no evidence; cite it by its marker, such as [{sources[0].evidence.id}].",
            )
        )
    return tuple(problems)


def neutralise(
    text: str, sources: Sequence[Source], experiment_text: str, *, known_keys: Collection[str] = ()
) -> tuple[str, tuple[Problem, ...]]:
    """The draft with `[citation needed]` for unknown markers and foreign citations, and what was replaced.

    Known markers and words that are no citation stay. Spans of the problems refer to the text of the round
    they were found in; what was found is in the message.
    """
    problems: list[Problem] = []
    text = normalise_markers(text)
    # Each round leaves fewer characters that are no placeholder; nested constructions take one round a level.
    for _ in range(12):
        faults = _faults(text, sources, experiment_text, known_keys)
        if not faults:
            return text, tuple(problems)
        problems += [_problem(text, item, sources) for item in faults]
        known = {source.evidence.id for source in sources}
        text = normalise_markers(_collapsed(_replaced(text, faults, known)))
    return _without_paragraphs(text, sources, experiment_text, known_keys, problems)


def _without_paragraphs(
    text: str,
    sources: Sequence[Source],
    experiment_text: str,
    known_keys: Collection[str],
    problems: list[Problem],
) -> tuple[str, tuple[Problem, ...]]:
    """For text made to defeat the rounds: a paragraph that is still at fault goes as a whole."""
    kept = []
    for paragraph in re.split(r"\n\s*\n", text):
        faults = _faults(paragraph, sources, experiment_text, known_keys)
        problems += [_problem(paragraph, item, sources) for item in faults]
        kept.append(NEEDED if faults else paragraph)
    whole = normalise_markers("\n\n".join(kept))
    return (NEEDED if _faults(whole, sources, experiment_text, known_keys) else whole), tuple(problems)


@dataclass(frozen=True, slots=True)
class _Fault:
    code: Literal["unknown-marker", "foreign-citation"]
    start: int
    end: int
    keep: tuple[int, int] | None


def _faults(text: str, sources: Sequence[Source], experiment_text: str, known_keys: Collection[str]) -> list[_Fault]:
    """Unknown markers and foreign citations of a normalised text, in order, without overlap."""
    keys = {source.paper.key for source in sources} | set(known_keys)
    foreign = find_foreign(text, known_keys=keys, allowed_text=experiment_text, names_at=_names_at(text, sources))
    faults = [_foreign_fault(item) for item in foreign]
    known = {source.evidence.id for source in sources}
    for start, end in _unknown(text, known):
        if not any(fault.start < end and start < fault.end for fault in faults):
            faults.append(_Fault("unknown-marker", start, end, None))
    return sorted(faults, key=lambda fault: fault.start)


def _foreign_fault(item: Foreign) -> _Fault:
    return _Fault("foreign-citation", item.start, item.end, item.keep)


def _unknown(text: str, known: Collection[str]) -> Iterator[tuple[int, int]]:
    """Markers that name no evidence, and brackets that begin like a marker."""
    view = fold(text)
    for match in _MARKER_LIKE.finditer(view.text):
        start, end = view.span(*match.span())
        marker = MARKER.fullmatch(text[start:end])
        if marker is None or marker[1] not in known:
            yield start, end


def _names_at(text: str, sources: Sequence[Source]) -> NamesAt:
    """The sources that the sentence at a position cites."""
    named = {source.evidence.id: NamedSource.of(source.paper) for source in sources}
    cited = sentences(text)
    starts = [sentence.start for sentence in cited]

    def names(position: int) -> list[NamedSource]:
        index = bisect_right(starts, position) - 1
        return [named[identifier] for identifier in cited[index].ids if identifier in named] if index >= 0 else []

    return names


def _replaced(text: str, faults: Sequence[_Fault], known: Collection[str]) -> str:
    pieces: list[str] = []
    done = 0
    for fault in faults:
        words = text[fault.start : fault.end]
        kept = f"{text[slice(*fault.keep)]} " if fault.keep else ""
        # A good marker inside a bad citation still supports the sentence.
        good = [] if fault.keep else [f"[{identifier}]" for identifier in marker_ids(words) if identifier in known]
        before = text[done : fault.start]
        blank = " " if before[-1:].isalnum() or before[-1:] in {"]", "."} else ""
        pieces += [before, blank, kept, NEEDED, "".join(good)]
        done = fault.end
        if text[done : done + 1].isalnum():
            pieces.append(" ")
    return "".join([*pieces, text[done:]])


def _collapsed(text: str) -> str:
    """One placeholder where several stand side by side, and none inside another pair of brackets."""
    wanted = re.escape(NEEDED)
    for _ in range(len(text)):
        shorter = re.sub(rf"{wanted}(?:[\s,;&]*{wanted})+|[(\[]\s*{wanted}\s*[)\]]", NEEDED, text)
        if shorter == text:
            break
        text = shorter
    return text


def _whole(text: str, cut_off: bool) -> Iterator[Problem]:
    """Problems of the draft as a whole: nothing there, or the end missing."""
    prose = MARKER.sub(" ", _HEADING.sub(" ", text)).replace(NEEDED, " ")
    if len(re.findall(r"[^\W\d_]+", prose)) < _FEWEST_WORDS:
        yield Problem("empty", "The draft has no text; write the section.")
        return
    end = text.rstrip()
    last = end.rsplit("\n", 1)[-1]
    shown = last[-_SHOWN:].strip()
    if cut_off:
        yield Problem("truncated", f'The draft was cut off at the output limit, after "{shown}"; write it shorter.')
    elif len(_FENCE.findall(text)) % 2:
        yield Problem("truncated", "A code fence is opened and not closed; close it or write without code.")
    elif last.lstrip().startswith("#"):
        yield Problem("truncated", f'The draft ends with the heading "{shown}"; write what belongs under it.')
    elif not _ENDING.search(end) and not _LIST_ITEM.match(last):
        yield Problem(
            "truncated",
            f'The draft breaks off after "{shown}"; end the sentence.',
            (len(end) - len(last), len(end)),
        )


def _bare_markers(text: str, sources: Sequence[Source], experiment_text: str) -> list[Problem]:
    """ "As E3 shows": ids are ours and mean nothing to a reader."""
    known = {source.evidence.id for source in sources}
    own = [experiment_text, *(source.text for source in sources)]
    return [
        Problem(
            "bare-marker",
            f'"{match[0]}" stands in the sentence as a name; cite it as [{match[0]}] and reword.',
            match.span(),
        )
        for match in _BARE_MARKER.finditer(text)
        if match[0] in known and not any(re.search(rf"\b{match[0]}\b", words) for words in own)
    ]


def _problem(text: str, fault: _Fault, sources: Sequence[Source]) -> Problem:
    words = " ".join(text[fault.start : fault.end].split())
    shown = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
    example = f", such as [{sources[0].evidence.id}]," if sources else ""
    if fault.code == "unknown-marker":
        message = f"{shown} names no evidence; cite only the evidence that was given{example.rstrip(',')}."
    else:
        message = f'"{shown}" is a citation of your own; cite by marker{example} or reword without it.'
    return Problem(fault.code, message, (fault.start, fault.end))

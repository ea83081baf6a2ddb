"""Verifies a result (its record and its readable text) against its own file and the library.

Sentences of a text are compared by their words, without citations. An edited sentence is checked like a new one: it
must cite evidence of the run, its quotes must occur in the cited papers, and its numbers there or in the run's text. If
only a number in a sentence changed, that is a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Final

from ..documents import Paper
from ..documents.plain_text import plain_text
from ..experiment import Experiment
from ..roles.extractive.passage_details import blank_details, find_details
from ..roles.protocols import Source
from ..stores.library import Library
from ..text.sentences import replace_spans
from .checks.fabricated_citations import find_fabricated
from .checks.findings import shorten_words
from .checks.number_parsing import spelt_numbers
from .checks.number_tracing import trace_numbers
from .checks.unicode_folding import fold
from .citation_patterns import NamedSource
from .markers import MARKER, CitedSentence, is_quotation, is_verbatim, quoted_spans, sentences
from .user_citations import CitableEvidence

_WORD = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_AGREEING = re.compile(r"\b(?:is|are|was|were|has|have)\b|(?<=\w\w)s\b")
_NAME_WORD = re.compile(r"[^\W\d_]{3,}|\b(?:1[5-9]|20)\d\d(?=\D|\Z)")
_BETWEEN_NAMES = frozenset({"and", "und", "et", "al", "others", "ibid"})


class TextCheck:
    """Checks a text against the record `part`; `edited` counts citing sentences whose support was not judged."""

    def __init__(
        self, part: Mapping[str, Any], library: Library, wrong: Callable[[str], None], experiment: Experiment
    ) -> None:
        self._part, self._library, self._wrong, self._experiment = part, library, wrong, experiment
        self._citable = CitableEvidence.of_record(part)
        self._key_of = {item.id: item.key for item in self._citable.evidence}
        self._details = find_details(self._citable.text_with_markers(part["text"]))
        self._passages: dict[str, list[str]] = {}
        self.edited = 0

    def check_own_text(self, text: str) -> None:
        """Check the text of the record: each citation in it has a record, and each record a sentence."""
        found = self._sentences(text)
        occurrences = Counter(_bare(sentence.text) for sentence in found)
        for number, citation in enumerate(self._part["citations"]):
            if _bare(self._with_markers(citation["sentence"])) not in occurrences:
                self._wrong(f"the text lacks the sentence of citations[{number}], {_quote(citation['sentence'])}")
        for sentence in found:
            expected = self._cited_words.get(_bare(sentence.text))
            if expected is None and sentence.ids:
                self._wrong(f"{_quote(sentence.text)} cites {self._list_keys(sentence)} which the record does not have")
            # Sentences with the same words share their records, and each may cite only some of them.
            if occurrences[_bare(sentence.text)] == 1 or not self._keys(sentence) <= (expected or set()):
                self._compare_keys(sentence, [expected] if expected else [])
        self._check_quotes(found)

    def check_file(self, text: str, labels: Sequence[tuple[str, str]] = ()) -> None:
        """Check the text of a file that was exported from the record and may have been edited since."""
        before = self._sentences(self._part["text"])
        recorded: dict[str, list[set[str]]] = {}
        for sentence in before:
            recorded.setdefault(_bare(sentence.text), []).append(self._keys(sentence))
        numbered: dict[str, set[tuple[str, ...]]] = {}
        for words in recorded:
            frame, numbers = _split_numbers(words)
            if numbers:
                numbered.setdefault(frame, set()).add(numbers)
        found = self._sentences(text)
        for sentence in found:
            expected = recorded.get(_bare(sentence.text))
            self._compare_keys(sentence, expected)
            self.edited += expected is None and bool(sentence.ids)
            frame, numbers = _split_numbers(_bare(sentence.text))
            if expected is None and numbers not in numbered.get(frame, {numbers}):
                self._wrong(f"{_quote(sentence.text)} differs from the run in its numbers")
        changed = [sentence for sentence in found if _bare(sentence.text) not in recorded]
        self._check_foreign(changed)
        self._check_quotes(found)
        self._check_numbers(self._with_markers(text))
        for label, key in dict.fromkeys(labels):
            # The visible citation names the cited paper's authors and year, not only its link target.
            entry = next((item for item in self._part["references"] if item["key"] == key), None)
            said = " ".join([entry["text"], *entry.get("authors", ())]).casefold() if entry else ""
            names = set(_NAME_WORD.findall(label.casefold())) - _BETWEEN_NAMES
            strange = sorted(name for name in names if name not in said)
            if strange:
                self._wrong(f"{_quote(label)} links to {key}, whose reference does not contain {', '.join(strange)}")

    @cached_property
    def _cited_words(self) -> dict[str, set[str]]:
        keys: dict[str, set[str]] = {}
        for citation in self._part["citations"]:
            keys.setdefault(_bare(self._with_markers(citation["sentence"])), set()).add(citation["key"])
        return keys

    def _sentences(self, text: str) -> list[CitedSentence]:
        """The sentences of a text; one that shares the citation at the end of a later sentence has its evidence too."""
        marked = self._with_markers(text)
        found = [item for item in sentences(marked) if _bare(item.text)]
        for place in range(len(found) - 2, -1, -1):
            item, following = found[place], found[place + 1]
            if item.ids or "\n" in marked[item.end : following.start] or not self._keys(following):
                continue
            known = self._cited_words.get(_bare(item.text))
            if known is None and _bare(item.text) not in self._before:  # changed: the original sentence counts
                known = self._cited_words.get(self._before.get(_bare(following.text), ""))
            if known == self._keys(following):
                found[place] = replace(item, ids=following.ids)
        return found

    @cached_property
    def _before(self) -> dict[str, str]:
        """Map the words of each sentence of the run to the words of the sentence before it; empty for the first."""
        words = [_bare(item.text) for item in sentences(self._with_markers(self._part["text"])) if _bare(item.text)]
        return dict(zip(words, ["", *words], strict=False))

    def _with_markers(self, text: str) -> str:
        """The text with markers in place of citations, without the run's own remarks about listed passages."""
        return blank_details(self._citable.text_with_markers(text), self._details)

    def _keys(self, sentence: CitedSentence) -> set[str]:
        return {self._key_of[identifier] for identifier in sentence.ids if identifier in self._key_of}

    def _list_keys(self, sentence: CitedSentence) -> str:
        return ", ".join(sorted(self._keys(sentence))) or "nothing"

    def _compare_keys(self, sentence: CitedSentence, expected: Sequence[set[str]] | None) -> None:
        if expected and self._keys(sentence) not in expected:
            run = ", ".join(sorted(expected[0])) or "nothing"
            self._wrong(f"{_quote(sentence.text)} cites {self._list_keys(sentence)}; in the run it cites {run}")

    def _check_foreign(self, changed: Sequence[CitedSentence]) -> None:
        own = " ".join(item["sentence"] for item in self._part.get("own_citations", ()))
        references = {entry["key"]: entry for entry in self._part["references"]}
        for sentence in changed:
            named = [
                NamedSource.of(Paper(key, "", tuple(entry.get("authors", ())), entry.get("year")))
                for key in self._keys(sentence)
                if (entry := references.get(key)) is not None
            ]
            quoted = "\n".join(words for words in _quotations(sentence.text) if self._repeats(words, sentence))
            named_at = dict.fromkeys(range(len(sentence.text) + 1), named)  # the same at every position
            for item in find_fabricated(sentence.text, self._library.records(), own, names_at=named_at.__getitem__):
                words = sentence.text[item.start : item.end]
                if words not in quoted:
                    self._wrong(f"{_quote(sentence.text)} cites {words}, which is not evidence of the run")

    def _check_quotes(self, found: Sequence[CitedSentence]) -> None:
        for sentence in found:
            for words in _quotations(sentence.text) if sentence.ids else ():
                if not self._repeats(words, sentence):
                    self._wrong(f"the quote {_quote(words)} is not in {self._list_keys(sentence)} word for word")

    def _repeats(self, words: str, sentence: CitedSentence) -> bool:
        keys = self._keys(sentence) or set(self._key_of.values())
        return any(is_verbatim(words, passage) for key in keys for passage in self._passages_of(key))

    def _passages_of(self, key: str) -> list[str]:
        if key not in self._passages:
            recorded = [item.get("chunk_text") or "" for item in self._part["citations"] if item["key"] == key]
            known = key in self._library.records()
            in_library = [chunk.text for chunk in self._library.paper_chunks(key)] if known else []
            self._passages[key] = [*dict.fromkeys([*recorded, *in_library]), "\n\n".join(in_library)]
        return self._passages[key]

    def _check_numbers(self, marked: str) -> None:
        own = [*self._part.get("own_citations", ()), *self._part.get("figures", ()), *self._part.get("numbers", ())]
        fields = ("sentence", "caption", "text")
        known = "; ".join(str(item[name]) for item in own for name in fields if name in item)
        given = self._experiment.model_copy(update={"results": f"{self._experiment.results}\n\n{known}"})
        sources = [
            Source(item, Paper(item.key, ""), "\n".join(self._passages_of(item.key))) for item in self._citable.evidence
        ]
        for trace in trace_numbers(marked, sources, given):
            if trace.origin is None:
                around = _quote(_words_around(marked, trace.start, trace.end))
                number = f"the number {marked[trace.start : trace.end]} ({around})"
                self._wrong(f"{number} is neither in the run's text nor in a cited passage")


def _quotations(text: str) -> list[str]:
    return [text[start:end] for start, end in quoted_spans(text) if is_quotation(text[start:end])]


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(fold(MARKER.sub(" ", text)).text.casefold()))


def _split_numbers(bare: str) -> tuple[str, tuple[str, ...]]:
    """Split off the numbers of a text and the words that agree with them ("one patient was", "two patients were")."""
    digits = replace_spans(bare, [(word.start, word.end, str(word.value)) for word in spelt_numbers(bare)])
    return _AGREEING.sub("", _DIGITS.sub("0", digits)), tuple(_DIGITS.findall(digits))


def _quote(words: str) -> str:
    """Words in quotation marks for a message, without markup and inner quotation marks."""
    return f'"{shorten_words(plain_text(MARKER.sub("", words)).replace("**", "").strip("“”"))}"'


def _words_around(text: str, start: int, end: int) -> str:
    """Whole words of the line on either side of a place."""
    before, after = text[:start].rpartition("\n")[2], text[end:].partition("\n")[0]
    near = before[-_AROUND:].partition(" ")[2] if len(before) > _AROUND else before
    rest = after[:_AROUND].rpartition(" ")[0] if len(after) > _AROUND else after
    return f"{'…' * (near != before)}{near}{text[start:end]}{rest}{'…' * (rest != after)}"


_AROUND: Final = 40  # characters
_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_ROUNDED: Final = Decimal("0.12")
_POWERS: Final = range(-9, 10)  # 72.5% is 0.725, and 1.2 million is 1,200,000


@dataclass
class Verified:
    """The counts, the failures (field and reason), and what older files lack; `findings` includes uncited evidence."""

    quotes: int = 0
    findings: int = 0
    keys: int = 0
    numbers: int = 0
    mismatches: list[tuple[str, str]] = field(default_factory=list)
    lacks: Counter[str] = field(default_factory=Counter)

    def wrong(self, place: str, why: str) -> None:
        self.mismatches.append((place, why))


def verify(
    record: Mapping[str, Any],
    library: Library,
    text: str | None = None,
    labels: Sequence[tuple[str, str]] = (),
    experiment: Experiment | None = None,
) -> Verified:
    """Verify a result with all its parts: the sections of a paper, the turns of a conversation.

    `text` is the text of a file exported from the record, `labels` what a reader sees for its linked citations;
    without the `experiment` of the run, the numbers taken from it are not checked.
    """
    found = Verified()
    if text is not None:
        check = TextCheck(record, library, partial(found.wrong, "text"), experiment or Experiment())
        check.check_file(text, labels)
        found.lacks += Counter({"edited sentences, whose support was not judged": check.edited})
    for place, part in _parts(record):
        repeated = bool(place) and "citations" in record  # a section of a paper, which has the same citations
        counts = Verified(mismatches=found.mismatches) if repeated else found
        _check(part, place, library, counts)
        _check_numbers(part, place, library, experiment, counts)
    return found


def is_result(record: object) -> bool:
    """Whether this is a result of Citeloom that can be verified."""
    return isinstance(record, Mapping) and any(
        isinstance(part.get("text"), str) and isinstance(part.get("citations"), list) for _, part in _parts(record)
    )


def _parts(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "citations" in record:
        yield "", record
    for name in ("sections", "turns"):
        parts = record.get(name)
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            if isinstance(part, Mapping):
                yield f"{name}[{number}].", part


def _check(part: Mapping[str, Any], place: str, library: Library, found: Verified) -> None:
    references = {entry.get("key") for entry in _records(part, "references")}
    evidence = {entry.get("id") for entry in _records(part, "evidence")}
    for number, citation in enumerate(_records(part, "citations")):
        at = f"{place}citations[{number}]"
        found.keys += 1
        found.quotes += 1
        if citation.get("key") not in references:
            found.wrong(f"{at}.key", f"{citation.get('key')!r} is not among the references of the file")
        if evidence and citation.get("evidence_id") not in evidence:
            found.wrong(f"{at}.evidence_id", f"{citation.get('evidence_id')!r} is not among the evidence of the file")
        own = citation.get("chunk_text")
        if not isinstance(own, str):
            found.lacks["citations without the text of their chunk"] += 1
        _check_quote(citation, at, own, library, found)
    for number, entry in enumerate(_records(part, "evidence")):
        found.findings += 1
        _check_quote(entry, f"{place}evidence[{number}]", None, library, found)
    for number, entry in enumerate(_records(part, "references")):
        if str(entry.get("key")) not in library.records():
            found.wrong(f"{place}references[{number}].key", f"the library has no paper {entry.get('key')!r}")
    try:
        check = TextCheck(part, library, partial(found.wrong, f"{place}text"), Experiment())
        check.check_own_text(str(part.get("text")))
    except (KeyError, TypeError, ValueError) as error:
        found.wrong(f"{place}text", f"cannot be compared with its citations ({type(error).__name__}: {error})")


def _check_quote(entry: Mapping[str, Any], at: str, own: object, library: Library, found: Verified) -> None:
    quote = entry.get("quote")
    if isinstance(own, str) and _slice(own, entry) != quote:
        found.wrong(f"{at}.quote", "is not chunk_text[start:end] of the file")
    held = library.chunks([str(entry.get("chunk_id"))])
    if not held:
        found.wrong(f"{at}.chunk_id", f"the library has no chunk {entry.get('chunk_id')!r}")
    for chunk in held:
        if chunk.key != entry.get("key"):
            found.wrong(f"{at}.key", f"the library has this chunk in {chunk.key!r}, not in {entry.get('key')!r}")
        if isinstance(own, str) and own != chunk.text:
            found.wrong(f"{at}.chunk_text", "is not the text that the library has")
        if _slice(chunk.text, entry) != quote:
            found.wrong(f"{at}.quote", "is not at this position in the library")


def _check_numbers(
    part: Mapping[str, Any], place: str, library: Library, experiment: Experiment | None, found: Verified
) -> None:
    cited = {str(entry.get("evidence_id")): entry.get("chunk_text") for entry in _records(part, "citations")}
    leaves = {path: str(value) for path, value in experiment.leaves()} if experiment else {}
    for number, trace in enumerate(_records(part, "numbers")):
        at = f"{place}numbers[{number}]"
        words, origin = trace.get("text"), trace.get("found")
        if _slice(str(part.get("text")), trace) != words:
            found.wrong(f"{at}.text", "is not text[start:end] of the file")
        if not isinstance(origin, Mapping):
            found.lacks["numbers that were found nowhere when the text was written"] += 1
            continue
        if "evidence_id" in origin:
            held = library.chunks([str(origin.get("chunk_id"))])
            source = held[0].text if held else cited.get(str(origin.get("evidence_id")))
            name, missing = "passage", "its passage is not in the library"
        elif experiment is not None:
            source, name = leaves.get(str(origin.get("path"))), "experiment"
            missing = "its field is not in the experiment of the run"
        else:
            found.lacks["numbers of the experiment, which neither the file nor the library holds"] += 1
            continue
        found.numbers += 1
        said = source if origin.get("start") is None else _slice(source or "", origin)
        if said is None:
            found.wrong(f"{at}.found", missing)
        elif not _agree(str(words), said, exact=origin.get("how") == "equal"):
            found.wrong(f"{at}.found", f"the {name} says {said[:40]!r} there, not {str(words)[:40]!r}")


def _slice(text: str, span: Mapping[str, Any]) -> str | None:
    start, end = span.get("start"), span.get("end")
    whole = isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(text)
    return text[start:end] if whole else None


def _agree(claimed: str, found_text: str, *, exact: bool) -> bool:
    """Whether a number occurs in the words, up to its scale; numbers in words are not compared.

    The words are a whole sentence where markup left the number's own place in it unknown.
    """
    ours, theirs = ([Decimal(one.replace(",", "")) for one in _NUMBER.findall(text)] for text in (claimed, found_text))
    if not ours or not theirs:
        return bool(found_text.strip())
    reach = 0 if exact else _ROUNDED * abs(ours[0])
    return any(abs(ours[0] - value * Decimal(10) ** power) <= reach for value in theirs for power in _POWERS)


def _records(part: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    given = part.get(name)
    return [item for item in given if isinstance(item, Mapping)] if isinstance(given, list) else []

"""Verifies the text that a person reads against the record of its run: its citations, quotes and numbers.

Sentences are compared by their words, without citations. One that was edited is checked as a new one: what it cites
must be evidence of the run, its quotes must stand in the papers that it cites, and its numbers there or in the run's
text; a sentence in which nothing but a number changed is a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from ..documents import Paper
from ..experiment import Experiment
from ..roles.extractive.passage_details import details, without_details
from ..roles.protocols import Source
from .checks.findings import shown
from .checks.foreign_citations import find_foreign
from .checks.number_tracing import trace_numbers
from .checks.unicode_folding import fold
from .edited_citations import CitableEvidence
from .markers import MARKER, CitedSentence, sentences
from .quotations import is_quotation, is_verbatim, quoted_spans

_WORD = re.compile(r"[^\W_]+")
_DIGITS = re.compile(r"\d+")
_NAME_WORD = re.compile(r"[^\W\d_]{3,}|\b(?:1[5-9]|20)\d\d(?=\D|\Z)")
_BETWEEN_NAMES = frozenset({"and", "und", "et", "al", "others"})


class PaperReader(Protocol):
    """The part of a library needed to verify a text."""

    def paper(self, key: str) -> Paper | None:
        """The paper with this key, if the library has it."""
        ...

    def keys(self) -> Collection[str]:
        """The keys of all papers."""
        ...

    def passages(self, key: str) -> Sequence[str]:
        """The texts of a paper's chunks; empty if the library does not have it."""
        ...


class TextCheck:
    """The checks of one text against the record `part`; `wrong` is called with each failure.

    `edited` counts the sentences that cite and differ from those of the run, whose support nobody judged.
    """

    def __init__(self, part: Mapping[str, Any], shelf: PaperReader, wrong: Callable[[str], None]) -> None:
        self._part = part
        self._shelf = shelf
        self._wrong = wrong
        self._citable = CitableEvidence.of_record(part)
        self._key_of = {item.id: item.key for item in self._citable.evidence}
        self._details = details(self._citable.marked_text(part["text"]))
        self._passages: dict[str, list[str]] = {}
        self.edited = 0

    def check_own_text(self, text: str) -> None:
        """Check the text of the record: each citation in it has a record, and each record a sentence."""
        recorded = self._recorded()
        found = self._sentences(text)
        there = {_bare(sentence.text) for sentence in found}
        for number, citation in enumerate(self._part["citations"]):
            if _bare(self._marked(citation["sentence"])) not in there:
                self._wrong(f"the text lacks the sentence of citations[{number}], {_named(citation['sentence'])}")
        for sentence in found:
            expected = recorded.get(_bare(sentence.text))
            if expected is None and sentence.ids:
                self._wrong(f"{_named(sentence.text)} cites {self._named(sentence)} without a record")
            self._compare_keys(sentence, expected)
        self._check_quotes(found)

    def check_file(self, text: str, labels: Sequence[tuple[str, str]] = ()) -> None:
        """Check the text of a file that was exported from the record and may have been edited since."""
        before = self._sentences(self._part["text"])
        recorded: dict[str, list[set[str]]] = {}
        for sentence in before:
            recorded.setdefault(_bare(sentence.text), []).append(self._keys(sentence))
        numbered = {_DIGITS.sub("0", words) for words in recorded if _DIGITS.search(words)}
        found = self._sentences(text)
        for sentence in found:
            expected = recorded.get(_bare(sentence.text))
            self._compare_keys(sentence, expected)
            self.edited += expected is None and bool(sentence.ids)
            if expected is None and _DIGITS.sub("0", _bare(sentence.text)) in numbered:
                self._wrong(f"{_named(sentence.text)} has other numbers than in the run")
        changed = [sentence for sentence in found if _bare(sentence.text) not in recorded]
        self._check_foreign(changed)
        self._check_quotes(found)
        self._check_numbers(self._marked(text))
        self._check_labels(labels)

    def _recorded(self) -> dict[str, list[set[str]]]:
        """The keys that the records of citations have for a sentence, by its words."""
        keys: dict[str, set[str]] = {}
        for citation in self._part["citations"]:
            keys.setdefault(_bare(self._marked(citation["sentence"])), set()).add(citation["key"])
        return {words: [cited] for words, cited in keys.items()}

    def _sentences(self, text: str) -> list[CitedSentence]:
        return [item for item in sentences(self._marked(text)) if _bare(item.text)]

    def _marked(self, text: str) -> str:
        """The text with markers in place of citations, without what the run itself says of listed passages."""
        return without_details(self._citable.marked_text(text), self._details)

    def _keys(self, sentence: CitedSentence) -> set[str]:
        return {self._key_of[identifier] for identifier in sentence.ids if identifier in self._key_of}

    def _named(self, sentence: CitedSentence) -> str:
        return ", ".join(sorted(self._keys(sentence))) or "nothing"

    def _compare_keys(self, sentence: CitedSentence, expected: Sequence[set[str]] | None) -> None:
        if expected and self._keys(sentence) not in expected:
            run = ", ".join(sorted(expected[0])) or "nothing"
            self._wrong(f"{_named(sentence.text)} cites {self._named(sentence)}; in the run it cites {run}")

    def _check_foreign(self, changed: Sequence[CitedSentence]) -> None:
        own = " ".join(item["sentence"] for item in self._part.get("own_citations", ()))
        for sentence in changed:
            for item in find_foreign(sentence.text, known_keys=self._shelf.keys(), allowed_text=own):
                words = sentence.text[item.start : item.end]
                if words not in self._quoted(sentence):
                    self._wrong(f"{_named(sentence.text)} cites {words}, which is no evidence of the run")

    def _quoted(self, sentence: CitedSentence) -> str:
        """The verbatim quotations of a sentence."""
        return "\n".join(words for words in _quotations(sentence.text) if self._repeats(words, sentence))

    def _check_quotes(self, found: Sequence[CitedSentence]) -> None:
        for sentence in found:
            for words in _quotations(sentence.text) if sentence.ids else ():
                if not self._repeats(words, sentence):
                    self._wrong(f"the quote {_named(words)} is not in {self._named(sentence)} word for word")

    def _repeats(self, words: str, sentence: CitedSentence) -> bool:
        keys = self._keys(sentence) or set(self._key_of.values())
        return any(is_verbatim(words, passage) for key in keys for passage in self._passages_of(key))

    def _passages_of(self, key: str) -> list[str]:
        """The texts of a paper: of its chunks in the record, and of those in the library."""
        if key not in self._passages:
            recorded = [item.get("chunk_text") or "" for item in self._part["citations"] if item["key"] == key]
            in_library = list(self._shelf.passages(key))
            self._passages[key] = [*dict.fromkeys([*recorded, *in_library]), "\n\n".join(in_library)]
        return self._passages[key]

    def _check_numbers(self, marked: str) -> None:
        own = [*self._part.get("own_citations", ()), *self._part.get("figures", ()), *self._part.get("numbers", ())]
        fields = ("sentence", "caption", "text")
        given = Experiment(results="; ".join(str(item[name]) for item in own for name in fields if name in item))
        for trace in trace_numbers(marked, list(self._sources()), given):
            if trace.origin is None:
                around = marked[max(0, trace.start - 40) : trace.end + 25]
                number = marked[trace.start : trace.end]
                self._wrong(
                    f"the number {number} ({_named(around)}) is neither in the run's text nor in a cited passage"
                )

    def _sources(self) -> Iterator[Source]:
        for item in self._citable.evidence:
            paper = self._shelf.paper(item.key) or Paper(item.key, "")
            yield Source(item, paper, "\n".join(self._passages_of(item.key)))

    def _check_labels(self, labels: Sequence[tuple[str, str]]) -> None:
        """Check that a reader sees the cited paper's authors and year, not only a link that leads to it."""
        for label, key in dict.fromkeys(labels):
            entry = next((item for item in self._part["references"] if item["key"] == key), None)
            said = " ".join([entry["text"], *entry.get("authors", ())]).casefold() if entry else ""
            names = set(_NAME_WORD.findall(label.casefold())) - _BETWEEN_NAMES
            strange = sorted(name for name in names if name not in said)
            if strange:
                self._wrong(f"{_named(label)} stands for {key}, whose reference does not have {', '.join(strange)}")


def _quotations(text: str) -> list[str]:
    return [text[start:end] for start, end in quoted_spans(text) if is_quotation(text[start:end])]


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(fold(MARKER.sub(" ", text)).text.casefold()))


def _named(words: str) -> str:
    return f'"{shown(MARKER.sub("", words))}"'

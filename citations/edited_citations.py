"""Maps the citations of an edited sentence back to evidence markers: `(smith2024)` or `[3]` to `[E3]`.

The user edits the text as it was rendered. A citation that names a paper of the evidence becomes its markers; anything
else stays text, which the checks report when it reads like a citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ..documents import Evidence
from ..documents.marker_escaping import as_text, as_written
from ..settings.config import CitationStyle
from ..text.sentences import replace_spans
from ..text.words import STOP_WORDS, one_line
from .checks.fabricated_citations import NEEDED
from .citation_styles import show_group
from .cited_works import LATEX_CITATION, expand_numbers, is_number_list, pages_in, parse_keys
from .markers import marker_groups, marker_ids, normalise_markers
from .marking import MARKS

_MOST: Final = 3  # passages of a newly cited paper that the sentence is compared with
_GROUP = re.compile(rf"{LATEX_CITATION}|\[(?P<square>[^\[\]]{{1,400}})\]|\((?P<round>[^()]{{1,400}})\)")
_LOCATED = re.compile(r"\s*(\d{1,4}),\s*pp?\.\s*\d[\d\s,\u2013-]{0,80}")
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class CitableEvidence:
    """What an edited sentence may cite: the evidence of the run, and the numbers of its papers."""

    evidence: Sequence[Evidence]
    style: CitationStyle
    numbering: Sequence[str] = ()

    def with_markers(self, words: str, original: str, *, covered: bool = False) -> str:
        """The edited `words` with markers in place of citations; `original` is the unedited sentence with markers.

        If that was `covered` by the citation of a later sentence, words without a citation keep its markers.
        """
        for mark in MARKS.values():  # inserted by rendering
            words = words if mark == NEEDED else words.replace(f" {mark}", "").replace(mark, "")
        words = one_line(words)
        cited = [
            (start, end, "".join(f"[{identifier}]" for identifier in ids))
            for start, end, ids in self._citations(words, original)
        ]
        kept = "".join(f"[{found}]" for found in marker_ids(original)) if covered and words and not cited else ""
        return normalise_markers(replace_spans(words, cited, as_text) + kept)

    def adds_citation(self, words: str, original: str, shown: str) -> bool:
        """Whether edited words have a citation that the sentence did not have as it was `shown`."""
        words = one_line(words)
        return any(words[start:end] not in shown for start, end, _ in self._citations(words, original))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> CitableEvidence:
        """The citable evidence of a published or stored record, with its numbering."""
        evidence = [Evidence.from_dict(dict(item)) for item in record["evidence"]]
        labels = {int(item["label"]): item["key"] for item in record["references"] if str(item["label"]).isdigit()}
        numbering = [labels.get(number, "") for number in range(1, max(labels, default=0) + 1)]
        return cls(evidence, "numeric" if numbering else "key", numbering)

    def text_with_markers(self, text: str) -> str:
        """A whole text with markers in place of citations, line by line."""
        return "\n".join(self.with_markers(line, "") for line in text.splitlines())

    def _groups_of(self, original: str) -> dict[str, tuple[str, ...]]:
        """The citations of the original sentence as they were rendered, with the evidence behind each."""
        by_id = {item.id: item for item in self.evidence}
        numbers = {key: number for number, key in enumerate(self.numbering, 1)}
        groups = [tuple(found for found in ids if found in by_id) for _, _, ids in marker_groups(original)]
        return {show_group(ids, by_id, self.style, numbers): ids for ids in groups if ids}

    def _citations(self, words: str, original: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        known, written = self._groups_of(original), as_written(original)
        before = {identifier for ids in known.values() for identifier in ids}
        named = "|".join(re.escape(shown) for shown in sorted(known, key=len, reverse=True))
        either = re.compile(f"(?P<known>{named})|{_GROUP.pattern}") if named else _GROUP
        for match in either.finditer(words):
            if named and match["known"]:
                yield match.start(), match.end(), known[match["known"]]
                continue
            # A citation from the experiment itself was plain text before and stays so.
            cited = [] if match[0] in written else self._keys(match)
            ids = [found for key, pages in cited for found in self._evidence_for(key, pages, words, before)]
            if ids:
                yield match.start(), match.end(), tuple(dict.fromkeys(ids))

    def _keys(self, match: re.Match[str]) -> list[tuple[str, frozenset[int]]]:
        """The papers that a group names, with the pages; empty if it is not a citation of the evidence."""
        if match["keys"] is not None:
            pages = pages_in(f"p. {match['place'].lstrip('p.~ ')}" if match["place"] else "")
            keys = [key.strip() for key in match["keys"].split(",")]
            return [(key, pages) for key in keys] if all(key in self._held for key in keys) else []
        inside = match["square"] or match["round"]
        located = [(part, _LOCATED.fullmatch(part)) for part in inside.split(";")]
        if match["square"] and self.style == "numeric" and all(at or is_number_list(part) for part, at in located):
            # "1, p. 4; 3": numbers, each with its pages
            cited = [
                (number, pages_in(part) if at else frozenset[int]())
                for part, at in located
                for number in ([int(at[1])] if at else expand_numbers(part))
            ]
            valid = all(1 <= number <= len(self.numbering) for number, _ in cited)
            return [(self.numbering[number - 1], pages) for number, pages in cited] if valid else []
        return [(work.key, work.pages) for work in parse_keys(inside, self._held)]

    @cached_property
    def _held(self) -> frozenset[str]:
        return frozenset(item.key for item in self.evidence)

    def _evidence_for(self, key: str, pages: frozenset[int], words: str, before: set[str]) -> list[str]:
        """The evidence of a paper that a citation stands for.

        The evidence that the sentence already cited, on the named pages if possible; for a newly cited paper, the
        passages that share the most words with the sentence.
        """
        own = [item for item in self.evidence if item.key == key]
        own = [item for item in own if item.page in pages] or own
        if cited := [item.id for item in own if item.id in before]:
            return cited
        said = set(_WORD.findall(words.casefold())) - STOP_WORDS

        def shared(item: Evidence) -> int:
            return len(said.intersection(_WORD.findall(f"{item.quote} {item.summary}".casefold())))

        return [item.id for item in sorted(own, key=lambda item: (-shared(item), item.id))[:_MOST]]

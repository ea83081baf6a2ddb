"""What a person's edits suggest for the memory: words replaced by others, and a spelling. Nothing is learnt from it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from ..citations.checks.preferences import spelling_of
from ..citations.markers import MARKER
from ..errors import InputError
from ..stores.home import Home
from ..text.words import STOP_WORDS, stem
from .edited_text import editable_text, find_text

_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|\S")
_LONGEST: Final = 2  # words that replace others
_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class EditProposal:
    """A line for the memory, the number of edits that suggest it, and some of their sentences, before and after."""

    id: str
    text: str
    edits: int
    examples: list[tuple[str, str]]


def propose_from_edits(home: Home) -> list[EditProposal]:
    """The lines that the edits in finished runs suggest, the most frequent first; blocks."""
    register = home.runs()
    seen: dict[str, list[tuple[str, str]]] = {}
    for thread_id in register.edited():
        try:
            text = editable_text(find_text(home, thread_id), register.edits(thread_id))
        except InputError:
            continue  # deleted meanwhile
        for section in text.sections:
            shown = section.shown()
            changed = [(shown[position - section.first], edit.text) for position, edit in section.edits.items()]
            changed += [
                (MARKER.sub("", sentence.text), MARKER.sub("", section.current(position)))
                for position, sentence in enumerate(section.sentences, section.first)
                if section.imported and position not in section.edits
            ]
            for before, after in changed:
                for line in dict.fromkeys(suggested_lines(before, after)):
                    seen.setdefault(line, []).append((before, after))
    proposals = [
        EditProposal(hashlib.sha256(line.encode()).hexdigest()[:8], line, len(examples), examples[:_EXAMPLES])
        for line, examples in seen.items()
    ]
    return sorted(proposals, key=lambda item: -item.edits)


def suggested_lines(before: str, after: str) -> Iterator[str]:
    """The lines that one edit suggests: "new, not old" for a word or two in place of others, or a spelling."""
    old, new = _WORD.findall(MARKER.sub(" ", before)), _WORD.findall(MARKER.sub(" ", after))
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for kind, first, last, start, end in changes:
        if kind != "replace" or max(last - first, end - start) > _LONGEST:
            continue
        was, now = old[first:last], new[start:end]
        spelled = [spelling_of(one.lower(), other.lower()) for one, other in zip(was, now, strict=False)]
        if all(spelled) and len(was) == len(now):
            yield f"{spelled[0].capitalize()} spelling"
        elif _is_term(was) and _is_term(now) and {*map(stem, was)}.isdisjoint(map(stem, now)):
            yield f"{' '.join(now).lower()}, not {' '.join(was).lower()}"


def _is_term(words: Sequence[str]) -> bool:
    return all(word[0].isalpha() for word in words) and not any(word.lower() in STOP_WORDS for word in words)

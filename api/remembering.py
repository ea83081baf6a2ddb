"""The author's memory: lines that planner and writer respect, and proposals for lines from edits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ..citations.checks.preferences import LONGEST, preference_kind, spelling_of
from ..citations.markers import MARKER
from ..errors import InputError
from ..graph.session import memory_of
from ..runs.edited_text import editable_text, find_text
from ..settings.config import Settings
from ..stores.author_memory import ROOT, AuthorMemory, HomeStore, MemoryNote, UnknownNoteError
from ..stores.home import Home
from ..text.words import STOP_WORDS, one_line, stem
from .arguments import ArgumentError
from .blocking import threaded

if TYPE_CHECKING:
    from .results import MemoryLine, MemoryProposal


@threaded
def alist_memory(settings: Settings, home: Home) -> list[MemoryLine]:
    """Return the user's own lines, then those shared by all users of the library."""
    return [_memory_line(note) for note in _open_memory(settings, home).notes()]


@threaded
def aremember(
    settings: Settings, home: Home, text: str, *, shared: bool = False, note_id: str | None = None
) -> MemoryLine:
    """Add a line, for all users of the library if `shared`, or replace the line `note_id`.

    Raises `ArgumentError` for an empty or overlong line, and `UnknownNoteError`.
    """
    line = _valid_line(text)
    return _memory_line(_open_memory(settings, home, write=True).put(line, shared=shared, note_id=note_id))


@threaded
def aforget(settings: Settings, home: Home, note_id: str) -> MemoryLine:
    """Delete a line by its id or a prefix of it; raises `UnknownNoteError`."""
    return _memory_line(_open_memory(settings, home, write=True).delete(note_id))


@threaded
def apropose_memory(settings: Settings, home: Home) -> list[MemoryProposal]:
    """Propose lines that the edits in finished texts suggest, except known and declined ones; stores nothing."""
    return _open_proposals(_open_memory(settings, home), home)


@threaded
def aanswer_proposal(
    settings: Settings, home: Home, proposal_id: str, *, accept: bool, text: str = "", shared: bool = False
) -> MemoryLine | None:
    """Accept a proposal, with other words if `text` is given, or decline it for good.

    Raises `UnknownNoteError`, and `ArgumentError` for an empty or overlong line.
    """
    memory = _open_memory(settings, home, write=True)
    found = [item for item in _open_proposals(memory, home) if proposal_id and item["id"].startswith(proposal_id)]
    if len(found) != 1:
        raise UnknownNoteError(
            f"There is no proposal {proposal_id[:40]!r}.", help="See '{citeloom} memory proposals' for the ids."
        )
    if accept:
        return _memory_line(memory.put(_valid_line(text or found[0]["text"]), shared=shared))
    memory.decline(found[0]["id"])
    return None


def _valid_line(text: str) -> str:
    line = one_line(text)
    if not line or len(line) > LONGEST:
        raise ArgumentError(f"text: expected a line of 1 to {LONGEST} characters, got {len(line)}.")
    return line


def _open_proposals(memory: AuthorMemory, home: Home) -> list[MemoryProposal]:
    known, declined = {note.text.casefold() for note in memory.notes()}, memory.declined_proposals()
    found = propose_from_edits(home)
    return [item for item in found if item["id"] not in declined and item["text"].casefold() not in known]


def _memory_line(note: MemoryNote) -> MemoryLine:
    return {
        "id": note.id,
        "text": note.text,
        "kind": preference_kind(note.text),
        "shared": note.shared,
        "added_at": note.added_at,
    }


def _open_memory(settings: Settings, home: Home, *, write: bool = False) -> AuthorMemory:
    home.require_library()
    return memory_of(settings, home.prepare() if write else home)


_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|\S")
_LONGEST: Final = 2  # words of a replacement that suggests a term
_EXAMPLES: Final = 3


def propose_from_edits(home: Home) -> list[MemoryProposal]:
    """Return the lines that the edits in finished runs suggest, the most frequent first; blocks."""
    register = home.runs()
    seen: dict[str, list[list[str]]] = {}
    for thread_id in register.edited_ids():
        try:
            text = editable_text(find_text(home, thread_id), register.edits(thread_id))
        except InputError:
            continue  # deleted meanwhile
        for section in text.sections:
            shown = section.as_shown()
            changed = [(shown[position - section.first], edit.text) for position, edit in section.edits.items()]
            changed += [
                (MARKER.sub("", sentence.text), MARKER.sub("", section.current(position)))
                for position, sentence in enumerate(section.sentences, section.first)
                if section.imported and position not in section.edits
            ]
            for before, after in changed:
                for line in dict.fromkeys(suggested_lines(before, after)):
                    seen.setdefault(line, []).append([before, after])
    proposals: list[MemoryProposal] = [
        {"id": sha256(line.encode()).hexdigest()[:8], "text": line, "edits": len(pairs), "examples": pairs[:_EXAMPLES]}
        for line, pairs in seen.items()
    ]
    return sorted(proposals, key=lambda item: -item["edits"])


def suggested_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines that one edit suggests: "new, not old" for one or two replaced words, or a spelling."""
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

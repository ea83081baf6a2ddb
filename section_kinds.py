"""The kinds of sections, and what sets each apart (`section_kinds.toml`), from which commands, prompts and checks are
derived; and the choices of a run that settings and commands both offer.

Fields are paths of an experiment (`paper_concept.description`). Only the standard library is imported: `--help` reads
this too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

Depth = Literal["brief", "standard", "thorough"]  # how much a text says
Ask = Literal["needs", "evidence", "sentences", "budget", "all"]  # what a run may ask a person, in its order
CitationFields = Literal["zotero", "text"]  # how a Word or LibreOffice document cites
SectionKind = Literal["introduction", "methods", "results", "discussion", "conclusion", "abstract"]
SECTION_KINDS: tuple[SectionKind, ...] = get_args(SectionKind)

# A section is written after the sections that it sums up.
WRITING_ORDER: tuple[SectionKind, ...] = ("methods", "results", "discussion", "conclusion", "introduction", "abstract")
PAPER_ORDER: tuple[SectionKind, ...] = ("abstract", "introduction", "methods", "results", "discussion", "conclusion")


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """What sets a kind of section apart."""

    purpose: str  # what it says, for `--help` and completion
    required: Sequence[Sequence[str]]  # it can be written when each group has at least one field with text
    queried: Sequence[str]  # fields that the default queries are made of, one each
    prompted: Sequence[str]  # fields that it is written from; the whole experiment would drown what matters
    stated: Sequence[str] = ()  # fields that it is about; the user's own citations in them belong in it
    sums_up: Sequence[SectionKind] = ()  # sections of the same paper that its writer is shown
    must_cite: bool = False  # whether a draft without citations is a fault where there are sources
    weighs_studies: bool = False  # whether it may rest on evidence tables

    @property
    def needs(self) -> str:
        """The required fields as a message names them: "a; b, c or d"."""
        return "; ".join(" or ".join(filter(None, (", ".join(group[:-1]), group[-1]))) for group in self.required)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SECTIONS: Final[Mapping[SectionKind, SectionSpec]] = {kind: SectionSpec(**_TABLE[kind]) for kind in SECTION_KINDS}

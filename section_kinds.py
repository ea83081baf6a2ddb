"""The kinds of sections (`section_kinds.toml`), from which commands, prompts and checks are derived, and the choices of
a run that settings and commands both offer.

Fields are paths of an experiment (`paper_concept.description`). Imports stay light, since `--help` needs this module.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from .plurals import join_words

Depth = Literal["brief", "standard", "thorough"]  # how much a text says
Ask = Literal["needs", "evidence", "sentences", "budget", "all"]  # what a run may ask a person, in its order
CitationFields = Literal["zotero", "text"]  # how a Word or LibreOffice document cites
SectionKind = Literal["introduction", "methods", "results", "discussion", "conclusion", "abstract"]
SECTION_KINDS: tuple[SectionKind, ...] = get_args(SectionKind)

# A section is written after the sections that it summarizes.
WRITING_ORDER: tuple[SectionKind, ...] = ("methods", "results", "discussion", "conclusion", "introduction", "abstract")
PAPER_ORDER: tuple[SectionKind, ...] = ("abstract", "introduction", "methods", "results", "discussion", "conclusion")


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """What distinguishes a kind of section."""

    purpose: str  # for `--help` and completion
    required: Sequence[Sequence[str]]  # the section can be written when each group has at least one field with text
    queried: Sequence[str]  # fields from which the default queries are made, one each
    prompted: Sequence[str]  # fields shown to the writer; the whole experiment would drown what matters
    stated: Sequence[str] = ()  # fields that the section restates, including the user's own citations in them
    sums_up: Sequence[SectionKind] = ()  # sections of the same paper that the writer is shown
    must_cite: bool = False  # whether a draft without citations is a fault if there are sources
    weighs_studies: bool = False  # whether the section may be based on evidence tables

    @property
    def needs(self) -> str:
        """The required fields as a message names them: "a; b, c or d"."""
        return "; ".join(join_words(group, "or") for group in self.required)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SECTIONS: Final[Mapping[SectionKind, SectionSpec]] = {kind: SectionSpec(**_TABLE[kind]) for kind in SECTION_KINDS}

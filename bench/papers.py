"""The papers and the experiment used for measurements: the real ones if available, else the samples."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
PDFS = SHARED / "corpus" / "pdfs"
GROUPS = 4  # ingested and embedded alternately
FEWEST, MOST = 12_000, 50_000  # characters of a paper: neither letters nor books, so that groups are similar


@dataclass(frozen=True)
class Material:
    """Groups of papers, their `.bib`, an experiment, a description, and PDFs if any."""

    groups: tuple[tuple[Path, ...], ...]
    bib: Path
    experiment: Path
    note: str
    pdfs: tuple[Path, ...] = ()


def material() -> Material:
    """Eight real papers from CITELOOM_SHARED, or from ../shared; the samples when there are none."""
    papers = [
        path for path in sorted((SHARED / "corpus" / "papers").glob("*.md")) if FEWEST < path.stat().st_size < MOST
    ]
    pdfs = tuple(sorted(PDFS.glob("*.pdf")))
    experiments = sorted((SHARED / "experiments").glob("*.json"))
    if len(papers) >= 2 * GROUPS and experiments:
        chosen = papers[:: len(papers) // (2 * GROUPS)][: 2 * GROUPS]
        note = f"{len(chosen)} real papers of the corpus"
        return Material(_group_by_size(chosen), SHARED / "corpus" / "library.bib", experiments[0], note, pdfs)
    samples = ROOT / "examples" / "library"
    note = "the sample papers of examples/library, since there are no real ones (set CITELOOM_SHARED)"
    groups = _group_by_size(sorted(samples.glob("*.md")))
    return Material(groups, samples / "library.bib", ROOT / "examples" / "exp.json", note, pdfs)


def available_pdfs(part: str, names: Iterable[str]) -> set[str]:
    """The names, without `.pdf`, of the PDFs that are there; prints one line about the others."""
    wanted = dict.fromkeys(names)
    available = {name for name in wanted if (PDFS / f"{name}.pdf").is_file()}
    if missing := [name for name in wanted if name not in available]:
        print(f"{part}: skipped {', '.join(missing)}, since {PDFS} does not have them (set CITELOOM_SHARED)\n")
    return available


def _group_by_size(papers: list[Path]) -> tuple[tuple[Path, ...], ...]:
    """Groups of similar size in bytes: papers are placed largest first, each into the smallest group."""
    groups: list[list[Path]] = [[] for _ in range(min(GROUPS, len(papers)))]
    for paper in sorted(papers, key=lambda path: -path.stat().st_size):
        min(groups, key=lambda group: sum(path.stat().st_size for path in group)).append(paper)
    return tuple(tuple(group) for group in groups)

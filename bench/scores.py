"""How well claims are checked, mostly without a model: `make scores DATA=folder`; docs/scores.md keeps the figures.

The folder holds the data, and whatever is missing is skipped with a message:

- `citation-integrity`: a clone of `ScienceNLP-Lab/Citation-Integrity` with its history, for `citation_integrity`;
- `papers` and `library.bib`: papers in Markdown, named by their keys, for `mutated_papers`;
- `evidence-inference`: a clone of `jayded/evidence-inference`, for `evidence_inference`; this one needs a chat model
  (CITELOOM_CHAT_MODEL and what goes with it), at most two requests per article, and is skipped without one.

Libraries are built once in `homes` of that folder, which takes minutes. None of the data is copied elsewhere.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import citation_integrity, evidence_inference, mutated_papers
from citeloom.settings.config import Settings, load_settings


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scores", description="Measures how well claims are checked.")
    parser.add_argument("data", type=Path, help="folder with the data")
    parser.add_argument("--claims", type=int, default=606, help="maximum number of claims of Citation-Integrity")
    parser.add_argument("--changes", type=int, default=600, help="number of planted faults")
    parser.add_argument("--untouched", type=int, default=1_500, help="number of sentences without a fault")
    parser.add_argument("--labelled", type=int, default=300, help="maximum of sentences labelled as citing or not")
    parser.add_argument("--articles", type=int, default=18, help="number of trials of Evidence Inference")
    parser.add_argument("--only", choices=["integrity", "mutated", "inference"], help="one of the measurements")
    parser.add_argument("--seed", type=int, default=26)
    given = parser.parse_args()
    if not given.data.is_dir():
        parser.error(f"{given.data}: no such folder; give the one with the data, as in `make scores DATA=../scores`.")
    with_model = load_settings()
    for name in [name for name in os.environ if name.startswith("CITELOOM_")]:
        del os.environ[name]
    homes = given.data / "homes"
    if given.only in (None, "inference"):
        _measure_inference(given.data / "evidence-inference", homes, given.articles, given.seed, with_model)
    if given.only == "inference":
        return
    print(f"{datetime.now(UTC):%Y-%m-%d}, bundled embedding model, no chat model, no prompt\n")
    repository = given.data / "citation-integrity"
    if given.only == "mutated":
        pass
    elif repository.exists():
        citation_integrity.measure(repository, homes / "citation-integrity", given.claims, given.seed)
    else:
        print(f"{repository}: missing, so Citation-Integrity is left out.", file=sys.stderr)
    papers, bib = given.data / "papers", given.data / "library.bib"
    if given.only == "integrity":
        pass
    elif papers.is_dir() and bib.is_file():
        print()
        mutated_papers.measure(
            papers,
            bib,
            homes / "papers",
            changes=given.changes,
            untouched=given.untouched,
            labelled=given.labelled,
            seed=given.seed,
        )
    else:
        print(f"{papers}, {bib}: missing, so the mutated papers are left out.", file=sys.stderr)


def _measure_inference(repository: Path, homes: Path, articles: int, seed: int, settings: Settings) -> None:
    if not settings.chat_model or not repository.exists():
        print(f"{repository}, or a chat model: missing, so Evidence Inference is left out.", file=sys.stderr)
        return
    evidence_inference.measure(repository, homes / "evidence-inference", articles, seed, settings)
    print()


if __name__ == "__main__":
    main()

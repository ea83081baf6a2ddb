"""How many facts that an answer should contain are found, read and shown to the writer; calls no model.

`python -m bench coverage [--questions d01,d04] [--single-shot] [--needs FILE] [--named FILE] [--home FOLDER]
[--json]`. The questions and their weighted facts are in `../shared/standin/rubrics.json`, over the papers of
`../shared/corpus/papers`. A fact counts for a stage when the words near it in its paper are in the input of that stage:

- searched: everything that any search of the indexes returned, an upper bound for what could be read;
- proposed: the candidates for reading;
- read: what a reader was shown;
- shown: the contents of the writer's prompt.

A second table counts papers: of the papers that hold a fact, how many were named by their cards, found by searches,
read, and cited by the extractive writer.

With `--needs` the searches come from a file of needs planned by a model instead of from the rules; with `--named` the
papers of broad questions come from a file too, as a model chose them by their cards: `{question id: [key, ...]}`.

The library is built once, which takes minutes since the bundled model embeds it, and then reused. Its home is FOLDER,
else CITELOOM_BENCH_HOME, else a folder of the user's cache.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.papers import ROOT
from bench.recording import Passage, RecordingBench, RecordingLibrary, Seen, ask
from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.models.journal.journal import Journal
from citeloom.prompts import PromptLibrary
from citeloom.roles.protocols import Need
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library

STAGES: Final = ("searched", "proposed", "read", "shown")
PAPER_STAGES: Final = ("cards", "searched", "read", "cited")
CONTEXT: Final = 1_000_000  # tokens: nothing is shortened, and no server is asked for its size
_USUAL_HOME: Final = Path("~/.cache/citeloom-bench/corpus")


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact with its weight and places: the words near it, and the papers that may contain them."""

    text: str
    weight: float
    places: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the rubrics."""

    id: str
    text: str
    facts: tuple[Fact, ...]

    @property
    def papers(self) -> frozenset[str]:
        """The keys of the papers that hold a fact."""
        return frozenset(key for fact in self.facts for _, keys in fact.places for key in keys)


@dataclass(frozen=True, slots=True)
class Covered:
    """The result for one question: for each fact the stages it reached, and how much was read and shown.

    `papers` are the papers that reached a stage, by its name.
    """

    question: Question
    reached: tuple[frozenset[str], ...]
    papers: Mapping[str, frozenset[str]]
    words_read: int
    passages_read: int
    papers_read: int
    words_shown: int
    answered: bool

    @property
    def weight(self) -> float:
        return sum(fact.weight for fact in self.question.facts)

    def covered(self, stage: str) -> float:
        """The total weight of the facts that reached a stage."""
        facts = zip(self.question.facts, self.reached, strict=True)
        return sum(fact.weight for fact, stages in facts if stage in stages)

    def found_papers(self, stage: str) -> int:
        """The number of papers with a fact that reached a stage."""
        return len(self.question.papers & self.papers[stage])

    def as_dict(self) -> dict[str, Any]:
        """The record of `--json`."""
        facts = zip(self.question.facts, self.reached, strict=True)
        return {
            "id": self.question.id,
            "weight": self.weight,
            **{stage: round(self.covered(stage) / self.weight, 4) for stage in STAGES},
            "words_read": self.words_read,
            "passages_read": self.passages_read,
            "papers_read": self.papers_read,
            "words_shown": self.words_shown,
            "answered": self.answered,
            "papers": len(self.question.papers),
            "papers_found": {stage: self.found_papers(stage) for stage in PAPER_STAGES},
            "facts": [
                {"fact": fact.text, "weight": fact.weight, "reached": [stage for stage in STAGES if stage in stages]}
                for fact, stages in facts
            ],
        }


def measure(
    home: Path | None = None,
    questions: Sequence[str] = (),
    *,
    single_shot: bool = False,
    as_json: bool = False,
    needs: Path | None = None,
    named: Path | None = None,
) -> None:
    """Print the table or one JSON object, or a message when there are no rubrics or papers."""
    shared = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
    if not (shared / "standin/rubrics.json").is_file() or not (shared / "corpus/papers").is_dir():
        print(f"skipped, since {shared} does not have the rubrics and the papers (set CITELOOM_SHARED)")
        return
    given = rubrics(shared / "standin/rubrics.json")
    if unknown := set(questions) - {question.id for question in given}:
        raise SystemExit(f"coverage: unknown question: {', '.join(sorted(unknown))}")
    asked = [question for question in given if not questions or question.id in questions]
    missing = misplaced(asked, shared / "corpus/papers")
    place = (home or _USUAL_HOME).expanduser()
    planned = {} if needs is None else planned_needs(needs, asked)
    papers = {} if named is None else find_mentions(named, asked)
    covered = asyncio.run(_measure_questions(asked, place, shared / "corpus", planned, papers, single_shot=single_shot))
    print(json.dumps(_record(covered, missing), ensure_ascii=False, indent=1) if as_json else _table(covered, missing))


def rubrics(path: Path) -> list[Question]:
    """The questions of a rubrics file; a fact stated at several places is covered by any of them."""
    return [
        Question(
            record["id"],
            record["question"],
            tuple(
                Fact(
                    fact["fact"],
                    fact["weight"],
                    (
                        (fact["near"], tuple(fact["keys"])),
                        *((other["near"], (other["key"],)) for other in fact.get("also", ())),
                    ),
                )
                for fact in record["facts"]
            ),
        )
        for record in json.loads(path.read_text(encoding="utf-8"))
    ]


def plain(text: str) -> str:
    """The words and numbers of a text, so that line breaks, emphasis, dashes and capitals make no difference."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(words)} "


def misplaced(questions: Iterable[Question], papers: Path) -> list[str]:
    """Name each place of a fact that none of its papers contains, and that therefore cannot be counted."""
    texts = {path.stem: plain(path.read_text(encoding="utf-8")) for path in papers.glob("*.md")}
    return [
        f"{question.id}: {near!r} is not in {' or '.join(keys)}"
        for question in questions
        for fact in question.facts
        for near, keys in fact.places
        if not any(plain(near) in texts.get(key, "") for key in keys)
    ]


def reached(facts: Sequence[Fact], handed: dict[str, Collection[Passage]]) -> tuple[frozenset[str], ...]:
    """For each fact, the stages (keys of `handed`) whose input contained a passage that states it, from its papers."""
    texts = {stage: [(passage.key, plain(passage.text)) for passage in passages] for stage, passages in handed.items()}

    def holds(near: str, keys: tuple[str, ...], stage: str) -> bool:
        return any((not key or key in keys) and plain(near) in text for key, text in texts[stage])

    return tuple(
        frozenset(stage for stage in texts if any(holds(near, keys, stage) for near, keys in fact.places))
        for fact in facts
    )


def planned_needs(path: Path, questions: Sequence[Question]) -> dict[str, tuple[Need, ...]]:
    """The needs of a file `{question id: [{"need": ..., "queries": [...]}]}`, by the question's text."""
    given = json.loads(path.read_text(encoding="utf-8"))
    return {
        question.text: tuple(
            Need(f"N{number}", item["need"], tuple(item["queries"]))
            for number, item in enumerate(given[question.id], 1)
        )
        for question in questions
        if question.id in given
    }


def find_mentions(path: Path, questions: Sequence[Question]) -> dict[str, tuple[str, ...]]:
    """The papers of a file `{question id: [key, ...]}`, by the question's text."""
    given = json.loads(path.read_text(encoding="utf-8"))
    return {question.text: tuple(given[question.id]) for question in questions if question.id in given}


async def _measure_questions(
    questions: Sequence[Question],
    home: Path,
    corpus: Path,
    planned: Mapping[str, tuple[Need, ...]],
    named: Mapping[str, tuple[str, ...]],
    *,
    single_shot: bool,
) -> list[Covered]:
    library = RecordingLibrary.open(FolderHome(home), LocalEmbedding(), on_notice=_log)
    try:
        await _complete(library, corpus)
        with Journal(library.home.journal) as journal:
            settings = Settings(context_tokens=CONTEXT)
            prompts = PromptLibrary(None)
            bench = RecordingBench(settings, library.home, library, journal, prompts, planned=planned, named=named)
            found = []
            for question in questions:
                seen, result = await ask(question.text, bench, single_shot=single_shot)
                found.append(_of(question, seen, library, result))
                _log(f"coverage: {question.id}, {len(seen.read)} passages read")
            return found
    finally:
        library.close()


async def _complete(library: Library, corpus: Path) -> None:
    """Index the papers that the home lacks."""
    have = {paper.key for paper in library.papers()}
    if missing := [path for path in sorted((corpus / "papers").glob("*.md")) if path.stem not in have]:
        _log(f"coverage: indexing {len(missing)} papers in {library.home.root}; takes minutes, but only once ...")
        await ingest(library, missing, bib=corpus / "library.bib")


def _of(question: Question, seen: Seen, library: Library, result: Mapping[str, Any]) -> Covered:
    def passages(ids: Iterable[str]) -> list[Passage]:
        return [Passage(chunk.key, chunk.text) for chunk in library.chunks(list(ids))]

    handed: dict[str, Collection[Passage]] = {
        "searched": [*passages(seen.searched), *seen.read],
        "proposed": [*passages(seen.proposed), *seen.read],
        "read": seen.read,
        "shown": seen.shown,
    }
    screened = result["route"].get("screened", {"opened": ()})
    papers = {
        "cards": frozenset(screened["opened"]),
        "searched": frozenset(passage.key for passage in handed["searched"]),
        "read": frozenset(passage.key for passage in seen.read),
        "cited": frozenset(citation["key"] for citation in result["citations"]),
    }
    return Covered(
        question,
        reached(question.facts, handed),
        papers,
        words_read=sum(len(passage.text.split()) for passage in seen.read),
        passages_read=len(seen.read),
        papers_read=len({passage.key for passage in seen.read}),
        words_shown=sum(len(passage.text.split()) for passage in seen.shown),
        answered=result["answered"],
    )


def _record(covered: Sequence[Covered], missing: Sequence[str]) -> dict[str, Any]:
    weight = sum(item.weight for item in covered)
    return {
        "weight": weight,
        **{stage: round(sum(item.covered(stage) for item in covered) / weight, 4) for stage in STAGES},
        "papers": sum(len(item.question.papers) for item in covered),
        "papers_found": {stage: sum(item.found_papers(stage) for item in covered) for stage in PAPER_STAGES},
        "not_in_their_papers": list(missing),
        "questions": [item.as_dict() for item in covered],
    }


def _table(covered: Sequence[Covered], missing: Sequence[str]) -> str:
    lines = [
        "| question | weight | searched | proposed | read | shown to the writer | words read | passages | papers"
        " | words shown | answered |",
        "|---" * 11 + "|",
    ]
    for item in covered:
        shares = " | ".join(f"{item.covered(stage) / item.weight:.2f}" for stage in STAGES)
        sizes = f"{item.words_read} | {item.passages_read} | {item.papers_read} | {item.words_shown}"
        lines.append(
            f"| {item.question.id} | {item.weight:g} | {shares} | {sizes} | {'yes' if item.answered else 'no'} |"
        )
    weight, count = sum(item.weight for item in covered), len(covered)
    shares = " | ".join(f"{sum(item.covered(stage) for item in covered) / weight:.2f}" for stage in STAGES)
    sums = [
        sum(getattr(item, name) for item in covered) / count
        for name in ("words_read", "passages_read", "papers_read", "words_shown")
    ]
    means = f"{sums[0]:.0f} | {sums[1]:.1f} | {sums[2]:.1f} | {sums[3]:.0f}"
    lines.append(f"| all | {weight:g} | {shares} | {means} | {sum(item.answered for item in covered)} of {count} |")
    return "\n".join([*lines, "", *_paper_rows(covered), *(f"not found: {line}" for line in missing)])


def _paper_rows(covered: Sequence[Covered]) -> list[str]:
    """The rows of the table of papers: how many of the papers with a fact reached each stage."""
    rows = [
        (item.question.id, len(item.question.papers), [item.found_papers(stage) for stage in PAPER_STAGES])
        for item in covered
    ]
    sums = [sum(found) for found in zip(*(found for _, _, found in rows), strict=True)]
    rows.append(("all", sum(papers for _, papers, _ in rows), sums))
    return [
        "| question | papers with a fact | named by cards | found by search | read | cited |",
        "|---" * 6 + "|",
        *(f"| {name} | {papers} | {' | '.join(map(str, found))} |" for name, papers, found in rows),
    ]


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

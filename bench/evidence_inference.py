"""Evidence Inference: do stances on claims, and their words, agree with physicians who read the trials?

The data is a clone of `jayded/evidence-inference` (MIT licence): articles as JATS, prompts (intervention, comparator,
outcome), and for each the direction that readers found (increased, decreased, no significant difference) with its
words. Each prompt becomes a claim (half of them with the wrong direction), and the stance on it is turned back into a
direction: "for" a claim that says "lowers" is "decreased". Each article is one table whose columns are its claims, as
in `contradictions`.
"""

from __future__ import annotations

import asyncio
import csv
import io
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.citation_integrity import git_text, letters
from citeloom import Settings, ingest, open_library
from citeloom.api.evidence_tables import complete_table
from citeloom.evidence_tables.cells import stance_column, stance_of
from citeloom.stores.evidence_table_register import StoredTable

_DIRECTIONS = {"1": "increased", "-1": "decreased", "0": "no difference"}
_OPPOSITE = {"increased": "decreased", "decreased": "increased"}
_FEWEST_PROMPTS = 4  # of a drawn article
_MOST_PROMPTS = 6
_RUN = 40  # letters in a row that words must share with an annotation to count as found


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question about one trial, with the direction and the words that its readers agree on."""

    article: str
    claim: str
    claimed: str
    direction: str
    words: tuple[str, ...]

    def direction_of(self, stance: str) -> str:
        """The direction of the outcome that a stance on the claim implies; empty for no stance."""
        if stance == "no difference":
            return stance
        return {"for": self.claimed, "against": _OPPOSITE[self.claimed]}.get(stance, "")


def measure(repository: Path, home: Path, articles: int, seed: int, settings: Settings) -> None:
    """Print direction accuracy, precision of "against" and recall of the words, with the number of requests."""
    drawn = draw_prompts(repository, articles, seed)
    head = git_text(repository, "rev-parse", "--short", "HEAD").strip()
    print(f"Evidence Inference {head}, MIT licence, seed {seed}, model {settings.chat_model}")
    print(f"{len(drawn)} prompts of {len({prompt.article for prompt in drawn})} articles", flush=True)
    with open_library(home, settings=settings) as library:
        keys = _index(library, repository, home, sorted({prompt.article for prompt in drawn}))
    cells, calls = asyncio.run(_stances(home, settings, keys, drawn))
    for line in score_stances(drawn, cells):
        print(line)
    print(f"{calls} requests")


def score_stances(prompts: Sequence[Prompt], cells: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """The figures as lines; `cells` are the cells of the prompts' claims, None where a paper was left out."""
    stances = [stance_of(cell) if cell else "" for cell in cells]
    confused = Counter(
        (prompt.direction, prompt.direction_of(stance) or stance or "silent")
        for prompt, stance in zip(prompts, stances, strict=True)
    )
    right = [prompt.direction_of(stance) == prompt.direction for prompt, stance in zip(prompts, stances, strict=True)]
    against = [item for item, stance in zip(right, stances, strict=True) if stance == "against"]
    words = [
        cell is not None and any(overlaps(words, _quotes(cell)) for words in prompt.words)
        for prompt, cell in zip(prompts, cells, strict=True)
    ]
    figures = {"direction right": right, '"against" right': against, "readers' words among the cell's": words}
    lines = [
        f"{name}: {sum(items)} of {len(items)} ({sum(items) / max(1, len(items)):.3f})"
        for name, items in figures.items()
    ]
    return [*lines, *(f"  {wanted} -> {given}: {number}" for (wanted, given), number in sorted(confused.items()))]


def overlaps(words: str, quote: str) -> bool:
    """Whether a quote and words of an annotation have a run of letters in common, or one contains the other."""
    one, other = sorted((letters(words), letters(quote)), key=len)
    if len(one) <= _RUN:
        return bool(one) and one in other
    return any(one[start : start + _RUN] in other for start in range(len(one) - _RUN + 1))


def _quotes(cell: Mapping[str, Any]) -> str:
    return " ".join(span["quote"] for item in (cell, *cell["alternatives"]) for span in item["spans"])


def draw_prompts(repository: Path, articles: int, seed: int) -> list[Prompt]:
    """The prompts (of some articles) on whose direction all valid readers agree, each as a claim."""
    chance = random.Random(seed)
    asked = {row["PromptID"]: row for row in _table(repository, "prompts_merged")}
    read: dict[tuple[str, str], list[Mapping[str, str]]] = defaultdict(list)
    for row in _table(repository, "v2_annotations"):
        if row["Valid Label"] == "True" and row["PromptID"] in asked:
            read[row["PMCID"], row["PromptID"]].append(row)
    agreed: dict[str, list[str]] = defaultdict(list)
    for (article, name), rows in read.items():
        if len({row["Label Code"] for row in rows}) == 1 and rows[0]["Label Code"] in _DIRECTIONS:
            agreed[article].append(name)
    able = sorted(article for article, names in agreed.items() if len(names) >= _FEWEST_PROMPTS)
    drawn: list[Prompt] = []
    for article in chance.sample(able, min(articles, len(able))):
        for name in agreed[article][:_MOST_PROMPTS]:
            claimed, rows, row = chance.choice([*_OPPOSITE]), read[article, name], asked[name]
            verb = "increases" if claimed == "increased" else "lowers"
            claim = f"{row['Intervention']} {verb} {row['Outcome']} compared with {row['Comparator']}"
            words = tuple(item["Annotations"] for item in rows)
            drawn.append(Prompt(article, " ".join(claim.split()), claimed, _DIRECTIONS[rows[0]["Label Code"]], words))
    return drawn


async def _stances(
    home: Path, settings: Settings, keys: Mapping[str, str], prompts: Sequence[Prompt]
) -> tuple[list[dict[str, Any] | None], int]:
    """The cell of each prompt's claim, and the number of requests."""
    from citeloom import aopen_library

    by_article: dict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        by_article[prompt.article].append(prompt)
    async with await aopen_library(home, settings=settings) as session:

        async def table(article: str) -> dict[str, Any]:
            claims = [prompt.claim for prompt in by_article[article]]
            columns = tuple(stance_column(claim, f"claim {number}") for number, claim in enumerate(claims, 1))

            async def describe(*_: Any) -> Any:
                return columns

            stored = StoredTable(
                f"evidence-inference-{article}", "the claims of the columns", {"papers": [keys[article]]}
            )
            return await complete_table(session, stored, describe, lambda _: None, lambda _: claims)

        made = dict(zip(by_article, await asyncio.gather(*map(table, by_article)), strict=True))
    cells: list[dict[str, Any] | None] = []
    for prompt in prompts:
        rows, number = made[prompt.article]["rows"], by_article[prompt.article].index(prompt) + 1
        told = [row["cells"][f"claim {number}"] for row in rows if row["cells"][f"claim {number}"]["value"]]
        cells.append(told[0] if told else None)
    return cells, sum(item["usage"]["llm_calls"] for item in made.values())


def _index(library: Any, repository: Path, home: Path, articles: Sequence[str]) -> dict[str, str]:
    """Add missing articles to the library; returns the keys of all articles by name."""
    folder = home.parent / "evidence-inference-articles"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"PMC{article}.xml" for article in articles]
    for file in files:
        if not file.exists():
            text = git_text(repository, "show", f"HEAD:annotations/xml_files/{file.stem}.nxml")
            file.write_text(text, encoding="utf-8")
    ingest(library, files)
    papers = {Path(paper.source).stem.removeprefix("PMC"): paper.key for paper in library.library.papers()}
    return {article: papers[article] for article in articles}


def _table(repository: Path, name: str) -> list[dict[str, str]]:
    text = git_text(repository, "show", f"HEAD:annotations/{name}.csv")
    return list(csv.DictReader(io.StringIO(re.sub(r"\r\n?", "\n", text))))

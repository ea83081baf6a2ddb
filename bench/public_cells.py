"""Cells of tables against three public sets: `python -m bench.public_cells SET REPOSITORY HOME`.

Each set is a clone of a public repository, read at its HEAD and never copied elsewhere:

- `golden`: `khoj-ai/openpaper` (AGPL), the hand-verified columns of `server/evals` over three PDFs;
- `aclsum`: `sobamchan/aclsum` (MIT), sentences that experts marked for three aspects of papers, of the test split;
- `healthver`: `sarrouti/HealthVer`, claims with a sentence or two of an abstract: supports, refutes, neutral.

The chat model is set by CITELOOM_CHAT_MODEL. Without one, `aclsum` measures the nearest sentences.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import json
import random
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.citation_integrity import git_text
from bench.claim_labels import mean_score
from bench.evidence_inference import overlaps
from citeloom import Settings, aopen_library, ingest, open_library
from citeloom.api.evidence_tables import complete_table
from citeloom.citations.checks.number_parsing import given_numbers
from citeloom.evidence_tables.cells import stance_column, stance_of
from citeloom.roles.protocols import TableColumn
from citeloom.settings.config import load_settings
from citeloom.stores.evidence_table_register import StoredTable

_GOLDEN = "server/evals"
_ASPECTS = {
    "challenge": "the problem or gap in the current situation that the authors set out from",
    "approach": "how the authors carry out the work: what they propose, build or investigate",
    "outcome": "what they found or conclude, as the result of the work",
}
_HEADINGS = ("abstract", "introduction", "conclusion")
_LABEL_OF = {"for": "Supports", "against": "Refutes", "no difference": "Refutes"}  # any other stance, or none: neutral


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.public_cells", description=__doc__)
    parser.add_argument("set", choices=["golden", "aclsum", "healthver"])
    parser.add_argument("repository", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--drawn", type=int, default=40, help="number of papers of ACLSum, or of pairs of HealthVer")
    parser.add_argument("--seed", type=int, default=27)
    given = parser.parse_args()
    settings = load_settings()
    head = git_text(given.repository, "rev-parse", "--short", "HEAD").strip()
    print(f"{given.set} at {head}, seed {given.seed}, model {settings.chat_model or 'none'}", flush=True)
    run = {"golden": _golden, "aclsum": _aclsum, "healthver": _healthver}[given.set]
    for line in run(given.repository, given.home, random.Random(given.seed), given.drawn, settings):
        print(line)


def _golden(repository: Path, home: Path, chance: random.Random, drawn: int, settings: Settings) -> Iterable[str]:
    manifest = json.loads(git_text(repository, "show", f"HEAD:{_GOLDEN}/data_table_eval_manifest.json"))
    papers = [paper for paper in manifest["papers"] if paper["key"] != "metadata_prefill"]  # authors and year only
    files = {}
    for paper in papers:
        show = ["git", "-C", str(repository), "show", f"HEAD:{_GOLDEN}/seed_data/{paper['file']}"]
        files[paper["key"]] = _write(home, paper["file"], subprocess.run(show, capture_output=True, check=True).stdout)
    columns = {
        paper["key"]: [
            TableColumn(f"column {place}", column["label"], "text", queries=(column["label"],))
            for place, column in enumerate(paper["columns"], 1)
        ]
        for paper in papers
    }
    rows, calls = _read(home, settings, files, columns)
    counts: Counter[tuple[str, bool]] = Counter()
    for paper in papers:
        for place, column in enumerate(paper["columns"], 1):
            cell = rows[paper["key"]].get(f"column {place}")
            right = _is_golden(column, cell)
            kind = "not reported" if column.get("expect_na") else column["kind"]
            counts[kind, right] += 1
            if not right:
                wanted = column.get("expected", column.get("expected_elements"))
                yield f"  {column['label']}: wanted {wanted}, got {(cell or {}).get('value')!r}"
    for kind in dict.fromkeys(kind for kind, _ in counts):
        yield f"{kind}: {counts[kind, True]} of {counts[kind, True] + counts[kind, False]}"
    yield f"all: {sum(n for (_, right), n in counts.items() if right)} of {counts.total()}; {calls} requests"


def _is_golden(column: Mapping[str, Any], cell: Mapping[str, Any] | None) -> bool:
    value = " ".join(item["value"] for item in (cell, *cell["alternatives"])) if cell else ""
    if column.get("expect_na"):
        return not value
    numbers = [float(number.value) * (100 if number.scale == "percent" else 1) for number in given_numbers(value)]
    numbers += [float(number.value) for number in given_numbers(value)]
    wanted = column.get("expected_elements") or [column["expected"]]
    return all(any(abs(number - item) <= column["tolerance"] for number in numbers) for item in wanted)


def _aclsum(repository: Path, home: Path, chance: random.Random, drawn: int, settings: Settings) -> Iterable[str]:
    text = git_text(repository, "show", "HEAD:src/aclsum/dataset/test.jsonl")
    papers = chance.sample([json.loads(line) for line in text.splitlines()], drawn)
    files = {}
    for paper in papers:
        parts = [f"## {name.title()}\n\n{' '.join(paper['sentences'][name])}" for name in _HEADINGS]
        content = "\n\n".join([f"# {paper['title']}", *parts])
        files[paper["id"]] = _write(home, f"{paper['id'].lower()}.md", content.encode())
    columns = [TableColumn(name, asks, queries=(asks,)) for name, asks in _ASPECTS.items()]
    rows, calls = _read(home, settings, files, {paper["id"]: columns for paper in papers})
    for aspect in _ASPECTS:
        marked = quoted = hit = any_hit = filled = found = 0
        for paper in papers:
            cell = rows[paper["id"]].get(aspect)
            quotes = [span["quote"] for item in (cell, *cell["alternatives"]) for span in item["spans"]] if cell else []
            highlights = [
                sentence
                for name in _HEADINGS
                for sentence, label in zip(paper["sentences"][name], paper["highlights"][aspect][name], strict=True)
                if label
            ]
            hits = [any(overlaps(sentence, quote) for sentence in highlights) for quote in quotes]
            quoted, hit = quoted + len(quotes), hit + sum(hits)
            filled, any_hit = filled + bool(quotes), any_hit + any(hits)
            marked += len(highlights)
            found += sum(any(overlaps(sentence, quote) for quote in quotes) for sentence in highlights)
        yield (
            f"{aspect}: {any_hit} of {len(papers)} cells with a marked sentence ({filled} filled); "
            f"{hit} of {quoted} quoted sentences marked; {found} of {marked} marked sentences quoted"
        )
    yield f"{calls} requests"


def _healthver(repository: Path, home: Path, chance: random.Random, drawn: int, settings: Settings) -> Iterable[str]:
    table = csv.DictReader(io.StringIO(git_text(repository, "show", "HEAD:data/healthver_test.csv")))
    pairs = chance.sample(list(table), drawn)
    files = {
        pair["id"]: _write(home, f"evidence{pair['id']}.md", f"# Study {pair['id']}\n\n{pair['evidence']}\n".encode())
        for pair in pairs
    }
    rows, calls = _read(
        home, settings, files, {pair["id"]: [stance_column(" ".join(pair["claim"].split()))] for pair in pairs}
    )
    confused: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        cell = rows[pair["id"]].get("stance")
        confused[pair["label"], stance_of(cell) if cell else ""] += 1
    judged = [(label, _LABEL_OF.get(stance, "Neutral")) for label, stance in confused.elements()]
    true, said = Counter(label for label, _ in judged), Counter(given for _, given in judged)
    right = Counter(label for label, given in judged if label == given)
    for label in ("Supports", "Refutes", "Neutral"):
        yield f"{label}: precision {right[label]} of {said[label]}, recall {right[label]} of {true[label]}"
    yield f"accuracy {right.total() / drawn:.3f}, macro-F1 {mean_score(judged, 'macro-F1'):.3f}"
    yield from (f"  {label} -> {stance or 'silent'}: {number}" for (label, stance), number in sorted(confused.items()))
    yield f"{calls} requests"


def _write(home: Path, name: str, content: bytes) -> Path:
    file = home.parent / f"{home.name}-papers" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def _read(
    home: Path, settings: Settings, files: Mapping[str, Path], columns: Mapping[str, Sequence[TableColumn]]
) -> tuple[dict[str, dict[str, Any]], int]:
    """The cells by paper and column (of the first row that has a value), and the number of requests."""
    with open_library(home, settings=settings) as library:
        ingest(library, list(files.values()))
        keys = {Path(paper.source).name: paper.key for paper in library.library.papers()}

    async def read() -> tuple[dict[str, dict[str, Any]], int]:
        async with await aopen_library(home, settings=settings) as session:

            async def table(name: str) -> dict[str, Any]:
                async def describe(*_: Any) -> Any:
                    return tuple(columns[name])

                plan = {"papers": [keys[files[name].name]]}
                asked = [column.queries[0] for column in columns[name]]
                stored = StoredTable(f"cells-{name.lower()}", "what this paper reports", plan)
                return await complete_table(session, stored, describe, lambda _: None, lambda _: asked)

            made = dict(zip(files, await asyncio.gather(*map(table, files)), strict=True))
        rows = {
            name: {column: cell for row in item["rows"] for column, cell in row["cells"].items() if cell["value"]}
            for name, item in made.items()
        }
        return rows, sum(item["usage"]["llm_calls"] for item in made.values())

    return asyncio.run(read())


if __name__ == "__main__":
    main()

"""How well a chat model's verdicts on claims agree with people's labels: `python -m bench.claim_labels DATA`.

The model is set by `CITELOOM_CHAT_MODEL` and its endpoint; docs/scores.md keeps the figures. DATA holds clones of
public repositories; missing ones are skipped, and `--only` names one:

- `citation-integrity`: `ScienceNLP-Lab/Citation-Integrity`, MIT: claims against the library's passages of their paper;
- `wice`: `ryokamoi/wice`, ODC-BY: a sentence of Wikipedia against the whole page that it cites;
- `attributionbench`: `OSU-NLP-Group/AttributionBench`, without a licence: a claim against the references of an answer;
- `exaggeration`: `copenlu/scientific-exaggeration-detection`, without a licence: a press release against an abstract.

Claims are drawn with a seed and split in two: prompts are improved on the even ones, and the odd ones are reported.
DATA/labels keeps the answers, for reading the errors; the journals of DATA/homes keep the verdicts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any, Final

from bench.citation_integrity import git_text, labelled_claims
from citeloom import check_claims, open_library
from citeloom.models.http.endpoints import hash_key
from citeloom.prompts import PromptLibrary
from citeloom.settings.config import load_settings

_RESAMPLED: Final = 1_000
_PROMPTS: Final = ("claim_system", "claim_task")


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim as input of `check_claims`, and the label that people gave it."""

    name: str
    asked: Mapping[str, Any]
    gold: str


@dataclass(frozen=True, slots=True)
class _DataSet:
    """A data set: how its claims are read, which of its labels each of ours stands for, and the measure."""

    read: Callable[[Path, Any], list[LabelledClaim]]
    labels: Mapping[str, str]
    other: str  # for labels that `labels` does not name
    score: str = "macro-F1"


def _citation_integrity(repository: Path, library: Any) -> list[LabelledClaim]:
    return [
        LabelledClaim(str(number), {"claim": claim, "context": before, "papers": [article]}, gold)
        for number, claim, before, article, gold in labelled_claims(repository, library)
    ]


def _wice(repository: Path, _: Any) -> list[LabelledClaim]:
    title = "(meta data) TITLE:"
    found = []
    for record in _lines(repository, "data/entailment_retrieval/claim/test.jsonl"):
        meta, sentences = record["meta"], record["evidence"]
        heads = [item.removeprefix(title).strip() for item in sentences if item.startswith(title)]
        text = "\n\n".join(item for item in sentences if not item.startswith(title))
        asked = {
            "claim": record["claim"],
            "context": f"{meta['claim_title']}: {meta['claim_context']}"[-600:],
            "passages": [{"text": text, "title": heads[0] if heads else ""}],
        }
        found.append(LabelledClaim(meta["id"], asked, record["label"].replace("partially_", "not_")))
    return found


def _attribution_bench(repository: Path, _: Any) -> list[LabelledClaim]:
    return [
        LabelledClaim(
            record["id"],
            {
                "claim": record["claim"],
                "context": record["question"],
                "passages": [{"text": text} for text in record["references"]],
            },
            record["attribution_label"],
        )
        for record in _lines(repository, "data/test_ood_all_subset_balanced.jsonl")
        if record["claim"].strip() and any(text.strip() for text in record["references"])
    ]


def _exaggeration(repository: Path, _: Any) -> list[LabelledClaim]:
    return [
        LabelledClaim(
            record["original_file_id"],
            {"claim": record["press_release_conclusion"], "passages": [{"text": record["abstract_conclusion"]}]},
            "exaggerates" if record["exaggeration_label"] == "exaggerates" else "does not",
        )
        for record in _lines(repository, "data/insciout_test.jsonl")
    ]


_DATA: Final = {
    "citation-integrity": _DataSet(
        _citation_integrity,
        {"supported": "ACCURATE", "not_found": "IRRELEVANT", "unread": "IRRELEVANT"},
        "NOT_ACCURATE",
    ),
    "wice": _DataSet(_wice, {"supported": "supported", "indirect": "supported"}, "not_supported", "balanced accuracy"),
    "attributionbench": _DataSet(
        _attribution_bench,
        {"supported": "attributable", "indirect": "attributable"},
        "not attributable",
        "balanced accuracy",
    ),
    "exaggeration": _DataSet(_exaggeration, {"overstated": "exaggerates", "contradicted": "exaggerates"}, "does not"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.claim_labels", description="Scores verdicts on claims.")
    parser.add_argument("data", type=Path, help="the folder with the data")
    parser.add_argument("--only", choices=sorted(_DATA), action="append", help="a data set; repeatable")
    parser.add_argument("--claims", type=int, default=200, help="number of claims drawn from each data set")
    parser.add_argument("--half", choices=["even", "odd", "all"], default="all", help="which half of the drawn claims")
    parser.add_argument("--seed", type=int, default=26)
    given = parser.parse_args()
    if not os.environ.get("CITELOOM_CHAT_MODEL"):
        parser.error("no model: set CITELOOM_CHAT_MODEL, and its endpoint, as for the program.")
    for name in given.only or _DATA:
        if (given.data / name).exists():
            _measure(name, given.data, given.claims, given.half, given.seed)
        else:
            print(f"{given.data / name}: missing, so {name} is left out.", file=sys.stderr)


def _measure(name: str, data: Path, most: int, half: str, seed: int) -> None:
    kind, settings = _DATA[name], load_settings()
    bodies = [PromptLibrary()[prompt].body for prompt in _PROMPTS]
    with open_library(data / "homes" / name, settings=settings) as library:
        claims = kind.read(data / name, library)
        random.Random(seed).shuffle(claims)
        drawn = {"even": claims[:most:2], "odd": claims[1:most:2], "all": claims[:most]}[half]
        found = check_claims(library, [dict(claim.asked) for claim in drawn])
    head = git_text(data / name, "rev-parse", "--short", "HEAD").strip()
    print(f"## {name} {head}, {len(drawn)} of {len(claims)} claims, seed {seed}")
    print(f"{datetime.now(UTC):%Y-%m-%d}, model {settings.chat_model}, prompts {hash_key(bodies)[:8]}")
    print(f"usage: {json.dumps(found['usage'])}; warnings: {found['warnings']}\n")
    said = [kind.labels.get(record["label"], kind.other) for record in found["claims"]]
    records = [
        {
            "said": label,
            "half": ("even", "odd")[place % 2] if half == "all" else half,
            **asdict(claim),
            "record": record,
        }
        for place, (label, claim, record) in enumerate(zip(said, drawn, found["claims"], strict=True))
    ]
    kept = data / "labels" / f"{name}.jsonl"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("".join(json.dumps(record, default=dict) + "\n" for record in records), encoding="utf-8")
    judged = [place for place, record in enumerate(found["claims"]) if record["label"] != "unjudged"]
    halves = {
        part: [(drawn[place].gold, said[place]) for place in judged if part in ("all", records[place]["half"])]
        for part in ("all", "even", "odd")
    }
    if len(judged) < len(drawn):
        print(f"{len(drawn) - len(judged)} claims were not judged and are left out.\n")
    print(f"| claims | n | {kind.score} | 95% of resamples | accuracy |\n|---|---|---|---|---|")
    for part, some in halves.items() if half == "all" else [(half, halves[half])]:
        low, high = _interval(some, kind.score, seed)
        right = mean(gold == label for gold, label in some)
        print(f"| {part} | {len(some)} | {mean_score(some, kind.score):.3f} | {low:.3f} to {high:.3f} | {right:.3f} |")
    ours = list(dict.fromkeys(record["label"] for record in found["claims"]))
    counted = Counter((claim.gold, record["label"]) for claim, record in zip(drawn, found["claims"], strict=True))
    print(f"\n| people say | {' | '.join(ours)} |\n|---{'|---' * len(ours)}|")
    for gold in sorted({claim.gold for claim in drawn}):
        print(f"| {gold} | {' | '.join(str(counted[gold, label]) for label in ours)} |")
    print()


def mean_score(pairs: Sequence[tuple[str, str]], measure: str) -> float:
    """The mean over people's labels of F1 or of recall; the latter is the balanced accuracy."""
    scores = []
    for label in sorted({gold for gold, _ in pairs}):
        right = sum(gold == said == label for gold, said in pairs)
        recall = right / sum(gold == label for gold, _ in pairs)
        f1 = 2 * right / sum((gold == label) + (said == label) for gold, said in pairs)
        scores.append(f1 if measure == "macro-F1" else recall)
    return mean(scores)


def _interval(pairs: Sequence[tuple[str, str]], measure: str, seed: int) -> tuple[float, float]:
    dice = random.Random(seed)
    scores = sorted(mean_score(dice.choices(pairs, k=len(pairs)), measure) for _ in range(_RESAMPLED))
    return scores[_RESAMPLED // 40], scores[-_RESAMPLED // 40]


def _lines(repository: Path, path: str) -> list[Any]:
    return [json.loads(line) for line in git_text(repository, "show", f"HEAD:{path}").splitlines()]


if __name__ == "__main__":
    main()

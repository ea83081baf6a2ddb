"""Planted faults in sentences of real papers: how many `check_text` notices, and its false alarms; calls no model.

Each sentence of a paper becomes a user's sentence that cites this paper. Then one thing is changed: the key, a number,
a unit or a negation, or the citation is removed (if the paper's sentence had one). Other sentences stay as they are.
Papers are drawn once, and halved: `tune` for whoever changes rules, `report` for the figures. A second table asks which
sentences need a citation, among those of the reported half whose own citations were stripped and those that had none,
from paragraphs that had none; its library is empty.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citeloom import Settings, check_text, ingest, open_library
from citeloom.text.sentences import sentence_spans

PAPERS = 30
_CITATION = re.compile(r"\s*\[[^\[\]]{0,400}@[^\[\]]{1,400}\]")
_NUMBERED = re.compile(r"\[\d[\d,\s\u2013-]{0,40}\]|\([A-Z][^()]{1,60}\b(?:19|20)\d\d[a-z]?\)")
_NUMBER = re.compile(r"(?<![\w.,@/-])\d{1,6}(?:\.\d{1,4})?(?![\w.,/-]?\w)")
_UNITS = {"%": "-fold", "mg": "g", "kg": "mg", "kb": "Mb", "Mb": "kb", "nm": "mm", "mM": "\u00b5M", "hours": "days"}
_UNITS |= {"ms": "s", "years": "months", "days": "weeks", "minutes": "hours", "bp": "kb", "cm": "mm", "weeks": "years"}
_UNIT = re.compile(rf"(?<=\d)(\s?)({'|'.join(map(re.escape, _UNITS))})(?![\w%])")
_VERB = re.compile(r"\b(is|are|was|were|can|has been|have been|does|did)\b(?! not\b)")
_PLAIN = re.compile(r"[A-Z][^\n|$<>{}\\*_`#\[\]]{50,340}[a-z)%]\.")
_FEWEST_PAPER_CITATIONS = 10  # bracketed citations that a paper needs for its uncited sentences to be labelled
_NOTES = ("entry-not-cited",)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a paper without its citations; `cites` says whether it had any, None if that is unknown."""

    text: str
    paper: str
    section: str
    cites: bool | None


@dataclass(frozen=True, slots=True)
class Planted:
    """A sentence as it is checked, and the kind of its fault; empty if there is none."""

    text: str
    key: str
    kind: str


def measure(papers: Path, bib: Path, home: Path, *, changes: int, untouched: int, labelled: int, seed: int) -> None:
    """Print recall by kind, false alarms, and F1 of sentences that need a citation."""
    random_source = random.Random(seed)
    files = sorted(papers.glob("*.md"))
    drawn = random_source.sample(files, min(PAPERS, len(files)))
    reported = drawn[len(drawn) // 2 :]
    sentences = [item for path in reported for item in sentences_of(path)]
    random_source.shuffle(sentences)
    with open_library(home, settings=Settings()) as library:
        have = {paper.key for paper in library.library.papers()}
        if missing := [path for path in files if path.stem not in have]:
            ingest(library, missing, bib=bib)
        planted = _plant(sentences, sorted(path.stem for path in files), changes, untouched, random_source)
        _report_planted(_faults(library, home, bib, planted), planted, len(reported), seed)
    random_source.shuffle(sentences)
    # An empty library: else a sentence found in one of the papers would need a citation for that reason alone.
    with open_library(home.with_name("nothing"), settings=Settings()) as library:
        _report_needs(library, home, _select_labelled(sentences, labelled), seed)


def sentences_of(path: Path) -> Iterator[Sentence]:
    """The plain sentences of a paper's text, each with the heading above it."""
    text = path.read_text(encoding="utf-8")
    enough = len(_CITATION.findall(text)) >= _FEWEST_PAPER_CITATIONS
    section = ""
    for block in text.split("\n\n"):
        if block.startswith("#"):
            section = block.splitlines()[0].strip("# ")
            continue
        if section.casefold().startswith(("reference", "acknowledg", "supplement")):
            continue
        quiet = "@" not in block and not _NUMBERED.search(block)
        flat = " ".join(block.split())
        for start, end in sentence_spans(flat):
            words = flat[start:end]
            shown = _CITATION.sub("", words).strip()
            if _PLAIN.fullmatch(shown) and not _NUMBERED.search(shown):
                cites = True if shown != words.strip() else False if quiet and enough else None
                yield Sentence(shown, path.stem, section, cites)


def _plant(
    sentences: Sequence[Sentence], keys: Sequence[str], changes: int, untouched: int, random_source: random.Random
) -> list[Planted]:
    """Plant faults of each kind, as far as there are sentences, add untouched sentences, and shuffle them all."""
    left = list(sentences)
    found: list[Planted] = []
    kinds: dict[str, Callable[[Sentence], Planted | None]] = {
        "unit": lambda item: _plant_one(item, "unit", _swap_unit(item.text)),
        "number": lambda item: _plant_one(item, "number", _other_number(item.text, random_source)),
        "citation stripped": lambda item: Planted(item.text, "", "citation stripped") if item.cites else None,
        "negation": lambda item: _plant_one(item, "negation", _VERB.sub(r"\1 not", item.text, count=1)),
        "key": lambda item: Planted(item.text, random_source.choice([k for k in keys if k != item.paper]), "key"),
    }
    for make in kinds.values():
        made = 0
        for item in list(left):
            fault = make(item) if made < changes // len(kinds) else None
            if fault is not None:
                found.append(fault)
                left.remove(item)
                made += 1
    found += [Planted(item.text, item.paper, "") for item in left[:untouched]]
    random_source.shuffle(found)
    return found


def _plant_one(sentence: Sentence, kind: str, text: str) -> Planted | None:
    return Planted(text, sentence.paper, kind) if text != sentence.text else None


def _swap_unit(text: str) -> str:
    return _UNIT.sub(lambda match: f"{match[1]}{_UNITS[match[2]]}", text, count=1)


def _other_number(text: str, random_source: random.Random) -> str:
    """Change one digit of a number in the text; years and single digits stay."""
    for match in _NUMBER.finditer(text):
        digits = match[0]
        if len(digits) < 2 or re.fullmatch(r"(?:19|20)\d\d", digits):
            continue
        place = random_source.choice([number for number, letter in enumerate(digits) if letter.isdigit()])
        other = random_source.choice([digit for digit in "123456789" if digit != digits[place]])
        return text[: match.start()] + digits[:place] + other + digits[place + 1 :] + text[match.end() :]
    return text


def _faults(library: Any, home: Path, bib: Path, planted: Sequence[Planted]) -> list[set[str]]:
    """The rules that each planted sentence breaks, in the order given."""
    file = home / "planted.md"
    shown = [f"{item.text[:-1]} [@{item.key}]." if item.key else item.text for item in planted]
    file.write_text("# Introduction\n\n" + "\n\n".join(shown) + "\n", encoding="utf-8")
    return _by_text(check_text(library, file, bib=bib)["sentences"], [item.text for item in planted])


def _by_text(records: Sequence[dict[str, Any]], texts: Sequence[str]) -> list[set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        rules = {fault["rule"] for fault in record["faults"] if fault["rule"] not in _NOTES}
        found.setdefault(_start(record["claim"]), set()).update(rules)
    missing = sum(_start(text) not in found for text in texts)
    if missing:
        print(f"{missing} sentences were read in another way than they were written")
    return [found.get(_start(text), set()) for text in texts]


def _start(text: str) -> str:
    return re.sub(r"[\W_]", "", text)[:40]


def _report_planted(found: Sequence[set[str]], planted: Sequence[Planted], papers: int, seed: int) -> None:
    wanted = {
        "key": {"wrong-key"},
        "number": {"number-not-found", "number-differs", "unit-differs"},
        "unit": {"number-not-found", "number-differs", "unit-differs"},
        "citation stripped": {"needs-citation", "copied-uncited"},
        "negation": {"polarity-differs"},
    }
    print(f"Mutated papers: the reported half, {papers} papers, seed {seed}, no model")
    print("| changed | n | noticed by its rule | by any rule |")
    print("|---|---|---|---|")
    for kind, rules in wanted.items():
        of_kind = [hit for hit, item in zip(found, planted, strict=True) if item.kind == kind]
        print(f"| {kind} | {len(of_kind)} | {_share([bool(hit & rules) for hit in of_kind])} | ", end="")
        print(f"{_share([bool(hit) for hit in of_kind])} |")
    every = [bool(hit) for hit, item in zip(found, planted, strict=True) if item.kind]
    print(f"| all | {len(every)} | | {_share(every)} |")
    quiet = [hit for hit, item in zip(found, planted, strict=True) if not item.kind]
    alarms = Counter(rule for hit in quiet for rule in hit)
    print(f"| untouched (false alarms) | {len(quiet)} | | {_share([bool(hit) for hit in quiet])} |")
    print(f"false alarms by rule: {dict(alarms)}")


def _select_labelled(sentences: Sequence[Sentence], most: int) -> list[Sentence]:
    needs = [item for item in sentences if item.cites][: most // 2]
    return [*needs, *[item for item in sentences if item.cites is False][: most - len(needs)]]


def _report_needs(library: Any, home: Path, sentences: Sequence[Sentence], seed: int) -> None:
    file = home / "uncited.md"
    file.write_text("\n\n".join(f"# {item.section or 'Text'}\n\n{item.text}" for item in sentences), encoding="utf-8")
    records = check_text(library, file, only="uncited")["sentences"]
    found = ["needs-citation" in hit for hit in _by_text(records, [item.text for item in sentences])]
    right = sum(hit and bool(item.cites) for hit, item in zip(found, sentences, strict=True))
    wanted, said = sum(bool(item.cites) for item in sentences), sum(found)
    precision, recall = right / max(1, said), right / max(1, wanted)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    print(f"Needs a citation: {len(sentences)} sentences, {wanted} with their citation stripped, seed {seed}, no model")
    print("| said to need one | precision | recall | F1 |")
    print("|---|---|---|---|")
    print(f"| {said} | {precision:.3f} | {recall:.3f} | {f1:.3f} |")


def _share(hits: Sequence[bool]) -> str:
    return f"{sum(hits) / max(1, len(hits)):.3f}"

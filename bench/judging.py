"""Accuracy of the extractive judge on topics, on pairs of sentences and passages of real papers.

`python -m bench judge`. These pairs are not labelled by hand; their label follows from their origin:

- own: a sentence of a paper's abstract or conclusion, and the passage of its body that shares most words with it;
- cited: a sentence of a manuscript and the abstract of the paper that it cites;
- other, nearest: the same sentences, and the passage (abstract) of all other papers that shares most words with them;
- other, any: the same sentences, and any passage (abstract) of another paper;
- same paper: a sentence, and a passage of the same paper that shares few words with it;
- said in it, and reversed: a sentence contained in a passage, and the same with a "not" inserted.

The first two are on topic, the next two off topic; the others show the limits of this judge.
Papers are split into two halves: a threshold is chosen on one and tested on the other.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.papers import ROOT
from citeloom.documents import Category
from citeloom.documents.chunking import chunk_paper
from citeloom.documents.markdown import parse_markdown
from citeloom.models.embeddings.bundled_models import LocalEmbedding, Reranker
from citeloom.roles.run_roles import ON_TOPIC, topic_score
from citeloom.text.sentences import sentence_spans

CLAIMS_OF_A_PAPER = 3
CITING = 100
FIRST = 0.3  # the threshold before any measurement
_CITATION = re.compile(r"\s*(?:\[[^\[\]]*@[^\[\]]*\]|\\?\[\d[\d, –-]*\\?\]|\^\[?\d[\d,\s–-]*\]?\^)")
_WORD = re.compile(r"[a-z][a-z-]{3,}")
_CLAIMING = (Category.ABSTRACT, Category.CONCLUSION)
_VERB = re.compile(r"\b(?:is|are|was|were|can|could|did|does|may)\b(?!\s+not\b)")
_ON, _OFF = ("own", "cited"), ("other, nearest", "other, any")


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and a passage: the label by origin, the half, and the judge's score."""

    kind: str
    held_out: bool
    sentence: str
    passage: str
    score: float = 0.0


class _Texts:
    """Passages by paper, ranked by what they have in common with a sentence."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        self.texts = texts
        self._words = [Counter(_WORD.findall(text.casefold())) for _, text in texts]
        held = Counter(word for words in self._words for word in words)
        self._weights = {word: math.log(1 + len(texts) / count) for word, count in held.items()}

    def ranked(self, sentence: str, among: Sequence[int]) -> list[int]:
        """Indices of passages, the one with most in common first."""
        asked = set(_WORD.findall(sentence.casefold()))
        common = {place: sum(self._weights[word] for word in asked if word in self._words[place]) for place in among}
        return sorted(among, key=lambda place: (-common[place], place))


def measure() -> None:
    """Print precision and recall at the first threshold, the current one, and the best of the tuning half."""
    shared = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
    pairs = _score_pairs([*_of_papers(shared / "corpus/papers"), *_of_citing(shared / "retrieval/manubot-citances")])
    if not pairs:
        print("no real papers: set CITELOOM_SHARED")
        return
    chosen = [pair for pair in pairs if not pair.held_out]
    best = max((step / 100 for step in range(1, 100)), key=lambda at: _balanced(chosen, at))
    print(
        "| threshold | half | on-topic precision | recall | off-topic precision | recall |\n|---|---|---|---|---|---|"
    )
    for name, at in (("first", FIRST), ("best of the first half", best), ("in use", ON_TOPIC)):
        for half, some in (("first", chosen), ("held out", [pair for pair in pairs if pair.held_out])):
            print(f"| {name}, {at:.2f} | {half} | {_row(some, at)} |")
    print("\n| pairs | number | judged on-topic, first threshold | in use |\n|---|---|---|---|")
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        some = [pair for pair in pairs if pair.kind == kind]
        shares = [sum(pair.score >= at for pair in some) / len(some) for at in (FIRST, ON_TOPIC)]
        print(f"| {kind} | {len(some)} | {shares[0]:.3f} | {shares[1]:.3f} |")
    for pair in [pair for pair in pairs if pair.kind in _ON and pair.score < ON_TOPIC][:6]:
        print(f"wrongly off-topic ({pair.score:.3f}): {pair.sentence[:150]} || {' '.join(pair.passage.split())[:150]}")


def _row(pairs: Sequence[Pair], at: float) -> str:
    said_on = [pair.score >= at for pair in pairs if pair.kind in _ON]
    said_off = [pair.score < at for pair in pairs if pair.kind in _OFF]
    right_on, right_off = sum(said_on), sum(said_off)
    wrong_on, wrong_off = len(said_off) - right_off, len(said_on) - right_on
    figures = (
        right_on / max(1, right_on + wrong_on),
        right_on / len(said_on),
        right_off / max(1, right_off + wrong_off),
        right_off / len(said_off),
    )
    return " | ".join(f"{figure:.3f}" for figure in figures)


def _balanced(pairs: Sequence[Pair], at: float) -> float:
    """The mean of the two recalls, so that neither label counts more for being more frequent."""
    on = [pair.score >= at for pair in pairs if pair.kind in _ON]
    off = [pair.score < at for pair in pairs if pair.kind in _OFF]
    return sum(on) / len(on) + sum(off) / len(off)


def _score_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    reranker = Reranker()
    found = []
    for pair in pairs:
        score = topic_score(reranker, pair.sentence, [_quote(pair), pair.passage])
        found.append(Pair(pair.kind, pair.held_out, pair.sentence, pair.passage, score))
    return found


def _quote(pair: Pair) -> str:
    """Return what a reader would quote from the passage: the sentence that shares most words with the claim."""
    spans = sentence_spans(pair.passage)
    quotes = _Texts([("", pair.passage[start:end]) for start, end in spans])
    return quotes.texts[quotes.ranked(pair.sentence, range(len(spans)))[0]][1]


def _of_papers(folder: Path) -> Iterator[Pair]:
    count = LocalEmbedding().count_tokens_each
    chunks = [
        chunk
        for path in sorted(folder.glob("*.md"))
        for chunk in chunk_paper(path.stem, parse_markdown(path.read_text(encoding="utf-8")), count)
        if len(chunk.text.split()) > 60
    ]
    body = _Texts([(chunk.key, chunk.text) for chunk in chunks if chunk.category not in _CLAIMING])
    dice, reversing = random.Random(7), random.Random(8)
    for key in dict.fromkeys(chunk.key for chunk in chunks):
        claims = list(dict.fromkeys(_claims([c.text for c in chunks if c.key == key and c.category in _CLAIMING])))
        for claim in dice.sample(claims, min(CLAIMS_OF_A_PAPER, len(claims))):
            yield from _pairs("own", key, claim, body, {key}, dice)
        passages = [text for owner, text in body.texts if owner == key]
        said = [(text, words) for text in passages for words in _claims([text]) if _VERB.search(words)]
        for text, words in reversing.sample(said, min(2, len(said))):
            yield Pair("said in it", False, words, text)
            yield Pair("said in it, reversed", False, _VERB.sub(lambda verb: f"{verb[0]} not", words, count=1), text)


def _of_citing(folder: Path) -> Iterator[Pair]:
    if not folder.is_dir():
        return
    read = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    abstracts = _Texts([(record["_id"], f"{record['title']}. {record['text']}") for record in read if record["text"]])
    cited: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, _ = line.split("\t")
        cited.setdefault(query, set()).add(document)
    dice = random.Random(7)
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:CITING]:
        record = json.loads(line)
        yield from _pairs("cited", record["manuscript"], record["text"], abstracts, cited[record["_id"]], dice)


def _pairs(kind: str, group: str, claim: str, texts: _Texts, keys: set[str], dice: random.Random) -> Iterator[Pair]:
    """A claim of the papers `keys` with one passage of each kind."""
    held_out = zlib.crc32(group.encode()) % 2 == 1
    own = [place for place, (key, _) in enumerate(texts.texts) if key in keys]
    others = [place for place, (key, _) in enumerate(texts.texts) if key not in keys]
    if not own:
        return
    ranked = texts.ranked(claim, own)
    drawn = {kind: ranked[0], "other, nearest": texts.ranked(claim, others)[0], "other, any": dice.choice(others)}
    if kind == "own" and len(own) > 4:
        drawn["same paper"] = dice.choice(ranked[len(ranked) // 2 :])
    for name, place in drawn.items():
        yield Pair(name, held_out, claim, texts.texts[place][1])


def _claims(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for start, end in sentence_spans(text):
            words = " ".join(_CITATION.sub("", text[start:end]).split())
            if 12 <= len(words.split()) <= 45 and not re.match(r"[#|!>*-]", words) and words.endswith("."):
                yield words

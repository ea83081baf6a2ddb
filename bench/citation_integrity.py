"""Citation-Integrity: how often five passages have a sentence that experts marked as evidence; calls no model.

The data is a clone of `ScienceNLP-Lab/Citation-Integrity` (MIT licence). Its claims are read from the newest commit,
the texts of the cited articles, since deleted, from commit `TEXTS`. Only articles whose text still has its paragraphs
can be used, since evidence is numbered by paragraph and sentence.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from citeloom import Settings, check_claims, ingest, open_library

TEXTS = "cca7fcd7388c07c32110cf40d0861f986c7753b3"
_FOLDER = "ShruthanCode/BratFiles/AccuracyFiles/"
_SENTENCES = "ShruthanCode/IR/Sentences/"
_NUMBERED = 1_000  # paragraph 12 of article 3 is document 3012
_CONTEXT_END = re.compile(r"^\*{20,}\s*$", re.MULTILINE)
_AFTER_TEXT = re.compile(r"^#+ (?:References|Footnotes|Acknowledge?ments)\b", re.IGNORECASE | re.MULTILINE)
# Found by comparing numbered evidence with the experts' notes beside the texts: titles, headings and paragraphs each
# count as a document, but headings with these names do not.
_UNNUMBERED = re.compile(
    r"#+ (?:abstract|background|introduction|results|discussion|conclusions?|(?:materials and )?methods)", re.IGNORECASE
)
_MARK = re.compile(r"<\|[^|]{1,20}\|>")
_CITES = {"<|cit|>": "[@]", "<|multi_cit|>": "[@][@other]", "<|other_cit|>": "[@other]"}
_BRACKETED = re.compile(r"[\[(]\s*(<\|[^|]{1,20}\|>)\s*[\])]")
_BARE_MARK = re.compile(r"\s*[\[(]\s*[\])]")
_TAG = re.compile(r"<CITATION_MARKER>[^<]{0,200}</CITATION_MARKER>")
_START = 40  # letters
_FEWEST_LETTERS = 20
# The texts of these articles are lists of sentences. Their numbers were found by comparing the words of claims and
# articles: each of the twenty numbers from 22 to 41 has a different nearest article.
_SENTENCES_ONLY = {
    22: "PMC7328313",
    23: "PMC7604159",
    25: "PMC7173821",
    28: "PMC7488216",
    29: "PMC7906955",
    30: "PMC7165103",
    32: "PMC7675243",
    33: "PMC7267384",
    34: "PMC8136807",
    35: "PMC6954302",
    36: "PMC7225046",
    37: "PMC7808278",
}
PASSAGES = (5, 10, 20)
AT_ONCE = 40  # claims


@dataclass(frozen=True, slots=True)
class Article:
    """A cited article: its name, and its paragraphs; paragraph 0 is document 0 of the data set."""

    name: str
    text: str
    paragraphs: tuple[str, ...]
    sentences: tuple[str, ...]

    def sentence(self, paragraph: int, number: int) -> str:
        """The letters of a sentence, with the paragraph split as in the data set; empty if there is none."""
        if paragraph >= len(self.paragraphs):
            return ""
        place = letters(self.paragraphs[paragraph])
        within = [item for item in self.sentences if item in place]
        return within[number] if number < len(within) else ""


@dataclass(frozen=True, slots=True)
class Case:
    """A claim, the sentence before it, and the letters of the sentences that experts marked as its evidence."""

    claim: str
    before: str
    article: str
    evidence: tuple[str, ...]


def letters(text: str) -> str:
    """Letters and digits only: spaces, dashes and markers differ between texts."""
    return re.sub(r"[\W_]", "", _MARK.sub("", text)).casefold()


def measure(repository: Path, home: Path, most: int, seed: int) -> None:
    """Print the share of claims whose evidence is among the passages."""
    articles = _articles(repository)
    cases, skipped = _cases(repository, articles)
    random.Random(seed).shuffle(cases)
    drawn = cases[:most]
    head = git_text(repository, "rev-parse", "--short", "HEAD").strip()
    print(f"Citation-Integrity {head}, texts {TEXTS[:8]}, MIT licence, seed {seed}, no model")
    print(f"{skipped['all']} test claims, {len(cases)} with evidence in a text with paragraphs, {len(drawn)} checked,")
    print(f"of {len({case.article for case in drawn})} articles")
    print("| passages | expert's sentence in one of them | expert's sentence among those shown to a judge |")
    print("|---|---|---|")
    with open_library(home, settings=Settings()) as library:
        _index(library, [(articles[number].name, articles[number].text) for number in sorted(articles)])
        for passages in PASSAGES:
            found, shown = _found(library, drawn, passages)
            print(f"| {passages} | {_share(found)} | {_share(shown)} |")
    print(f"not used: {json.dumps(skipped)}")


def _found(library: Any, cases: Sequence[Case], most: int) -> tuple[list[bool], list[bool]]:
    """For each claim, whether the evidence is in one of the passages, and whether it is among the sentences shown."""
    found, shown = [], []
    for start in range(0, len(cases), AT_ONCE):
        batch = cases[start : start + AT_ONCE]
        asked = [{"claim": case.claim, "context": case.before, "papers": [case.article]} for case in batch]
        records = check_claims(library, asked, judge=False, most=most)["claims"]
        for case, record in zip(batch, records, strict=True):
            passages = record["sources"][0]["passages"]
            texts = {chunk.id: chunk.text for chunk in library.library.paper_chunks(case.article)}
            found.append(_has(case, [texts[passage["chunk_id"]] for passage in passages]))
            shown.append(_has(case, [sentence for passage in passages for sentence in passage["sentences"]]))
    return found, shown


def _share(hits: Sequence[bool]) -> str:
    return f"{sum(hits)}, {sum(hits) / max(1, len(hits)):.3f}"


def _has(case: Case, texts: Sequence[str]) -> bool:
    """Whether one of the texts contains a whole sentence of the experts' evidence."""
    return any(sentence in letters(text) for text in texts for sentence in case.evidence)


def _articles(repository: Path) -> dict[int, Article]:
    names = git_text(repository, "ls-tree", "-r", "--name-only", TEXTS, _FOLDER).splitlines()
    first: dict[str, str] = {}
    for name in names:
        if name.endswith(".txt") and ".ipynb" not in name:
            first.setdefault(name.split("/")[-2], name)
    found: dict[int, Article] = {}
    for folder, name in first.items():
        number, _, identifier = folder.partition("_")
        try:
            listed = json.loads(git_text(repository, "show", f"{TEXTS}:{_SENTENCES}{identifier}.json"))
        except subprocess.CalledProcessError:
            continue  # its sentences are not numbered
        text = _CONTEXT_END.split(git_text(repository, "show", f"{TEXTS}:{name}"), maxsplit=1)[-1].strip()
        paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
        sentences = [letters(item.strip().rpartition("\n\n")[2]) for item in listed]
        sentences = list(dict.fromkeys(item for item in sentences if len(item) >= _FEWEST_LETTERS))
        end = _AFTER_TEXT.search(text)
        body = text[: end.start()] if end else text
        numbered = tuple(part for part in paragraphs if not _UNNUMBERED.fullmatch(part))
        found[int(number)] = Article(identifier, body, numbered, tuple(sentences))
    return found


def _cases(repository: Path, articles: dict[int, Article]) -> tuple[list[Case], dict[str, int]]:
    cases: list[Case] = []
    before = _sentences_before(repository)
    skipped = {"all": 0, "no evidence": 0, "no text with paragraphs": 0, "evidence not placed": 0}
    for line in git_text(repository, "show", "HEAD:Data/multivers-format/claims-test.jsonl").splitlines():
        record = json.loads(line)
        skipped["all"] += 1
        number = record["cited_doc_ids"][0] // _NUMBERED
        if not record["evidence"]:
            skipped["no evidence"] += 1
        elif number not in articles:
            skipped["no text with paragraphs"] += 1
        else:
            wanted = [
                articles[number].sentence(int(document) % _NUMBERED, place)
                for document, groups in record["evidence"].items()
                for group in groups
                for place in group["sentences"]
            ]
            placed = tuple(sentence for sentence in wanted if sentence)
            if placed:
                claim = _plain(record["claim"])
                context = before.get(letters(claim)[:_START], "")
                cases.append(Case(claim, context, articles[number].name, placed))
            else:
                skipped["evidence not placed"] += 1
    return cases, skipped


def _plain(claim: str) -> str:
    return _BARE_MARK.sub("", _MARK.sub("", claim)).strip()


def labelled_claims(repository: Path, library: Any) -> list[tuple[int, str, str, str, str]]:
    """All test claims: number, claim, the sentence before it, its article, and ACCURATE, NOT_ACCURATE or IRRELEVANT.

    The articles are put into the library. A claim without evidence is IRRELEVANT, as the authors count it.
    """
    texts = {number: (article.name, article.text) for number, article in _articles(repository).items()}
    for number, name in _SENTENCES_ONLY.items():
        listed = json.loads(git_text(repository, "show", f"{TEXTS}:{_SENTENCES}{name}.json"))
        text = " ".join(item.removeprefix("##\n") for item in listed)
        texts[number] = name, re.sub(r"\s*(#{2,} )", r"\n\n\1", text)
    before, found = _sentences_before(repository), []
    for line in git_text(repository, "show", "HEAD:Data/multivers-format/claims-test.jsonl").splitlines():
        record = json.loads(line)
        given = {group["label"] for groups in record["evidence"].values() for group in groups} - {"IRRELEVANT"}
        label = "IRRELEVANT" if not given else "ACCURATE" if given == {"ACCURATE"} else "NOT_ACCURATE"
        name = texts[record["cited_doc_ids"][0] // _NUMBERED][0]
        context = before.get(letters(_plain(record["claim"]))[:_START], "")
        claim = _MARK.sub(lambda mark: _CITES[mark[0]], _BRACKETED.sub(r"\1", record["claim"]))
        found.append((record["id"], claim, context, name, label))
    cited = {name for _, _, _, name, _ in found}
    _index(library, [(name, text) for name, text in texts.values() if name in cited])
    return found


def _sentences_before(repository: Path) -> dict[str, str]:
    """The sentence before each claim in the citing article, by the beginning of the claim."""
    found: dict[str, str] = {}
    for line in git_text(repository, "show", "HEAD:Data/test.jsonl").splitlines():
        record = json.loads(line)
        first = record["labels"].index(1) if 1 in record["labels"] else 0
        if first:
            claim, before = (_TAG.sub("", record["sentences"][place]) for place in (first, first - 1))
            found[letters(claim)[:_START]] = before
    return found


def _index(library: Any, articles: Sequence[tuple[str, str]]) -> None:
    have = {paper.key for paper in library.library.papers()}
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.md" for name, _ in articles if name not in have]
        for file, text in ((Path(folder) / f"{name}.md", text) for name, text in articles):
            file.write_text(text, encoding="utf-8")
        if files:
            ingest(library, files)


def git_text(repository: Path, *arguments: str) -> str:
    """Return what a git command on the repository prints."""
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=True, text=True, encoding="utf-8"
    )
    return done.stdout

"""Recall and speed of completions and hovers: `python -m bench.completions HOME`.

The sentences are those of the shared corpus with their citations taken out: citing sentences of open manuscripts whose
cited works have an abstract in `retrieval/manubot-citances`, and sentences of `corpus/papers` that cite another paper
of the corpus by its DOI. HOME is a library of the corpus; the abstracts are added to a copy of it, CACHE, once. A
sentence counts as found if one of the works that it cites is among the five.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from bench.papers import ROOT
from citeloom import Settings, ingest, open_library
from citeloom.api.blocking import run_async
from citeloom.api.citing import anearest_words, asuggest_citations, sentence_at

_CITATION = re.compile(r"\s?\[@[^\[\]]{1,2000}\]")


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """A sentence without its citations, the one before it, and the keys of the works that it cites."""

    text: str
    before: str
    cited: frozenset[str]
    source: str  # the corpus paper that contains it, which is left out, as if still being written
    citance: bool = False


def _key(identifier: str) -> str:
    return "w" + re.sub(r"\W+", "-", identifier.casefold()).strip("-")


def from_citances(folder: Path, dois: dict[str, str], files: dict[str, str]) -> Iterator[CitingSentence]:
    """The sentences of `manubot-citances`; their works are the abstracts beside them, or papers of the corpus."""
    titled: dict[str, set[str]] = defaultdict(set)
    works = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    for work in works:  # some have two addresses, of which a library keeps one
        titled[work["title"].casefold()].add(_key(work["_id"]))
    same = {key: keys for keys in titled.values() for key in keys}
    cited: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, work, _ = line.split("\t")
        cited[query].update(same[_key(work)], [dois[work.casefold()]] if work.casefold() in dois else [])
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        keys = frozenset(cited[record["_id"]])
        yield CitingSentence(
            record["text"], record["previous_sentence"], keys, files.get(record["manuscript"], ""), True
        )


def from_corpus(papers: Path, dois: dict[str, str]) -> Iterator[CitingSentence]:
    """The sentences of papers that cite another paper of the library by its DOI, at most once for each pair."""
    seen: set[tuple[str, str]] = set()
    for file in sorted(papers.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        for mark in _CITATION.finditer(text):
            keys = {dois[doi] for doi in re.findall(r"@doi:([^;,\]\s]+)", mark[0].casefold()) if doi in dois}
            keys = {key for key in keys if key != file.stem and (file.stem, key) not in seen}
            if keys:
                seen.update((file.stem, key) for key in keys)
                place = sentence_at(text, *mark.span(), ".md")
                copies = {_key(doi) for doi, key in dois.items() if key in keys}
                yield CitingSentence(place.text, place.before, frozenset(keys | copies), file.stem)


def prepare(home: Path, cache: Path, shared: Path) -> None:
    """Copy the library, and add the abstracts."""
    if cache.exists():
        return
    shutil.copytree(home, cache / "home")
    folder = cache / "abstracts"
    folder.mkdir()
    for line in (shared / "retrieval/manubot-citances/corpus.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        file = folder / f"{_key(record['_id'])}.md"
        file.write_text(f"# {record['title']}\n\n## Abstract\n\n{record['text']}\n", encoding="utf-8")
    with open_library(cache / "home", settings=Settings()) as library:
        ingest(library, sorted(folder.glob("*.md")))


def measure(cache: Path, shared: Path, show: bool) -> None:
    """Print recall by source, and latencies."""
    bib = (shared / "corpus/library.bib").read_text(encoding="utf-8")
    dois = {
        doi[1].casefold(): entry[1]
        for entry in re.finditer(r"@\w+\{([^,]+),(.*?)\n\}", bib, re.DOTALL)
        if (doi := re.search(r"doi\s*=\s*\{+([^}]+)\}", entry[2], re.IGNORECASE))
    }
    listed = (shared / "corpus/SOURCES.md").read_text(encoding="utf-8")
    files = {repo: stem for stem, repo in re.findall(r"\| papers/(\S+)\.md \| (\S+) \|", listed)}
    sentences = [
        *from_citances(shared / "retrieval/manubot-citances", dois, files),
        *from_corpus(shared / "corpus/papers", dois),
    ]
    with open_library(cache / "home", settings=Settings()) as library:
        run_async(_measure(library, sentences, {key: _key(doi) for doi, key in dois.items()}, show))


async def _measure(  # type: ignore[no-untyped-def]
    library, sentences: Sequence[CitingSentence], copies: Mapping[str, str], show: bool
) -> None:
    """Measure one library; `copies` are the keys of abstracts of papers that are in the corpus."""
    found: dict[str, list[bool]] = defaultdict(list)
    completions, hovers = [], []
    await asuggest_citations(library, "The first search loads the model.")
    for item in sentences:
        without = (item.source, copies.get(item.source, ""))
        begun = time.perf_counter()
        papers = (await asuggest_citations(library, item.text, before=item.before, without=without))["papers"]
        completions.append(time.perf_counter() - begun)
        keys = [paper["key"] for paper in papers]
        hit = bool(item.cited.intersection(keys))
        found["citances" if item.citance else "corpus"].append(hit)
        begun = time.perf_counter()
        await anearest_words(library, item.text, keys[0], before=item.before)
        hovers.append(time.perf_counter() - begun)
        if show and not hit:
            print(f"- {item.text}\n    cited {', '.join(sorted(item.cited))}\n    found {', '.join(keys)}")
    everything = [hit for hits in found.values() for hit in hits]
    for name, hits in (*found.items(), ("all", everything)):
        print(f"{name}: {sum(hits)} of {len(hits)} sentences, {sum(hits) / len(hits):.3f}")
    for name, times in (("completion", completions), ("hover", hovers)):
        cut = quantiles(times, n=100)
        print(f"{name}: p50 {1000 * cut[49]:.0f} ms, p95 {1000 * cut[94]:.0f} ms")
    print(f"{library.library.chunk_count()} passages")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.completions", description=__doc__.splitlines()[0])
    parser.add_argument("home", type=Path, help="a library of the corpus")
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/citeloom-bench/completions").expanduser())
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--show", action="store_true", help="print the sentences whose paper was not found")
    given = parser.parse_args()
    prepare(given.home, given.cache, given.shared)
    measure(given.cache, given.shared, given.show)


if __name__ == "__main__":
    sys.exit(main())

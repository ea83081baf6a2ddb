"""Which sentences need another look after a library changed: `python -m bench.living [--year YEAR] [--skip 1]`.

The 57 papers of the shared corpus are halved by year and ingested **without their abstracts**. The sentences of a text
are every third sentence of those abstracts (`--skip`: another third): what a paper's authors say that it shows, in
words other than its body's. On the older half each sentence cites the passage that the cross-encoder puts first among
the 12 nearest of the older half, as a text written then would. Then the newer half is added. No chat model is asked.

Labels do not come from the code that is measured:

- *by origin*: the sentence is from the abstract of a newer paper, whose body was not there before;
- *clear*: of these, those for which the cross-encoder, over the 20 nearest passages of the whole library by each of
  vectors and words, puts first a passage of a newer paper to which it gives at least twice the odds of the cited one;
- a sentence of an older paper's abstract that cites its own paper is a *control*: its best evidence is there already.

Recall is the share of these sentences that `compare_text` names; the share of controls that it names is the price.
`--calls` counts, with a fake server, the requests of a question and a section on the older half, of their comparison
after the newer half was added, and of rewriting both; `--question`, `--experiment` and `--section` choose others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from bench.papers import ROOT
from citeloom import Settings, aingest, aopen_library, aresearch, awrite_section
from citeloom.api import text_updating
from citeloom.api.checking import claim_checker
from citeloom.api.library_papers import aremove_papers
from citeloom.api.text_updating import aupdate_texts
from citeloom.claims.claim_verdicts import Progress
from citeloom.documents import Evidence
from citeloom.runs.edited_text import EditableSection
from citeloom.text.sentences import sentence_spans
from citeloom.tools.retrieval import RERANKER, Retrieval, retrieve
from citeloom.tools.scope import Scope
from tests.support.checking_model import CheckingModel
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI

_ABSTRACT = re.compile(r"(?ms)^#+ *Abstract[^\n]*\n(?P<words>.*?)(?=^#)")
_FEWEST_WORDS, _NEAREST, _POOL, _CLEAR, _EVERY = 12, 12, 20, float(np.log(2)), 3
_QUESTION = "How can the genomic content of microbial communities be inferred?"
_MARKUP = re.compile(r"\[@[^\]]*\]|\*+|\[[^\]]*\]\([^)]*\)")


def corpus(shared: Path, skip: int) -> tuple[dict[str, str], dict[str, int], dict[str, list[str]]]:
    """The papers without their abstracts, their years, and the sentences of the abstracts, by key."""
    bib = (shared / "corpus/library.bib").read_text("utf-8")
    years = {
        key: int(found[0])
        for key, entry in re.findall(r"(?ms)^@\w+\{([^,]+),(.*?)^\}", bib)
        if (found := re.findall(r"year\s*=\s*\{?(\d{4})", entry))
    }
    texts, said = {}, {}
    for file in sorted((shared / "corpus/papers").glob("*.md")):
        text = file.read_text("utf-8")
        if file.stem not in years:
            continue
        abstract = _ABSTRACT.search(text)
        texts[file.stem] = _ABSTRACT.sub("", text, count=1)
        plain = " ".join(_MARKUP.sub(" ", abstract["words"]).split()) if abstract else ""
        found = [plain[start:end] for start, end in sentence_spans(plain)]
        said[file.stem] = [sentence for sentence in found if len(sentence.split()) >= _FEWEST_WORDS][skip::_EVERY]
    return texts, years, said


def odds(query: str, texts: list[str]) -> Any:
    sure = np.clip(RERANKER.score(query, texts).astype(float), 1e-6, 1 - 1e-6)
    return np.log(sure / (1 - sure))


async def libraries(
    cache: Path, shared: Path, texts: dict[str, str], newer: set[str], middle: int
) -> tuple[Path, Path]:
    """Return the homes of the library of all papers and of the library of the older ones; both are made once."""
    folder, home, before_it = cache / "papers", cache / "home", cache / f"older-{middle}"
    if not home.exists():
        folder.mkdir(parents=True)
        for key, text in texts.items():
            (folder / f"{key}.md").write_text(text, "utf-8")
        async with aopen_library(home) as library:
            await aingest(library, [folder / f"{key}.md" for key in sorted(texts)], bib=shared / "corpus/library.bib")
    if not before_it.exists():
        shutil.copytree(home, before_it)
        async with aopen_library(before_it) as library:
            await aremove_papers(library, sorted(newer))
    return home, before_it


async def recall(given: argparse.Namespace) -> None:
    texts, years, said = corpus(given.shared, given.skip)
    middle = given.year or sorted(years[key] for key in texts)[len(texts) // 2]
    older = {key for key in texts if years[key] < middle}
    newer = texts.keys() - older
    home, before_it = await libraries(given.cache, given.shared, texts, newer, middle)
    if given.calls:
        await calls(given, before_it)
        return
    async with aopen_library(before_it) as library:
        sections, origin, cited = await cite_all(library, said)
        before = {key: record.paper.content_hash for key, record in library.library.records().items()}
    clear: set[int] = set()
    async with aopen_library(home) as library:
        for position, (key, sentence) in enumerate(origin):
            if key in newer and await is_clear(library, sentence, cited[position].quote, newer):
                clear.add(position)
        for hits in given.nearest:
            text_updating._HITS = hits  # type: ignore[misc]  # a constant of the product
            await compare(library, sections, origin, cited, before, clear, older, given.show)


async def compare(
    library: Any, sections: Any, origin: Any, cited: Any, before: Any, clear: set[int], older: set[str], show: bool
) -> None:
    """Print how many of the labelled sentences the comparison flags."""
    checker = await claim_checker(library, "bench", Progress(), judge=False)
    items = await text_updating.compare_text(sections, checker, before)
    # By the number of its marker: a sentence with an abbreviation may be split in two.
    place = {at: int(found.ids[0][1:]) - 1 for at, found in enumerate(sections[0].sentences) if found.ids}
    named = {place[item["position"]] for item in items}
    by_origin = {position for position, (key, _) in enumerate(origin) if key not in older}
    controls = {position for position, (key, _) in enumerate(origin) if key in older and cited[position].key == key}
    print(f"{len(older)} older papers; {len(origin)} sentences; {text_updating._HITS} nearest passages", flush=True)
    for name, labelled in (("clear", clear), ("by origin", by_origin), ("controls", controls)):
        hit = len(labelled & named)
        print(f"{name}: {hit} of {len(labelled)} named, {hit / max(1, len(labelled)):.3f}", flush=True)
    proposed = [(item["passage"]["key"], place[item["position"]]) for item in items if item["passage"]]
    right = sum(key == origin[number][0] for key, number in proposed if number in clear)
    print(f"of the clear ones, {right} propose the paper that the sentence is from")
    for position in sorted(clear - named) if show else ():
        print(f"- {origin[position][0]}: {origin[position][1]}\n    cited {cited[position].key}")


async def cite_all(library: Any, said: dict[str, list[str]]) -> tuple[list[EditableSection], list[Any], list[Evidence]]:
    """Build a text of all sentences, each citing its nearest passage of the older half."""
    origin = [(key, sentence) for key in sorted(said) for sentence in said[key]]
    cited = []
    for number, (_, sentence) in enumerate(origin, 1):
        hits = await retrieve(library.library, sentence, _NEAREST, Scope(), Retrieval(rerank=1.0))
        chunk = hits[0].chunk
        scores = dict.fromkeys(("vector_score", "llm_score", "combined_score"), 0.5)
        cited.append(
            Evidence.of(chunk, start=0, end=len(chunk.text), id=f"E{number}", summary="", source_query="", **scores)
        )
    marked = "\n\n".join(f"{sentence.rstrip('. ')} [E{number}]." for number, (_, sentence) in enumerate(origin, 1))
    record: Any = {"with_markers": marked, "evidence": [], "citations": []}
    section = EditableSection("discussion", record, tuple(cited), 0, {})
    return [section], origin, cited


async def is_clear(library: Any, sentence: str, cited: str, newer: Any) -> bool:
    pools = [
        await retrieve(library.library, sentence, _POOL, Scope(), Retrieval(mode=mode)) for mode in ("dense", "bm25")
    ]
    hits = list({hit.chunk.id: hit for pool in pools for hit in pool}.values())
    scores = await asyncio.to_thread(odds, sentence, [*(hit.chunk.text for hit in hits), cited])
    best = int(np.argmax(scores[:-1]))
    return hits[best].chunk.key in newer and scores[best] - scores[-1] >= _CLEAR


async def calls(given: argparse.Namespace, older: Path) -> None:
    """Count the requests of writing texts on the older half, comparing them with all papers, and rewriting them."""
    checking, librarian = CheckingModel(), Librarian()

    def answer(body: Any) -> Any:
        claims = "Sentences to judge" in str(body["messages"]) or "P1" in json.dumps(body.get("response_format") or {})
        return (checking if claims else librarian)(body)

    home = given.cache / "calls"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(older, home)
    experiment = json.loads((given.shared / f"experiments/{given.experiment}.json").read_text("utf-8"))
    with FakeOpenAI(behaviour=answer) as server:
        settings = Settings(chat_model="fake", chat_base_url=server.base_url, chat_api_key="k", score_threshold=0)
        papers = sorted((given.cache / "papers").glob("*.md"))

        async def write(fresh: bool) -> int:
            began = len(server.requests)
            async with aopen_library(home, settings=settings) as library:
                await aresearch(library, given.question, fresh=fresh)
                await awrite_section(library, given.section, experiment, fresh=fresh)
            return len(server.requests) - began

        first = await write(False)
        async with aopen_library(home, settings=settings) as library:
            await aingest(library, papers, bib=given.shared / "corpus/library.bib")
            began = len(server.requests)
            found = await aupdate_texts(library)
            update = len(server.requests) - began
            began = len(server.requests)
            await aupdate_texts(library)
            again = len(server.requests) - began
        anew = await write(True)
    print(f"requests: {first} on the older half; {update} to compare ({len(found['items'])} items), {again} once more")
    print(f"{anew} to write anew: {update / anew:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.living", description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/citeloom-bench/living").expanduser())
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--calls", action="store_true", help="count requests only")
    parser.add_argument("--show", action="store_true", help="print the clear-cut sentences that the comparison missed")
    parser.add_argument("--year", type=int, default=0, help="year at which to split; default: the median")
    parser.add_argument("--nearest", type=int, nargs="+", default=[text_updating._HITS], help="passages to compare")
    parser.add_argument("--skip", type=int, default=0, help="sentences before the first, of every three")
    parser.add_argument("--question", default=_QUESTION, help="with --calls: the question")
    parser.add_argument("--experiment", default="optimizer_choice_lasso", help="with --calls: its name")
    parser.add_argument("--section", default="discussion", help="with --calls: its kind")
    asyncio.run(recall(parser.parse_args()))


if __name__ == "__main__":
    main()

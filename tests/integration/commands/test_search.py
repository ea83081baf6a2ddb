"""search and find on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from citeloom.commands.papers import plain_sentence
from tests.integration.commands.conftest import Citeloom

FIELDS = [
    *("chunk_id", "key", "title", "year", "page", "ocr", "section", "category", "score", "vector_score", "near"),
    *("sentence", "text", "figure", "described_figures", "status", "notices"),
]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
def test_search_returns_passages(citeloom: Citeloom, home: Path, mode: str) -> None:
    done = citeloom("--home", home, "search", "temperature scaling", "--mode", mode, "--limit", "4", "--json")
    assert done.code == 0 and len(done.json) == 4
    assert [sorted(record) for record in done.json] == [sorted(FIELDS)] * 4
    assert {record["key"] for record in done.json[:2]} & {"varga2021calibration", "okafor2022ensembles"}
    for record in done.json:
        assert record["sentence"] in " ".join(record["text"].split())
    shown = citeloom("--home", home, "search", "temperature scaling", "--mode", mode, "--limit", "4")
    assert shown.code == 0 and "varga2021calibration" in shown.out
    assert all(heading in shown.out for heading in ("key", "page", "section", "sentence"))


@pytest.mark.long
def test_search_works_with_the_cross_encoder(citeloom: Citeloom, home: Path) -> None:
    def found(*options: str, **settings: str) -> list[tuple[str, float]]:
        done = citeloom("--home", home, "search", "does scaling help wearers?", "--json", *options, **settings)
        assert done.code == 0
        return [(record["chunk_id"], record["score"]) for record in done.json]

    assert found("--rerank") == found(RERANK="0.5") != found()
    assert found("--rerank", RERANK="1") == found(RERANK="1") != found("--rerank")
    assert citeloom("--home", home, "search", "x", RERANK="1.5").code == 2


def test_search_respects_its_limits(citeloom: Citeloom, home: Path) -> None:
    def keys(*options: str) -> set[str]:
        done = citeloom("--home", home, "search", "calibration", "--limit", "50", "--json", *options)
        assert done.code == 0
        return {record["key"] for record in done.json}

    assert keys("--papers", "obrien2019seeds,okafor2022ensembles") == {"obrien2019seeds", "okafor2022ensembles"}
    assert keys("--papers", "obrien2019seeds", "--papers", "varga2021calibration") == {
        "obrien2019seeds",
        "varga2021calibration",
    }
    assert keys("--from-year", "2022") == {"okafor2022ensembles"}
    assert keys("--to-year", "2019") == {"obrien2019seeds"}
    assert keys("--venue", "journal") == {"obrien2019seeds"}
    done = citeloom("--home", home, "search", "calibration", "--category", "method,evaluation", "--json")
    assert {record["category"] for record in done.json} == {"method", "evaluation"}
    done = citeloom("--home", home, "search", "calibration", "--category", "Methods,Results", "--json")
    assert {record["category"] for record in done.json} == {"method", "evaluation"}


def test_an_empty_search_says_that_nothing_was_found(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("--home", home, "search", "zyzzyva", "--mode", "bm25")
    assert done.code == 0 and "Nothing in the library matches." in done.err
    assert citeloom("--home", home, "search", "zyzzyva", "--mode", "bm25", "--json").json == []
    none = citeloom("--home", home, "find", "zyzzyva", "--fulltext")
    assert none.code == 0 and "No paper matches." in none.err and none.out == ""
    behind = citeloom("--home", home, "find", "temperature", "--fulltext", "--page", "9")
    assert "There is no page 9: 2 papers in total" in behind.err and behind.out == ""


@pytest.mark.parametrize("query", ["xqzv blorf wibble", "price of crude oil", "medieval church music"])
def test_a_query_far_from_every_passage_says_that_nothing_matches(citeloom: Citeloom, home: Path, query: str) -> None:
    passages = citeloom("--home", home, "search", query)
    assert passages.code == 0 and "No passage matches" in passages.err
    assert not any(record["near"] for record in citeloom("--home", home, "search", query, "--json").json)
    papers = citeloom("--home", home, "find", query)
    assert papers.code == 0 and "No summary or note matches" in papers.err and papers.out == ""
    assert citeloom("--home", home, "find", query, "--json").json == {"papers": [], "total": 0, "next_page": None}


@pytest.mark.parametrize("query", ["seeds", "calibration of wearers", "Do ensembles give better probabilities?"])
def test_a_query_that_papers_answer_does_not_say_that_nothing_matches(
    citeloom: Citeloom, home: Path, query: str
) -> None:
    assert "No passage matches" not in citeloom("--home", home, "search", query).err
    found = citeloom("--home", home, "find", query)
    assert "No summary or note matches" not in found.err and found.out


def test_a_narrow_terminal_leaves_room_for_the_sentence(
    citeloom: Citeloom, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    for command in (("search", "temperature scaling"), ("find", "temperature scaling", "--fulltext")):
        shown = citeloom("--home", home, *command)
        assert shown.code == 0 and "varga2021calibration" in shown.out
        assert max(map(len, shown.out.splitlines())) <= 80
        # The text has most of the line, where six columns would leave it a word.
        assert max(len(line) for line in shown.out.splitlines() if not line.startswith("varga")) > 60


@pytest.mark.parametrize(
    ("sentence", "seen"),
    [
        ("Nodes [@smith2020; @lee2021] are *few* ([Table 3](#t3)).", "Nodes are few (Table 3)."),
        ("####### Prior of **all** trees", "Prior of all trees"),
        ("![Top plot](a.png){#fig:x} shows $a_{i}*b*c$ and a * b", "shows a_i*b*c and a * b"),
        ("![ Top plot: of two", "Top plot: of two"),
        ("word " * 60, "word " * 47 + "word…"),
    ],
)
def test_a_sentence_is_shown_without_markup(sentence: str, seen: str) -> None:
    assert plain_sentence(sentence) == seen


def test_find_searches_summaries_and_texts(citeloom: Citeloom, home: Path) -> None:
    by_summary = citeloom("--home", home, "find", "calibration by temperature", "--json").json
    assert by_summary["papers"][0]["key"] == "varga2021calibration"
    assert (by_summary["total"], by_summary["next_page"]) == (3, None)
    by_text = citeloom("--home", home, "find", "temperature scaling", "--fulltext", "--to-year", "2021", "--json").json
    assert by_text["papers"][0]["key"] == "varga2021calibration"
    assert "okafor2022ensembles" not in {paper["key"] for paper in by_text["papers"]}
    shown = citeloom("--home", home, "find", "temperature scaling", "--fulltext")
    assert shown.code == 0 and "varga2021calibration" in shown.out and "sentence" in shown.out


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("search", "x", "--papers", "nobody1999"), ("nobody1999", "papers list")),
        (("search", "x", "--category", "mood"), ("'mood'", "related_work")),
        (("search", "x", "--venue", "Citelom Jurnal"), ("'Citelom Jurnal'", "venue", "Did you mean")),
        (("search", "x", "--papers", ","), ("--papers is empty",)),
        (("search", "x", "--category", ""), ("--category is empty",)),
        (("search", ""), ("nothing to look for",)),
        (("search", "?! --"), ("nothing to look for", "'?! --'")),
        (("find", " "), ("nothing to look for",)),
        (("find", "…", "--fulltext"), ("nothing to look for",)),
        (("search", "x", "--mode", "fuzzy"), ("--mode", "hybrid")),
        (("search", "x", "--limit", "0"), ("--limit", "greater than or equal to 1")),
        (("search", "x", "--from-year", "2022", "--to-year", "2020"), ("2022", "2020")),
        (("search", "x", "--from-year", "soon"), ("--from-year", "integer")),
        (("search",), ("'query'",)),
        (("find", "x", "--from-year", "2022", "--to-year", "2020"), ("2022", "2020")),
        (("find", "x", "--page", "0"), ("--page", "greater than or equal to 1")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_impossible_searches_are_refused_in_one_line(
    citeloom: Citeloom, home: Path, command: tuple[str, ...], named: tuple[str, ...]
) -> None:
    done = citeloom("--home", home, *command)
    assert done.code == 2 and done.out == ""
    assert len(done.errors) == 1 and all(part in done.errors[0] for part in named), done.err


def test_searching_requires_a_library(citeloom: Citeloom, tmp_path: Path) -> None:
    for command in ("search", "find"):
        done = citeloom("--home", tmp_path / "none", command, "x")
        assert done.code == 2 and "holds no library" in done.errors[0]


def test_an_older_home_is_searched_at_once(citeloom: Citeloom, home: Path) -> None:
    shutil.rmtree(home / "fulltext")
    done = citeloom("--home", home, "search", "temperature", "--mode", "bm25", "--json")
    assert done.json and "Building the full-text index" in done.err
    again = citeloom("--home", home, "search", "temperature", "--mode", "bm25", "--json")
    assert again.json == done.json and "Building" not in again.err


def test_doctor_repairs_a_broken_index(citeloom: Citeloom, home: Path) -> None:
    (home / "fulltext" / "meta.json").write_text("broken", encoding="utf-8")
    done = citeloom("--home", home, "search", "temperature")
    assert done.code == 2 and "doctor --repair" in done.errors[0]
    assert citeloom("--home", home, "doctor").code == 1
    assert citeloom("--home", home, "doctor", "--repair").code == 0
    assert citeloom("--home", home, "search", "temperature").code == 0


def test_unreadable_vectors_are_reported_and_repaired(citeloom: Citeloom, home: Path) -> None:
    before = citeloom("--home", home, "search", "temperature scaling", "--json").json
    (home / "chroma" / "chroma.sqlite3").write_bytes(b"no database any more " * 500)
    assert citeloom("--home", home, "search", "temperature scaling", "--json").json == before  # from the catalog
    assert citeloom("--home", home, "papers", "list").code == 0
    named = citeloom("--home", home, "doctor")
    assert named.code == 1 and "problem: vectors: " in named.out
    mended = citeloom("--home", home, "doctor", "--repair")
    assert mended.code == 0 and "reindexed from their files" in mended.out, mended.err
    assert (home / "chroma-damaged").is_dir()
    assert citeloom("--home", home, "search", "temperature scaling", "--json").json == before

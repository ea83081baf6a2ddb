"""Six sections for each of the three experiments on the 57 real papers, by the command line, without a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bibtexparser
import pytest

from citeloom.experiment import SECTION_KINDS
from citeloom.stores.library import Library
from tests.support.cli_process import Finished, run
from tests.support.section_checks import check_files, check_listed_passages, check_paper, check_section

EXPERIMENTS = ("edge_prior_baseline", "optimizer_choice_lasso", "word_meaning_change")
CITED_AT_LEAST = 4

Written = Callable[[str], tuple[Path, Finished]]


@pytest.fixture(scope="module")
def corpus_home(corpus_library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A separate home with the real papers."""
    home = tmp_path_factory.mktemp("home") / ".citeloom"
    shutil.copytree(corpus_library.home.root, home)
    return home


@pytest.fixture(scope="module")
def written(corpus_home: Path, shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """`paper --json` for an experiment, given once."""
    done: dict[str, tuple[Path, Finished]] = {}

    def write(experiment: str) -> tuple[Path, Finished]:
        if experiment not in done:
            folder = tmp_path_factory.mktemp(experiment)
            exp = shared_dir / "experiments" / f"{experiment}.json"
            done[experiment] = folder, run("--home", corpus_home, "paper", "--exp", exp, "--json", cwd=folder)
        return done[experiment]

    return write


def sections(finished: Finished) -> dict[str, dict[str, Any]]:
    assert finished.code == 0, finished.err
    return {record["section"]: record for record in finished.json["sections"]}


@pytest.mark.parametrize("kind", SECTION_KINDS)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_section_rests_only_on_the_library(
    experiment: str, kind: str, written: Written, corpus_library: Library, shared_dir: Path
) -> None:
    folder, finished = written(experiment)
    record = sections(finished)[kind]
    check_section(record, corpus_library, of_paper=True)
    check_files(record, folder)
    bibliography = bibtexparser.parse_file(str(shared_dir / "corpus" / "library.bib"), parse_stack=[])
    keys = {citation["key"] for citation in record["citations"]}
    assert keys <= {entry.key for entry in bibliography.entries}
    assert len(keys) >= CITED_AT_LEAST
    assert check_listed_passages(record) <= keys
    assert record["usage"]["llm_calls"] == record["usage"]["journal_hits"] == 0


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_paper_has_each_part_once_and_repeats_nothing(
    experiment: str, written: Written, corpus_library: Library
) -> None:
    folder, finished = written(experiment)
    check_paper(finished.json, corpus_library)
    check_files(finished.json, folder)
    listed = check_listed_passages(finished.json)
    assert listed == {reference["key"] for reference in finished.json["references"]}, "each brings words of its own"
    assert all(len(section["text"].split()) >= 25 for section in finished.json["sections"])


def test_the_saved_json_is_what_was_printed(written: Written) -> None:
    folder, finished = written(EXPERIMENTS[0])
    assert json.loads((folder / "paper.json").read_text(encoding="utf-8")) == finished.json
    for record in sections(finished).values():
        assert json.loads((folder / record["files"]["json"]).read_text(encoding="utf-8")) == record


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_fresh_run_writes_the_same_text(
    experiment: str, written: Written, corpus_home: Path, shared_dir: Path, tmp_path: Path
) -> None:
    before = sections(written(experiment)[1])
    exp = shared_dir / "experiments" / f"{experiment}.json"
    anew = sections(run("paper", "--exp", exp, "--fresh", "--json", "--home", corpus_home, cwd=tmp_path))
    for kind, record in anew.items():
        assert record["thread_id"] != before[kind]["thread_id"]
        for field in ("text", "citations", "references", "evidence", "warnings"):
            assert record[field] == before[kind][field], (kind, field)


def test_the_second_line_says_that_there_is_no_model(written: Written) -> None:
    _, finished = written(EXPERIMENTS[0])
    first, second = finished.err.splitlines()[:2]
    assert first.startswith("Home: ")
    assert "model" in second.lower()

"""The labelled questions themselves: they ask for real papers, in words that are not the papers' own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.support.questions import labelled_questions

_RUN = 4


def test_ten_questions_ask_for_one_paper_fifteen_for_several_and_five_for_none() -> None:
    questions = labelled_questions()
    assert Counter(item.track for item in questions) == {"one_paper": 10, "survey": 15, "none": 5}
    assert all(bool(item.expected) == (item.track != "none") for item in questions)
    assert len({item.question for item in questions}) == 30


def test_the_expected_papers_are_in_the_corpus_and_share_no_four_words_with_a_question(shared_dir: Path) -> None:
    papers = {path.stem: path.read_text(encoding="utf-8") for path in (shared_dir / "corpus" / "papers").glob("*.md")}
    texts = [*papers.values(), (shared_dir / "corpus" / "library.bib").read_text(encoding="utf-8")]
    written = {run for text in texts for run in _runs(text)}
    for item in labelled_questions():
        assert set(item.expected) <= papers.keys()
        assert not written.intersection(_runs(item.question)), item.question


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[place : place + _RUN]) for place in range(len(words) - _RUN + 1)}

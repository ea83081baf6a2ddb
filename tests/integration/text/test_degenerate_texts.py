"""No text holds a command up: the time that one takes grows with its length, whoever wrote it.

Here each reader meets the texts that most often took quadratic time; `tests/torture` has all eighty at 100 kB. Regular
expressions, of all modules, have a table of their own: `test_degenerate_patterns.py`.
"""

from __future__ import annotations

import gc
import time

import pytest

from citeloom.citations.checks import draft_checks, fabricated_citations as foreign_citations
from citeloom.documents import categories, chunking, markdown
from citeloom.experiment import Experiment
from citeloom.roles.extractive import statement_needs as needs
from citeloom.roles.protocols import Draft
from tests.support.degenerate_texts import TEXTS, degenerate
from tests.support.reader_company import SOURCES
from tests.support.text_readers import READERS

pytestmark = pytest.mark.attack

WORST = ("'\\n'", "'<a '", "'-'", "'1'", "'('", "'`'", "' '", "'a'", "'<!--'", "'\"'", "blanks behind a marker", "'1,'")
_REPAIRS = 3.0  # every sentence is replaced, and the draft cut into sentences some ten times
_SECONDS = 0.5  # of the processor; quadratic readers took 0.6 to 145 for as much


def _cpu(function, *arguments) -> float:  # type: ignore[no-untyped-def]
    """Seconds of this thread; a search for garbage would look at what all tests before have left."""
    gc.disable()
    try:
        begun = time.thread_time()
        function(*arguments)
        return time.thread_time() - begun
    finally:
        gc.enable()


def test_there_are_eighty_degenerate_texts() -> None:
    assert len(TEXTS) >= 80


@pytest.mark.parametrize("name", READERS)
def test_a_reader_handles_a_degenerate_text_at_once(name: str) -> None:
    READERS[name]("Plain words of a paper.")  # what is made once is not measured
    most = _REPAIRS if name.startswith("repairing") else _SECONDS
    for text in WORST:
        assert _cpu(READERS[name], degenerate(text, 5_000)) < most, text


NAMED = {
    "4,000 dashes, a library of 500 keys": lambda: foreign_citations.find_fabricated(
        "-" * 4_000, known_keys=[f"smith{year}deep" for year in range(1500, 2000)]
    ),
    "16 kB of digits, a library of 500 keys": lambda: foreign_citations.find_fabricated(
        "1" * 16_000, known_keys=[f"smith{year}deep" for year in range(1500, 2000)]
    ),
    "a megabyte of parentheses": lambda: chunking.chunk_paper(
        "a", markdown.parse_markdown("(" * 1_000_000), lambda texts: [len(text) for text in texts]
    ),
    "a heading of 100 kB of blanks": lambda: categories.translate_heading(" " * 100_000),
    "100 kB of numbers as a need": lambda: needs.strip_own_results("1 " * 50_000),
    "2 MB of results": lambda: draft_checks.check_draft(
        Draft("The baseline explains 72.5% of the edges (Lee, 2020) [12]."),
        SOURCES,
        kind="discussion",
        experiment=Experiment(results="The baseline explains 72.5% of the edges. " * 48_000),
    ),
}


@pytest.mark.parametrize(("name", "seconds"), [(name, 30.0 if "MB" in name else 10.0) for name in NAMED])
def test_functions_that_once_took_minutes_take_seconds(name: str, seconds: float) -> None:
    assert _cpu(NAMED[name]) < seconds


def test_every_key_of_a_library_is_found_even_inside_other_words() -> None:
    keys = ("smith2021deep", "Özil_2020")
    text = "As SMITH2021deep-x and preözil_2020 say, smith2021deepsmith2021deep."

    found = [text[item.start : item.end] for item in foreign_citations.find_fabricated(text, known_keys=keys)]

    assert found == ["SMITH2021deep-x", "preözil_2020", "smith2021deepsmith2021deep"]

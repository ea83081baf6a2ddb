"""Every reader of text from outside, on eighty degenerate texts of 100 kB: quick, and in proportion to their length."""

from __future__ import annotations

import gc
import time

import pytest

from citeloom.citations import markers
from citeloom.citations.checks import unicode_folding
from citeloom.documents import blocks
from tests.support.degenerate_texts import TEXTS, degenerate
from tests.support.text_readers import READERS

LENGTH = 100_000
_SECONDS = 1.0  # of the processor
_WHOLE = 8.0  # of all checks of a draft, one after the other, and of a paper cut into chunks
_FLOOR = 0.3  # below which growth is not measured
_GROWTH = 2.5  # at most, when the length doubles
WHOLE = (
    *(
        "check_draft",
        "replace_invalid_citations",
        "copied_findings",
        "repeated_findings",
        "render",
        "trace_numbers",
    ),
    *(
        "DraftEventStream",
        "suspicious",
        "flag_sources",
        "section_html",
        "chunk_paper",
        "describe",
        "parse_",
        "leave_out",
    ),
    *("front matter", "read_front", "author_names", "readable", "quotable"),
    *("repairing", "read_documents", "readable_units"),
    "extractive_summary",  # of a paper that is parsed first, as it is by `describe`
)


def _cpu(name: str, text: str) -> float:
    for kept in (unicode_folding.fold, markers.sentences, blocks.field_blocks):
        kept.cache_clear()  # which would answer what was measured before
    gc.disable()  # which goes through all that other tests have left, too, at moments of its own
    try:
        begun = time.process_time()
        READERS[name](text)
        return time.process_time() - begun
    finally:
        gc.enable()


def _best_of_three(name: str, text: str) -> float:
    return min(_cpu(name, text) for _ in range(3))


@pytest.mark.parametrize("name", READERS)
def test_a_hundred_kilobytes_take_a_second_and_time_grows_linearly(name: str) -> None:
    most = _WHOLE if name.startswith(WHOLE) else _SECONDS
    READERS[name]("Plain words of a paper.")
    for text in TEXTS:
        once = _cpu(name, degenerate(text, LENGTH))
        assert once < most, f"{text}: {once:.2f} s"
        if once > _FLOOR:
            twice = _cpu(name, degenerate(text, 2 * LENGTH))
            if twice >= _GROWTH * once:  # again, lest a busy machine decides
                once = _best_of_three(name, degenerate(text, LENGTH))
                twice = _best_of_three(name, degenerate(text, 2 * LENGTH))
            assert twice < _GROWTH * once, f"{text}: {once:.2f} s, then {twice:.2f} s"

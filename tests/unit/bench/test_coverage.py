"""What `python -m bench coverage` counts as covered."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.coverage import Fact, Question, misplaced, reached
from bench.recording import Passage

FACT = Fact("Frogs spawn earlier.", 2, (("nine days earlier", ("roe2011",)), ("since the 1980s", ("doe2015",))))


@pytest.mark.parametrize(
    ("passage", "counts"),
    [
        (Passage("roe2011", "spawned *nine\ndays*—earlier than"), True),
        (Passage("", "[E1] spawned nine days earlier than"), True),
        (Passage("doe2015", "spawned nine days earlier than"), False),
        (Passage("doe2015", "Since the 1980s, they"), True),
        (Passage("roe2011", "spawned twenty-nine days earlier"), True),
        (Passage("roe2011", "spawned nine days  (earlier)"), True),
        (Passage("roe2011", "spawned ninety days earlier"), False),
    ],
)
def test_a_fact_counts_if_its_words_are_in_a_passage_of_its_paper(passage: Passage, counts: bool) -> None:
    assert reached([FACT], {"read": [passage], "shown": []}) == (frozenset({"read"} if counts else ()),)


def test_a_fact_whose_words_are_not_in_its_paper_is_reported(tmp_path: Path) -> None:
    (tmp_path / "roe2011.md").write_text("They spawned nine days\nearlier.", encoding="utf-8")
    (tmp_path / "doe2015.md").write_text("Nothing.", encoding="utf-8")
    (line,) = misplaced([Question("q1", "When?", (FACT,))], tmp_path)
    assert line == "q1: 'since the 1980s' is not in doe2015"

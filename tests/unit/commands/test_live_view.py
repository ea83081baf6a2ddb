"""The live view of a run."""

from __future__ import annotations

import io

from rich.console import Console

from citeloom.commands.run_display import LiveProgress, describe_spending
from citeloom.graph.run_events import progress
from citeloom.models.journal.records import Usage


def test_the_view_shows_stage_searches_evidence_calls_tokens_and_cost() -> None:
    used = Usage()
    out = Console(file=io.StringIO(), width=140)
    live = LiveProgress(lambda: used, out)
    live.draw(progress("queries", "3 default queries", total=3))
    live.draw(progress("searched", "5 passages for: [x]", done=1, total=3, passages=5))
    live.hide()
    used = Usage(12, 3, 40_000, 2_000, cost=0.25)
    out.print(live)
    drawn = out.file.getvalue()  # type: ignore[attr-defined]
    assert "searched [1/3]: 5 passages for: [x]" in drawn
    assert "searches: 1 · findings: 5 · 12 calls + 3 reused · 42,000 tokens · cost 0.2500" in drawn


def test_a_run_without_a_model_mentions_no_calls() -> None:
    assert describe_spending(Usage()) == []
    assert describe_spending(Usage(2, 0, 10, 5)) == ["2 calls", "15 tokens"]


def test_the_live_view_of_a_paper_names_the_current_section() -> None:
    view = LiveProgress(Usage, Console(file=io.StringIO(), width=140))
    view.draw(progress("queries", "2 default queries for the results", total=2, section="results (2 of 6)"))
    view.draw(progress("searched", "5 passages for: x", done=1, total=2, passages=5))
    view.hide()
    assert view.stage == "results (2 of 6), searched [1/2]"


def test_redrawing_the_view_keeps_text_printed_meanwhile() -> None:
    file = io.StringIO()
    view = LiveProgress(Usage, Console(file=file, force_terminal=True, width=140))
    view.draw(progress("writing", "the answer"))
    view.hide()
    before = len(file.getvalue())
    view.found({"source": "citeloom", "kind": "finding", "key": "smith2020", "text": "words"})  # type: ignore[typeddict-item]
    drawn = file.getvalue()[before:]
    view.hide()
    assert "writing" in drawn
    assert "\x1b[1A" not in drawn, "the cursor goes up, into other output"

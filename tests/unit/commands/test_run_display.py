"""A run on a terminal: its steps and counts, and the draft of an answer while it is written."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from citeloom.commands.run_display import AnswerStreamView, LiveRunView, RunProgress, RunView, WrappedText
from citeloom.graph.events import Event, progress
from citeloom.models.journal.records import Usage


def test_the_view_tells_stage_searches_evidence_calls_tokens_and_cost() -> None:
    used = Usage()
    view = RunView(lambda: used)
    out = Console(file=io.StringIO(), width=140)
    live = LiveRunView(view, out)
    live.show(progress("queries", "3 default queries", total=3), "3 default queries")
    live.show(progress("searched", "5 passages for: x", done=1, total=3, passages=5), "5 passages for: [x]")
    used = Usage(12, 3, 40_000, 2_000, cost=0.25)
    out.print(live)
    drawn = out.file.getvalue()  # type: ignore[attr-defined]
    assert "searched [1/3]: 5 passages for: [x]" in drawn
    assert "searches: 1 · passages: 5 · 12 calls + 3 reused · 42,000 tokens · cost 0.2500" in drawn


def test_lines_of_a_run_without_a_model_say_nothing_of_calls() -> None:
    assert RunView(Usage).paid() == ""
    assert RunView(lambda: Usage(2, 0, 10, 5)).paid() == " (2 calls, 15 tokens)"


def test_the_view_of_a_paper_names_the_current_section() -> None:
    view = RunView(Usage)
    view.take(progress("queries", "2 default queries for the results", total=2, section="results (2 of 6)"))
    view.take(progress("searched", "5 passages for: x", done=1, total=2, passages=5))
    assert view.stage == "results (2 of 6), searched [1/2]"


@pytest.mark.parametrize("length", [1, 4, 100])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Seeds matter more than methods.", ["Seeds matter", "more than", "methods."]),
        ("One\n\n- two  three", ["One", "", "- two  three"]),
        ("Unbreakable-long-word here", ["Unbreakable-long-word", "here"]),
        ("中文文本 字符 宽度", ["中文文本", "字符 宽度"]),
    ],
)
def test_lines_break_between_words(text: str, lines: list[str], length: int) -> None:
    out = io.StringIO()
    wrapped = WrappedText(out, 12)
    for start in range(0, len(text), length):
        wrapped.write(text[start : start + length])
    wrapped.end()
    assert out.getvalue() == "".join(f"{line}\n" for line in lines)


def token(text: str) -> Event:
    return {"source": "citeloom", "kind": "token", "text": text}


def test_steps_stand_below_the_draft_and_orders_to_the_terminal_are_shown_escaped() -> None:
    out = io.StringIO()
    told = AnswerStreamView(RunProgress(lambda event: out.write(f"<{event['text']}>\n") and None), out)
    for event in (progress("writing", "writing"), token("Seeds\x1b[2J"), token(" matter"), progress("checked", "fine")):
        told(event)
    assert out.getvalue() == "<writing>\n\nSeeds\\x1b[2J matter\n<fine>\n"
    assert told.has_output
    assert not told.has_shown({"text": "Seeds may matter"})


def test_discarded_pieces_do_not_count_as_shown() -> None:
    out = io.StringIO()
    told = AnswerStreamView(RunProgress(lambda _: None), out)
    for event in (token("Seed"), Event.__args__[4](source="citeloom", kind="restarted"), token("Seeds matter.")):
        told(event)
    told.end()
    assert told.has_shown({"text": "Seeds matter.\n"})
    assert out.getvalue() == "\nSeed\n\nThe connection broke off; the answer starts over:\n\nSeeds matter.\n"


def test_without_a_terminal_no_draft_is_shown() -> None:
    told = AnswerStreamView(RunProgress(lambda _: None), None)
    told(token("Seeds matter."))
    assert not told.has_shown({"text": "Seeds matter."})
    assert not told.has_output

"""How a draft looks on a terminal while it is written."""

from __future__ import annotations

import io

import pytest

from citeloom.commands.run_display import AnswerStreamView, RunProgress, WrappedText
from citeloom.graph.run_events import Event, ProgressEvent, progress
from citeloom.models.journal.records import Usage


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


def test_steps_are_shown_below_the_draft_and_control_characters_are_escaped() -> None:
    out = io.StringIO()

    class Steps(RunProgress):
        def draw(self, event: ProgressEvent) -> None:
            out.write(f"<{event['text']}>\n")

    told = AnswerStreamView(Steps(Usage), out)
    for event in (progress("writing", "writing"), token("Seeds\x1b[2J"), token(" matter"), progress("checked", "fine")):
        told(event)
    assert out.getvalue() == "<writing>\n\nSeeds\\x1b[2J matter\n<fine>\n"
    assert told.has_output
    assert not told.has_shown({"text": "Seeds may matter"})


def test_discarded_pieces_do_not_count_as_shown() -> None:
    out = io.StringIO()
    told = AnswerStreamView(RunProgress(Usage), out)
    for event in (token("Seed"), Event.__args__[4](source="citeloom", kind="restarted"), token("Seeds matter.")):
        told(event)
    told.end()
    assert told.has_shown({"text": "Seeds matter.\n"})
    assert out.getvalue() == "\nSeed\n\nThe connection broke off; the answer starts over:\n\nSeeds matter.\n"


def test_without_a_terminal_no_draft_is_shown() -> None:
    told = AnswerStreamView(RunProgress(Usage), None)
    told(token("Seeds matter."))
    assert not told.has_shown({"text": "Seeds matter."})
    assert not told.has_output

"""Renders an answer (a panel on a terminal, markdown in a pipe) and suggests next steps."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .answer_stream import AnswerStreamView
from .options import command_here
from .output import result
from .terminal_text import one_line, printable


def answer_markdown(record: Mapping[str, Any]) -> str:
    """The answer with its references."""
    return f"{str(record['text']).strip()}\n\n{references_markdown(record)}".strip()


def references_markdown(record: Mapping[str, Any]) -> str:
    """The references of an answer, with the cited places of each number; empty when it cites nothing."""
    if not record["references"]:
        return ""
    if record["cite_style"] == "numeric":
        from ..api.result_views import numbered_list

        return f"## References\n\n{numbered_list(record['references'])}"
    lines = [f"- **{reference['label']}**: {reference['text']}" for reference in record["references"]]
    return "## References\n\n" + "\n".join(lines)


def show_answer(record: Mapping[str, Any], view: AnswerStreamView | None = None) -> None:
    """Print the answer; only its references if the text was already streamed."""
    text = answer_markdown(record)
    if not sys.stdout.isatty():
        from ..api.result_views import inert  # which loads all of the citations

        result(f"# {inert(one_line(record['question']))}\n\n{inert(text)}")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.panel import Panel

    if view is not None and view.has_shown(record):
        result("")
        Console().print(Markdown(printable(references_markdown(record)), hyperlinks=False), highlight=False)
        sys.stdout.flush()
        return
    if view is not None and view.has_output:
        result("\nThat was a draft. The answer after the checks:\n")
    # Text of papers and models: no link of theirs is made clickable.
    drawn = Markdown(printable(text), hyperlinks=False)
    title = one_line(f" {record['question']} ").replace("[", "\\[")
    Console().print(Panel(drawn, title=title, title_align="left", padding=(1, 2)), highlight=False)
    sys.stdout.flush()


def outcome_words(record: Mapping[str, Any]) -> str:
    """How a question ended, as the start of a line."""
    endings = {"answered": "Answered", "passages": "Nearest passages, not judged", "nothing": "Nothing near"}
    return endings[record["outcome"]]


def next_steps(record: Mapping[str, Any]) -> list[str]:
    """Suggested next steps, one line each."""
    if not record["citations"]:
        return [
            "Next: rephrase the question, or drop --papers, --from-year, --to-year or --venue.",
            f'Next: {command_here("find")} "..." lists the papers on a subject; {command_here("ingest")} adds more.',
        ]
    key = record["citations"][0]["key"]
    steps = [f"Next: {command_here('papers show')} {key} shows a cited paper."]
    if not record["files"]:
        steps.append("Next: add --out DIR to save the answer and its evidence report, at no further cost.")
    if record["route"]["track"] == "survey" and not record["route"]["papers"]:
        steps.append("Next: --papers KEY limits a question to given papers; --sources N draws on more of them.")
    return steps

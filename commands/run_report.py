"""Prints finished runs: answer or references, warnings, cost, coverage, files and next steps."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from ..api.messages import counted
from ..errors import DONE_WITH_REFUSALS
from .options import command_on_home
from .output import notice, result
from .run_display import AnswerStreamView
from .terminal_text import one_line, printable

if TYPE_CHECKING:
    from ..api.result_views import ResultRecord, UsageRecord
    from ..api.running import SavedRun


_ENDINGS = {"answered": "Answered", "passages": "Nearest passages, not judged", "nothing": "Nothing near"}
# An address in angle brackets would be shown twice, as text and as link.
_ADDRESS = re.compile(r"<(https?://[^<>\s]+)>")


def answer_markdown(record: Mapping[str, Any]) -> str:
    return f"{str(record['text']).strip()}\n\n{references_markdown(record)}".strip()


def references_markdown(record: Mapping[str, Any]) -> str:
    """An answer's references, each with its cited places; empty without citations."""
    if not record["references"]:
        return ""
    if record["cite_style"] == "numeric":
        from ..api.result_views import numbered_list

        return f"## References\n\n{numbered_list(record['references'])}"
    lines = [f"- **{reference['label']}**: {reference['text']}" for reference in record["references"]]
    return "## References\n\n" + "\n".join(lines)


def show_answer(record: Mapping[str, Any], view: AnswerStreamView | None = None) -> None:
    """Print the answer, or only its references if already streamed."""
    if not sys.stdout.isatty():
        show_markdown(f"# {one_line(record['question'])}\n\n{answer_markdown(record)}")
    elif view is not None and view.has_shown(record):
        result("")
        show_markdown(references_markdown(record))
    else:
        if view is not None and view.has_output:
            result("\nThat was a draft. The answer after the checks:\n")
        show_markdown(answer_markdown(record), title=one_line(f" {record['question']} "))


def show_markdown(markdown: str, *, title: str = "") -> None:
    """Print a result: drawn on a terminal, framed if it has a title; as plain text elsewhere."""
    if not sys.stdout.isatty():
        from ..api.result_views import inert  # imports all of `citations`

        result(inert(markdown))
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.panel import Panel

    # Text from papers and models: links would hide their targets, and must never be clickable.
    drawn = Markdown(_ADDRESS.sub(r"\1", printable(markdown)), hyperlinks=False)
    frame = Panel(drawn, title=title.replace("[", "\\["), title_align="left", padding=(1, 2)) if title else drawn
    Console().print(frame, highlight=False)
    sys.stdout.flush()


def next_steps(record: Mapping[str, Any]) -> list[str]:
    if record["route"]["kind"] == "remark":
        return []
    if not record["citations"]:
        return [
            "Next: rephrase the question, or drop --papers, --from-year, --to-year or --venue.",
            f'Next: {command_on_home("find")} "..." lists papers on a subject; {command_on_home("ingest")} adds more.',
        ]
    key = record["citations"][0]["key"]
    steps = [f"Next: {command_on_home('papers show')} {key} shows a cited paper."]
    if not record["files"]:
        steps.append("Next: add --out DIR to save the answer and its evidence report, at no further cost.")
    if record["route"]["track"] == "survey" and not record["route"]["papers"]:
        steps.append("Next: --papers KEY limits a question to given papers; --sources N draws on more of them.")
    return steps


def report_run(finished: SavedRun) -> None:
    from ..api.result_views import coverage_line

    record = finished.record
    is_answer = "question" in record
    for warning in record["warnings"]:
        notice(f"Note: {warning}")
    made = _ENDINGS[record["outcome"]] if is_answer else record["section"]
    if is_answer and record["outcome"] == "nothing" and record["citations"]:
        made = "Not answered, the nearest evidence"
    if is_answer and record["route"]["kind"] == "remark":
        made = "Nothing was searched"
    papers = len({citation["key"] for citation in record["citations"]})
    cited = f"{counted(len(record['citations']), 'citation')} of {counted(papers, 'paper')}"
    notice(f"{made}: {cited}; {usage_words(record['usage'])}.")
    if finished.finished_earlier:
        verb = "answers" if is_answer else "writes"
        notice(f"Run {record['thread_id']} was finished earlier: no call was made now; --fresh {verb} again.")
    if coverage := coverage_line(record["coverage"]):
        notice(coverage)
    if not is_answer and (numbers := record["numbers"]):
        found = sum(number["found"] is not None for number in numbers)
        notice(f"Numbers: {found} of {len(numbers)} found in the experiment or in a cited passage.")
    if not is_answer and record["left_out"]:
        sentences = counted(len(record["left_out"]), "sentence")
        notice(f"Left out (--strict): {sentences} that failed a check, listed in the JSON.")
    if record["files"]:
        notice("Files: " + ", ".join(record["files"].values()))


def usage_words(usage: UsageRecord) -> str:
    calls = counted(usage["llm_calls"], "model call")
    hits = counted(usage["journal_hits"], "answer")
    tokens = counted(usage["input_tokens"] + usage["output_tokens"], "token")
    cost = f", cost {usage['cost']:.4f}" if usage["cost"] else ""
    return f"{calls}, {hits} from the journal, {tokens}{cost}"


def end_incomplete(record: ResultRecord) -> None:
    """Exit with code 4 if a section has no text, or the model could read no passage for it."""
    from ..api.result_views import all_unreadable

    sections = record.get("sections") or [record]
    if empty := [item for item in sections if "section" in item and not item["text"].strip()]:
        names = ", ".join(str(item["section"]) for item in empty)
        remedy = "Write without --strict" if any(item["left_out"] for item in empty) else "Write with --fresh"
        notice(f"Failed: no text was written for: {names}. {remedy}, or name another model.")
        raise typer.Exit(DONE_WITH_REFUSALS)
    if all_unreadable(record["coverage"]):
        notice("Warning: the model could read none of the passages; the result rests on none of them.")
        raise typer.Exit(DONE_WITH_REFUSALS)

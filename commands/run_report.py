"""What a command says on stderr of a finished run: its warnings, citations, cost, coverage and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ..api.messages import counted
from ..errors import DONE_WITH_REFUSALS
from .answer_view import outcome_words
from .output import notice

if TYPE_CHECKING:
    from ..api.result_views import ResultRecord, UsageRecord
    from ..api.running import SavedRun


def report_run(finished: SavedRun) -> None:
    """Report on a section, a paper or an answer."""
    from ..api.result_views import coverage_line

    record = finished.record
    is_answer = "question" in record
    for warning in record["warnings"]:
        notice(f"Note: {warning}")
    made = outcome_words(record) if is_answer else record["section"]
    papers = len({citation["key"] for citation in record["citations"]})
    cited = f"{counted(len(record['citations']), 'citation')} of {counted(papers, 'paper')}"
    notice(f"{made}: {cited}; {usage_words(record['usage'])}.")
    if finished.finished_earlier:
        verb = "answers" if is_answer else "writes"
        notice(f"Run {record['thread_id']} was finished earlier: no call was made now; --fresh {verb} again.")
    if coverage := coverage_line(record["coverage"]):
        notice(coverage)
    if not is_answer:
        _report_checks(record)
    if record["files"]:
        notice("Files: " + ", ".join(record["files"].values()))


def _report_checks(record: ResultRecord) -> None:
    if numbers := record["numbers"]:
        found = sum(number["found"] is not None for number in numbers)
        notice(f"Numbers: {found} of {len(numbers)} found in the experiment or in a cited passage.")
    if record["left_out"]:
        sentences = counted(len(record["left_out"]), "sentence")
        notice(f"Left out (--strict): {sentences} that failed a check, listed in the JSON.")


def usage_words(usage: UsageRecord) -> str:
    """Calls, answers from the journal, tokens, and the cost where prices are known."""
    calls = counted(usage["llm_calls"], "model call")
    hits = counted(usage["journal_hits"], "answer")
    tokens = counted(usage["input_tokens"] + usage["output_tokens"], "token")
    cost = f", cost {usage['cost']:.4f}" if usage["cost"] else ""
    return f"{calls}, {hits} from the journal, {tokens}{cost}"


def end_incomplete(record: ResultRecord) -> None:
    """End with exit code 4 where a section has no text, or the model could read none of its passages."""
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

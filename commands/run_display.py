"""Shows a run: its steps and cost, its questions to the user, an answer's draft, and the result."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from .. import api
from ..api import blocking
from ..api.messages import command, counted, shorten
from ..errors import DONE_WITH_REFUSALS, InputError, WaitingError
from .options import command_on_home
from .output import cell_len, notice, one_line, printable, result

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

    from ..api import homes, results, run_texts, stored_runs
    from ..api.running import Event, FindingEvent, Output, ProgressEvent, RunRequest, RunResult

    Spent = Callable[[], stored_runs.Usage]


def describe_spending(used: stored_runs.Usage) -> list[str]:
    """Format calls, tokens and cost; empty if there were no calls."""
    if not used.llm_calls and not used.journal_hits:
        return []
    reused = f" + {used.journal_hits} reused" if used.journal_hits else ""
    parts = [f"{counted(used.llm_calls, 'call')}{reused}", counted(used.input_tokens + used.output_tokens, "token")]
    return [*parts, f"cost {used.cost:.4f}"] if used.cost is not None and used.llm_calls else parts


class RunProgress:
    """Prints the steps of a run as lines; evidence, tokens and citations are not shown."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent

    def __call__(self, event: Event) -> None:
        if event["kind"] == "stage":
            self.draw(event)
        elif event["kind"] == "finding":
            self.found(event)

    def draw(self, event: ProgressEvent) -> None:
        paid = ", ".join(describe_spending(self._spent()))
        notice(f"  {shorten(event['text'], 110)}{f' ({paid})' if paid else ''}")

    def found(self, event: FindingEvent) -> None:
        """Show a finding as it is read; not printed here, since findings would hide the steps."""

    def hide(self) -> None:
        """Hide the view until the next step, to make room for other output."""


class LiveProgress(RunProgress):
    """Renders a run on a terminal: finished steps scroll, the current state stays below, with the usage so far."""

    def __init__(self, spent: Spent, console: Console) -> None:
        from rich.spinner import Spinner

        super().__init__(spent)
        self._console, self._spinner = console, Spinner("dots")
        self._live: Live | None = None
        self.stage, self._section, self._doing = "starting", "", ""
        self._searches = self._findings = 0

    def show(self) -> None:
        from rich.live import Live

        if self._live is None:  # restarting a stopped view would erase later output
            self._live = Live(self, console=self._console, refresh_per_second=8, transient=True)
            self._live.start(refresh=True)

    def hide(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def found(self, event: FindingEvent) -> None:
        self.show()
        self._doing = one_line(shorten(f"{event['key']}: {event['text']}", max(20, self._console.width)))

    def draw(self, event: ProgressEvent) -> None:
        from rich.text import Text

        self.show()
        if "section" in event:
            self._section = f"{event['section']}, "
        place = f" [{event['done']}/{event['total']}]" if "done" in event and "total" in event else ""
        self.stage = f"{self._section}{event['stage']}{place}"
        self._doing = one_line(shorten(event["text"], max(20, self._console.width)))
        if event["stage"] == "searched":
            self._searches += 1
            self._findings += event.get("passages", 0)
        else:
            self._console.print(Text(f"  {self._doing}", style="dim"), highlight=False)

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        doing = f"{self.stage}: {self._doing}" if self._doing else self.stage
        counts = [f"searches: {self._searches}", f"findings: {self._findings}", *describe_spending(self._spent())]
        self._spinner.update(text=Text(doing, no_wrap=True, overflow="ellipsis"))
        room = max(20, self._console.width - 4)
        return Group(self._spinner, Text(f"  {' · '.join(counts)}"[:room], style="dim"))


@contextmanager
def section_progress(spent: Spent) -> Iterator[RunProgress]:
    """Renders a run: a live view on a terminal, else plain lines; `spent` is called several times a second."""
    if not sys.stderr.isatty():
        yield RunProgress(spent)
        return
    from rich.console import Console

    progress = LiveProgress(spent, Console(stderr=True))
    try:
        progress.show()
        yield progress
    finally:
        progress.hide()


@dataclass(slots=True)
class WrappedText:
    """Wraps streamed text between words, to `width` columns."""

    _out: TextIO
    _width: int
    _column: int = 0
    _word: str = ""

    def write(self, text: str) -> None:
        for character in text:
            if character.isspace():
                self._end_word()
                if character == "\n":
                    self._put("\n")
                elif self._column:
                    self._word = " "
            else:
                self._word += character
        self._out.flush()

    def end(self) -> None:
        self._end_word()
        if self._column:
            self._put("\n")
        self._out.flush()

    def _end_word(self) -> None:
        word, self._word = self._word, ""
        if self._column and self._column + cell_len(word) > self._width:
            self._put("\n")
        self._put(word if self._column else word.lstrip())

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._column = 0 if text == "\n" else self._column + cell_len(text)


@dataclass(slots=True)
class AnswerStreamView:
    """Renders a run: its steps by `progress`, and its draft to the terminal `out`; None hides the draft."""

    _progress: RunProgress
    _out: TextIO | None
    _width: int = 80
    _said: list[str] = field(default_factory=list)
    _text: WrappedText | None = None

    def __call__(self, event: Event) -> None:
        if event["kind"] == "token":
            self._said.append(event["text"])
            if self._out is None:
                return
            if self._text is None:
                self._progress.hide()
                self._out.write("\n")
                self._text = WrappedText(self._out, self._width)
            self._text.write(printable(event["text"]))
        elif event["kind"] == "restarted":
            self._end_text()
            if self._said and self._out is not None:
                self._out.write("\nThe connection broke off; the answer starts over:\n")
            self._said.clear()
        else:
            if event["kind"] == "stage":
                self._end_text()
            self._progress(event)

    def end(self) -> None:
        self._end_text()
        self._progress.hide()

    def _end_text(self) -> None:
        text, self._text = self._text, None
        if text is not None:
            text.end()

    def has_shown(self, record: Mapping[str, Any]) -> bool:
        """Whether the streamed text equals the answer of `record`."""
        if self._out is None:
            return False
        return api.shown_texts.inert("".join(self._said)).strip() == api.shown_texts.inert(str(record["text"])).strip()

    @property
    def has_output(self) -> bool:
        """Whether any part of a draft was shown."""
        return self._out is not None and bool(self._said)


@contextmanager
def answer_progress(spent: Callable[[], stored_runs.Usage], *, draft: bool) -> Iterator[AnswerStreamView]:
    """Renders an answer's events; also its draft if `draft` is set and stdout is a terminal."""
    # The live view redirects stdout, so take it before.
    out = sys.stdout if draft and sys.stdout.isatty() else None
    with section_progress(spent) as progress:
        view = AnswerStreamView(progress, out, shutil.get_terminal_size().columns)
        try:
            yield view
        finally:
            view.end()


_ENDINGS = {"answered": "Answered", "passages": "Nearest passages, not judged", "nothing": "Nothing near"}
# Without its angle brackets, an address is not shown twice, as text and as link.
_ADDRESS = re.compile(r"<(https?://[^<>\s]+)>")


def answer_markdown(record: Mapping[str, Any]) -> str:
    return f"{str(record['text']).strip()}\n\n{references_markdown(record)}".strip()


def references_markdown(record: Mapping[str, Any]) -> str:
    """Format an answer's references, each with its cited places; empty if there are none."""
    if not record["references"]:
        return ""
    if record["cite_style"] == "numeric":
        return f"## References\n\n{api.shown_texts.numbered_list(record['references'])}"
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
    """Print a result: formatted on a terminal (framed if it has a title), else as plain text."""
    if not sys.stdout.isatty():
        result(api.shown_texts.inert(markdown))
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.panel import Panel

    # The text comes from papers and models: links, which hide their targets, must not be clickable.
    drawn = Markdown(_ADDRESS.sub(r"\1", printable(markdown)), hyperlinks=False)
    frame = Panel(drawn, title=title.replace("[", "\\["), title_align="left", padding=(1, 2)) if title else drawn
    Console().print(frame, highlight=False)
    sys.stdout.flush()


def next_steps(record: Mapping[str, Any]) -> list[str]:
    if record["route"]["kind"] == "remark":
        return []
    if not record["citations"] and api.shown_texts.all_unreadable(record["coverage"]):
        return [f"Next: {command('setup')} tries another chat model."]
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


def report_run(finished: RunResult[run_texts.ResultRecord]) -> None:
    record = finished.record
    is_answer = "question" in record
    notice(*(f"Note: {warning}" for warning in record["warnings"]))
    made = _ENDINGS[record["outcome"]] if is_answer else record["section"]
    if is_answer and record["outcome"] == "nothing" and record["citations"]:
        made = "Not answered, the nearest evidence"
    elif is_answer and api.shown_texts.all_unreadable(record["coverage"]):
        made = "Nothing could be read"
    if is_answer and record["route"]["kind"] == "remark":
        made = "Nothing was searched"
    papers = len({citation["key"] for citation in record["citations"]})
    cited = f"{counted(len(record['citations']), 'citation')} of {counted(papers, 'paper')}"
    notice(f"{made}: {cited}; {describe_usage(record['usage'])}.")
    if finished.finished_earlier:
        verb = "answers" if is_answer else "writes"
        notice(f"Run {record['thread_id']} was finished earlier: no call was made now; --fresh {verb} again.")
    if coverage := api.shown_texts.coverage_line(record["coverage"]):
        notice(coverage)
    if not is_answer and (numbers := record["numbers"]):
        found = sum(number["found"] is not None for number in numbers)
        notice(f"Numbers: {found} of {len(numbers)} found in the experiment or in a cited passage.")
    if not is_answer and record["left_out"]:
        sentences = counted(len(record["left_out"]), "sentence")
        notice(f"Left out (--strict): {sentences} that failed a check, listed in the JSON.")
    if record["files"]:
        notice("Files: " + ", ".join(record["files"].values()))


def describe_usage(usage: run_texts.UsageRecord) -> str:
    calls = counted(usage["llm_calls"], "model call")
    hits = counted(usage["journal_hits"], "answer")
    tokens = counted(usage["input_tokens"] + usage["output_tokens"], "token")
    cost = f", cost {usage['cost']:.4f}" if usage["cost"] else ""
    return f"{calls}, {hits} from the journal, {tokens}{cost}"


def end_incomplete(record: run_texts.ResultRecord) -> None:
    """Exit with code 4 if a section has no text, or the model could read no passage for it."""
    sections = record.get("sections") or [record]
    if empty := [item for item in sections if "section" in item and not item["text"].strip()]:
        names = ", ".join(str(item["section"]) for item in empty)
        remedy = "Write without --strict" if any(item["left_out"] for item in empty) else "Write with --fresh"
        notice(f"Failed: no text was written for: {names}. {remedy}, or name another model.")
        raise typer.Exit(DONE_WITH_REFUSALS)
    if api.shown_texts.all_unreadable(record["coverage"]):
        notice("Warning: the model could not read any of the passages, so the result is not based on them.")
        raise typer.Exit(DONE_WITH_REFUSALS)


def run_steered(
    request: RunRequest, session: homes.Session, output: Output | None, answer: object = None, *, draft: bool = False
) -> tuple[run_texts.ResultRecord, AnswerStreamView]:
    """Run a request, or resume it with an `answer`, and ask the person at the terminal whatever the run asks.

    Writes files to `output`, reports on stderr, and shows an answer's `draft`. Raises `WaitingError` without a
    terminal, and when the person postpones a question.
    """
    waiting: WaitingError | None = None
    about = session.notice(answer=isinstance(request, api.running.ResearchRequest))
    if about and answer is None:
        notice(about)
    with answer_progress(session.spent_now, draft=draft) as view:
        while True:
            said = None if answer is None else api.running.sign_answer(answer)
            try:
                work = api.running.run_and_save(request, session, output, on_event=view, on_notice=notice, answer=said)
                finished = blocking.run_async(work)
            except WaitingError as asked:
                waiting = asked
            except api.running.AnswerError as error:
                if waiting is None:
                    raise
                notice(f"Error: {error}")
            else:
                view.end()
                report_run(finished)
                return finished.record, view
            view.end()
            terminal = sys.stdin.isatty() and sys.stderr.isatty()
            if not terminal or (answer := _ask(waiting.question["citeloom"])) is None:
                raise waiting


def _ask(detail: results.QuestionDetail) -> object:
    """Ask the person; returns "accept", "ignore", the fields that they changed, or None to postpone the question."""
    of = f" of the {detail['section']}" if detail["section"] else ""
    notice(f"\n{detail['ask'].capitalize()}{of}: {detail['summary']}\n")
    notice(*(f"  {line}" for line in detail["about"].splitlines()))
    answers: dict[str, object] = {"": "accept", "e": "edit", "l": None}
    stop = ""
    if "ignore" in detail["answers"]:
        answers["s"], stop = "ignore", ", s pauses the run"
    asked = f"Enter accepts this, e edits it{stop}, l leaves it for later"
    while (said := typer.prompt(asked, "", show_default=False, err=True).strip().lower()) not in answers:
        notice("Please choose one of these.")
    if said != "e":
        return answers[said]
    return {item["name"]: value for item in detail["fields"] if (value := _ask_field(item)) != item["value"]}


def _ask_field(item: results.QuestionField) -> str:
    """Ask for a field's new value: one line, or for a field of several entries one line each, ended by an empty one."""
    if not item["several"]:
        notice(f"{item['name']}: {one_line(item['value'])}")
        said = typer.prompt("  Enter keeps it, - removes it, or type a new one", "", show_default=False, err=True)
        return "" if said.strip() == "-" else said.strip() or item["value"]
    lines: list[str] = []
    notice(f"{item['label']} (Enter ends):")
    while said := typer.prompt(f"  {item['name']}", "", show_default=False, err=True).strip():
        lines.append(said)
    return "\n".join(lines)


def read_json(file: Path) -> object:
    try:
        return json.loads(sys.stdin.read() if str(file) == "-" else file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: {error}.", help="Give a JSON object with the fields to change.") from error

"""research, follow-up questions and improve: turns of a conversation, shown by stage and restorable."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...api.homes import Home
from ...api.messages import counted
from ...errors import CiteloomError
from ...settings.config import Settings
from ..chat import forget_expired
from ..output import notice, result
from ..run_display import AnswerStreamView, RunProgress, references_markdown, usage_words
from . import display
from .parser import CommandName
from .shell_state import Shell, ShellDraft, ShellState

if TYPE_CHECKING:
    from ...api.conversation import TurnKind
    from ...api.running import ProgressEvent


SYNTHESIS_FAILED = "Failed to synthesize research answer"
_UNREADABLE = frozenset({"unknown-marker", "foreign-citation"})
_NEXT = (
    "`improve <feedback>` rewrites the answer; a question follows up on it",
    "`save` saves it with its evidence report",
    "`summary <number>` and `open <number>` show a cited paper",
)


async def research(shell: Shell, question: str) -> ShellState:
    return await _take(shell, question, "question")


async def ask(shell: Shell, question: str) -> ShellState:
    return await _take(shell, question, "follow-up")


async def improve(shell: Shell, feedback: str) -> ShellState:
    display.stage("✍️ ", "Improving research answer with your feedback...")
    return await _take(shell, feedback, "improve")


async def _take(shell: Shell, asked: str, kind: TurnKind) -> ShellState:
    session = await shell.session()
    from ...api.conversation import TurnRequest, take_turn
    from ...api.run_texts import coverage_line, coverage_warnings

    if session.notice(answer=True) and not shell.told_of_mode:
        notice(session.notice(answer=True))
        shell.told_of_mode = True
    stages = TurnStages(writes="writer" not in session.extractive)
    # Without a chat model the answer comes all at once, and reads better in its panel.
    drafts = sys.stdout if sys.stdout.isatty() and "writer" not in session.extractive else None
    view = AnswerStreamView(stages, drafts, shutil.get_terminal_size().columns)
    try:
        turn = await take_turn(shell.thread_id, TurnRequest(asked, kind), session, on_event=view, on_notice=notice)
    except CiteloomError as error:
        if stages.writing:
            error.add_note(SYNTHESIS_FAILED)
        raise
    finally:
        view.end()
    record = turn.record
    shell.turns = turn.number
    if record["route"]["kind"] == "remark":
        result(str(record["text"]))
        return shell.state.without_result()
    if not record["citations"]:
        for text in coverage_warnings(record["coverage"]):
            display.warning(text)
        if stages.papers and not stages.chunks:
            display.failure("No detailed content found in the selected papers. Papers may not be properly indexed.")
            notice("`rebuild-index` rebuilds the index.")
        else:
            display.failure(
                f'No papers found relevant to query: "{record["question"]}". Try refining your search terms.'
            )
            result(str(record["text"]))
        return shell.state.without_result()
    for text in record["warnings"]:
        display.warning(text)
    if any(finding["rule"] in _UNREADABLE for finding in record["findings"]):
        display.warning("Some citations could not be formatted correctly")
    reached = draft_answer(record)
    if view.has_output and not view.has_shown(record):
        display.warning("That was a draft; this is the answer after the checks")
    parts = [] if view.has_shown(record) else [f"# {record['question']}", str(record["text"]).strip()]
    if record["cite_style"] == "numeric":
        parts.append(references_markdown(record))
    else:
        parts += ["## References", *format_references(record["references"], reached.last_query_set)]
    display.panel("Research Results", "\n\n".join(parts))
    if record["usage"]["llm_calls"] or record["usage"]["journal_hits"]:
        notice(f"{usage_words(record['usage'])}.")
    if coverage := coverage_line(record["coverage"]):
        notice(coverage)
    display.next_steps(_NEXT)
    return reached


def draft_answer(record: Mapping[str, Any]) -> ShellState:
    """The state after an answer: numbered papers, draft to save, and question."""
    references = record["references"]
    numeric = record["cite_style"] == "numeric"
    papers = {int(entry["label"]) if numeric else place: entry["key"] for place, entry in enumerate(references, 1)}
    return ShellState(papers, ShellDraft("research", record["markdown"], record), record["question"])


def format_references(references: Sequence[Mapping[str, Any]], papers: Mapping[int, str]) -> list[str]:
    """References with numbers and keys for commands; as paragraphs, since markdown renumbers lists."""
    return [
        f"**[{number}]** {key} - {entry['text']}"
        for (number, key), entry in zip(papers.items(), references, strict=True)
    ]


class TurnStages(RunProgress):
    """Prints a turn's stages from its events; `writes` is false without a chat model."""

    def __init__(self, *, writes: bool = True) -> None:
        self.writes = writes
        self.papers = self.chunks = 0
        self.read = self.writing = False

    def draw(self, event: ProgressEvent) -> None:
        text, total = event["text"], event.get("total", 0)
        match event["stage"]:
            case "rewritten":
                notice(f"   {text[:1].upper()}{text[1:]}")
            case "routed" if "nothing is searched" not in text:
                display.stage("🔍", "Stage 1: Searching summaries for relevant papers...")
            case "shortlisted":
                self.papers = total
                notice(f"   Found {counted(total, 'paper')} to look into" if total > 1 else f"   {_capital(text)}")
                display.stage("📚", f"Stage 2: Gathering detailed evidence from {counted(total, 'paper')}...")
            case "found":
                self.chunks = total
                notice(f"   Retrieved {counted(total, 'content chunk')}")
            case "writing" if event.get("passages"):
                self.writing = True
                done = "Synthesizing answer from evidence" if self.writes else "Listing the nearest passages"
                display.stage("✍️ ", f"Stage 3: {done}...")
            case "searched" if not self.read:
                self.read = True
                passages = event.get("passages", 0)
                notice(f"   {counted(passages, 'finding')} on the question")
            case "searched" | "planning" | "repairing":
                notice(f"   {_capital(text)}")
            case _:
                pass  # findings are shown with the answer


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


_COMMANDS: dict[str, CommandName] = {"question": "research", "follow-up": "ask", "improve": "improve"}


def restore(shell: Shell, home: Home, thread: str) -> None:
    """Restore the shell to where a conversation was left; blocks briefly. Raises `UnknownConversationError`."""
    home.require_library()
    entry = home.conversations().get(thread)
    shell.thread_id = entry.thread_id
    last = home.conversations().last_turn(entry.thread_id)
    if last is None:
        notice(f"Conversation {entry.thread_id}: no question has been answered yet.")
        return
    shell.turns = last.number
    answered = last if last.answered else home.conversations().last_turn(entry.thread_id, answered=True)
    if answered is not None:
        shell.state = draft_answer(answered.record)
    turns = counted(entry.turns, "turn")
    notice(f"Conversation {entry.thread_id}, {turns}. The last question: {last.question}")


async def finish_opening(shell: Shell, settings: Settings, home: Home) -> None:
    """Finish startup once the library is open: expire conversations, report a paused question."""
    try:
        await shell.opening.wait()
    except CiteloomError:
        return  # already reported
    await forget_expired(settings, home, shell.thread_id)
    from ...api.conversation import paused_turn

    paused = await paused_turn(shell.thread_id, home)
    if paused is not None and not shell.state.paused:
        shell.state = shell.state.paused_at(f"{_COMMANDS[paused.kind]} {paused.asked}")
        notice(f"Interrupted question: {paused.asked} `resume` continues it.")

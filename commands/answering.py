"""Asks the person at the terminal what a run waits with, in words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from ..errors import InputError, WaitingError
from .output import notice
from .terminal_text import one_line

if TYPE_CHECKING:
    from ..api.results import QuestionDetail, QuestionField

T = TypeVar("T")


def steered(work: Callable[[object], T], answer: object = None) -> T:
    """Do the work of a run, given the answers of the person at the terminal until it asks no more.

    Raises `WaitingError` without a terminal, and when the person leaves a question for later.
    """
    from ..api.running import AnswerError, signed_answer

    waiting: WaitingError | None = None
    while True:
        try:
            return work(None if answer is None else signed_answer(answer))
        except WaitingError as asked:
            waiting = asked
        except AnswerError as error:
            if waiting is None:
                raise
            notice(f"Error: {error}")
        if not (sys.stdin.isatty() and sys.stderr.isatty()) or (answer := _ask(waiting.question["citeloom"])) is None:
            raise waiting


def _ask(detail: QuestionDetail) -> object:
    """What the person says to a question: "accept", "ignore", the fields that they changed, or None for later."""
    of = f" of the {detail['section']}" if detail["section"] else ""
    notice(f"\n{detail['ask'].capitalize()}{of}: {detail['summary']}\n")
    for line in detail["about"].splitlines():
        notice(f"  {line}")
    answers: dict[str, object] = {"": "accept", "e": "edit", "l": None}
    stop = ""
    if "ignore" in detail["answers"]:
        answers["s"], stop = "ignore", ", s pauses the run"
    asked = f"Enter accepts this, e edits it{stop}, l leaves it for later"
    while (said := typer.prompt(asked, "", show_default=False, err=True).strip().lower()) not in answers:
        notice("That is none of these.")
    if said != "e":
        return answers[said]
    return {item["name"]: value for item in detail["fields"] if (value := _ask_field(item)) != item["value"]}


def _ask_field(item: QuestionField) -> str:
    """The new value of a field: for one with a value a line, for one of several entries lines up to an empty one."""
    if not item["several"]:
        notice(f"{item['name']}: {one_line(item['value'])}")
        said = typer.prompt("  Enter keeps it, - drops it, or type it anew", "", show_default=False, err=True)
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

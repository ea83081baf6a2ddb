"""A conversation's 12th turn against its 2nd, and the time until `chat` accepts input.

The model answers at once, so everything except the model is timed: search, journal, checkpoints, checks, references,
and the effect of earlier turns. The questions rotate, so that each is asked early and late. For `chat` the reference is
its limit of one and a half seconds, from the start of the process to the prompt.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pexpect

from bench.evidence import settings_for
from bench.measure import Row, row_of
from bench.papers import ROOT
from bench.server import serving
from citeloom.graph.session import Session, open_session
from citeloom.runs.execution import TurnRequest, take_turn
from citeloom.stores.home import Home
from citeloom.stores.run_register import new_thread_id
from tests.support.shell_on_terminal import PROMPT, shell

LATER = 1.2
READY = 1.5  # seconds
EARLY, LATE = 2, 12
AT_ONCE = 20
SUBJECTS = (
    "knowledge graphs",
    "gene expression",
    "neural networks",
    "clustering methods",
    "deep learning",
    "machine learning in medicine",
    "statistical power",
    "open science",
    "regulatory networks",
    "drug repurposing",
    "metagenomics",
    "model selection",
)


async def measure(home: Home, rounds: int) -> list[Row]:
    """Measure the row of a turn and the row of `chat`."""
    ready = [(seconds, READY) for seconds in (until_prompt(home) for _ in range(rounds + 1))][1:]
    pairs: list[tuple[float, float]] = []
    with serving(0, librarian=True) as url, open_session(settings_for(url, AT_ONCE), home) as bench:
        await talk(bench, SUBJECTS[:1])  # triggers lazy loading
        for number in range(rounds):
            first = number % len(SUBJECTS)
            seconds = await talk(bench, [*SUBJECTS[first:], *SUBJECTS[:first]])
            pairs.append((seconds[LATE - 1], seconds[EARLY - 1]))
    return [
        row_of("chat accepts input : 1.5 s", ready, target=1.0),
        row_of(f"turn {LATE} of a conversation : turn {EARLY}", pairs, target=LATER),
    ]


async def talk(bench: Session, subjects: Sequence[str]) -> list[float]:
    """Seconds of each turn of a new conversation."""
    thread = new_thread_id()
    seconds: list[float] = []
    for subject in subjects:
        # Unique, so that answers of another conversation are not taken from the journal.
        question = f"What is reported on {subject}, seen from {thread}?"
        started = time.perf_counter()
        turn = await take_turn(thread, TurnRequest(question), bench)
        seconds.append(time.perf_counter() - started)
        assert turn.record["usage"]["llm_calls"] and turn.record["answered"]
    return seconds


def until_prompt(home: Home) -> float:
    """Seconds from the start of `chat` to its prompt."""
    started = time.perf_counter()
    with shell("--home", home.root, cwd=ROOT) as person:
        person.sees(PROMPT)
        seconds = time.perf_counter() - started
        person.press("Ctrl-D")
        person.child.expect_exact(pexpect.EOF)
    return seconds

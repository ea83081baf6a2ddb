"""A run as the pages show it: what it is, how it stands, what it cost, and what can be done with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...api.usage_record import usage_total
from ...citations.export.files import section_title
from ...models.journal.records import Spending
from ...runs.run_listing import run_summary
from ...settings.config import Price
from ...stores.home import Home
from ...stores.run_register import RunHead, RunRecord
from ...stores.server_jobs import JobEntry

_STATES: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("Waiting", "active"),
    "working": ("Working", "active"),
    "running": ("Working elsewhere", "active"),
    "paused": ("Paused", "doubt"),
    "failed": ("Failed", "doubt"),
    "killed": ("Interrupted", "doubt"),
    "finished": ("Finished", "good"),
}
_REASONS: Final[Mapping[str, str]] = {
    "interrupted": "It was stopped. What was paid for is saved.",
    "": "It ended before it was finished. What was paid for is saved.",
}
_FLAG: Final = re.compile(r" \(--(max-calls|max-tokens|max-cost)\)")
_LEAST: Final = 0.01  # of any limit


@dataclass(frozen=True, slots=True)
class RunView:
    """One run; `state` is that of its job here, else of the register."""

    id: str
    kind: str
    title: str
    state: str
    detail: str
    fresh: bool
    started_at: float
    updated_at: float
    usage: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The state for a person."""
        return _STATES[self.state][0]

    @property
    def look(self) -> str:
        """The class of the state's chip."""
        return _STATES[self.state][1]

    @property
    def kind_name(self) -> str:
        """What is written: a section, a paper or an answer."""
        return {"research": "Answer", "paper": "Whole paper"}.get(self.kind, section_title(self.kind))

    @property
    def active(self) -> bool:
        """True while it waits or works in a server."""
        return self.state in ("waiting", "working")

    @property
    def finished(self) -> bool:
        """True when its text is there."""
        return self.state == "finished"

    @property
    def resumable(self) -> bool:
        """True when it stopped before its end."""
        return self.state in ("paused", "failed", "killed")

    @property
    def reason(self) -> str:
        """Why it stopped."""
        return _FLAG.sub("", _REASONS.get(self.detail, self.detail))

    @property
    def suggested(self) -> dict[str, float]:
        """A larger limit in place of the one that it reached: it may spend as much again."""
        reached = _FLAG.search(self.detail)
        spent = {
            "max-calls": self.usage["llm_calls"],
            "max-tokens": self.usage["input_tokens"] + self.usage["output_tokens"],
            "max-cost": self.usage["cost"] or 0,
        }
        return {reached[1].replace("-", "_"): max(2 * spent[reached[1]], _LEAST)} if reached else {}


def run_view(
    run: RunRecord | RunHead,
    home: Home,
    jobs: Mapping[str, JobEntry],
    spent: Iterable[Spending],
    prices: Mapping[str, Price],
) -> RunView:
    """The view of a registered run; `spent` is what it spent on each model. Blocks."""
    summary = run_summary(run, home)
    job = jobs.get(run.thread_id)
    state = job.state if job is not None and job.active else summary["status"]
    usage = usage_total([row for row in spent if row.run == run.thread_id], prices)
    return RunView(
        id=run.thread_id,
        kind=run.section,
        title=run.title,
        state=state,
        detail=summary["detail"] if state != "finished" else "",
        fresh=run.fresh,
        started_at=run.started_at,
        updated_at=run.updated_at,
        usage=usage,
    )

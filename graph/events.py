"""What a run tells while it goes on; the command line draws it, Studio and parent graphs stream it."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Stage = Literal[
    "queries",
    "routed",
    "shortlisted",
    "found",
    "searched",
    "planning",
    "writing",
    "checked",
    "judged",
    "repairing",
    "kept",
    "rendered",
]


class ProgressEvent(TypedDict):
    """One step of a run; `text` is a line for a person, the counts are for a progress bar.

    `section` names the section of a paper that is begun, with its place among the six.
    """

    source: Literal["citeloom"]
    stage: Stage
    text: str
    done: NotRequired[int]
    total: NotRequired[int]
    passages: NotRequired[int]
    section: NotRequired[str]


def progress(
    stage: Stage,
    text: str,
    *,
    done: int | None = None,
    total: int | None = None,
    passages: int | None = None,
    section: str | None = None,
) -> ProgressEvent:
    """The event as plain data."""
    event: ProgressEvent = {"source": "citeloom", "stage": stage, "text": text}
    if done is not None:
        event["done"] = done
    if total is not None:
        event["total"] = total
    if passages is not None:
        event["passages"] = passages
    if section is not None:
        event["section"] = section
    return event

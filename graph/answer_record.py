"""The result record of an answer: its outcome, and the message when the library has no answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..citations.markers import marker_ids, normalise_markers
from ..plurals import counted
from ..roles.protocols import Source
from .state import ResearchState

# "passages": passages near to the question, which no model has judged; it is neither answered nor not answered.
Outcome = Literal["answered", "passages", "nothing"]
ALL_LEFT_OUT = "Every sentence of the answer failed a check and was left out, as requested."


def cites(text: str, sources: Sequence[Source]) -> bool:
    """True when a draft cites at least one of the sources; a draft that cites none is not an answer."""
    known = {source.evidence.id for source in sources}
    return not known.isdisjoint(marker_ids(normalise_markers(text)))


def nothing_found(state: ResearchState, papers: int, *, judged: bool) -> str:
    """The message for a question without a relevant passage: says so, and lists what was searched.

    Only a reader that `judged` passages can say that the library does not answer.
    """
    said = "The library does not answer this question: no relevant passage was found."
    lines = [
        said if judged else "Nothing near: no passage of the library is near to this question.",
        "",
        "Searched:",
        "",
    ]
    passages = counted(len(state.get("found", [])), "passage")
    looked = counted(len(state.get("shortlist", [])), "paper")
    if state["route"]["track"] == "one_paper":
        lines.append(f"- {passages} of {state['shortlist'][0]}")
    elif state["route"]["papers"] or state.get("papers"):
        lines.append(f"- {passages} of the {looked} named")
    else:
        lines.append(f"- the summaries of all papers ({papers:,})")
        lines.append(f"- {passages} of the {looked} nearest by summary")
    for place, record in enumerate(state.get("queries", [])):
        if place:
            lines.append(f"- {_where(record['scope'])}: “{record['query']}”")
    return "\n".join(lines)


def _where(scope: dict[str, Any]) -> str:
    if not scope:
        return "the full texts of all papers"
    limits = [
        f"{name.replace('_', ' ')} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in scope.items()
    ]
    return f"the full texts, {'; '.join(limits)}"


def outcome_of(cited: Sequence[Source], *, quoted_only: bool) -> Outcome:
    """The outcome of an answer, by the sources it cites; with `quoted_only` nothing was judged to be an answer."""
    if not cited:
        return "nothing"
    return "passages" if quoted_only else "answered"


def as_answer(record: dict[str, Any], state: ResearchState, outcome: Outcome) -> dict[str, Any]:
    """The record of a section turned into that of an answer: question, route and outcome replace the section.

    `answered` is None where passages were found and nothing was judged.
    """
    head = {
        "thread_id": record["thread_id"],
        "question": state["question"],
        "route": dict(state["route"]),
        "answered": None if outcome == "passages" else outcome == "answered",
        "outcome": outcome,
    }
    return head | {name: value for name, value in record.items() if name not in ("thread_id", "section")}

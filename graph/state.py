"""The state of a run between steps, in plain values; texts stay in the library.

Checkpoints contain the whole state, so a chunk's text would be written again at every step.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict  # pydantic builds the forms of Studio, and on 3.11 needs this one

from ..citations.checks.findings import FindingRecord
from ..drafts.sentence_edits import Attempt
from ..drafts.verdicts import VerdictRecord
from ..drafts.written_draft import DraftRecord, QueryRecord, RouteRecord
from ..experiment import SectionKind


class NeedRecord(TypedDict):
    """One thing that has to be known, with the searches for it."""

    id: str
    text: str
    queries: list[str]
    asks: str


class WindowRecord(TypedDict):
    """Chunks of one section that are read together; `hits` are those that searches found, each with its cosine."""

    chunks: list[str]
    hits: list[str]
    cosines: list[float]
    needs: list[str]


class WrittenSection(TypedDict):
    """A finished section of a paper, before its citations are rendered; its record is built from this.

    `offered` is the evidence of earlier sections that its writer was shown, `read` the other chunks that its agent
    read, `spent` the cost of the paper up to the end of this section.
    """

    section: SectionKind
    draft: DraftRecord
    findings: list[FindingRecord]
    verdicts: list[VerdictRecord]
    warnings: list[str]
    offered: list[str]
    needs: list[NeedRecord]
    read: list[str]
    spent: dict[str, Any]


def merge_evidence(known: list[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Append evidence with new ids; ids keep their chunk for the whole thread.

    If a search finds evidence that the conversation recalled, the new record replaces the old one.
    """
    again = {record["id"]: record for record in new}
    kept = [again.pop(record["id"], record) for record in known]
    return kept + list(again.values())


class SectionInput(TypedDict):
    """The input of the section graph: the kind of section, and the experiment as plain JSON data."""

    section: Annotated[SectionKind, Field(description="The section to write.")]
    experiment: Annotated[dict[str, Any], Field(description="The contents of exp.json.")]


class SectionOutput(TypedDict):
    """The output of the section graph; `result` is the section's JSON without files and usage."""

    section: SectionKind
    text: str
    result: dict[str, Any]


class PaperInput(TypedDict):
    """The input of the paper graph: the experiment as plain JSON data."""

    experiment: Annotated[dict[str, Any], Field(description="The contents of exp.json.")]


class PaperOutput(TypedDict):
    """The output of the paper graph; `result` is the paper's JSON without files and usage."""

    text: str
    result: dict[str, Any]


class RunState(TypedDict, total=False):
    """The state that every run has, of a section, a paper or a question.

    `needs` are the planned needs, `read_chunks` the ids of the chunks that were read for them.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    needs: list[NeedRecord]
    read_chunks: Annotated[list[str], operator.add]
    queries: Annotated[list[QueryRecord], operator.add]
    evidence: Annotated[list[dict[str, Any]], merge_evidence]
    searches_used: Annotated[int, operator.add]
    agent_turns: Annotated[int, operator.add]
    pending_calls: list[dict[str, Any]]
    searching: bool
    draft: DraftRecord
    findings: list[FindingRecord]
    before_repair: Attempt | None
    repairs: int
    repairing: bool
    verdicts: Annotated[list[VerdictRecord], operator.add]
    warnings: Annotated[list[str], operator.add]
    text: str
    result: dict[str, Any]


class SectionState(RunState, total=False):
    """The state of a run that writes one section, or the sections of a paper one after the other.

    Only a paper has `written`, its finished sections, and `offered`, the evidence of earlier sections that the
    current one is shown. A paper's queries and evidence add up over all sections; its other fields are reset for
    each.
    """

    section: SectionKind
    experiment: dict[str, Any]
    offered: list[str]
    written: list[WrittenSection]


class TurnRecord(TypedDict):
    """An earlier question of the conversation, and its answer with markers."""

    question: str
    answer: str


class ResearchInput(TypedDict):
    """The input of the research graph: the question, and limits if any.

    The fields after `single_shot` come from a conversation: earlier turns, whether the question may refer to them
    (it is then rewritten), the evidence they cited, the ids of all chunks that were evidence, the keys that were
    cited (the first has number 1), and the user's feedback when the last answer is to be revised.
    """

    question: Annotated[str, Field(description="The question to answer from your papers.")]
    sources: NotRequired[Annotated[int, Field(description="Maximum number of papers that the answer may cite.")]]
    words: NotRequired[Annotated[int, Field(description="Requested length of the answer in words.")]]
    min_year: NotRequired[Annotated[int | None, Field(description="First year of publication.")]]
    max_year: NotRequired[Annotated[int | None, Field(description="Last year of publication.")]]
    venue: NotRequired[Annotated[str, Field(description="A part of the venue's name.")]]
    papers: NotRequired[Annotated[list[str], Field(description="Keys of the only papers to look into.")]]
    single_shot: NotRequired[Annotated[bool, Field(description="Search once, without the agent.")]]
    turns: NotRequired[list[TurnRecord]]
    follow_up: NotRequired[bool]
    recalled: NotRequired[list[dict[str, Any]]]
    evidence_ids: NotRequired[dict[str, str]]
    numbering: NotRequired[list[str]]
    feedback: NotRequired[str]


class ResearchOutput(TypedDict):
    """The output of the research graph; `result` is the answer's JSON without files and usage."""

    question: str
    route: RouteRecord
    answered: bool | None
    text: str
    result: dict[str, Any]
    queries: list[QueryRecord]


class ResearchState(RunState, ResearchInput, total=False):
    """The state of a question's run; `found` are the windows of the first search, best first."""

    route: RouteRecord
    shortlist: list[str]
    found: list[WindowRecord]
    answered: bool | None


# What a node returns: some fields of the state, or `Overwrite` of one that a reducer would append to.
Update = dict[str, Any]

"""Requests for durable runs: a section or a paper, and the protocol common to all requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..experiment import SECTION_KINDS, Experiment, require_fields
from ..graph.session import Session
from .fingerprint import RunKind, section_fingerprint, section_subject, settings_of_run

OnNotice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SectionRequest:
    """A request for a section, or for a paper of all six.

    `source` names the experiment in errors, `fresh` ignores answers of earlier runs. `thread_id` resumes this existing
    run instead of the latest of its kind.
    """

    kind: RunKind
    experiment: Experiment
    source: str = "experiment"
    fresh: bool = False
    thread_id: str | None = None

    @property
    def title(self) -> str:
        """The title of the run in the register."""
        return self.experiment.paper_concept.title

    async def require_valid(self, session: Session, on_notice: OnNotice) -> None:
        """Raise `ExperimentError` where the experiment lacks a field that what is asked for needs."""
        kinds = SECTION_KINDS if self.kind == "paper" else (self.kind,)
        require_fields(self.experiment, *kinds, source=self.source)

    def subject_key(self) -> str:
        """Identifies the request regardless of library and settings."""
        return section_subject(self.kind, self.experiment)

    def fingerprint(self, session: Session) -> str:
        """Identifies the run by everything that can change its text; blocks."""
        return section_fingerprint(
            self.kind,
            self.experiment,
            library_version=session.library.version(),
            settings=session.settings,
            prompts_hash=session.prompts.fingerprint(),
            custom_model_id=session.custom_model_id,
        )

    def to_record(self, session: Session) -> dict[str, Any]:
        """What the register stores, from which the run can be resumed by its id alone."""
        return {
            "source": self.source,
            "experiment": self.experiment.model_dump(mode="json"),
            "settings": settings_of_run(session.settings),
        }

    def graph_input(self) -> dict[str, Any]:
        """The graph's input."""
        experiment = {"experiment": self.experiment.model_dump(mode="json")}
        return experiment if self.kind == "paper" else {"section": self.kind, **experiment}


class RunRequest(Protocol):
    """A request that can be run: `SectionRequest`, which documents the members, or `ResearchRequest`."""

    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def fresh(self) -> bool: ...
    @property
    def thread_id(self) -> str | None: ...
    async def require_valid(self, session: Session, on_notice: OnNotice) -> None: ...
    def subject_key(self) -> str: ...
    def fingerprint(self, session: Session) -> str: ...
    def to_record(self, session: Session) -> dict[str, Any]: ...
    def graph_input(self) -> dict[str, Any]: ...

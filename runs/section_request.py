"""What can be run so that a kill loses nothing: a section or a paper, and what all requests have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..experiment import SECTION_KINDS, Experiment, require_fields
from ..graph.session import Session
from .fingerprint import RunKind, fingerprint, question_of, settings_of_run

OnNotice = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SectionRequest:
    """What is asked for: a section, or a paper of all six.

    `source` names the experiment in errors, `fresh` sets answers of earlier runs aside. `thread_id` asks for one run
    that there is already, instead of the latest of its kind.
    """

    kind: RunKind
    experiment: Experiment
    source: str = "experiment"
    fresh: bool = False
    thread_id: str | None = None

    @property
    def title(self) -> str:
        """What the register calls the run."""
        return self.experiment.paper_concept.title

    async def require_valid(self, session: Session, on_notice: OnNotice) -> None:
        """Raise `ExperimentError` where the experiment lacks a field that what is asked for needs."""
        for kind in SECTION_KINDS if self.kind == "paper" else (self.kind,):
            require_fields(self.experiment, kind, source=self.source)

    def about(self) -> str:
        """Names what is asked, whatever library and settings."""
        return question_of(self.kind, self.experiment)

    def mark(self, session: Session) -> str:
        """Names the run by all that can change its text; blocks."""
        return fingerprint(
            self.kind,
            self.experiment,
            library_version=session.library.version(),
            settings=session.settings,
            prompts_hash=session.prompts.fingerprint(),
            custom_model_id=session.custom_model_id,
        )

    def kept(self, session: Session) -> dict[str, Any]:
        """What the register keeps, from which the run can be gone on with by its id alone."""
        return {
            "source": self.source,
            "experiment": self.experiment.model_dump(mode="json"),
            "settings": settings_of_run(session.settings),
        }

    def given(self) -> dict[str, Any]:
        """The input of the graph."""
        experiment = {"experiment": self.experiment.model_dump(mode="json")}
        return experiment if self.kind == "paper" else {"section": self.kind, **experiment}


class RunRequest(Protocol):
    """What can be run: `SectionRequest`, whose members say what each means, or `ResearchRequest`."""

    @property
    def kind(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def fresh(self) -> bool: ...
    @property
    def thread_id(self) -> str | None: ...
    async def require_valid(self, session: Session, on_notice: OnNotice) -> None: ...
    def about(self) -> str: ...
    def mark(self, session: Session) -> str: ...
    def kept(self, session: Session) -> dict[str, Any]: ...
    def given(self) -> dict[str, Any]: ...

"""Streams runs as events: async generators that end with `done`.

`astream_section`, `astream_paper` and `astream_research` take the arguments of the calls they are named after.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Unpack

from ..experiment import Experiment, SectionKind
from ..graph.session import Session
from .arguments import library_first
from .events import Event, stream_events
from .questions import ResearchOptions, aresearch
from .running import RunOptions
from .writing import awrite_paper, awrite_section

__all__ = ["astream_paper", "astream_research", "astream_section"]


@library_first
def astream_section(
    library: Session,
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    **options: Unpack[RunOptions],
) -> AsyncGenerator[Event, None]:
    """Write or resume a section as a stream of events; takes the options of `awrite_section`.

    Closing the stream early pauses the run; the same call resumes it. While read, raises what
    `awrite_section` raises.
    """
    return stream_events(lambda emit: awrite_section(library, kind, experiment, **options, on_event=emit))


@library_first
def astream_paper(
    library: Session, experiment: Experiment | dict[str, Any] | Path | str, **options: Unpack[RunOptions]
) -> AsyncGenerator[Event, None]:
    """Write or resume a paper as a stream of events; takes the options of `awrite_paper`.

    The drafts of its sections come one after the other in the order of writing, each behind its step "writing". Closing
    the stream early pauses the run. While read, raises what `awrite_paper` raises.
    """
    return stream_events(lambda emit: awrite_paper(library, experiment, **options, on_event=emit))


@library_first
def astream_research(
    library: Session, question: str, **options: Unpack[ResearchOptions]
) -> AsyncGenerator[Event, None]:
    """Answer a question, or resume it, as a stream of events; takes the options of `aresearch`.

    Closing the stream early pauses the run; the same call resumes it. While read, raises what
    `aresearch` raises.
    """
    return stream_events(lambda emit: aresearch(library, question, **options, on_event=emit))

"""Checkpoint ids that only grow, whatever the clocks of processes and machines say."""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from uuid import UUID

NEWEST: Final = "SELECT max(checkpoint_id) FROM checkpoints"


def continue_after(newest: str | None) -> None:
    """Make this process generate checkpoint ids higher than `newest`, whatever its clock says."""
    from langgraph.checkpoint.base import id as ids

    with suppress(ValueError, TypeError, AttributeError):  # no checkpoint yet, or an id that LangGraph did not generate
        made = ids.UUID(hex=UUID(newest).hex)
        if made.version == 6 and made.time > (ids._last_v6_timestamp or 0):
            ids._last_v6_timestamp = made.time  # type: ignore[assignment]

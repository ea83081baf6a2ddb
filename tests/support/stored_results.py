"""The record of a finished text as registers store it."""

from __future__ import annotations

from typing import Any


def finished_text(text: str = "So.", cited: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A record that cites papers by their keys."""
    lists: dict[str, Any] = {name: [] for name in ("evidence", "references", "findings", "warnings")}
    citations = [{"key": key, "quote": "Ducks swim.", "evidence_id": "e1"} for key in cited]
    return {"text": text, "citations": citations, "usage": {}, **lists, **more}

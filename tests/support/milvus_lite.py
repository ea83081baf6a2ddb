"""Milvus Lite for tests: a file that this process serves, or a server of its own for several processes."""

from __future__ import annotations

import pytest

MISSING = "Milvus Lite is not installed: make engines"


def require_milvus_lite() -> None:
    """Skip with a reason where Milvus Lite is not installed."""
    pytest.importorskip("pymilvus", reason=MISSING)
    pytest.importorskip("milvus_lite", reason=MISSING)

"""Tests of the bundled models ask the models themselves."""

from __future__ import annotations

import pytest

from tests.support.cached_models import real_models


@pytest.fixture(autouse=True)
def _models_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real_models(monkeypatch)

"""What all integration tests share: the answers of the bundled models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cached_models import cache_models


@pytest.fixture(scope="session", autouse=True)
def _models_asked_once_for_each_text() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        cache_models(patch)
        yield

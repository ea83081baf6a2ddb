"""The package names what it offers."""

from __future__ import annotations

import citeloom


def test_dir_names_the_api_and_nothing_else() -> None:
    assert dir(citeloom) == sorted(citeloom.__all__)

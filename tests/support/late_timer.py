"""Time limits of programs that end only once the program is there, however slow the machine is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest


def expire_after(patch: pytest.MonkeyPatch, began: Callable[[], object]) -> None:
    """Let each time limit wait for `began` before its seconds count."""

    class LateTimer(threading.Timer):
        def run(self) -> None:
            began()
            super().run()

    patch.setattr(threading, "Timer", LateTimer)

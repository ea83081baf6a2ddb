"""The value of a number in a text."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Scale = Literal["plain", "percent", "either"]
Hedge = Literal["", "about", "above", "below"]


@dataclass(frozen=True, slots=True)
class Number:
    """The number at `start:end` of a text; `unit` is the value of its last digit's place (0.01 for 0.72)."""

    start: int
    end: int
    value: Decimal
    unit: Decimal
    scale: Scale = "plain"
    hedge: Hedge = ""
    worded: bool = False

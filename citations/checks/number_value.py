"""A number of a text, as its value."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Scale = Literal["plain", "percent", "either"]
Hedge = Literal["", "about", "above", "below"]


@dataclass(frozen=True, slots=True)
class Number:
    """The number at `start:end` of a text; `unit` is the place of its last digit (0.01 of 0.72), as a value."""

    start: int
    end: int
    value: Decimal
    unit: Decimal
    scale: Scale = "plain"
    hedge: Hedge = ""
    worded: bool = False

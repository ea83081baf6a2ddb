"""Computes the cost of calls from the price table in the settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...settings.config import Price
from .records import Spending

_MILLION: Final = 1_000_000


def cost_of(price: Price, input_tokens: int, output_tokens: int) -> float:
    """The cost of these tokens, in the currency of the price."""
    return (price.input * input_tokens + price.output * output_tokens) / _MILLION


def total_cost(spent: Iterable[Spending], prices: Mapping[str, Price], *, held: bool = False) -> float | None:
    """The total cost over all models, including reservations if `held`; None if a price is unknown.

    A model that took no tokens needs no price.
    """
    total = 0.0
    for row in spent:
        input_tokens = row.input_tokens + (row.held_input if held else 0)
        output_tokens = row.output_tokens + (row.held_output if held else 0)
        if not input_tokens and not output_tokens and not (row.paid and row.kind == "chat"):
            continue
        price = prices.get(row.model)
        if price is None:
            return None
        total += cost_of(price, input_tokens, output_tokens)
    return total

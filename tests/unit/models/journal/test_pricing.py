"""The cost of calls: per model, only with a price, reserved requests separately."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.models.journal.records import Spending, Usage, total_cost
from citeloom.settings.config import Price, load_settings

PRICES = {"big": Price(input=10.0, output=30.0), "small": Price(input=1.0), "free": Price(input=0.0)}


def spent(model: str, **counts: int) -> Spending:
    return Spending("run", "chat", "http://host/v1", model, **counts)


def test_tokens_are_priced_by_the_million() -> None:
    rows = [
        spent("big", paid=1, input_tokens=1_000_000, output_tokens=500_000),
        spent("small", paid=2, input_tokens=2_000_000, output_tokens=7),
        spent("free", paid=9, input_tokens=1, output_tokens=1),
    ]
    assert total_cost(rows, PRICES) == pytest.approx(10 + 15 + 2)
    assert Usage.of(rows, total_cost(rows, PRICES)).llm_calls == 12


def test_one_unpriced_model_makes_the_total_unknown_unless_only_reused() -> None:
    assert total_cost([spent("big", paid=1), spent("unknown", paid=1, input_tokens=5)], PRICES) is None
    assert total_cost([spent("unknown", reused=4)], PRICES) == 0.0
    assert total_cost([], {}) == 0.0


def test_reserved_cost_counts_only_for_a_budget() -> None:
    row = spent("big", paid=1, input_tokens=100, reserved_calls=1, reserved_input=1_000_000, reserved_output=1_000_000)
    assert total_cost([row], PRICES) == pytest.approx(0.001)
    assert total_cost([row], PRICES, reserved=True) == pytest.approx(40.001)


def test_prices_are_read_from_the_file_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[prices."gpt-4.1-mini"]\ninput = 0.40\noutput = 1.60\n'
    page = (Path(__file__).resolve().parents[4] / "docs" / "models.md").read_text(encoding="utf-8")
    assert all(line in page for line in text.splitlines())
    (tmp_path / "citeloom.toml").write_text(text, encoding="utf-8")
    assert load_settings().prices == {"gpt-4.1-mini": Price(input=0.40, output=1.60)}
    monkeypatch.setenv("CITELOOM_PRICES", '{"another": {"input": 3}}')
    assert load_settings().prices["another"] == Price(input=3.0, output=0.0)

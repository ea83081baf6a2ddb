"""The claim of a sentence in an answer, for *Who agrees?*."""

from __future__ import annotations

import pytest

from citeloom.server.routes.table_routes import bare_claim


@pytest.mark.parametrize(
    ("sentence", "claim"),
    [
        ("Ensembles help [1, p. 3].", "Ensembles help."),
        ("“Ensembles help” [1], in “Results”", "Ensembles help"),
        ("“Ensembles “always” help” (okafor2022), in “Results”; less near", "Ensembles “always” help"),
        ("As Okafor put it, “ensembles help” [1].", "As Okafor put it, “ensembles help”."),
    ],
)
def test_a_claim_is_separated_from_its_citation(sentence: str, claim: str) -> None:
    assert bare_claim(sentence) == claim

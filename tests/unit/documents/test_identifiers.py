"""DOIs and arXiv ids in the forms in which people paste them."""

from __future__ import annotations

import pytest

from citeloom.documents.paper_names import parse_identifier


@pytest.mark.parametrize(
    ("text", "doi"),
    [
        ("10.1371/journal.pmed.0020124", "10.1371/journal.pmed.0020124"),
        ("  doi:10.1371/JOURNAL.pmed.0020124. ", "10.1371/journal.pmed.0020124"),
        ("https://doi.org/10.1016/S0140-6736(97)11096-0", "10.1016/s0140-6736(97)11096-0"),
        ("http://dx.doi.org/10.1093%2Fbioinformatics%2Fbtaa1", "10.1093/bioinformatics/btaa1"),
        ("arXiv:1706.03762", "10.48550/arxiv.1706.03762"),
        ("1706.03762v5", "10.48550/arxiv.1706.03762"),
        ("https://arxiv.org/abs/1706.03762v2", "10.48550/arxiv.1706.03762"),
        ("https://arxiv.org/pdf/1706.03762.pdf", "10.48550/arxiv.1706.03762"),
        ("arxiv:hep-th/9901001", "10.48550/arxiv.hep-th/9901001"),
        ("10.48550/arXiv.1706.03762", "10.48550/arxiv.1706.03762"),
    ],
)
def test_an_identifier_is_read(text: str, doi: str) -> None:
    found = parse_identifier(text)
    assert found is not None and found.doi == doi


@pytest.mark.parametrize(
    "text", ["", "smith2020", "10.1371", "10.1371/", "https://example.org/10.1371/x", "10.1/a b", "x" * 10_000, "1706"]
)
def test_anything_else_is_not_an_identifier(text: str) -> None:
    assert parse_identifier(text) is None


def test_an_arxiv_paper_is_shown_with_its_id() -> None:
    found = parse_identifier("10.48550/arXiv.1706.03762")
    assert found is not None and found.shown == "arXiv:1706.03762"

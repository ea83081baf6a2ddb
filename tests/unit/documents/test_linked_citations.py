"""Citations that link to references are read as `[@key]`; brackets written by a person stay as they are."""

from __future__ import annotations

import pytest

from citeloom.documents.edited_documents import links_to_keys


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("It rose ([Lee, 2020, p. 4](#ref-lee); [Roy, 2019](#ref-roy)).", "It rose [@lee, p. 4; @roy]."),
        (
            "It rose ([Lee, 2020, 4, 9](#ref-lee); [Roy, 2019, pp. 2–4](#ref-roy)).",
            "It rose [@lee, p. 4, 9; @roy, p. 2–4].",
        ),
        ("It rose (see [Lee, 2020](#ref-lee), n = 3; p < 0.1).", "It rose [@lee] (see n = 3; p < 0.1)."),
        ("It rose (see [@lee], n = 3; p < 0.1).", "It rose (see [@lee], n = 3; p < 0.1)."),
    ],
)
def test_the_words_beside_a_citation_are_kept(written: str, read: str) -> None:
    assert links_to_keys(written) == read

"""How a sentence names a paper."""

from __future__ import annotations

import pytest

from citeloom.documents.paper_names import family_name, in_text_name
from citeloom.documents.types import Paper


@pytest.mark.parametrize(
    ("authors", "families", "wanted"),
    [
        (("Benjamin D. Lee",), (), "Lee"),
        (("Alexandra J. Lee", "Anthony Gitter"), (), "Lee and Gitter"),
        (("Ada Lee", "Anthony Gitter", "Casey S. Greene"), ("Lee", "Gitter", "Greene"), "Lee et al."),
        (("The ENCODE Consortium",), ("The ENCODE Consortium",), "The ENCODE Consortium"),
        (("{The ENCODE Consortium}",), (), "The ENCODE Consortium"),
        (("Ada Lee", "others"), ("Lee", "others"), "Lee et al."),
        ((), (), "“Why most findings are false”"),
    ],
)
def test_a_paper_is_named_in_text_by_its_authors(
    authors: tuple[str, ...], families: tuple[str, ...], wanted: str
) -> None:
    paper = Paper("key", "Why most findings are false: an essay", authors=authors, family_names=families)
    assert in_text_name(paper) == wanted


def test_a_paper_without_metadata_is_named_by_its_key() -> None:
    assert in_text_name(Paper("key2020", "")) == "“key2020”"


@pytest.mark.parametrize(
    ("author", "wanted"),
    [
        ("Ludwig van Beethoven", "van Beethoven"),
        ("Timothy J. Triche, Jr.", "Triche"),
        ("Hopper, Grace", "Hopper"),
        ("Plato", "Plato"),
        ("Van Morrison", "Morrison"),
    ],
)
def test_family_names_are_extracted(author: str, wanted: str) -> None:
    assert family_name(author) == wanted

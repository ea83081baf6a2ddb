"""Sentences in the prose of papers, cut where a reader would cut them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from citeloom.text.sentences import is_context_dependent, sentence_spans

PROSE = [
    ("Lee et al. (2020) found it. It holds.", ["Lee et al. (2020) found it.", "It holds."]),
    ("See Fig. 3 and Eq. 4. Then stop.", ["See Fig. 3 and Eq. 4.", "Then stop."]),
    (
        "Some (e.g. PCA, i.e. linear ones) work. Others fail.",
        ["Some (e.g. PCA, i.e. linear ones) work.", "Others fail."],
    ),
    ("It grew 3.5 times. We stopped.", ["It grew 3.5 times.", "We stopped."]),
    ("It is known [@doi:10.1/x.y; @key]. We agree.", ["It is known [@doi:10.1/x.y; @key].", "We agree."]),
    ("It is known.[@a; @b] We agree.", ["It is known.[@a; @b]", "We agree."]),
    ("It is known.^1,2^ We agree.", ["It is known.^1,2^", "We agree."]),
    (r"It is known \[1, 2\]. We agree.", [r"It is known \[1, 2\].", "We agree."]),
    ("We grew E. coli. It thrived.", ["We grew E. coli.", "It thrived."]),
    ("They took vitamin C. It helped.", ["They took vitamin C.", "It helped."]),
    ("The answer is no. We said so.", ["The answer is no.", "We said so."]),
    ("Is trial no. 3 sound? It is.", ["Is trial no. 3 sound?", "It is."]),
    ("Set $x = 0. Y$ first. Then go.", ["Set $x = 0. Y$ first.", "Then go."]),
    ("Run `a. B` now. Then go.", ["Run `a. B` now.", "Then go."]),
    ("Look at <https://a.org/b. C>. Then go.", ["Look at <https://a.org/b. C>.", "Then go."]),
    ("One wrapped\nline. Another\none.", ["One wrapped\nline.", "Another\none."]),
    ("- first item\n- second item. With more.", ["first item", "second item.", "With more."]),
    ("One paragraph\n\nAnother one", ["One paragraph", "Another one"]),
    ("![**A caption.** Its text.](a.png)", ["![**A caption.** Its text.](a.png)"]),
    ("It was kept at 4 °C for 2 h. Then it was used.", ["It was kept at 4 °C for 2 h.", "Then it was used."]),
    ("The Km was 3.2 mM. The rest is here.", ["The Km was 3.2 mM.", "The rest is here."]),
    (
        "E. coli K-12 (subsp. nov., cf. Suppl. Fig. 2) grew at approx. 37 °C. It did so vs. D. melanogaster.",
        ["E. coli K-12 (subsp. nov., cf. Suppl. Fig. 2) grew at approx. 37 °C.", "It did so vs. D. melanogaster."],
    ),
    ("Is it so? Yes! Good.", ["Is it so?", "Yes!", "Good."]),
    ("Müller et al. fanden é. Später.", ["Müller et al. fanden é.", "Später."]),
]


@pytest.mark.parametrize(("text", "wanted"), PROSE, ids=[text[:30] for text, _ in PROSE])
def test_prose_is_split_where_a_reader_would_split_it(text: str, wanted: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text)] == wanted


FRAGMENTS = [
    "Lee et al. ",
    "grew. ",
    "[@a; @b]",
    "$x. y$ ",
    "\n\n",
    "\n- ",
    "Fig. 3 ",
    "The ",
    "p < 0.05",
    "é",
    "\r\n",
    "| a |\n",
    "?",
]


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), max_size=40).map("".join))
def test_spans_are_ordered_trimmed_and_omit_no_letter(text: str) -> None:
    spans = sentence_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))
    covered = {index for start, end in spans for index in range(start, end)}
    assert not [char for index, char in enumerate(text) if index not in covered and char.isalpha()]


def test_a_lone_surrogate_removes_no_sentence() -> None:
    text = "One \ud83d sentence. Another one."
    assert [text[start:end] for start, end in sentence_spans(text)] == ["One \ud83d sentence.", "Another one."]


@pytest.mark.parametrize(
    ("sentence", "leans"),
    [
        ("This held for all networks.", True),
        ("However, it failed.", True),
        ("In these cases it failed.", True),
        ("The latter failed.", True),
        ("Degree alone failed.", False),
        ("Thistle grows.", False),
        ("", False),
    ],
)
def test_a_sentence_that_refers_back_depends_on_the_previous_one(sentence: str, leans: bool) -> None:
    assert is_context_dependent(sentence) is leans


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Seeds halve the calibration error. treeheatr is a package [@le2020treeheatr].", 2),
        ("Seeds halve the error [@lee2022ten]. treeheatr is a package for trees.", 2),
        ("The index is **open**. sourmash natively supports it.", 2),
        ("It was grown at a conc. of 3 mM, as in Lee et al. treeheatr aside.", 1),
        ("It is approx. twice as good, vs. treeheatr alone.", 1),
    ],
)
def test_a_sentence_may_start_with_a_name_in_lower_case(text: str, parts: int) -> None:
    assert len(sentence_spans(text)) == parts

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from citeloom.citations.markers import marker_ids, normalise_markers, sentences

PIECES = st.lists(
    st.sampled_from(
        [
            "[E3]", "[E3, E5]", "(E4)", "[e1]", "【E2】", "[ E3 ]", "[E1-E3]", ". ", ".", "? ", " ",
            "\n\n", "Degree", "et al.", "matters", '"', "“", "”", "**", "_", "[", "]", "(", ")",
            "\u200b", "&#91;", "E3", ",", "`", "- ", "# A\n",
        ]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("A fact [E3].", "A fact [E3]."),
        ("A fact [E3, E5].", "A fact [E3][E5]."),
        ("A fact [E3; E5].", "A fact [E3][E5]."),
        ("A fact [E3 and E5].", "A fact [E3][E5]."),
        ("A fact [E3,5].", "A fact [E3][E5]."),
        ("A fact [E1-E3].", "A fact [E1][E2][E3]."),
        ("A fact [E1–3].", "A fact [E1][E2][E3]."),
        ("A fact [e3].", "A fact [E3]."),
        ("A fact (E3).", "A fact [E3]."),
        ("A fact (see E3).", "A fact [E3]."),
        ("A fact [E3] [E5].", "A fact [E3][E5]."),
        ("A fact [E3], [E5].", "A fact [E3][E5]."),
        ("A fact [E3, E3].", "A fact [E3]."),
        ("A fact [ E3 ].", "A fact [E3]."),
        ("A fact [[E3]].", "A fact [E3]."),
        ("A fact [E3, p. 4].", "A fact [E3]."),
        ("A fact [@E3].", "A fact [E3]."),
        ("A fact [E3](#e3).", "A fact [E3]."),
        ("A fact **[E3]**.", "A fact [E3]."),
        ("A fact **[E3**].", "A fact [E3]."),
        ("A fact **[E3**.", "A fact [E3]."),
        ("A fact __[E3__].", "A fact [E3]."),
        ("A **fact [E3**] of [E5].", "A **fact [E3]** of [E5]."),
        ("A fact `[E3]`.", "A fact [E3]."),
        ("A fact 【E3】.", "A fact [E3]."),
        ("A fact ［E3］.", "A fact [E3]."),
        ("A fact \\[E3\\].", "A fact [E3]."),
        ("A fact &#91;E3&#93;.", "A fact [E3]."),
        ("A fact [E\u200b3].", "A fact [E3]."),
        ("A fact[E3].", "A fact [E3]."),
        ("A fact. [E3]", "A fact [E3]."),
        ("A fact.[E3] Another.", "A fact [E3]. Another."),
        ("A fact [E3]. [E5] Another.", "A fact [E3][E5]. Another."),
        ("A fact? [E3]\n\nAnother.", "A fact [E3]?\n\nAnother."),
        ('They say "so." [E3] Another.', 'They say "so" [E3]. Another.'),
        ("A fact. [E3] shows more.", "A fact. [E3] shows more."),
        ("As in Lee et al. [E3], it holds.", "As in Lee et al. [E3], it holds."),
        ("As in Lee et al. [E3] Another.", "As in Lee et al. [E3]. Another."),
        ("An E3 ligase [data] in x[3].", "An E3 ligase [data] in x[3]."),
        ("Day [E10.5 embryos].", "Day [E10.5 embryos]."),
        ("A fact [E3*5].", "A fact [E3*5]."),
    ],
)
def test_every_spelling_of_a_marker_is_normalised(written: str, normal: str) -> None:
    assert normalise_markers(written) == normal


@given(PIECES)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_markers(text)
    assert normalise_markers(once) == once


@given(PIECES)
def test_every_marker_belongs_to_one_sentence(text: str) -> None:
    text = normalise_markers(text)
    found = sentences(text)
    assert all(text[sentence.start : sentence.end] == sentence.text for sentence in found)
    assert all(left.end <= right.start for left, right in pairwise(found))
    assert {id for sentence in found for id in sentence.ids} == set(marker_ids(text))


def test_a_quotation_with_full_stops_is_one_sentence() -> None:
    text = 'Lee et al. report that "degree works. It does so in 3 of 20 networks" [E3]. We agree [E4][E5]. No.'
    cited = [item for item in sentences(text) if item.ids]
    assert [(sentence.text, sentence.ids) for sentence in cited] == [
        ('Lee et al. report that "degree works. It does so in 3 of 20 networks" [E3].', ("E3",)),
        ("We agree [E4][E5].", ("E4", "E5")),
    ]


def test_a_stray_quotation_mark_does_not_cut_a_quotation() -> None:
    cited = [item for item in sentences('A 5" disk is small. It is "so. And so" [E1].') if item.ids]
    assert '"so. And so" [E1].' in cited[0].text
    assert len(cited) == 1


def test_an_unclosed_quotation_ends_with_its_paragraph() -> None:
    cited = [
        item for item in sentences('They say "so. And more [E3].\n\nAnother paragraph says "no" [E4].') if item.ids
    ]
    assert [sentence.ids for sentence in cited] == [("E3",), ("E4",)]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Lee says: “It holds …” [E1]. So.", "Lee says: “It holds …” [E1]. So."),
        ("Lee says: “It holds …” [E1] So it is.", "Lee says: “It holds …” [E1]. So it is."),
        ("Lee says: “It holds.” [E1] So.", "Lee says: “It holds” [E1]. So."),
        ("It goes on… [E1]", "It goes on [E1]…"),
    ],
)
def test_an_omission_inside_a_quotation_does_not_end_it(text: str, normal: str) -> None:
    assert normalise_markers(text) == normal
    assert sentences(normal)[0].ids == ("E1",)

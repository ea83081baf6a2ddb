from __future__ import annotations

from citeloom.documents.pdf.drawing import Letter, find_quote_boxes


def _page(*lines: str) -> list[Letter]:
    """Letters of 10 points in lines of 12, the first at 100."""
    return [
        (character, (10.0 * column, 100 - 12 * row, 10.0 * column + 9, 110 - 12 * row))
        for row, line in enumerate(lines)
        for column, character in enumerate(line)
        if character != " "
    ]


def test_a_quote_is_marked_with_one_box_per_line() -> None:
    boxes = find_quote_boxes(_page("We train five models", "with ten seeds each."), "five models with ten")

    assert boxes == [(90, 100, 199, 110), (0, 88, 79, 98)]


def test_hyphens_at_line_ends_ligatures_case_and_markdown_are_ignored() -> None:
    boxes = find_quote_boxes(_page("The eﬀect is signi-", "ﬁcant in all sets"), "*the effect* is **significant** in")

    assert boxes == [(0, 100, 179, 110), (0, 88, 79, 98)]


def test_a_quote_that_continues_on_the_next_page_is_marked_up_to_the_page_end() -> None:
    boxes = find_quote_boxes(_page("Seeds change the results"), "change the results of every model that we trained")

    assert boxes == [(60, 100, 239, 110)]


def test_words_that_interrupt_a_quote_on_the_page_are_not_marked() -> None:
    page = _page("the learning rate decays", "Figure 3: not of the text", "by half after each epoch")

    boxes = find_quote_boxes(page, "the learning rate decays by half after each epoch")

    assert [box[1] for box in boxes] == [100, 76]


def test_a_page_with_only_a_few_of_the_words_gets_no_mark() -> None:
    quote = "learning with graphs needs far more memory than learning with tables, as shown by all of our measurements"

    assert find_quote_boxes(_page("learning with graphs is fun"), quote) == []


def test_a_quote_without_letters_marks_nothing() -> None:
    assert find_quote_boxes(_page("anything"), "— … —") == []
    assert find_quote_boxes([], "anything") == []

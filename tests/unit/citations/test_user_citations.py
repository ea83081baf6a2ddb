"""Citations that the user wrote are kept in place, linked if the library has them, never reused for other claims."""

from __future__ import annotations

import re

import pytest

from citeloom.citations.checks.draft_checks import check_draft, replace_invalid_citations
from citeloom.citations.user_citations import (
    citing_statements,
    find_user_citations,
    insert_user_statements,
    left_to_other_sections,
    with_literal_markers,
)
from citeloom.documents import Paper
from citeloom.experiment import Experiment, parse_experiment
from citeloom.roles.protocols import Draft

PAPERS = [
    Paper("himmelstein2017", "A", ("Daniel Himmelstein", "Antoine Lizee"), 2017, family_names=("Himmelstein", "Lizee")),
    Paper("lee2020", "B", ("Bo Lee",), 2020, family_names=("Lee",)),
]
KEYS = [paper.key for paper in PAPERS]
FORMS = [
    ("It agrees with Himmelstein et al. (2017).", "Himmelstein et al. (2017)", ("himmelstein2017",)),
    ("It is known (Himmelstein et al., 2017; Lee 2020).", "(Himmelstein et al., 2017; Lee 2020)",
     ("himmelstein2017", "lee2020")),
    ("It agrees with \\cite{lee2020}.", "\\cite{lee2020}", ("lee2020",)),
    ("It is so \\citep[p.~3]{lee2020}.", "\\citep[p.~3]{lee2020}", ("lee2020",)),
    ("It is so [@lee2020, p. 3].", "[@lee2020, p. 3]", ("lee2020",)),
    ("It follows @lee2020 here.", "@lee2020", ("lee2020",)),
    ("It was seen before [12].", "[12]", ()),
    ("It was seen before [1, 3-5].", "[1, 3-5]", ()),
    ("It agrees with Smith and Wu (1999).", "Smith and Wu (1999)", ()),
    ("It is so [@none1999].", "[@none1999]", ()),
    ("It is so \\cite{none}.", "\\cite{none}", ()),
]  # fmt: skip


def experiment(reasoning: str, **more: object) -> Experiment:
    return parse_experiment({"reasoning": f"Degree explains most of it. {reasoning} Nothing else was tried.", **more})


@pytest.mark.parametrize(("sentence", "citation", "keys"), FORMS)
def test_every_form_of_a_users_citation_is_kept_found_and_linked(
    sentence: str, citation: str, keys: tuple[str, ...]
) -> None:
    given = experiment(sentence)
    draft = insert_user_statements("The model wrote something else.", "discussion", given, known_keys=KEYS)
    assert sentence in draft
    assert insert_user_statements(draft, "discussion", given, known_keys=KEYS) == draft, "said once"
    text, replaced = replace_invalid_citations(draft, [], given.words, known_keys=KEYS)
    assert (text, replaced) == (draft, ())
    assert check_draft(Draft(draft), [], kind="discussion", experiment=given) == ()
    (found,) = find_user_citations(text, given, PAPERS)
    assert (found.citation, found.sentence, found.keys, found.field) == (citation, sentence, keys, "reasoning")
    assert text[found.start : found.end] == citation


@pytest.mark.parametrize(
    "lie",
    [
        "It contradicts Himmelstein et al. (2017).",
        "It agrees with Himmelstein et al. (2017), who found that cats cause cancer.",
        "Cats cause cancer, and it agrees with Himmelstein et al. (2017).",
        "It does not hold that it agrees with Himmelstein et al. (2017).",
        "Lower down: it agrees with Himmelstein et al. (2017).",
        "Himmelstein et al. (2017) say so.",
    ],
)
def test_the_users_citation_cannot_support_another_claim(lie: str) -> None:
    given = experiment("It agrees with Himmelstein et al. (2017).")
    text, replaced = replace_invalid_citations(lie, [], given.words)
    assert "Himmelstein" not in text and "[citation needed]" in text
    assert "Himmelstein" in replaced[0].message and "experiment" in replaced[0].message


@pytest.mark.parametrize(
    "lie",
    [
        "Cats cause cancer, which was seen before [12].",
        "Nothing was seen before [12].",
        "Before [12], cats caused cancer.",
        "It was not seen before [12].",
        "[12] shows that cats cause cancer.",
        "Cats cause cancer, as shown in [7].",
        "Cats cause cancer, as was reported^7^.",
    ],
)
def test_the_users_citation_number_cannot_support_another_claim(lie: str) -> None:
    given = experiment("It was seen before [12]. The degree of nodes matters, as shown in [7], and as was reported^7^.")
    text, replaced = replace_invalid_citations(lie, [], given.words)
    assert not re.search(r"\[\d|\^7", text) and "[citation needed]" in text
    assert [finding.rule for finding in replaced] == ["foreign-citation"]


@pytest.mark.parametrize(
    "words",
    [
        "In short, the degree of nodes matters, as shown in [7], and little else does.",
        "With dropout, our hidden layers all have sizes [64, 32].",
    ],
)
def test_a_number_in_brackets_stays_after_the_users_own_words(words: str) -> None:
    given = experiment(
        "Mostly, the degree of nodes matters, as shown in [7]. Of both, our hidden layers all have sizes [64, 32]."
    )
    assert replace_invalid_citations(words, [], given.words) == (words, ())


def test_a_citation_in_a_list_or_a_table_keeps_its_lines() -> None:
    block = "| method | AP |\n|---|---|\n| ours | 0.7 |\n| Lee (2020) | 0.6 |"
    given = parse_experiment({"results": f"We compared.\n\n{block}"})
    draft = insert_user_statements("A model's results.", "results", given)
    assert f"\n\n{block}" in draft
    assert replace_invalid_citations(draft, [], given.words) == (draft, ())
    assert [item.keys for item in find_user_citations(draft, given, PAPERS)] == [("lee2020",)]


def test_an_author_with_two_papers_in_one_year_is_not_matched() -> None:
    twice = [*PAPERS, Paper("lee2020b", "C", ("Bo Lee",), 2020, family_names=("Lee",))]
    given = experiment("It agrees with Lee (2020).")
    (found,) = find_user_citations(given.reasoning, given, twice)
    assert found.keys == ()


def test_text_that_is_not_a_citation_is_not_listed() -> None:
    given = experiment("The code is at https://github.com/x/y, from May 2017, for x in [0, 1] and in 2020.")
    assert citing_statements(given) == []


def test_a_failed_run_is_mentioned_with_and_without_a_chat_model() -> None:
    given = parse_experiment({"results": "AUROC 0.97.", "execution_result": {"returncode": 1}})
    assert insert_user_statements("Nothing more.", "results", given).startswith(
        "The run of the experiment failed (returncode 1)"
    )
    assert "failed" not in insert_user_statements("Text.", "introduction", given)


def test_a_model_that_repeats_the_users_brackets_cites_nothing() -> None:
    given = experiment("Estradiol (E2) rose as in [E1].")
    draft = with_literal_markers("Estradiol (E2) rose as in [E1]. It was shown [E1] before (E2).", given.words)
    assert draft.count("[E1]") == 1 and draft.count("(E2)") == 1


def test_an_abstract_names_the_citing_sentences_that_it_leaves_to_other_sections() -> None:
    given = parse_experiment({"summary": "It agrees with Lee (2020).", "experimental_plan": "We follow Wu (1999)."})
    (told,) = left_to_other_sections("An abstract.", "abstract", given)
    assert '1 sentence of yours that cites a source is left to the other sections: "It agrees with Lee (2020)."' in told
    assert "(summary)" in told and "Wu" not in told
    assert left_to_other_sections("In short. It agrees with Lee (2020).", "abstract", given) == []
    assert left_to_other_sections("An abstract.", "abstract", given, ["It agrees with Lee (2020)."]) == [], "in a paper"
    assert left_to_other_sections("A text.", "discussion", given) == []


def test_an_empty_section_is_not_filled_with_the_users_citation() -> None:
    given = parse_experiment({"reasoning": "It agrees with Himmelstein et al. (2017)."})
    assert insert_user_statements("\n", "discussion", given) == ""
    assert "Himmelstein" in insert_user_statements("Degree explains it.", "discussion", given)

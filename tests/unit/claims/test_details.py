"""Details, kinds of sentences and entries, by the labelled cases; no model is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from citeloom.citations.cited_works import CitationMark, CitedWork
from citeloom.claims.claim_passages import NearSentence, SentenceIndex
from citeloom.claims.claim_verdicts import uncited_kind
from citeloom.claims.detail_checks import name_faults, number_faults, quote_faults, whole_source, wording_faults
from citeloom.claims.manuscript import ListedReference, ManuscriptSentence
from citeloom.claims.reference_entries import LibraryMatcher, differing, near_keys, parse_listed
from citeloom.documents import Category, Chunk, Paper
from citeloom.documents.paper_names import family_name
from citeloom.experiment import Experiment

FOLDER = Path(__file__).parents[1] / "cases"


def cases(name: str) -> list[dict[str, Any]]:
    return list(json.loads((FOLDER / f"check_{name}_cases.json").read_text(encoding="utf-8"))["cases"])


@pytest.mark.parametrize("case", cases("detail"), ids=lambda case: str(case["id"]))
def test_numbers_and_units_that_differ_from_the_source_are_found(case: dict[str, Any]) -> None:
    source = whole_source(Paper("a", "Looms"), case["source"], "E1")
    found = number_faults(f"{case['claim'][:-1]} [E1].", [source], [source], None)
    assert [fault["message"].partition(" was not")[0].partition(":")[0] for fault in found] == case["faults"]


def near(source: str, claim: str) -> NearSentence | None:
    chunk = Chunk("a:00000", "a", 0, source, "", "", Category.OTHER, 1, None, 0, len(source), 0)
    return SentenceIndex([chunk]).nearest(claim)


@pytest.mark.parametrize("case", cases("difference"), ids=lambda case: str(case["id"]))
def test_details_that_differ_from_the_matching_sentence_are_found(case: dict[str, Any]) -> None:
    """A number that the paper has for something else is no excuse."""
    source, said = whole_source(Paper("a", "Looms"), case["source"], "E1"), near(case["source"], case["claim"])
    found = [*number_faults(f"{case['claim'][:-1]} [E1].", [source], [source], None, said)]
    found += wording_faults(case["claim"], said, "a") if said else ()
    shown = [f"{one['rule']}: {one['message'].partition(':')[0]}" for one in found]
    assert [one.partition(":")[0] if one.startswith("polarity") else one for one in shown] == case["faults"]


@pytest.mark.parametrize(
    ("claim", "named"),
    [
        ("The classifier reached an accuracy of 88.2% on the held-out recordings.", "the source has 85.1%"),
        ("In the held-out recordings 61% of participants completed the diary.", "the source has 50%"),
        ("The classifier of the recordings reached an accuracy of 0.42.", 'the source says "'),
    ],
)
def test_the_suggested_number_is_of_the_same_kind_beside_the_same_words(claim: str, named: str) -> None:
    text = (
        "Though 50% of the participants completed the diary, the classifier reached an accuracy of 85.1% on the "
        "held-out recordings."
    )
    source = whole_source(Paper("a", "Diaries"), text, "E1")
    (fault,) = number_faults(f"{claim[:-1]} [E1].", [source], [source], None, near(text, claim))
    assert named in fault["message"]


def test_a_number_in_the_paper_about_another_quantity_is_not_a_mismatch() -> None:
    text = (
        "The day 28 cure rate was 100% in both arms with the first recurrences observed at day 35 in the chloroquine "
        "group and day 42 in the dihydroartemisinin-piperaquine group. Parasites were cleared fast. At day 56, there "
        "were more recurrent infections in the chloroquine arm (8.9%, 95% CI 6.0-13.1%) than the "
        "dihydroartemisinin-piperaquine arm (2.8%, 95% CI 1.4-5.8%)."
    )
    claim = (
        "In Afghanistan, recurrence by day 56 was 8.9% after chloroquine and 2.8% after dihydroartemisinin-piperaquine."
    )
    source = whole_source(Paper("a", "Malaria"), text, "E1")
    said = near(text.partition(" Parasites")[0], claim)
    assert number_faults(f"{claim[:-1]} [E1].", [source], [source], None, said) == []
    (fault,) = number_faults(f"{claim[:-1]} [E1].".replace("8.9", "9.9"), [source], [source], None, said)
    assert fault["message"] == "9.9% was not found in the cited paper."


def test_a_number_beside_the_same_words_elsewhere_in_the_paper_is_accepted() -> None:
    text = (
        "Version 1.0 of Hetionet consists of 47,031 nodes (11 types) and 2,250,197 relationships. Many methods were "
        "tried before. Hetionet contains 24 types of edges between nodes of the network in all."
    )
    claim = "Hetionet contains 47,031 nodes of 11 types."
    source, said = (
        whole_source(Paper("a", "Hetionet"), text, "E1"),
        near(text[text.index("Hetionet contains") :], claim),
    )
    assert not number_faults(f"{claim[:-1]} [E1].", [source], [source], None, said)
    assert number_faults("Hetionet contains 47,031 nodes of 12 types [E1].", [source], [source], None, said)


@pytest.mark.parametrize(
    ("claim", "source", "differs"),
    [
        ("p = 0.001", "p < 0.001", True),
        ("p = 0.001", "P<.001", True),
        ("p > 0.001", "p < 0.001", True),
        ("p < 0.001", "p < 0.001", False),
        ("$p = 0.001$", "$p < 0.001$", True),
        ("p \u2264 0.001", "p < 0.001", False),
        ("p = 0.001", "p = 0.001", False),
        ("p = 0.001", "p < 0.001 for one and p = 0.001 for all", False),
    ],
)
def test_a_value_that_the_source_only_bounds_is_not_one_of_its_values(claim: str, source: str, differs: bool) -> None:
    whole = whole_source(Paper("a", "Looms"), f"Looms wove faster in trials ({source}).", "E1")
    found = number_faults(f"Trials had faster looms ({claim}) [E1].", [whole], [whole], None)
    assert [fault["rule"] for fault in found] == ["number-differs"] * differs


@pytest.mark.parametrize(("said", "differs"), [("23%", False), ("23.4%", False), ("24%", True), ("23.3%", True)])
def test_a_value_may_be_rounded_but_not_truncated(said: str, differs: bool) -> None:
    """23% is 23.4% rounded, but 23.6% truncated."""
    text = "Attention rose by 23.4% in the morning group of the trial."
    claim = f"Attention rose by {said} in the morning group of the trial."
    whole = whole_source(Paper("a", "Attention"), text, "E1")
    found = number_faults(f"{claim[:-1]} [E1].", [whole], [whole], None, near(text, claim))
    assert [fault["rule"] for fault in found] == ["number-differs"] * differs
    cut = text.replace("23.4", "23.6")
    whole = whole_source(Paper("a", "Attention"), cut, "E1")
    (fault,) = number_faults(
        "Attention rose by 23% in the morning group [E1].", [whole], [whole], None, near(cut, claim)
    )
    assert "the source has 23.6%" in fault["message"]


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("doe2020trail", ["doe2020trial"]),
        ("Doe2020Trial", ["doe2020trial"]),
        ("roe2005", ["roe2005why"]),
        ("smith1999", []),
        ("", []),
    ],
)
def test_a_nearly_correct_key_suggests_the_right_one(key: str, near: list[str]) -> None:
    assert near_keys(key, ["doe2020trial", "roe2005why", "poe1971loom"]) == near


def test_a_number_of_the_experiment_needs_no_source() -> None:
    source = whole_source(Paper("a", "Looms"), "Looms wove 72.5% of the cloth.", "E1")
    experiment = Experiment(results="Our loom wove 81.3%.")
    text = "Ours wove 81.3%, others 72.5% [E1]."
    assert number_faults(text, [source], [source], experiment) == []
    (fault,) = number_faults("Ours wove 83.1% of it.", [], [], experiment)
    assert fault["rule"] == "number-not-found" and "83.1%" in fault["message"]


def test_kinds_of_sentences_are_distinguished_and_none_wrongly_needs_a_citation() -> None:
    said = [(uncited_kind(case["text"], "Introduction"), case["kind"], case["text"]) for case in cases("kind")]
    false = [text for found, kind, text in said if found == "needs" and kind != "needs"]
    missed = [text for found, kind, text in said if found != "needs" and kind == "needs"]
    assert not false
    assert len(missed) <= 1, missed


@pytest.mark.parametrize("case", cases("section"), ids=lambda case: str(case["text"])[:30])
def test_the_kind_of_a_sentence_follows_from_its_words_not_its_heading(case: dict[str, Any]) -> None:
    assert uncited_kind(case["text"], case["section"]) == case["kind"]


@pytest.mark.parametrize("case", cases("entry"), ids=lambda case: str(case["id"]))
def test_an_entry_differs_where_a_reader_would_say_so(case: dict[str, Any]) -> None:
    def paper(given: dict[str, Any]) -> Paper:
        names = tuple(given["authors"].split("|"))
        title = given["title"].replace("{", "").replace("}", "")
        families = tuple(map(family_name, names))
        return Paper("key", title, names, given["year"], doi=given["doi"], family_names=families)

    assert sorted(differing(paper(case["entry"]), paper(case["paper"]))) == sorted(case["differs"])


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        ("Abdullah Hedley Chan Lai", ("..., Lam", "..., Lai")),
        ("Abdullah Hedley Chan", ("..., Chan, Lam", "..., Chan")),
        ("Hedley Abdullah Chan Lam", ("Abdullah, Hedley, Chan and 1 more", "Hedley, Abdullah, Chan and 1 more")),
    ],
)
def test_author_lists_are_shown_from_the_first_difference(other: str, shown: tuple[str, str]) -> None:
    one = Paper("a", "Looms", ("Abdullah", "Hedley", "Chan", "Lam"))
    assert differing(one, Paper("b", "Looms", tuple(other.split()))) == {"authors": shown}


@pytest.mark.parametrize(
    ("title", "year", "found"),
    [
        ("Northern looms: a study", 2020, True),
        ("A study of weavers and looms", 2020, True),
        ("Northern looms: a theory of weavers", 2020, False),
        ("Northern looms of the weavers in the rain", 2020, False),
        ("On the looms", 2020, False),
        ("Weavers of the south", 2020, False),
        ("A study of northern weavers", 2015, False),
    ],
)
def test_an_entry_with_a_shortened_title_matches_by_authors_and_year(title: str, year: int, found: bool) -> None:
    library = [Paper("lee", "On northern looms: a study of weavers", ("Ann Lee", "Bo Ek"), 2020)]
    entry = Paper("L20", title, ("A. Lee", "B. Ek"), year)
    assert LibraryMatcher(library).match(entry) == ("lee" if found else "")


@pytest.mark.parametrize(
    ("text", "families", "year"),
    [
        (
            "Smith, A., Lee, B. C., & Wu, D. (2020). A loom that scales. J. Looms, 3(2), 1-9.",
            ("Smith", "Lee", "Wu"),
            2020,
        ),
        ("Smith A, Lee BC, Wu D. A loom that scales. J Looms. 2020;3(2):1-9.", ("Smith", "Lee", "Wu"), 2020),
        (" Dudley JT, Butte AJ. A Quick Guide. PLoS Comput Biol. 2009;5(12).", ("Dudley", "Butte"), 2009),
        ("Ioannidis JPA. Why Most Findings Are False. PLoS Med. 2005;2.", ("Ioannidis",), 2005),
        (
            "Lee A, The Loom Consortium, Wu D, et al. A loom. J Looms 2020;3.",
            ("Lee", "The Loom Consortium", "Wu", "others"),
            2020,
        ),
        (
            "A. Smith, B. Lee et al., \u201cA loom that scales,\u201d J. Looms, vol. 3, 2020.",
            ("Smith", "Lee", "others"),
            2020,
        ),
        (
            "Le, Trang T., Weixuan Fu, and Jason H. Moore. 2020. \u201cScaling looms.\u201d Looms.",
            ("Le", "Weixuan Fu", "Jason Moore"),
            2020,
        ),
        ("Venkatesh Prasad, Deepa, and Ann Lee. 2020. \u201cA loom.\u201d", ("Venkatesh Prasad", "Ann Lee"), 2020),
        ("Hastie, Trevor. 2020. \u201cA loom.\u201d", ("Hastie", "Trevor", "others"), 2020),
        ("Smith, Jones, Brown (2020). A loom.", ("Smith", "Jones", "Brown"), 2020),
        ("Smith, van Dam, de Vries, and Le Roy. 2020. A loom.", ("Smith", "van Dam", "de Vries", "Le Roy"), 2020),
        ("Hastie and Friedman. 2020. \u201cA loom.\u201d", ("Hastie", "Friedman"), 2020),
    ],
)
def test_typed_reference_entries_give_authors_and_year(text: str, families: tuple[str, ...], year: int) -> None:
    paper = parse_listed(ListedReference("", text), 1)
    assert paper.family_names == families
    assert paper.year == year


def test_a_quotation_must_appear_in_the_paper() -> None:
    source = whole_source(Paper("a", "Looms"), "It was said that the looms of the north never rest.", "E1")
    assert quote_faults('They say that "the looms of the north never rest" [E1].', [source]) == []
    (fault,) = quote_faults('They say that "the looms of the south always rest" [E1].', [source])
    assert fault["rule"] == "quote-differs"
    place = ", in \u201cOn the looms of all the north\u201d; near to sentence 1"
    assert quote_faults(f"\u201cthe looms of the north never rest\u201d [E1]{place}", [source]) == []
    assert quote_faults(f"\u201cthe looms of the north never rest\u201d ([E1]){place}", [source]) == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("As Lee and Fox point out, looms rest [@lee2019].", ["name-differs"]),
        ("As Lee and Wu point out, looms rest [@lee2019].", []),
        ("As Lee and Ek point out, looms rest, which Lee and Wu deny [@lee2019].", []),
        ("In 2015, Lee and Wu showed that looms rest [@lee2019].", ["year-differs"]),
        ("In their review of 2019, Lee and Wu showed that looms rest [@lee2019].", []),
        ("Lee and colleagues argued in 2009 that looms rest [@lee2019].", ["year-differs"]),
        ("Lee and Wu compared the looms of 2009 with those of today [@lee2019].", []),
        ("Nagy and colleagues showed in four mills that looms rest [@lee2019].", ["name-differs"]),
        ("Berg and colleagues showed in four mills that looms rest [@lee2019].", []),
        ("Ek and colleagues showed in four mills that looms rest [@lee2019].", []),
        ("With the data of Nagy and colleagues, @lee2019 showed that looms rest.", ["name-differs"]),
        ("With the data of Berg and colleagues, @lee2019 showed that looms rest.", []),
    ],
)
def test_authors_and_years_must_match_the_cited_paper_or_one_that_it_names(text: str, rules: list[str]) -> None:
    cited = Paper("lee2019", "Looms", ("Ann Lee", "Di Wu"), 2019, family_names=("Lee", "Wu"))
    known = [cited, Paper("lee2012", "Weavers", ("Ann Lee", "Bo Ek"), 2012, family_names=("Lee", "Ek"))]
    known.append(Paper("ek2001", "Mills", ("Bo Ek",), 2001, family_names=("Ek",)))
    start = text.index("[@" if "[@" in text else "@lee")
    mark = CitationMark("pandoc", start, start + 10, (CitedWork("lee2019"),), narrative="[@" not in text)
    sentence = ManuscriptSentence(0, 0, len(text), "", text, (mark,), "")
    found = name_faults(sentence, text, [cited], known, ["Looms rest. Berg et al. had counted them before."])
    assert [item["rule"] for item in found] == rules


def test_a_two_digit_number_is_found_beside_its_words_anywhere_in_the_paper() -> None:
    near_by = whole_source(Paper("a", "Looms"), "The looms of the north were compared.", "E1")
    whole = whole_source(Paper("a", "Looms"), "In all, the mean holdout accuracy was 0.68 in the north.", "E1")
    claim = "In the north the mean accuracy on holdout looms was {} [E1]."
    assert number_faults(claim.format("0.68"), [near_by], [whole], None) == []
    assert number_faults(claim.format("0.86"), [near_by], [whole], None) != []


def test_a_rate_is_compared_with_its_unit_of_time() -> None:
    source = whole_source(Paper("a", "Looms"), "Looms rest at a rate of two per minute.", "E1")
    (found,) = number_faults("Looms rest at a rate of two per second [E1].", [source], [source], None)
    assert found["rule"] == "unit-differs" and "two per minute" in found["message"]

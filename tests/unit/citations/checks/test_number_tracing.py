from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings, strategies as st

from citeloom.citations.checks.citation_coverage import balance_findings, uncited_sentences
from citeloom.citations.checks.draft_checks import check_draft
from citeloom.citations.checks.findings import RULES
from citeloom.citations.checks.number_parsing import claimed_numbers, given_numbers
from citeloom.citations.checks.number_tracing import number_findings, trace_numbers
from citeloom.citations.checks.repetition import copied_findings
from citeloom.citations.markers import normalise_markers
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Draft, PassageSentence
from tests.support.citation_samples import make_source

EXPERIMENT = Experiment.model_validate(
    {
        "metrics": {"auroc": 0.725, "by-fold": [0.7, 0.75], "n": 1234, "p": 2.3e-7, "note": None, "ok": True},
        "results": "AUROC was 0.725 on 1,234 edges.",
        "plots": [{"path": "degree.png"}],
    }
)
SOURCES = (
    replace(make_source("E3"), text="The prior reached 87.3% on 20 networks of 2017."),
    make_source("E4", "lee2022ten"),
)


def test_a_superscript_number_is_found_in_the_source() -> None:
    source = r"The range for ${\widehat{C}}^{0.5}\%$ has a median of 7.47%, and $x^{2}$ is $10^{-4}$."
    assert [str(number.value) for number in given_numbers(source)] == ["0.5", "7.47", "0.0001"]


def test_millions_may_be_written_with_an_m() -> None:
    values = {number.value for number in given_numbers("Of 375m k-mers 1.5m reads had none within 20 m.")}
    assert {375_000_000, 1_500_000} <= values and 20_000_000 not in values


def test_the_mass_of_an_isotope_is_part_of_its_name() -> None:
    text = "Uptake of 99mTc, 18F-FDG and 68Ga was 12 at 14C and 3M counts; 13C NMR took 40 min."
    assert [str(number.value) for number in claimed_numbers(text)] == ["12", "14", "3E+6", "40"]


def test_a_dose_after_a_numbered_day_counts() -> None:
    dosed = "Figures 1 and 10 show 15 mg/kg on day 1 and 10 mg/kg on day 2."
    assert [str(number.value) for number in given_numbers(dosed)] == ["15", "10"]


@pytest.mark.parametrize("written", ["17 of 69", "17 out of 69", "17/69"])
def test_a_count_after_the_word_group_is_not_a_label(written: str) -> None:
    source = f"In the intervention group {written} (25%) had used it, more than with the equations (90.9% vs. 36%)."
    assert {"17", "69", "25", "90.9", "36"} <= {str(number.value) for number in given_numbers(source)}
    assert "2" not in [str(number.value) for number in given_numbers("As group 2 shows, groups 1 and 2 differ.")]
    assert "3" not in [str(number.value) for number in given_numbers("Events of grade 3/4 were rare.")]


def origins(text: str) -> list[str]:
    traces = trace_numbers(text, SOURCES, EXPERIMENT)
    return [trace.origin.path or trace.origin.evidence_id if trace.origin else "?" for trace in traces]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was 72.5%.", ["metrics.auroc"]),
        ("It was 0.75 in one fold.", ['metrics["by-fold"][1]']),
        ("It was 2.3e-7, or 2.3 × 10⁻⁷, or 2.3 \\times 10^{-7}.", ["metrics.p"] * 3),
        ("It was 87.3% [E3].", ["E3"]),
        ("It was 87.3%.", ["?"]),
        ("It was 87.3% [E4].", ["?"]),
        ("One figure and two folds are enough.", ['metrics["by-fold"]']),
    ],
)
def test_the_origin_of_a_number_is_found(text: str, expected: list[str]) -> None:
    assert origins(text) == expected


def test_a_share_is_found_in_another_source_whatever_follows_it() -> None:
    other = replace(make_source("E5"), text="Stage 1 was right more often (90.9% vs. a range from 36.2% to 42.4%).")
    sources = (*SOURCES, other)
    (first, *_) = number_findings("Stage 1 was right in 90.9% against 36.2% to 42.4% [E4].", sources, EXPERIMENT)
    assert first.ids == ("E5",)


@pytest.mark.parametrize("source", ["40 000", "40\u2009000", "40\u202f000", "40.000", "40,000", "40000"])
@pytest.mark.parametrize("said", ["40 000", "40\u2009000", "40\u202f000", "40.000", "40,000", "40000"])
def test_thousands_may_be_separated_by_a_space_a_comma_or_a_point(said: str, source: str) -> None:
    sources = [replace(SOURCES[0], text=f"There were {source} people.")]
    (trace,) = trace_numbers(f"We know of {said} people [E3].", sources, Experiment())
    assert trace.origin is not None and trace.how == "equal"


@pytest.mark.parametrize(
    ("said", "source", "known"),
    [
        ("p = 0.001", "p < 0.001", False),
        ("P = .001", "P<.001", False),
        ("p > 0.05", "p < 0.05", False),
        ("p < 0.001", "p<0.001", True),
        ("p \u2264 0.001", "p < 0.001", True),
        ("p = 0.001", "p = 0.001", True),
        ("a p of 0.001", "p < 0.001", True),
        ("p = 0.001", "p of <i>0.001</i>", True),
        ("p = 0.001", "p < 0.001 in one trial and p = 0.001 in the other", True),
    ],
)
def test_a_bound_in_a_source_is_not_one_of_its_values(said: str, source: str, known: bool) -> None:
    sources = [replace(SOURCES[0], text=f"It differed ({source}).")]
    text = f"It differed ({said}) [E3]."
    assert bool(number_findings(text, sources, Experiment())) is not known
    assert number_findings(text, [], Experiment(results=f"It differed ({source}).")) is not known


@pytest.mark.parametrize(("said", "source"), [("3125", "3.125"), ("500", "0.500"), ("40.000", "40,001")])
def test_a_decimal_number_is_not_read_as_thousands(said: str, source: str) -> None:
    sources = [replace(SOURCES[0], text=f"There were {source} people.")]
    (trace,) = trace_numbers(f"We know of {said} people [E3].", sources, Experiment())
    assert trace.origin is None


def test_an_origin_points_at_the_number_in_its_text() -> None:
    (trace,) = trace_numbers("It was 87% [E3].", SOURCES, EXPERIMENT)
    assert trace.origin is not None and trace.how == "rounded"
    assert SOURCES[0].text[trace.origin.start : trace.origin.end] == "87.3%"
    (trace,) = trace_numbers("It had 1234 edges.", (), Experiment(results="It had 1,234 edges."))
    assert trace.origin is not None and trace.origin.path == "results"
    assert (trace.origin.start, trace.origin.end) == (7, 12)


def test_a_message_names_the_number_and_the_source_that_has_it() -> None:
    elsewhere, nowhere = number_findings("It was 87.3%. It was 0.999.", SOURCES, EXPERIMENT)
    assert "87.3%" in elsewhere.message and "E3" in elsewhere.message
    assert "0.999" in nowhere.message and "neither in the experiment nor" in nowhere.message


@pytest.mark.parametrize(
    ("text", "source", "holds"),
    [
        ("It took 12 hours [E3].", "It took 12 hours.", True),
        ("It took 12 hours [E3].", "It was 12 patients.", False),
        ("It fell by 12% [E3].", "It was 12 patients.", False),
        ("It fell by 12% [E3].", "It was 0.12 in all.", False),
        ("It reached 0.82 [E3].", "AUROC of 0.82.", True),
        ("It reached 0.82 [E3].", "AUROC of 0.8211.", False),
    ],
)
def test_a_hint_names_a_source_only_if_it_writes_the_number_like_that(text: str, source: str, holds: bool) -> None:
    sources = (SOURCES[0], replace(SOURCES[1], text=source))
    (finding,) = number_findings(text, sources, EXPERIMENT)
    assert ("E4" in finding.message) is holds


def test_a_number_in_a_displayed_sentence_of_another_chunk_is_found_there() -> None:
    shown = PassageSentence("other:00008", 40, 70, "It rose to 55.5% in the end.")
    uncut = PassageSentence("other:00009", 5, 23, "It fell to 44 mice")
    source = replace(SOURCES[0], passage=(shown, uncut))
    first, second = trace_numbers("It rose to 55.5% and fell to 44 mice [E3].", [source], EXPERIMENT)
    assert first.origin is not None and second.origin is not None
    assert (first.origin.chunk_id, first.origin.start, first.origin.end) == ("other:00008", 40, 70)
    assert (second.origin.chunk_id, second.origin.start, second.origin.end) == ("other:00009", 16, 18)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("A third of them relapsed [E3].", "33% relapsed."),
        ("Two thirds of them relapsed [E3].", "In 80 of 120 there was a relapse."),
        ("Yields doubled [E3].", "Yields rose from 4.1 t to 8.3 t per hectare."),
        ("It rose twofold [E3].", "A 2-fold rise was seen."),
        ("About half of them left [E3].", "52% left."),
        ("One hundred and four took part [E3].", "104 volunteers."),
        ("One in five fell ill [E3].", "20% fell ill."),
    ],
)
def test_a_share_in_words_is_found_in_the_form_of_the_source(text: str, source: str) -> None:
    assert number_findings(text, [replace(SOURCES[0], text=source)], EXPERIMENT) == []
    (finding,) = number_findings(text, [replace(SOURCES[0], text="It was 7.7% of 9.")], Experiment())
    assert finding.rule == "number-not-found"


def test_a_number_may_be_repeated_only_in_its_paragraph() -> None:
    text = "It was 87.3% [E3]. That 87.3% is high.\n\nStill, 87.3% is not all."
    assert origins(text) == ["E3", "E3", "?"]


def test_a_draft_that_relies_on_one_paper_is_noted_and_not_repaired() -> None:
    sources = [make_source("E1", "a2020"), make_source("E2", "b2020"), make_source("E3", "c2020")]
    one_sided = " ".join("Degree matters here [E1]." for _ in range(5))
    (finding,) = balance_findings(one_sided, sources)
    assert finding.severity == "note" and "5 of 5" in finding.message and "a2020" in finding.message
    assert balance_findings(one_sided, sources[:2]) == []
    assert balance_findings(one_sided + " It lasts [E2]. It does [E3]. It may [E2]. It can [E3].", sources) == []


def test_the_experiments_own_words_need_no_citation_in_a_differently_built_sentence() -> None:
    own = "Several models separate drift from change, and preprints and published papers show the same change points."
    assert (
        uncited_sentences("The hypothesis holds in part: preprints and published papers show the same change.", own)
        == []
    )
    told = "Preprints and published papers did not change at once, as only 25 of the 200 tokens did."
    assert uncited_sentences(told, own) == []
    assert uncited_sentences("As is known, published papers show the same change.", own)


@pytest.mark.parametrize(
    "question",
    [
        "Here we ask how drift differs from change, and whether preprints move at the same time as published papers.",
        "It remains to be settled how much of it is drift, and whether published papers follow.",
    ],
)
def test_what_is_asked_about_published_papers_needs_no_citation(question: str) -> None:
    assert uncited_sentences(question, "") == []


@pytest.mark.parametrize(
    "claim",
    [
        "We tested whether this holds, and previous studies have shown that it does.",
        "It remains unclear why earlier studies found no effect.",
        "We ask how it has been shown that degree explains all.",
        "Previous work is open; whether it holds was reported by several authors.",
    ],
)
def test_a_question_does_not_hide_a_claim_about_others(claim: str) -> None:
    assert [sentence.text for sentence in uncited_sentences(claim, "")] == [claim]


def test_every_finding_of_a_draft_has_its_span() -> None:
    text = (
        "Previous studies have shown that this holds. It reached 0.999 here (Smith et al., 2021). Node degree explains"
        " most of the edges. It is a strong baseline [E4]. As E3 shows, it lasts [E9]."
    )
    found = check_draft(Draft(text), SOURCES, kind="discussion", experiment=EXPERIMENT)
    assert [(finding.rule, text[slice(*(finding.span or (0, 0)))]) for finding in found] == [
        ("citation-missing", "Previous studies have shown that this holds."),
        ("number-not-found", "0.999"),
        ("foreign-citation", "(Smith et al., 2021)"),
        ("bare-marker", "E3"),
        ("unknown-marker", "[E9]"),
    ]


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "0.725", "72.5%", "1,234", "1 234", "10^-7", "10⁻⁷", "2.3e-7", "1e999", "1e99999", "×", " × 10^", "-",
                "–", ".", ",", " ", "twelve", "One of nine", "twenty-five", " million", "k", "%", " percent", "2019",
                "more than ",
                "Fig. 3", "Section 2.1", "GPT-4", "3D", "~2~", "[E3]", "[E4]", "[E9]", "“", "”", '"', "\n\n", "\n",
                "> ", "```",
                "# ", "Node degree explains most of the edges. It is a strong baseline.", "Previous studies have shown",
                "<sup>-3</sup>", "$", "\\times", "{", "}", "^", "**", "(", ")", "\ud800", "\u00ad", "½", "٣", "9" * 50,
            ]
        ),
        st.text(max_size=4),
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(PIECES)
@example("1e999 1e-999 " + "9" * 400)
def test_checks_raise_no_error_and_point_at_their_words(text: str) -> None:
    draft = normalise_markers(text)
    for trace in trace_numbers(draft, SOURCES, EXPERIMENT):
        assert 0 <= trace.start < trace.end <= len(draft) and any(c.isalnum() for c in draft[trace.start : trace.end])
        if trace.origin and trace.origin.evidence_id:
            assert trace.origin.start is not None and trace.origin.start < (trace.origin.end or 0) <= len(
                SOURCES[0].text
            )
    for run in copied_findings(draft, SOURCES, EXPERIMENT.words):
        assert run.span is not None and 0 <= run.span[0] < run.span[1] <= len(draft)
        assert len(re.findall(r"[^\W_]+", draft[slice(*run.span)])) > 12
    assert all(draft[item.start : item.end] == item.text for item in uncited_sentences(draft, EXPERIMENT.words))
    for finding in check_draft(Draft(text), SOURCES, kind="discussion", experiment=EXPERIMENT):
        assert finding.rule in RULES and "\n" not in finding.message
        assert finding.span is None or 0 <= finding.span[0] < finding.span[1] <= len(draft)


@settings(max_examples=200, deadline=None)
@given(st.decimals(min_value="0.001", max_value="100000", places=3))
def test_a_number_is_found_in_any_notation(value: object) -> None:
    plain = f"{value:f}"
    grouped = f"{value:,f}"
    experiment = Experiment(metrics={"value": float(plain)})
    for written in (plain, grouped):
        (trace,) = trace_numbers(f"The value was {written} metres.", (), experiment)
        assert trace.origin is not None, written


@pytest.mark.parametrize(
    "text",
    ["1," * 3000, "1 " * 3000, "9" * 6000, "10^" * 2000, "Fig. 1, " * 1000, "A-" * 3000, "A" * 6000, "12 × 10" * 900,
     "one of " * 1000, "1.1." * 1500, '"' * 3000, "“" * 3000, "a b c " * 1500, "~1" * 2000, "```\n" * 1500],
)  # fmt: skip
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    # A pattern that backtracks would hang the suite here.
    claimed_numbers(text)
    given_numbers(text)
    copied_findings(text, SOURCES, "")
    uncited_sentences(text, "")


def test_a_chance_match_of_a_number_is_visible_from_its_context_and_frequency() -> None:
    experiment = Experiment.model_validate(
        {"metrics": {"n_seeds": 10, "top_10": 0.5}, "results": "All 10 seeds agree, at a rate of 0.4242."}
    )
    sources = (
        replace(make_source("E3"), text=f"{'Long before it. ' * 9}It took 10 days of 2017 in all. {'And so on. ' * 9}"),
        replace(make_source("E4", "lee2022ten"), text="There were 10 of them."),
    )
    split, rate = trace_numbers("The split is 80/10/10. The rate is 0.4242.", sources, experiment)[-2:]

    assert rate.as_dict("")["found"] | {"start": 0, "end": 0} == {
        "path": "results",
        "start": 0,
        "end": 0,
        "how": "equal",
        "words": "All 10 seeds agree, at a rate of 0.4242.",
        "passages": 0,
        "fields": 1,
    }
    assert split.words == "metrics.n_seeds: 10" and (split.passages, split.fields) == (2, 3)
    (cited,) = trace_numbers("It took 10 days [E3].", sources, experiment)
    assert "It took 10 days of 2017" in cited.words and cited.words.startswith("… ") and cited.words.endswith(" …")
    assert len(cited.words) < 100
    again = trace_numbers("It took 10 days [E3]. Those 10 were long.", (sources[0],), Experiment())[-1]
    assert (again.how, again.words) == ("repeated", cited.words)

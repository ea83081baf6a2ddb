from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.citations.export.evidence_report import VERDICTS, ReportFigure, ReportImages, evidence_report
from citeloom.settings.config import CitationStyle
from tests.support.report_record import AFTER, BEFORE, QUERIES, QUOTE, make_record

HOSTILE = (
    "</mark></blockquote></style></title></script><script>pwned=1</script><img src=x onerror=alert(1)>"
    "\"'><iframe src='http://elsewhere.example'></iframe><!-- {{ 7*7 }} {% raw %} ]]> &#60;b&#62;"
)


class _Read(HTMLParser):
    """Elements with their attributes, ids, links, and the text of every element with an id or of a kind."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.words: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag, tuple(name for name, _ in attrs)] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "link"):
            self._open.append((tag, next((value or "" for name, value in attrs if name == "id"), "")))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for tag, identifier in self._open:
            for name in (tag, f"#{identifier}"):
                self.words[name] = self.words.get(name, "") + data

    def all(self, name: str) -> list[str]:
        return [value for attribute, value in self.attributes if attribute == name]


def _read(record: dict[str, Any]) -> _Read:
    return _Read(evidence_report(record))


def test_a_card_shows_all_that_a_reader_needs_to_check_a_citation() -> None:
    page = _read(make_record())
    card = page.words["#c1"]
    for part in (
        BEFORE.strip(),
        QUOTE,
        AFTER.strip(),
        "On degree 1",
        "Ada  Lovelace",
        "2017",
        "Networks",
        "page 4",
        "Results",
    ):
        assert part in card
    for part in ("0.78", "0.71", "0.82", QUERIES[0], "search 1", "E1", "a2020:00004", "Degree matters (a2020; b2019)."):
        assert part in card
    assert "On degree 2" in card, "both papers of one pair of brackets"
    assert "On degree 1" not in page.words["#c2"]
    assert page.words["mark"].count(QUOTE) == 3


def test_each_citation_in_a_sentence_has_a_card() -> None:
    page = _read(make_record("First [E1] and then again [E2] or so [E1]. Then [E1]."))
    assert [bool(page.words.get(f"#c{number}")) for number in (1, 2, 3, 4, 5)] == [True, True, True, True, False]
    assert "First (a2020) and then again (b2019) or so (a2020)." in page.words["#c3"]
    assert "Then (a2020)." in page.words["#c4"]


@pytest.mark.parametrize("style", get_args(CitationStyle))
def test_every_link_leads_to_something_in_the_file(style: Any) -> None:
    page = _read(make_record(style=style))
    targets = [value.removeprefix("#") for value in page.all("href")]
    assert set(targets) <= set(page.all("id"))
    assert {"c1", "c2", "r1", "r2", "q1", "q2", "E3"} <= set(targets)
    assert len(page.all("id")) == len(set(page.all("id")))


def test_searches_are_listed_in_order_with_their_limits_and_results() -> None:
    page = _read(make_record())
    first, second = page.words["#q1"], page.words["#q2"]
    assert QUERIES[0] in first and "Made of the experiment" in first and "E1 a2020" in first and "E3 c2018" in first
    assert "Asked for by the agent" in second and "in b2019; years 2017–2020" in " ".join(second.split())
    assert page.words["#searches"].index(QUERIES[0]) < page.words["#searches"].index(QUERIES[1])
    assert "On degree 3" in page.words["#unused"] and QUOTE in page.words["#E3"]
    assert "On degree 1" not in page.words["#unused"]


def test_a_planned_search_is_not_attributed_to_the_agent() -> None:
    record = make_record()
    record["report"]["searches"][1]["origin"] = "need"
    second = _read(record).words["#q2"]
    assert "Planned before any search" in second and "agent" not in second


def test_findings_and_cost_are_shown() -> None:
    page = _read(make_record())
    findings = " ".join(page.words["#findings"].split())
    for part in (
        "1 Supported",
        "2 Not supported",
        "Truncated The text ends.",
        "Copied run Copied from a paper.",
        "One paper was left out.",
        '"It lasts on other networks [E2]." is not supported by [E2]',
        "Citation 2",
    ):
        assert part in findings
    cost = page.words["#cost"]
    assert "45,678" in cost and "12" in cost and "None" not in cost
    assert "[citation needed]" in page.words["strong"]


def test_the_report_starts_with_what_was_tried() -> None:
    record = make_record()
    record["coverage"] = {
        "passages": {"proposed": 60, "read": 2, "unreadable": 58},
        "sentences": {"cited": 4, "judged": 3, "unjudged": 1, "by_topic": 0},
    }
    said = " ".join(_read(record).words["#coverage"].split())
    assert "60 proposed, 2 read, 58 unreadable" in said and "3 judged, 1 not judged" in said


def test_a_report_without_a_judge_calls_no_sentence_judged() -> None:
    record = make_record(verdicts=("on-topic", "on-topic"))
    record["coverage"] = {
        "passages": {"proposed": 60, "read": 60, "unreadable": 0},
        "sentences": {"cited": 5, "judged": 0, "unjudged": 0, "by_topic": 5},
    }
    said = " ".join(_read(record).words["#coverage"].split())
    assert said.endswith("Cited sentences: 0 judged, 5 compared by topic only, 0 not judged.")
    record["coverage"]["sentences"] = {"cited": 0, "judged": 0, "unjudged": 0, "by_topic": 0}
    assert _read(record).words["#coverage"].rstrip().endswith("Cited sentences: none judged.")


def test_a_number_is_shown_with_the_words_around_it_and_how_common_it_is() -> None:
    record = make_record()
    place = {"path": "metrics.n_seeds", "start": None, "end": None, "how": "equal"}
    record["numbers"][2]["found"] = place | {"words": "n_seeds: 10", "passages": 3, "fields": 1}
    row = " ".join(_read(record).words["#n3"].split())
    assert "metrics.n_seeds" in row and "n_seeds: 10" in row and "3 passages, 1 field" in row


def test_findings_and_numbers_are_linked_from_the_words_that_they_concern() -> None:
    html = evidence_report(make_record())
    page = _Read(html)
    assert '<a class="finding" id="g2" href="#f2">lasts</a>' in html and 'href="#g2"' in html
    assert '<a class="number" id="m2" href="#n2">stays</a>' in html
    assert "Not found" in page.words["#n2"] and "lasts" in page.words["#n1"]
    assert "results.auroc" in page.words["#n3"] and "10–14" in page.words["#n3"] and "rounded" in page.words["#n3"]
    assert "1 of 3 numbers" in page.words["#numbers"]


@pytest.mark.parametrize("label", list(VERDICTS))
def test_every_verdict_is_named_and_explained(label: Any) -> None:
    page = _read(make_record(verdicts=(label, label)))
    for words in VERDICTS[label]:
        assert words in page.words["#c1"] and words in page.words["#findings"]


def test_topical_similarity_never_reads_as_support() -> None:
    page = _read(make_record(verdicts=("on-topic", "on-topic")))
    assert "not judged" in page.words["#c1"]
    assert "Supported" not in page.words["#c1"] + page.words["#findings"]


def test_a_passage_deleted_from_the_library_leaves_its_quote() -> None:
    record = make_record()
    record["report"]["passages"] = {}
    record["report"]["papers"] = {key: {} for key in record["report"]["papers"]}
    card = _read(record).words["#c1"]
    assert QUOTE in card and "no longer in the library" in card and "a2020" in card
    assert BEFORE.strip() not in card


def test_a_section_without_citations_has_a_report() -> None:
    record = make_record("Nothing fits.")
    record["report"]["searches"] = []
    page = _read(record)
    assert "The section cites nothing." in page.words["body"]


def test_the_policy_allows_one_style_sheet_and_nothing_else() -> None:
    html = evidence_report(make_record(said=HOSTILE))
    style = re.search("<style>(.*?)</style>", html, re.DOTALL)
    policy = re.search('Content-Security-Policy" content="([^"]*)"', html)
    assert style is not None and policy is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert html.index("Content-Security-Policy") < html.index("<title>"), "before anything that others wrote"


def test_the_report_refers_to_nothing_outside_its_file() -> None:
    page = _read(make_record(said=HOSTILE))
    assert not {"src", "srcset", "action", "data", "style", "onload", "ping"} & {name for name, _ in page.attributes}
    assert all(value.startswith("#") for value in page.all("href"))
    assert "url(" not in page.words["style"] and "@import" not in page.words["style"]


def test_a_hostile_paper_adds_no_element_and_is_shown_word_for_word() -> None:
    page, harmless = _read(make_record(said=HOSTILE)), _read(make_record(said="x" * len(HOSTILE)))
    assert page.tags == harmless.tags
    for part in ("#c1", "#q1", "#E3", "#findings", "title", "mark"):
        assert HOSTILE in page.words[part], part


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40))
def test_no_text_changes_the_elements_of_the_page(said: str) -> None:
    page = _read(make_record(f"Degree matters [E1]. {said}" if "\n" not in said else "Degree matters [E1].", said=said))
    assert {tag for tag, _ in page.tags}.isdisjoint(
        {"script", "img", "iframe", "object", "embed", "form", "link", "base"}
    )
    assert all(value.startswith("#") for value in page.all("href"))


def test_equal_records_give_equal_reports() -> None:
    assert evidence_report(make_record()) == evidence_report(make_record())


def test_a_mark_in_the_text_opens_its_finding() -> None:
    page = _read(make_record(marked=True))
    assert "Degree matters (a2020; b2019) [not supported]." in page.words["#section"]
    links = [value for value in page.all("href") if re.fullmatch(r"#f\d+", value)]
    assert len(links) == 2 + 1, "each mark, and the copied words"
    for link in links:
        assert page.words[link].split()[0] in ("Unsupported", "Copied")


def test_a_card_shows_the_deciding_words() -> None:
    page = _read(make_record())
    assert "The judge goes by these words: Earlier wor" in " ".join(page.words["#c1"].split())
    assert "The judge goes by" not in page.words["#c2"], "what is not supported rests on no words"


def test_sentences_left_out_are_listed_and_their_html_is_inert() -> None:
    record = make_record()
    assert "Left out of the text" not in evidence_report(record)
    record["left_out"] = [{"sentence": f"Gone. {HOSTILE}", "marks": ["[not supported]"], "why": [f"So. {HOSTILE}"]}]
    page = _read(record)
    findings = " ".join(page.words["#findings"].split())
    assert "[not supported] Gone." in findings and "So." in findings
    assert page.tags.total() > 0 and not [tag for tag in page.tags if tag[0] in ("script", "iframe", "img")]


def test_quotes_in_lists_have_an_ellipsis_at_a_cut_sentence() -> None:
    record = make_record()
    citation = record["citations"][0]
    passage = record["report"]["passages"][citation["evidence_id"]]
    cut = passage[citation["start"] : citation["end"]].rsplit(" ", 2)[0]
    citation |= {"quote": cut, "end": citation["start"] + len(cut)}
    cited = {citation["evidence_id"] for citation in record["citations"]}
    unused = next(item for item in record["evidence"] if item["id"] not in cited)
    record["report"]["quotes"] = {unused["id"]: "Cut words …"}
    page = evidence_report(record)
    assert f"{' '.join(cut.split())} …</span>" in page
    assert '<blockquote dir="auto">Cut words …</blockquote>' in page


def test_page_images_are_embedded_and_the_policy_allows_nothing_more() -> None:
    record = make_record()
    html = evidence_report(record, ReportImages({"E1": b"\x89PNG one"}))
    image = base64.b64encode(b"\x89PNG one").decode()
    assert html.count(f'src="data:image/png;base64,{image}"') == len(
        [c for c in record["citations"] if c["evidence_id"] == "E1"]
    )
    assert "Page 4 of the PDF, the words marked." in html
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy and "img-src data:;" in policy[1] and "script-src" not in policy[1]
    assert "img-src" not in evidence_report(record), "a report without images does not allow them"


def test_a_figure_is_shown_where_its_caption_is_cited_and_its_description_is_marked() -> None:
    record = make_record()
    said = "<img src=x onerror=alert(1)> A chart."
    figure = ReportFigure("Figure 2", b"\xff\xd8\xff one", "image/jpeg", said, "see-1")
    html = evidence_report(record, ReportImages(figures={"E1": figure}))
    assert f'src="data:image/jpeg;base64,{base64.b64encode(figure.content).decode()}"' in html
    assert "These words are of Figure 2." in html
    assert "Described by see-1, not by the paper" in html
    assert "<img src=x" not in html and "&lt;img src=x onerror=alert(1)&gt; A chart." in html
    assert not any(
        "A chart." in quote for quote in re.findall(r"<blockquote.*?</blockquote>|<mark>.*?</mark>", html, re.S)
    )
    large = evidence_report(record, ReportImages(figures={"E1": replace(figure, content=b"")}))
    assert "Its image is too large for this file." in large and "img-src" not in large


def test_a_retraction_is_shown_at_citations_and_at_unused_papers() -> None:
    record = make_record()
    line = "Retracted on 2024-06-04 (<script>alert(1)</script>)"
    for key in ("a2020", "c2018"):
        record["report"]["papers"][key] |= {"status": "retracted", "notices": [line]}
    record["report"]["papers"]["b2019"] |= {"status": "corrected", "notices": ["Corrected on 2022-08-25 (Crossref)"]}
    page = evidence_report(record)
    assert page.count('<span class="verdict doubt">Retracted</span>') == 3  # in the list, its card, and what is unused
    assert '<span class="verdict">Corrected</span>' in page
    assert "<script>" not in page and "&lt;script&gt;alert(1)" in page


def test_a_card_links_to_its_page_in_zotero() -> None:
    record = make_record()
    for number, paper in enumerate(record["report"]["papers"].values(), 1):
        paper["zotero"] = f"zotero://select/library/items/ITEM000{number}"
        paper["zotero_pdf"] = f"zotero://open-pdf/library/items/FILE000{number}"
    links = _read(record).all("href")
    assert "zotero://select/library/items/ITEM0001" in links
    assert "zotero://open-pdf/library/items/FILE0001?page=4" in links
    assert "zotero://open-pdf/library/items/FILE0002" in links  # a source without pages


def test_an_address_that_zotero_would_not_create_is_not_a_link() -> None:
    record = make_record()
    for paper in record["report"]["papers"].values():
        paper |= {"zotero": "javascript:alert(1)", "zotero_pdf": 'zotero://open-pdf/library/items/FILE0001" onclick=x'}
    page = evidence_report(record)
    assert "javascript" not in page and "onclick" not in page and "zotero:" not in page

"""What services said of papers is kept by DOI, with who said it and when, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from citeloom.documents import Paper
from citeloom.documents.publication_status import Notice, Version
from citeloom.stores.library import Library
from citeloom.stores.metadata_store import MetadataStore, ServiceAnswer

PAPER = Paper("ada2020", "Looms: A Study", ("Ada Lovelace",), 2020)
RETRACTION = Notice("retraction", "Crossref", "10.5555/notice", "2024-06-04")


@pytest.fixture
def store(library: Library) -> MetadataStore:
    return library.metadata


def test_a_new_answer_replaces_the_earlier_one(store: MetadataStore, open_library: Callable[[], Library]) -> None:
    assert store.answer("Crossref", "/x") is None
    store.keep_answer("Crossref", "/x", ServiceAnswer(404, None, 1.0))
    store.keep_answer("Crossref", "/x", ServiceAnswer(200, {"title": ["Looms \x00 \ud800 ✓"]}, 2.0))
    store.keep_answer("Crossref", "/" + "long" * 9_000, ServiceAnswer(200, {"n": 1}, 2.0))
    again = open_library().metadata
    assert again.answer("Crossref", "/x") == ServiceAnswer(200, {"title": ["Looms \ufffd \ufffd ✓"]}, 2.0)
    assert again.answer("Crossref", "/" + "long" * 9_000) == ServiceAnswer(200, {"n": 1}, 2.0)
    assert again.answer("Crossref", "/" + "long" * 8_999) is again.answer("OpenAlex", "/x") is None


def test_odd_characters_in_notices_are_stored(store: MetadataStore) -> None:
    store.replace_notices("Retraction Watch", [("10.5555/x", replace(RETRACTION, reason="Err\x00or"))], "one")
    (notice,) = store.statuses([replace(PAPER, doi="10.5555/x")])["ada2020"].notices
    assert notice.reason.startswith("Err") and notice.reason.endswith("or")


def test_other_versions_are_stored_once(store: MetadataStore) -> None:
    version = Version("preprint", "10.5555/preprint", "Crossref")
    store.keep_work("10.5555/x", "Crossref", {}, [], [version], 1.0)
    store.keep_work("10.5555/x", "Crossref", {}, [], [version], 2.0)
    assert store.statuses([replace(PAPER, doi="10.5555/x")])["ada2020"].versions == (version,)


def test_a_found_doi_follows_the_paper_but_not_another_with_its_title(store: MetadataStore) -> None:
    store.keep_identity(PAPER, "10.5555/article", 0.97, "Crossref", 1.0)
    renamed = replace(PAPER, key="lovelace2020", title="LOOMS - a study")
    preprint = replace(PAPER, key="ada2019", year=2019)
    by_another = replace(PAPER, key="other", authors=("Grace Hopper",))
    named = replace(PAPER, doi="10.5555/own")
    assert store.dois([PAPER, renamed, preprint, by_another]) == {
        "ada2020": "10.5555/article",
        "lovelace2020": "10.5555/article",
    }
    assert store.dois([named]) == {"ada2020": "10.5555/own"}


def test_correcting_a_year_keeps_the_doi_of_a_key(store: MetadataStore) -> None:
    store.keep_identity(PAPER, "10.5555/article", 0.97, "Crossref", 1.0)
    assert store.dois([replace(PAPER, year=2021)]) == {"ada2020": "10.5555/article"}


def test_earlier_statements_and_notices_are_kept(store: MetadataStore) -> None:
    store.keep_work("10.5555/x", "Crossref", {"citations": 5, "volume": "1"}, [RETRACTION], [], 1.0)
    store.keep_work("10.5555/x", "Crossref", {"citations": 5, "volume": "1"}, [], [], 2.0)
    store.keep_work("10.5555/x", "Crossref", {"citations": 9, "volume": "1"}, [], [], 3.0)
    latest = {item.field: (item.value, item.said_at) for item in store.statements("10.5555/x")}
    assert latest == {"citations": (9, 3.0), "volume": ("1", 1.0)}
    assert store.statuses([replace(PAPER, doi="10.5555/x")])["ada2020"].retracted


def test_a_new_file_replaces_only_the_notices_of_its_source(store: MetadataStore) -> None:
    paper = replace(PAPER, doi="10.5555/x")
    store.keep_work("10.5555/x", "Crossref", {}, [RETRACTION], [], 1.0)
    watch = replace(RETRACTION, source="Retraction Watch", reason="Error")
    store.replace_notices("Retraction Watch", [("10.5555/x", watch)], "one")
    assert len(store.statuses([paper])["ada2020"].notices) == 2
    store.replace_notices("Retraction Watch", [], "two")
    assert store.statuses([paper])["ada2020"].notices == (RETRACTION,)
    assert store.file_stamp("Retraction Watch") == "two"


def test_a_failed_import_leaves_the_old_notices(store: MetadataStore) -> None:
    store.replace_notices("Retraction Watch", [("10.5555/x", RETRACTION)], "one")

    def broken() -> object:
        yield ("10.5555/y", RETRACTION)
        raise ValueError("the file ends here")

    with pytest.raises(ValueError, match="ends here"):
        store.replace_notices("Crossref", broken(), "two")  # type: ignore[arg-type]
    assert store.statuses([replace(PAPER, doi="10.5555/x")])["ada2020"].retracted


def test_many_papers_and_threads_can_be_stored_at_once(store: MetadataStore) -> None:
    papers = [replace(PAPER, key=f"k{number}", doi=f"10.5555/{number}") for number in range(1200)]
    store.replace_notices("Crossref", [(paper.doi, RETRACTION) for paper in papers], "one")
    assert len(store.statuses(papers)) == 1200
    answers = [ServiceAnswer(200, {"n": n}, 1.0) for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: store.keep_answer("Crossref", f"/{n}", answers[n]), range(40)))
    assert [store.answer("Crossref", f"/{n}").body for n in range(40)] == [{"n": n} for n in range(40)]  # type: ignore[union-attr]

"""Retractions, concerns and corrections, from their report to every place where they matter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.integration.commands.test_enrich import SEEDS
from tests.support.metadata_server import MetadataServer, ServedWork
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import SAMPLES, THREE

KEY = "obrien2019seeds"
RETRACTED = replace(SEEDS, updates=(("retraction", "10.5555/notice", (2024, 6, 4), "publisher"),))
CSV = (
    "Record ID,Title,Subject,Institution,Journal,Publisher,Country,Author,URLS,ArticleType,RetractionDate,"
    "RetractionDOI,RetractionPubMedID,OriginalPaperDate,OriginalPaperDOI,OriginalPaperPubMedID,RetractionNature,"
    "Reason,Paywalled,Notes\n"
)


def row(doi: str, nature: str = "Retraction", date: str = "6/4/2024 0:00", reason: str = "+Error in Data;") -> str:
    return (
        f'7,A title,,,,,,"A;B",,Research Article;,{date},10.5555/notice,0,3/1/2019 0:00,{doi},0,{nature},{reason},No,\n'
    )


@pytest.fixture
def services() -> Iterator[MetadataServer]:
    with MetadataServer(RETRACTED) as running:
        running.found["seeds"] = [RETRACTED]
        yield running


def enrich(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    assert citeloom("papers", "enrich", KEY, "--home", home, **services.settings()).code == 0


def statuses(citeloom: Citeloom, home: Path) -> dict[str, str]:
    return {paper["key"]: paper["status"] for paper in citeloom("papers", "list", "--home", home, "--json").json}


LINE = "Retracted on 2024-06-04 (Crossref): https://doi.org/10.5555/notice"


def test_a_retraction_is_shown_wherever_papers_are(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    said = citeloom("papers", "enrich", KEY, "--home", home, **services.settings())
    assert f"  {LINE}" in said.out
    assert statuses(citeloom, home)[KEY] == "retracted"
    assert "RETRACTED: How Many Seeds?" in citeloom("papers", "list", "--home", home).out
    shown = citeloom("papers", "show", KEY, "--home", home).out
    assert shown.startswith("RETRACTED\n") and LINE in shown
    for mode in ((), ("--fulltext",)):
        record = citeloom("find", "seeds of classifiers", *mode, "--home", home, "--json").json
        found = {paper["key"]: paper for paper in record["papers"]}
        assert (found[KEY]["status"], found[KEY]["notices"]) == ("retracted", [LINE])
        done = citeloom("find", "seeds of classifiers", *mode, "--home", home)
        assert "RETRACTED" in done.out and f"{KEY}: {LINE}" in done.err
    passages = citeloom("search", "seeds of classifiers", "--papers", KEY, "--home", home, "--json").json
    assert passages and all((item["status"], item["notices"]) == ("retracted", [LINE]) for item in passages)
    done = citeloom("search", "seeds of classifiers", "--papers", KEY, "--home", home)
    assert "RETRACTED." in done.out and done.err.count(LINE) == 1
    assert LINE in citeloom("doctor", "--home", home).out


@pytest.mark.parametrize(
    ("kind", "status"),
    [("expression_of_concern", "expression of concern"), ("correction", "corrected"), ("new_edition", "")],
)
def test_other_notices_are_shown_too(citeloom: Citeloom, home: Path, kind: str, status: str) -> None:
    work = replace(SEEDS, updates=((kind, "10.5555/notice", (2023, 1, 9), "publisher"),))
    with MetadataServer(work) as services:
        services.found["seeds"] = [work]
        enrich(citeloom, home, services)
    assert statuses(citeloom, home)[KEY] == status


def test_a_retraction_notice_to_which_the_paper_has_no_link_is_found(citeloom: Citeloom, home: Path) -> None:
    notice = ServedWork(
        "10.5555/notice", f"Retraction: {SEEDS.title}", year=2024, updates_to=(("retraction", SEEDS.doi),)
    )
    with MetadataServer(SEEDS, notice) as services:
        services.found["seeds"] = [notice, SEEDS]
        enrich(citeloom, home, services)
    assert statuses(citeloom, home)[KEY] == "retracted"


def test_other_versions_are_shown_and_block_nothing(citeloom: Citeloom, home: Path) -> None:
    work = replace(SEEDS, relations={"has-preprint": "10.5555/preprint"})
    with MetadataServer(work) as services:
        services.found["seeds"] = [work]
        enrich(citeloom, home, services)
    assert statuses(citeloom, home)[KEY] == ""
    assert (
        "Preprint of it: https://doi.org/10.5555/preprint (Crossref)"
        in citeloom("papers", "show", KEY, "--home", home).out
    )


def write(citeloom: Citeloom, home: Path, exp: Path, *more: str, **settings: str) -> dict[str, object]:
    done = citeloom("discussion", "--exp", exp, "--home", home, "--out", "out", "--json", *more, **settings)
    assert done.code == 0, done.err
    return dict(done.json)


def cited(record: dict[str, object]) -> set[str]:
    return {citation["key"] for citation in record["citations"]}  # type: ignore[attr-defined]


def test_a_retracted_paper_is_read_with_a_warning_and_not_cited(
    citeloom: Citeloom, home: Path, exp: Path, services: MetadataServer
) -> None:
    free = write(citeloom, home, exp)
    assert KEY in cited(free)
    enrich(citeloom, home, services)
    record = write(citeloom, home, exp, "--fresh")
    assert KEY not in cited(record) and cited(record)
    assert any(item["key"] == KEY for item in record["evidence"])  # type: ignore[attr-defined]
    warning = f"Retracted paper: {KEY} was read, but not cited (--cite-retracted allows it). {LINE}"
    assert warning in record["warnings"]  # type: ignore[operator]
    report = Path("out/discussion.evidence.html").read_text(encoding="utf-8")
    assert '<span class="verdict doubt">Retracted</span>' in report and "not cited (--cite-retracted" in report


def test_the_user_may_allow_a_retracted_paper(
    citeloom: Citeloom, home: Path, exp: Path, services: MetadataServer
) -> None:
    enrich(citeloom, home, services)
    record = write(citeloom, home, exp, "--cite-retracted")
    assert KEY in cited(record)
    assert f"Cites a retracted paper: {KEY}. {LINE}" in record["warnings"]  # type: ignore[operator]
    assert KEY not in cited(write(citeloom, home, exp))  # a run of its own
    assert KEY in cited(write(citeloom, home, exp, CITE_RETRACTED="true"))


def test_doctor_names_a_finished_section_that_cites_a_paper_retracted_since(
    citeloom: Citeloom, home: Path, exp: Path, services: MetadataServer
) -> None:
    run = write(citeloom, home, exp)["thread_id"]
    assert citeloom("doctor", "--home", home).code == 0
    enrich(citeloom, home, services)
    done = citeloom("doctor", "--home", home)
    assert done.code == 1
    assert f"problem: retractions: the discussion of run {run}" in done.out and f"cites {KEY}: {LINE}" in done.out
    again = citeloom("discussion", "--exp", exp, "--home", home, "--out", "out", "--json")
    assert again.json["thread_id"] == run and KEY in cited(again.json)  # the finished text stays
    assert f"Note: Cites a retracted paper: {KEY}. {LINE}" in again.err
    assert "Retracted</span>" in Path("out/discussion.evidence.html").read_text(encoding="utf-8")
    numeric = write(citeloom, home, exp, "--cite-style", "numeric")
    assert KEY in cited(numeric)
    write(citeloom, home, exp, "--fresh")
    assert citeloom("doctor", "--home", home).code == 0


def test_an_answer_does_not_cite_a_retracted_paper(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    question = ("research", "How does the variance between seeds change small classifiers?", "--home", home, "--json")
    assert KEY in cited(citeloom(*question).json)
    enrich(citeloom, home, services)
    assert KEY not in cited(citeloom(*question, "--fresh").json)


def test_a_question_answered_only_by_a_retracted_paper_is_not_answered(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    question = ("research", "How does the variance between seeds change small classifiers?", "--home", home, "--json")
    assert cited(citeloom(*question, "--papers", KEY).json) == {KEY}
    enrich(citeloom, home, services)
    done = citeloom(*question, "--papers", KEY, "--fresh")
    assert (done.json["outcome"], done.json["citations"]) == ("nothing", [])
    assert any(f"Retracted paper: {KEY} was read, but not cited" in warning for warning in done.json["warnings"])


def test_a_paused_run_resumes_after_a_retraction(
    citeloom: Citeloom, home: Path, exp: Path, services: MetadataServer, server: FakeOpenAI
) -> None:
    settings = {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url}
    arguments = ("discussion", "--exp", exp, "--home", home, "--out", "out", "--json")
    paused = citeloom(*arguments, "--max-calls", "3", **settings)
    assert paused.code == 3
    run = citeloom("runs", "list", "--home", home, "--json").json[0]["thread_id"]
    enrich(citeloom, home, services)
    done = citeloom("runs", "resume", run, "--out", "out", "--json", "--home", home, **settings, MAX_CALLS="5000")
    assert done.code == 0, done.err
    assert done.json["thread_id"] == run and KEY not in cited(done.json)


def test_a_retraction_survives_prune_ingest_and_rebuild(
    citeloom: Citeloom, tmp_path: Path, services: MetadataServer
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    for key in THREE:
        shutil.copy(SAMPLES / f"{key}.md", papers)
    shutil.copy(SAMPLES / "library.bib", papers)
    home = tmp_path / "home"
    citeloom("ingest", papers, "--home", home)
    enrich(citeloom, home, services)
    assert citeloom("rebuild-index", "--home", home).code == 0
    assert statuses(citeloom, home)[KEY] == "retracted"
    (papers / f"{KEY}.md").rename(tmp_path / "away.md")
    citeloom("ingest", papers, "--prune", "--home", home)
    assert KEY not in statuses(citeloom, home)
    (tmp_path / "away.md").rename(papers / f"{KEY}.md")
    citeloom("ingest", papers, "--home", home)
    assert statuses(citeloom, home)[KEY] == "retracted"


def test_retraction_watch_is_read_once_per_version_without_a_request(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    services.works[SEEDS.doi] = SEEDS
    services.found["seeds"] = [SEEDS]
    enrich(citeloom, home, services)
    asked = len(services.requests)
    file = Path("retraction_watch.csv")
    file.write_text(CSV + row("10.9999/else") + row(SEEDS.doi.upper()), encoding="utf-8")
    first = citeloom("papers", "show", KEY, "--home", home, RETRACTION_WATCH=str(file))
    assert "Importing retraction_watch.csv; this is done once" in first.err
    again = citeloom("papers", "show", KEY, "--home", home, RETRACTION_WATCH=str(file))
    assert "Importing" not in again.err and again.out == first.out
    shown = first.out
    assert "Retracted on 2024-06-04 (Retraction Watch): https://doi.org/10.5555/notice; Error in Data" in shown
    assert statuses(citeloom, home)[KEY] == "retracted"  # kept without the setting
    file.write_text(CSV + row(SEEDS.doi) + row(SEEDS.doi, "Reinstatement", "9/9/2025 0:00"), encoding="utf-8")
    done = citeloom("papers", "list", "--home", home, "--json", RETRACTION_WATCH=str(file)).json
    assert {paper["key"]: paper["status"] for paper in done}[KEY] == "reinstated"
    assert len(services.requests) == asked


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read (No such file or directory)"), ("a,b\n1,2\n", "has no column OriginalPaperDOI")],
)
def test_a_bad_retraction_watch_file_is_a_warning(
    citeloom: Citeloom, home: Path, content: str | None, said: str
) -> None:
    if content is not None:
        Path("watch.csv").write_text(content, encoding="utf-8")
    done = citeloom("papers", "list", "--home", home, "--json", RETRACTION_WATCH="watch.csv")
    assert done.code == 0 and len(done.json) == 3 and said in done.err


def test_a_damaged_file_is_reported_with_its_remedy(citeloom: Citeloom, home: Path) -> None:
    (home / "metadata.sqlite").write_bytes(b"not a database" * 500)
    done = citeloom("papers", "list", "--home", home)
    assert done.code == 2 and "metadata.sqlite: cannot be read" in done.err and "Move it away" in done.err


def test_a_read_only_home_shows_a_retraction(
    citeloom: Citeloom, home: Path, services: MetadataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrich(citeloom, home, services)
    before = {path: path.stat().st_mtime_ns for path in home.glob("metadata.sqlite*")}
    allowed = os.access
    monkeypatch.setattr(
        "os.access",
        lambda path, mode: allowed(path, mode) and not (mode == os.W_OK and Path(path).is_relative_to(home)),
    )
    Path("watch.csv").write_text(CSV + row("10.9999/else"), encoding="utf-8")
    done = citeloom("papers", "show", KEY, "--home", home, "--json", RETRACTION_WATCH="watch.csv")
    assert "working on a private copy" in done.err and done.json["metadata"]["status"] == "retracted"
    assert before == {path: path.stat().st_mtime_ns for path in home.glob("metadata.sqlite*")}

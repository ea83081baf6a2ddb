"""Papers over HTTP: listed, searched, added with a reason for each refusal, and removed with their files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.ingestion.ingest import ingest
from citeloom.stores.server_jobs import JobOrder, ServerJobs
from tests.support.left_jobs import leave_job, left_jobs
from tests.support.sample_library import SAMPLES
from tests.support.scanned_pdfs import PAGE, write_scan
from tests.support.served_app import Event, Served, served_app

NEW = "moreau2025machines.md"


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with served_app(home) as server:
        yield server


def upload(served: Served, *files: tuple[str, bytes], **fields: str) -> list[Event]:
    """The events of the ingest of these files."""
    sent = served.api.post("/papers", files=[("files", (name, data)) for name, data in files], data=fields)
    assert sent.status_code == 202, sent.text
    return served.events(f"/ingests/{sent.json()['id']}/events")


def report(events: list[Event]) -> dict[str, Any]:
    assert events[-1].name == "done"
    result: dict[str, Any] = events[-1].data["result"]
    return result


def sample(name: str) -> tuple[str, bytes]:
    return name, (SAMPLES / name).read_bytes()


def stored(served: Served) -> list[str]:
    return sorted(path.name for path in served.state.session.home.papers.rglob("*") if path.is_file())


def test_papers_are_filtered_sorted_and_shown(served: Served) -> None:
    listed = served.api.get("/papers", params={"sort": "year", "descending": True}).json()
    years = [paper["year"] for paper in listed["papers"]]
    assert listed["total"] == 4 and years == sorted(years, reverse=True)
    assert all("/" not in paper["source"] for paper in listed["papers"])
    (found,) = served.api.get("/papers", params={"q": "seeds SENSOR"}).json()["papers"]
    assert found["key"] == "obrien2019seeds"
    assert served.api.get("/papers", params={"from_year": 2023}).json()["total"] == 1
    entry = served.api.get("/papers/obrien2019seeds").json()["bibtex"].rstrip().removesuffix("}").rstrip().rstrip(",")
    labelled = f"{entry},\n  keywords = {{seeds, To read}},\n  groups = {{Thesis/Methods}}\n}}"
    assert served.api.put("/papers/obrien2019seeds/entry", json={"bibtex": labelled}).status_code == 200
    for limits in ({"tag": "to read"}, {"collection": "Thesis"}, {"kind": "article", "tag": "seeds", "from_year": ""}):
        (found,) = served.api.get("/papers", params=limits).json()["papers"]
        assert (found["key"], found["tags"]) == ("obrien2019seeds", ["seeds", "To read"])
    assert served.api.get("/papers", params={"collection": "Methods"}).json()["total"] == 0
    assert "obrien2019seeds" in served.api.get("/papers/export.ris", params={"tag": "seeds"}).text
    within = served.api.get("/search", params={"q": "temperature scaling", "tag": "seeds"}).json()["passages"]
    assert {passage["key"] for passage in within} == {"obrien2019seeds"}
    assert served.api.get("/search", params={"q": "temperature", "tag": "nothing"}).status_code == 422
    shown = served.api.get("/papers/obrien2019seeds").json()
    assert shown["sections"] and shown["added_here"] is False
    text = served.api.get("/papers/obrien2019seeds/text").json()
    assert text["text"][0]["chunk_ids"] and text["text"][0]["text"]


def test_search_finds_passages_and_papers(served: Served) -> None:
    passages = served.api.get("/search", params={"q": "temperature scaling", "limit": 3}).json()["passages"]
    assert len(passages) == 3 and all(passage["chunk_id"] for passage in passages)
    within = served.api.get("/search", params={"q": "seeds", "paper": "obrien2019seeds", "mode": "bm25"}).json()
    assert {passage["key"] for passage in within["passages"]} == {"obrien2019seeds"}
    for by in ("summary", "text"):
        assert served.api.get("/search/papers", params={"q": "calibration", "by": by}).json()["papers"]
    assert served.api.get("/search", params={"q": "!!"}).status_code == 422
    assert served.api.get("/search", params={"q": "x", "paper": "nobody"}).status_code == 404


def test_files_are_added_and_removed_and_refusals_give_a_reason(served: Served) -> None:
    events = upload(
        served,
        sample(NEW),
        sample("library.bib"),
        ("picture.svg", b"<svg/>"),
        ("broken.pdf", b"no pdf"),
        (f"{Path(NEW).stem}.notes.md", b"My note on machines."),
    )
    assert {"planned", "embedded", "stored", "done"} <= {event.name for event in events}
    result = report(events)
    assert result["added"] == [Path(NEW).stem]
    assert {item["name"] for item in result["refused"]} == {"picture.svg", "broken.pdf"}
    assert stored(served) == [NEW, f"{Path(NEW).stem}.notes.md"], "the .bib and what was refused are not kept"
    shown = served.api.get(f"/papers/{Path(NEW).stem}").json()
    assert shown["added_here"] is True and shown["note"] == "My note on machines." and shown["year"] == 2025
    assert served.api.delete(f"/papers/{Path(NEW).stem}").status_code == 204
    assert stored(served) == [] and list(served.state.session.home.papers.iterdir()) == []
    assert served.api.get(f"/papers/{Path(NEW).stem}").status_code == 404


def test_removing_a_paper_that_was_not_uploaded_leaves_its_file(served: Served) -> None:
    assert served.api.delete("/papers/obrien2019seeds").status_code == 204
    assert (SAMPLES / "obrien2019seeds.md").is_file()


def test_an_upload_replaces_a_paper_with_its_key_only_on_request(served: Served) -> None:
    other = b"# Another paper\n\n## Introduction\n\nOn another subject altogether, written by somebody else.\n"
    upload(served, ("mine.md", b"# Mine\n\n## Introduction\n\nOn the subject of looms and their engines.\n"))
    refused = report(upload(served, ("mine.md", other)))["refused"]
    assert [item["reason"] for item in refused] == ["the library has another paper with the key mine"]
    assert served.api.get("/papers/mine").json()["title"] == "Mine" and stored(served) == ["mine.md"]
    assert report(upload(served, ("mine.md", other), replace="true"))["updated"] == ["mine"]
    assert served.api.get("/papers/mine").json()["title"] == "Another paper" and stored(served) == ["mine.md"]


def test_an_existing_paper_is_not_added_twice(served: Served) -> None:
    result = report(upload(served, sample("obrien2019seeds.md"), ("copy.md", sample("varga2021calibration.md")[1])))
    assert (result["added"], result["updated"], result["refused"]) == ([], [], [])
    assert sorted(result["unchanged"]) == ["obrien2019seeds", "varga2021calibration"]
    assert stored(served) == [] and served.api.get("/papers").json()["total"] == 4


def test_a_paper_sent_twice_at_once_is_added_once(served: Served) -> None:
    result = report(upload(served, ("copy.md", sample(NEW)[1]), MINE, ("mine2.md", MINE[1]), sample(NEW)))
    assert (result["added"], result["refused"]) == (["copy", "mine"], [])
    same = [line for line in result["warnings"] if "same paper" in line]
    assert [line.split()[0] for line in same] == ["mine2.md", NEW]
    assert same[0].startswith("mine2.md is the same paper as mine,") and "is the same paper as copy," in same[1]
    assert not any("title" in line for line in result["warnings"] if line.startswith("mine2.md"))
    assert stored(served) == ["copy.md", "mine.md"]


def test_whoever_uploads_a_scan_hears_of_no_option_of_the_command_line(served: Served, tmp_path: Path) -> None:
    write_scan(tmp_path / "scan.pdf", [PAGE])
    (refused,) = report(upload(served, ("scan.pdf", (tmp_path / "scan.pdf").read_bytes())))["refused"]
    assert "without any text" in refused["reason"] and "recognized" in refused["reason"]
    assert "--" not in refused["reason"]


def test_a_refused_text_is_reported_with_or_without_its_pdf(served: Served, shared_dir: Path) -> None:
    pdf = (shared_dir / "corpus" / "pdfs" / "le2020treeheatr.pdf").read_bytes()
    sent = (("pair.md", b"\xff not a text"), ("pair.pdf", pdf), ("both.md", b"\xff"), ("both.pdf", b"no pdf"))
    result = report(upload(served, *sent))
    assert result["added"] == ["pair"] and stored(served) == ["pair.pdf"]
    refused = {item["name"]: item["reason"] for item in result["refused"]}
    assert sorted(refused) == ["both.md", "both.pdf", "pair.md"] and "UTF-8" in refused["pair.md"]
    assert not any(line.startswith("pair.md") for line in result["warnings"])
    assert served.api.get("/papers/pair").json()["pages"] == 7


def test_repeating_an_upload_with_its_key_is_one_ingest(served: Served) -> None:
    def send(data: bytes) -> Any:
        files = [("files", ("mine.md", data))]
        return served.api.post("/papers", files=files, headers={"Idempotency-Key": "k"})

    text = b"# Mine\n\n## Introduction\n\nOn the subject of looms and their engines.\n"
    first = send(text).json()["id"]
    served.events(f"/ingests/{first}/events")
    assert send(text).json()["id"] == first
    assert send(text + b"More.").status_code == 422
    shown = served.api.get(f"/ingests/{first}").json()
    assert shown["state"] == "finished" and shown["result"]["added"] == ["mine"]


def test_a_restarted_server_resumes_an_ingest_and_drops_abandoned_uploads(home: Path) -> None:
    unfinished, abandoned = "ingest-00000000000a", "ingest-00000000000b"
    for folder in (unfinished, abandoned):
        (home / "papers" / folder).mkdir(parents=True)
        (home / "papers" / folder / NEW).write_bytes(sample(NEW)[1])
    (home / "papers" / "my own.txt").write_text("mine", encoding="utf-8")
    request = {"files": [NEW], "refused": [], "replace": False}
    leave_job(home, JobOrder(unfinished, "ingest", request))
    with served_app(home) as served:
        assert report(served.events(f"/ingests/{unfinished}/events"))["added"] == [Path(NEW).stem]
        assert stored(served) == [NEW, "my own.txt"]
    assert left_jobs(home) == set()


def test_a_job_that_cannot_be_resumed_does_not_stop_the_server_from_starting(home: Path) -> None:
    leave_job(home, JobOrder("research-gone", "run", {"limits": {}}))
    leave_job(home, JobOrder("chat-odd", "turn", {}))
    leave_job(home, JobOrder("../../x", "ingest", {"files": [], "refused": [], "replace": False}))
    with served_app(home) as served:
        assert served.api.get("/ready").status_code == 200
        assert left_jobs(home) == set()


def test_while_the_register_is_locked_work_is_refused_and_later_accepted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    path = f"/conversations/{served.conversation()}/turns"
    with monkeypatch.context() as patch:
        patch.setattr(ServerJobs, "begin", locked)
        refused = served.post(path, {"question": "What are seeds?"})
    assert refused.status_code == 503 and "busy" in refused.json()["detail"]
    assert served.post(path, {"question": "What are seeds?"}).status_code == 200


def test_status_routes_report_the_current_state_and_settings(served: Served) -> None:
    assert served.api.get("/ready").json() == {"status": "ready", "papers": 4}
    settings = served.api.get("/settings").json()
    assert settings["chat_model"]["value"] == "extractive" and settings["chat_api_key"]["value"] == "not set"
    doctor = served.api.get("/doctor").json()
    assert doctor["library"]["papers"] == 4 and {item["level"] for item in doctor["findings"]} <= {"fine", "notice"}
    metrics = served.api.get("/metrics").text
    assert "citeloom_papers 4.0" in metrics and 'citeloom_requests_total{method="GET",status="200"}' in metrics


MINE = ("mine.md", b"# Mine, on looms and more\n\n## Introduction\n\nOn the subject of looms and their engines.\n")
BIB = b"@article{mine, title={On Looms}, author={Lovelace, Ada}, year={1843}, journal={Engines}, volume={3}}"


@pytest.mark.parametrize("files", [[], [MINE], [("renamed.md", MINE[1])]])
def test_a_bib_adds_metadata_to_existing_papers(served: Served, files: list[tuple[str, bytes]]) -> None:
    upload(served, MINE)
    assert served.api.get("/papers/mine").json()["authors"] == []
    result = report(upload(served, ("library.bib", BIB), *files))
    assert (result["updated"], result["unchanged"], result["refused"]) == (["mine"], [], [])
    shown = served.api.get("/papers/mine").json()
    assert (shown["title"], shown["authors"], shown["year"]) == ("On Looms", ["Ada Lovelace"], 1843)
    assert stored(served) == ["mine.md"]


def test_a_bib_matches_by_title_and_keeps_the_key(served: Served) -> None:
    upload(served, MINE)
    result = report(
        upload(served, ("a.bib", b"@article{other1, title={Mine, on looms and more}, author={Lovelace, Ada}}"))
    )
    assert result["updated"] == ["mine"]
    assert served.api.get("/papers/mine").json()["bibtex"].startswith("@article{mine,")


def test_a_bib_without_matching_papers_says_so(served: Served) -> None:
    result = report(upload(served, ("library.bib", b"@article{nobody, title={On nothing at all}}")))
    assert result["warnings"] == ["library.bib: no entry matches a paper in the library."]
    assert (result["added"], result["updated"]) == ([], [])


def test_metadata_added_to_a_paper_stays_when_its_file_is_ingested_again(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_bytes(MINE[1])
    library = served.state.session.library
    served.run(ingest(library, [file]))
    sent = served.api.put("/papers/mine/entry", json={"bibtex": BIB.decode()})
    assert sent.status_code == 200 and sent.json()["year"] == 1843
    file.write_bytes(MINE[1] + b"\nMore on engines.\n")
    served.run(ingest(library, [file]))
    assert library.paper("mine").authors == ("Ada Lovelace",) and "volume={3}" in library.paper("mine").bibtex


@pytest.mark.parametrize(
    ("bibtex", "wrong"),
    [
        ("Lovelace 1843", "holds no entry"),
        ("@article{a, title={A}}\n@article{b, title={B}}", "holds 2 entries"),
        ("@article{a, author={Ada}}", "has no title"),
        ("@article{a, title={A", "lacks its closing brace"),
        ("@article{a, title={A}, year={205}}", "year: not a year"),
    ],
)
def test_an_unusable_entry_is_refused(served: Served, bibtex: str, wrong: str) -> None:
    before = served.api.get("/papers/obrien2019seeds").json()
    refused = served.api.put("/papers/obrien2019seeds/entry", json={"bibtex": bibtex})
    assert refused.status_code == 422 and wrong in refused.json()["detail"]
    assert served.api.get("/papers/obrien2019seeds").json() == before


def test_listing_papers_also_searches_their_text(served: Served) -> None:
    listed = served.api.get("/papers", params={"q": "wearers"}).json()
    assert listed["total"] > 0, "a word that only the text has"


@pytest.mark.parametrize("first", [".md", ".pdf"])
def test_a_text_and_the_pdf_of_a_paper_are_one_paper(served: Served, shared_dir: Path, first: str) -> None:
    key = "le2020treeheatr"
    corpus = {".md": shared_dir / "corpus" / "papers", ".pdf": shared_dir / "corpus" / "pdfs"}
    for ending in sorted(corpus, key=lambda ending: ending != first):
        assert not report(upload(served, (f"{key}{ending}", (corpus[ending] / f"{key}{ending}").read_bytes())))[
            "refused"
        ]
    shown = served.api.get(f"/papers/{key}").json()
    assert shown["source"] == f"{key}.md" and shown["pages"] == 7

"""`add` with DOIs and arXiv ids, over a local server that answers as the services document."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pexpect
import pytest

from citeloom.documents.bibliography import read_bibliography
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import CLI, environment
from tests.support.metadata_server import Fault, MetadataServer, ServedWork
from tests.support.plain_pdf import Line, write_pdf

QUAILS = ServedWork(
    "10.5555/quails.2021",
    "The Migration of Quails & Other Small Birds: A Field Study",
    (("Ada", "Lovelace"), ("", "The Quail Consortium")),
    2021,
    "Journal of Small Birds",
    volume="7",
    pages="1-9",
    abstract="Quails migrate at night. We followed forty quails over three summers with small radio tags.",
)
ATTENTION = ServedWork(
    "10.48550/arxiv.2101.00001",
    "Looms Are What You Need",
    (("Grace", "Hopper"),),
    2021,
    abstract="A loom weaves threads.",
    arxiv="2101.00001",
    known_to=("datacite", "openalex", "s2"),
)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[MetadataServer]:
    with MetadataServer(QUAILS, ATTENTION) as running:
        write_pdf(
            tmp_path / "made.pdf",
            [
                Line(QUAILS.title, 18),
                Line("Abstract", 14),
                *(Line(f"Quail number {number} slept in the reeds and left after midnight.") for number in range(20)),
            ],
        )
        running.files["quails.pdf"] = (tmp_path / "made.pdf").read_bytes()
        running.works[QUAILS.doi] = replace(QUAILS, pdf=f"{running.url}/files/quails.pdf")
        yield running


def test_a_paper_is_added_with_its_free_pdf(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    done = citeloom(
        "add", f"https://doi.org/{QUAILS.doi}", "--download", "--home", home, "--json", **services.settings()
    )
    paper = done.json["papers"][0]
    assert (done.code, paper["outcome"], paper["key"]) == (0, "added", "lovelace2021migration")
    entry = read_bibliography(home / "added" / "library.bib").papers["lovelace2021migration"]
    assert (entry.title, entry.year, entry.venue) == (QUAILS.title, 2021, "Journal of Small Birds")
    assert entry.authors == ("Ada Lovelace", "The Quail Consortium") and "volume = {7}" in entry.bibtex
    found = citeloom("find", "quails that slept in the reeds", "--fulltext", "--home", home, "--json").json
    assert found["papers"][0]["key"] == "lovelace2021migration"


def test_without_consent_nothing_is_downloaded_and_the_abstract_is_indexed(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    done = citeloom("add", QUAILS.doi, "--home", home, "--json", **services.settings())
    paper = done.json["papers"][0]
    assert (done.code, paper["outcome"]) == (0, "abstract") and not services.asked("files")
    assert f"names a free PDF, {services.url}/files/quails.pdf; --download" in done.err
    found = citeloom("find", "radio tags on quails", "--fulltext", "--home", home, "--json").json
    assert found["papers"][0]["sentence"].startswith("We followed forty quails")
    later = citeloom("add", QUAILS.doi, "--download", "--home", home, "--json", **services.settings())
    assert later.json["papers"][0]["outcome"] == "added"
    assert citeloom("papers", "list", "--home", home, "--json").out.count('"lovelace2021migration"') == 1
    assert not (home / "added" / "lovelace2021migration.md").exists()


def test_an_arxiv_paper_is_added(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    done = citeloom("add", "arXiv:2101.00001v3", "--no-download", "--home", home, "--json", **services.settings())
    assert (done.code, done.json["papers"][0]["key"]) == (0, "hopper2021looms")
    entry = read_bibliography(home / "added" / "library.bib").papers["hopper2021looms"]
    assert "eprint = {2101.00001}" in entry.bibtex and entry.doi == ATTENTION.doi
    assert not services.asked("crossref")


def test_a_duplicate_is_recognised_by_doi_or_title(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    assert citeloom("add", QUAILS.doi, "--home", home, **services.settings()).code == 0
    again = citeloom("add", f"doi:{QUAILS.doi.upper()}", "--home", home, "--json", **services.settings())
    assert (again.code, again.json["papers"][0]["outcome"]) == (0, "duplicate")
    preprint = replace(QUAILS, doi="10.5555/preprint", kind="posted-content", journal="", year=2020)
    services.works[preprint.doi] = preprint
    other = citeloom("add", preprint.doi, "--home", home, "--json", **services.settings())
    assert (other.code, other.json["papers"][0]["outcome"]) == (4, "similar")
    assert "lovelace2021migration has the same title" in other.json["papers"][0]["why"]
    forced = citeloom("add", preprint.doi, "--anyway", "--home", home, "--json", **services.settings())
    assert forced.json["papers"][0]["key"] == "lovelace2020migration"


def test_a_key_in_use_gets_a_letter_appended(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    other = replace(QUAILS, doi="10.5555/second", title="The Migration of Storks", abstract="Storks fly by day.")
    services.works[other.doi] = other
    done = citeloom("add", QUAILS.doi, other.doi, "--no-download", "--home", home, "--json", **services.settings())
    assert [paper["key"] for paper in done.json["papers"]] == ["lovelace2021migration", "lovelace2021migrationa"]


def test_the_users_bib_is_changed_only_when_it_is_named(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    mine = Path("mine.bib")
    written = "@comment{mine}\n@article{old,\n  title = {An old paper},\n}"
    mine.write_text(written, encoding="utf-8")
    citeloom("add", QUAILS.doi, "--home", home, **services.settings())
    assert mine.read_text(encoding="utf-8") == written
    done = citeloom("add", ATTENTION.doi, "--bib", mine, "--home", home, "--json", **services.settings())
    assert done.json["papers"][0]["key"] == "hopper2021looms"
    assert mine.read_text(encoding="utf-8").startswith(written)
    assert set(read_bibliography(mine).papers) == {"old", "hopper2021looms"}


def test_an_entry_in_the_users_bib_provides_the_key(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    mine = Path("mine.bib")
    mine.write_text(f"@article{{quail:mine,\n  title = {{Quails}},\n  doi = {{{QUAILS.doi}}},\n}}\n", encoding="utf-8")
    before = mine.read_bytes()
    done = citeloom("add", QUAILS.doi, "--bib", mine, "--home", home, "--json", **services.settings())
    assert (done.json["papers"][0]["key"], mine.read_bytes()) == ("quail:mine", before)


def test_a_users_own_key_pattern_is_used(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    pattern = "auth.upper + '_' + shortyear + '_' + shorttitle(2,2)"
    done = citeloom("add", QUAILS.doi, "--home", home, "--json", **services.settings(), CITATION_KEY=pattern)
    assert done.json["papers"][0]["key"] == "LOVELACE_21_MigrationQuails"
    wrong = citeloom("add", QUAILS.doi, "--home", home, **services.settings(), CITATION_KEY="auth.shout")
    assert wrong.code == 2 and "there is no filter 'shout'" in wrong.err


@pytest.mark.parametrize("given", ["smith2020", "10.x/1", "https://example.org/paper", "arXiv:17"])
def test_an_invalid_identifier_is_reported_before_anything_is_sent(
    citeloom: Citeloom, home: Path, services: MetadataServer, given: str
) -> None:
    done = citeloom("add", QUAILS.doi, given, "--home", home, **services.settings())
    assert (done.code, services.requests) == (2, []) and "neither a DOI nor an arXiv id" in done.err


def test_an_unknown_doi_does_not_stop_the_others(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    done = citeloom("add", "10.5555/nothing", QUAILS.doi, "--home", home, "--json", **services.settings())
    assert done.code == 4
    assert [paper["outcome"] for paper in done.json["papers"]] == ["refused", "abstract"]
    assert "10.5555/nothing: no service knows it." in done.json["papers"][0]["why"]


BAD_FILES = {
    "a redirect to another host": (
        Fault(302, headers={"Location": "http://127.0.0.2/x.pdf"}),
        "redirects to 127.0.0.2",
    ),
    "a page instead of a PDF": (Fault(200, b"<html>Please log in</html>"), "is not a PDF"),
    "a refusal": (Fault(403), "sent no file"),
    "a length beyond the limit": (Fault(200, b"%PDF-1.4", {"Content-Length": "900000000000"}), "more than 100 MB"),
}


@pytest.mark.parametrize(("fault", "said"), BAD_FILES.values(), ids=BAD_FILES)
def test_the_abstract_is_indexed_if_the_file_cannot_be_downloaded(
    citeloom: Citeloom, home: Path, services: MetadataServer, fault: Fault, said: str
) -> None:
    services.files["quails.pdf"] = fault
    done = citeloom("add", QUAILS.doi, "--download", "--home", home, "--json", **services.settings())
    paper = done.json["papers"][0]
    assert (paper["outcome"], (home / "added" / "lovelace2021migration.pdf").exists()) == ("abstract", False)
    assert said in paper["why"]


def test_an_unreadable_pdf_is_discarded_and_the_abstract_kept(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    services.files["quails.pdf"] = b"%PDF-1.4 and nothing of the kind"
    added = home / "added"
    for options in ((), ("--download",)):
        citeloom("add", QUAILS.doi, *options, "--home", home, **services.settings())
        assert sorted(file.name for file in added.iterdir()) == ["library.bib", "lovelace2021migration.md"]
    assert citeloom("papers", "remove", "lovelace2021migration", "--home", home).code == 0
    assert [file.name for file in added.iterdir()] == ["library.bib"]


def test_links_into_the_users_network_are_not_followed(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    services.works[QUAILS.doi] = replace(QUAILS, pdf="https://192.168.1.1/admin.pdf")
    done = citeloom("add", QUAILS.doi, "--download", "--home", home, "--json", **services.settings())
    assert "is not a public https address" in done.json["papers"][0]["why"]


@pytest.mark.parametrize(("answer", "outcome"), [("y", "added with its PDF"), ("n", "only its abstract is indexed")])
def test_on_a_terminal_the_user_is_asked_before_a_download(
    home: Path, services: MetadataServer, tmp_path: Path, answer: str, outcome: str
) -> None:
    child = pexpect.spawn(
        sys.executable,
        [str(CLI), "add", QUAILS.doi, "--home", str(home)],
        cwd=str(tmp_path),
        env=environment(services.settings()),
        dimensions=(24, 160),
        encoding="utf-8",
        timeout=300,
    )
    try:
        child.expect_exact(f"Download {services.url}/files/quails.pdf (OpenAlex)?")
        assert not services.asked("files")
        child.sendline(answer)
        child.expect_exact(outcome)
        child.expect_exact(pexpect.EOF)
    finally:
        child.close(force=True)
    assert len(services.asked("files")) == (answer == "y")


def test_a_missing_home_is_created(citeloom: Citeloom, tmp_path: Path, services: MetadataServer) -> None:
    done = citeloom("add", QUAILS.doi, "--home", tmp_path / "new", **services.settings())
    assert done.code == 0 and "lovelace2021migration" in done.out

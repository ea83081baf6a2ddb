"""`papers enrich` over a local server that answers as the services document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.metadata_server import Fault, MetadataServer, ServedWork

SEEDS = ServedWork(
    "10.5555/seeds.2019",
    "How many seeds? Run-to-run variance of small sensor classifiers",
    (("Niamh", "O'Brien"), ("Ramón", "Díaz"), ("Zofia", "Kowalska")),
    2019,
    "Citeloom Sample Journal",
    volume="12",
    issue="3",
    pages="45-61",
    abstract="We train small networks with many seeds.",
    citations=41,
    pdf="https://repository.example/seeds.pdf",
)


@pytest.fixture
def services() -> Iterator[MetadataServer]:
    with MetadataServer(SEEDS) as running:
        running.found["seeds"] = [SEEDS]
        yield running


def test_a_doi_is_found_and_missing_fields_are_filled_in(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    done = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, "--json", **services.settings())
    paper = done.json["papers"][0]
    assert (done.code, paper["outcome"], paper["doi"]) == (0, "found", SEEDS.doi)
    assert paper["similarity"] >= 0.9
    filled = {name: (item["value"], item["service"]) for name, item in paper["filled"].items()}
    assert filled["volume"] == ("12", "Crossref")
    assert filled["citations"] == (48, "OpenAlex")
    assert filled["open_access"] == (SEEDS.pdf, "OpenAlex")
    assert not {"title", "authors", "year", "venue", "abstract"} & filled.keys()  # the paper has them
    assert paper["differences"] == []
    shown = citeloom("papers", "show", "obrien2019seeds", "--home", home).out
    assert f"doi: {SEEDS.doi} (found by title)" in shown and "volume: 12 (Crossref)" in shown
    assert "https://127" not in done.err and "Asking Crossref (127.0.0.1:" in done.err


def test_a_second_enrich_uses_only_the_cache(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    arguments = ("papers", "enrich", "obrien2019seeds", "--home", home, "--json")
    first = citeloom(*arguments, **services.settings()).json
    asked = len(services.requests)
    assert citeloom(*arguments, **services.settings()).json["papers"][0]["filled"] == first["papers"][0]["filled"]
    assert len(services.requests) == asked
    offline = citeloom(*arguments, "--offline", **services.settings(), METADATA_DAYS="0").json
    assert (offline["requests"], offline["papers"][0]["doi"]) == (0, SEEDS.doi)
    assert len(services.requests) == asked
    assert citeloom(*arguments, "--refresh", **services.settings()).json["requests"] > 0


def test_offline_without_a_cache_sends_nothing_and_says_so(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    done = citeloom("papers", "enrich", "--offline", "--home", home, "--json", **services.settings())
    assert done.code == 4 and not services.requests
    assert {paper["outcome"] for paper in done.json["papers"]} == {"failed"}
    assert "--offline" in done.json["papers"][0]["failures"][0]


NEAR_MISSES = {
    "of another year": replace(SEEDS, doi="10.5555/other", year=2011),
    "by others": replace(SEEDS, doi="10.5555/other", authors=(("Ada", "Lovelace"), ("Charles", "Babbage"))),
    "a preprint": replace(SEEDS, doi="10.5555/other", kind="posted-content", journal=""),
    "of nearly the same title": replace(SEEDS, doi="10.5555/other", title=SEEDS.title.replace("small", "image")),
}


@pytest.mark.parametrize("near", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_an_uncertain_match_changes_nothing(citeloom: Citeloom, home: Path, near: ServedWork) -> None:
    with MetadataServer(near) as services:
        services.found["seeds"] = [near]
        done = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, "--json", **services.settings())
        paper = done.json["papers"][0]
        assert (done.code, paper["outcome"], paper["doi"], paper["filled"]) == (0, "unsure", "", {})
        assert paper["candidates"][0]["doi"] == near.doi and paper["why"]
        shown = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, **services.settings()).out
        assert "unsure, so nothing was changed" in shown and near.doi in shown
    assert citeloom("papers", "show", "obrien2019seeds", "--home", home, "--json").json["metadata"]["doi"] == ""


def test_an_erratum_is_not_mistaken_for_its_paper(citeloom: Citeloom, home: Path) -> None:
    erratum = replace(SEEDS, doi="10.5555/erratum", title=f"Correction to: {SEEDS.title}")
    with MetadataServer(erratum) as services:
        services.found["seeds"] = [erratum]
        done = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, "--json", **services.settings())
    assert (done.json["papers"][0]["outcome"], done.json["papers"][0]["doi"]) == ("not-found", "")


def test_differences_are_shown_and_the_bib_entry_is_kept(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    before = citeloom("papers", "show", "obrien2019seeds", "--home", home, "--json").json
    services.works[SEEDS.doi] = replace(SEEDS, year=2020, journal="Another Journal")
    paper = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, "--json", **services.settings()).json[
        "papers"
    ][0]
    differing = {(item["field"], item["service"]): (item["own"], item["said"]) for item in paper["differences"]}
    assert differing["year", "Crossref"] == (2019, 2020)
    assert differing["venue", "Crossref"] == ("Citeloom Sample Journal", "Another Journal")
    after = citeloom("papers", "show", "obrien2019seeds", "--home", home, "--json").json
    assert {name: after[name] for name in before if name != "metadata"} == {
        name: before[name] for name in before if name != "metadata"
    }


def test_enriching_keeps_the_library_version(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    def version() -> str:
        return citeloom("doctor", "--home", home, "--json").json["library"]["version"]

    before = version()
    citeloom("papers", "enrich", "--home", home, **services.settings())
    assert version() == before


def test_one_failing_service_does_not_affect_the_others(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    services.faults["openalex"] = [Fault(403, b'{"error": "forbidden", "message": "no key"}')]
    done = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, "--json", **services.settings())
    paper = done.json["papers"][0]
    assert (done.code, paper["outcome"]) == (4, "found")
    assert paper["filled"]["citations"]["service"] == "Semantic Scholar"
    assert len(paper["failures"]) == 1 and paper["failures"][0].startswith("OpenAlex (127.0.0.1:")
    again = citeloom("papers", "enrich", "obrien2019seeds", "--home", home, "--json", **services.settings())
    assert (again.code, again.json["requests"]) == (0, 1)


def test_the_mail_address_is_sent_to_polite_pools_and_kept_out_of_the_cache(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    settings = {**services.settings(), "METADATA_MAILTO": "ada@example.org", "OPENALEX_API_KEY": "secret-key"}
    citeloom("papers", "enrich", "obrien2019seeds", "--home", home, **settings)
    assert all("mailto=ada%40example.org" in path for path in services.asked("crossref"))
    assert all("api_key=secret-key" in path for path in services.asked("openalex"))
    assert not any("mailto" in path or "secret" in path for path in services.asked("s2"))
    stored = (home / "metadata.sqlite").read_bytes() + b"".join(
        path.read_bytes() for path in home.glob("metadata.sqlite-*")
    )
    assert b"ada@example.org" not in stored and b"ada%40" not in stored and b"secret-key" not in stored


def test_a_folder_cannot_have_the_mail_address_sent_to_its_own_server(
    citeloom: Citeloom, home: Path, services: MetadataServer
) -> None:
    Path("citeloom.toml").write_text(f'crossref_base_url = "{services.url}/crossref"\n', encoding="utf-8")
    citeloom(
        "papers",
        "enrich",
        "obrien2019seeds",
        "--home",
        home,
        METADATA_MAILTO="ada@example.org",
        METADATA_SERVICES='["crossref"]',
    )
    assert services.asked("crossref") and not any("mailto" in path for path in services.requests)
    assert not any("ada@" in value for headers in services.headers for value in headers.values())


def test_an_unknown_key_queries_no_service(citeloom: Citeloom, home: Path, services: MetadataServer) -> None:
    done = citeloom("papers", "enrich", "nobody2000", "--home", home, **services.settings())
    assert (done.code, services.requests) == (2, []) and "nobody2000" in done.err


def test_references_are_completed_and_the_users_own_fields_are_kept(
    citeloom: Citeloom, home: Path, exp: Path, services: MetadataServer
) -> None:
    citeloom("papers", "enrich", "obrien2019seeds", "--home", home, **services.settings())
    done = citeloom("discussion", "--exp", exp, "--home", home, "--out", "out", "--json")
    reference = next(item for item in done.json["references"] if item["key"] == "obrien2019seeds")
    assert reference["doi"] == SEEDS.doi and "12 (3)" in reference["text"]
    entry = Path("out/discussion.bib").read_text(encoding="utf-8")
    assert "title   = {How Many Seeds? {R}un-to-Run" in entry and "volume = {12}" in entry


@pytest.mark.parametrize(
    "address", ["ftp://127.0.0.1/", "http://ada:secret@127.0.0.1/", "http://127.0.0.1/?key=secret"]
)
def test_an_invalid_address_or_one_with_a_secret_is_refused(citeloom: Citeloom, home: Path, address: str) -> None:
    done = citeloom("papers", "enrich", "--home", home, CROSSREF_BASE_URL=address)
    assert (done.code, done.out) == (2, "") and "CITELOOM_CROSSREF_BASE_URL" in done.err and "secret" not in done.err


def test_unreachable_services_are_reported_once(citeloom: Citeloom, home: Path) -> None:
    with MetadataServer() as stopped:
        pass
    done = citeloom("papers", "enrich", "--home", home, **stopped.settings())
    assert done.code == 4 and done.out.count("not looked up, since no service answered.") == 3
    assert done.err.count("Failed: Crossref (127.0.0.1:") == 1 and "cannot be reached" in done.err

"""The calls from Python: with and without `with`, in either order, and one clear error for what cannot be used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import citeloom
from citeloom import CiteloomError, Conversation, aopen_library, open_library
from citeloom.api.homes import OpenOptions
from citeloom.graph.session import Session
from tests.support.sample_library import EXPERIMENT, index_samples

ROOT = Path(__file__).resolve().parents[3]
QUESTION = "How well are scores calibrated?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from citeloom.models.embeddings.bundled_models import LocalEmbedding

    return index_samples(tmp_path_factory.mktemp("api") / "home", LocalEmbedding()).root


@pytest.fixture
def library(home: Path) -> Any:
    with open_library(home) as opened:
        yield opened


def test_a_library_can_be_opened_without_a_with_statement_and_closed_by_hand(home: Path) -> None:
    library = open_library(home)
    assert citeloom.search(library, "calibration", k=1)
    library.close()
    library.close()
    with pytest.raises(CiteloomError, match="the library is closed"):
        citeloom.search(library, "calibration")


async def test_a_library_can_be_awaited_or_opened_with_async_with(home: Path) -> None:
    library = await aopen_library(home)
    async with library:
        assert await citeloom.asearch(library, "calibration", k=1)
    async with aopen_library(home) as again:
        assert not again.closed
    assert library.closed and again.closed


def test_a_program_that_never_closes_its_library_ends_silently(home: Path) -> None:
    program = f"import citeloom; lib = citeloom.open_library({str(home)!r}); print(len(citeloom.search(lib, 'scores')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "") and int(done.stdout) > 0


def calls() -> dict[str, Callable[[Session], Any]]:
    return {
        "ingest": lambda lib: citeloom.ingest(lib, []),
        "search": lambda lib: citeloom.search(lib, "scores"),
        "contradictions": lambda lib: citeloom.contradictions(lib, "scores"),
        "agree": lambda lib: citeloom.agree(lib, "scores are calibrated"),
        "research": lambda lib: citeloom.research(lib, QUESTION),
        "section": lambda lib: citeloom.write_section(lib, "results", EXPERIMENT),
        "paper": lambda lib: citeloom.write_paper(lib, EXPERIMENT),
        "conversation": lambda lib: Conversation(lib),
        "stream": lambda lib: citeloom.astream_research(lib, QUESTION),
    }


@pytest.mark.parametrize("call", calls())
def test_every_call_rejects_a_closed_library_and_a_path(home: Path, call: str) -> None:
    with open_library(home) as library:
        pass
    with pytest.raises(CiteloomError, match="the library is closed"):
        calls()[call](library)
    with pytest.raises(CiteloomError, match="expected an open library, got str"):
        calls()[call](str(home))  # type: ignore[arg-type]


def test_an_empty_library_can_be_searched_and_used_to_check_a_text(tmp_path: Path) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text("# Introduction\n\nDeep networks are overconfident in most applications.\n", encoding="utf-8")
    with open_library(tmp_path / "home") as library:
        assert citeloom.search(library, "overconfident networks") == []
        (sentence,) = citeloom.check_text(library, draft)["sentences"]
        (claim,) = citeloom.check_claims(library, [sentence["claim"]])["claims"]
    assert sentence["claim"].startswith("Deep networks") and claim["sources"] == claim["elsewhere"] == []


def test_a_conversation_over_a_closed_library_says_so(home: Path) -> None:
    with open_library(home) as library:
        talk = Conversation(library)
    with pytest.raises(CiteloomError, match="the library is closed"):
        talk.ask(QUESTION)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda lib: citeloom.write_section(lib, "discusion", EXPERIMENT), "introduction, methods.*'discussion'"),
        (lambda lib: citeloom.write_section(lib, 3, EXPERIMENT), "no section 3"),
        (
            lambda lib: citeloom.write_section(lib, "results", EXPERIMENT, formats="rtf"),
            "format 'rtf'.*tex, docx, odt, html, pdf, zip",
        ),
        (lambda lib: citeloom.write_section(lib, "results", EXPERIMENT, formats=["docx", "dcx"]), "Did you mean"),
        (
            lambda lib: citeloom.write_section(lib, "results", EXPERIMENT, formats="docx"),
            "formats: .* only if out is given",
        ),
        (lambda lib: citeloom.write_paper(lib, EXPERIMENT, formats=["md"]), "formats: .* only if out is given"),
        (lambda lib: citeloom.research(lib, QUESTION, formats=("html",)), "formats: .* only if out is given"),
        (lambda lib: citeloom.write_section(lib, "results", None), "experiment: expected"),
        (lambda lib: citeloom.research(lib, QUESTION, papers="varga2021"), "varga2021calibration"),
        (lambda lib: citeloom.search(lib, "scores", papers=["varga2021"]), "varga2021calibration"),
        (lambda lib: citeloom.search(lib, "scores", categories="methodz"), "The categories are .*method"),
        (lambda lib: citeloom.search(lib, "scores", mode="sparse"), "hybrid, dense, bm25"),
        (lambda lib: citeloom.search(lib, "scores", k=0), "k: expected"),
        (lambda lib: citeloom.search(lib, "scores", years=2020), "years: expected"),
        (lambda lib: citeloom.search(lib, "scores", years=(2020, 2010)), "2020"),
    ],
)
def test_a_wrong_argument_gets_one_error_that_names_the_choices(library: Session, call: Any, said: str) -> None:
    with pytest.raises(CiteloomError, match=said) as raised:
        call(library)
    assert "\n" not in str(raised.value) and raised.value.exit_code == 2


def test_a_single_string_is_accepted_in_place_of_a_list(library: Session, tmp_path: Path) -> None:
    key = "varga2021calibration"
    by_string = citeloom.search(library, "scores", papers=key, categories="results")
    assert by_string == citeloom.search(library, "scores", papers=[key], categories=["results"]) != []
    record = citeloom.research(library, QUESTION, papers=key, out=tmp_path, formats="html")
    assert {citation["key"] for citation in record["citations"]} == {key} and "html" in record["files"]
    paper = tmp_path / "one2024.md"
    paper.write_text("# One\n\nAbstract. Something was measured in one clinic.\n", "utf-8")
    with open_library(tmp_path / "home") as empty:
        assert citeloom.ingest(empty, str(paper))["papers_added"] == 1
        assert citeloom.ingest(empty, paper)["papers_unchanged"] == 1


def test_a_misspelt_option_is_an_error(library: Session) -> None:
    with pytest.raises(TypeError, match="min_yaer"):
        citeloom.research(library, QUESTION, min_yaer=2000)  # type: ignore[call-arg]


def test_the_typed_options_match_the_options_of_the_call() -> None:
    parameters = inspect.signature(citeloom.open_library).parameters.values()
    named = {item.name for item in parameters if item.kind is item.KEYWORD_ONLY}
    assert named == OpenOptions.__required_keys__ | OpenOptions.__optional_keys__

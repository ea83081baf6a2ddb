"""Bad input, one row each: exit code 2, one line that names the file or field and the remedy, nothing changed."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.folder_state import contents
from tests.support.openai_server import FakeOpenAI


@dataclass
class Place:
    """Where a row is run: its folder, a home with papers, an experiment, and a strict server."""

    folder: Path
    home: Path
    exp: Path
    server: FakeOpenAI
    settings: dict[str, str] = field(default_factory=dict)

    def experiment(self, **changes: object) -> Path:
        """An experiment like the sample with some fields changed; `None` removes one."""
        data = json.loads(self.exp.read_text(encoding="utf-8"))
        for name, value in changes.items():
            *path, last = name.split("__")
            part = data
            for step in path:
                part = part[step]
            part[last] = value
        self.exp.write_text(json.dumps(data), encoding="utf-8")
        return self.exp

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def endpoint(self, **settings: str) -> None:
        """Settings for the strict server, which a row may break."""
        self.settings = {
            "CHAT_MODEL": "known",
            "CHAT_BASE_URL": self.server.base_url,
            "CHAT_API_KEY": "right-key-7f3a",
            "MAX_RETRIES": "0",
            **settings,
        }


Command = tuple[str | Path, ...]


@pytest.fixture
def choosy() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(api_key="right-key-7f3a", model="known") as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, home: Path, exp: Path, choosy: FakeOpenAI) -> Place:
    return Place(tmp_path, home, exp, choosy)


def missing_file(place: Place) -> Command:
    return "discussion", "--exp", "nowhere.json"


def a_folder(place: Place) -> Command:
    return "discussion", "--exp", place.folder


def not_json(place: Place) -> Command:
    return "discussion", "--exp", place.file("broken.json", '{"verdict": "supported"')


def not_text(place: Place) -> Command:
    (place.folder / "exp.json").write_bytes(b"\xff\xfe\x00{")
    return "discussion", "--exp", place.exp


def a_list(place: Place) -> Command:
    return "discussion", "--exp", place.file("list.json", "[]")


def wrong_type(place: Place) -> Command:
    return "discussion", "--exp", place.experiment(paper_concept__open_questions=["why?", 7])


def wrong_type_inside_a_plot(place: Place) -> Command:
    return "results", "--exp", place.experiment(plots=[{"path": "a.png", "caption": 3}])


def missing_field(place: Place) -> Command:
    return "discussion", "--exp", place.experiment(reasoning=" ", results="", summary="")


def missing_field_of_one_of_six(place: Place) -> Command:
    return "paper", "--exp", place.experiment(experimental_plan="", hypothesis={"description": "It helps."})


def no_library(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--home", place.folder / "new"


def empty_library(place: Place) -> Command:
    from citeloom.models.embeddings.bundled_models import LocalEmbedding
    from citeloom.stores.folder_home import FolderHome
    from citeloom.stores.library import Library

    Library.open(FolderHome(place.folder / "empty"), LocalEmbedding()).close()
    return "discussion", "--exp", place.exp, "--home", place.folder / "empty"


def wrong_key(place: Place) -> Command:
    place.endpoint(CHAT_API_KEY="wrong-key-9c1d")
    return "discussion", "--exp", place.exp


def unknown_model(place: Place) -> Command:
    place.endpoint(CHAT_MODEL="unheard-of")
    return "discussion", "--exp", place.exp


def refused_connection(place: Place) -> Command:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    place.endpoint(CHAT_BASE_URL=f"http://127.0.0.1:{port}/v1")
    return "discussion", "--exp", place.exp


def no_address(place: Place) -> Command:
    place.endpoint(CHAT_BASE_URL="localhost:1234")
    return "discussion", "--exp", place.exp


def home_below_a_file(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--home", place.file("in-the-way", "") / "home"


def home_is_a_file(place: Place) -> Command:
    return "ingest", place.file("paper.md", "# T\n\nWords."), "--home", place.file("in-the-way", "")


def out_below_a_file(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--out", place.file("in-the-way", "") / "out"


def another_embedding(place: Place) -> Command:
    place.settings = {"EMBEDDING_MODEL": "other-embedding", "EMBEDDING_BASE_URL": place.server.base_url}
    return "discussion", "--exp", place.exp


def another_embedding_at_ingest(place: Place) -> Command:
    place.settings = {"EMBEDDING_MODEL": "other-embedding", "EMBEDDING_BASE_URL": place.server.base_url}
    return "ingest", place.file("paper.md", "# T\n\n## Abstract\n\nWords about looms.")


def unknown_option(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--colour"


def unknown_command(place: Place) -> Command:
    return ("acknowledgements",)


def unknown_style(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--cite-style", "harvard"


def two_formats(place: Place) -> Command:
    return "discussion", place.exp, "--format", "tex", "docx"


def two_formats_before_the_file(place: Place) -> Command:
    return "discussion", "--format", "tex", "docx", place.exp


def two_formats_and_a_named_file(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--format", "tex", "docx"


def table_files_nowhere(place: Place) -> Command:
    return "table", "trials of looms", "--format", "csv"


def two_papers(place: Place) -> Command:
    return "research", "Why?", "--papers", "lind2023ensembles", "varga2021calibration"


def an_empty_path(place: Place) -> Command:
    return "ingest", ""


def an_empty_home(place: Place) -> Command:
    return "papers", "list", "--home", ""


def a_copy_to_an_empty_home(place: Place) -> Command:
    return "library", "copy", "--to", ""


def no_result_to_verify(place: Place) -> Command:
    return "verify", "nowhere.json"


def unknown_mode(place: Place) -> Command:
    return "search", "looms", "--mode", "sparse"


def too_few_words(place: Place) -> Command:
    return "results", place.exp, "--words", "5"


def no_cost(place: Place) -> Command:
    return "research", "Why?", "--max-cost", "0"


def no_cost_to_resume(place: Place) -> Command:
    return "runs", "resume", "discussion-0000", "--max-cost", "0"


def no_model(place: Place) -> Command:
    return "chat", "--model", ""


def no_database(place: Place) -> Command:
    return "doctor", "--home", "mysql://ada:right-key-7f3a@host/db"


def bad_environment(place: Place) -> Command:
    place.settings = {"TOP_K_INITIAL": "many"}
    return "discussion", "--exp", place.exp


def out_of_bounds(place: Place) -> Command:
    return "discussion", "--exp", place.exp, "--max-searches", "999"


def bad_toml_value(place: Place) -> Command:
    place.file("citeloom.toml", "temperature = 9\n")
    return "discussion", "--exp", place.exp


def toml_that_is_none(place: Place) -> Command:
    place.file("citeloom.toml", "temperature = = 1\n")
    return "discussion", "--exp", place.exp


def a_key_of_a_wrong_type(place: Place) -> Command:
    place.file("citeloom.toml", "chat_api_key = 424242\n")
    return "discussion", "--exp", place.exp


def prompts_that_are_not_there(place: Place) -> Command:
    place.settings = {"PROMPTS_DIR": str(place.folder / "prompts")}
    return "discussion", "--exp", place.exp


def a_prompt_without_its_variable(place: Place) -> Command:
    (place.folder / "prompts").mkdir()
    place.file("prompts/reader_task.md", "---\nvariables: [query]\n---\nRead {{query}}.\n")
    place.settings = {"PROMPTS_DIR": str(place.folder / "prompts")}
    return "discussion", "--exp", place.exp


def nothing_to_ingest(place: Place) -> Command:
    return "ingest", place.folder / "nowhere"


def no_bib(place: Place) -> Command:
    return "ingest", place.file("paper.md", "# T\n\nWords."), "--bib", "nowhere.bib"


def nothing_to_ingest_into_a_new_home(place: Place) -> Command:
    return "ingest", place.folder / "nowhere", "--home", place.folder / "new"


def no_papers_for_a_new_home(place: Place) -> Command:
    (place.folder / "empty").mkdir()
    return "ingest", place.folder / "empty", "--home", place.folder / "new"


def no_bib_for_a_new_home(place: Place) -> Command:
    paper = place.file("paper.md", "# T\n\nWords.")
    return "ingest", paper, "--bib", "nowhere.bib", "--home", place.folder / "new"


def an_unreadable_bib_for_a_new_home(place: Place) -> Command:
    (place.folder / "own.bib").write_bytes(b"\xff\x00\xfe")
    paper = place.file("paper.md", "# T\n\nWords.")
    return "ingest", paper, "--bib", "own.bib", "--home", place.folder / "new"


def unknown_paper(place: Place) -> Command:
    return "papers", "show", "varga2021"


def unknown_paper_to_remove(place: Place) -> Command:
    return "papers", "remove", "varga2021calibration", "nobody1999"


def unknown_run(place: Place) -> Command:
    return "runs", "resume", "discussion-0000"


def unknown_run_to_delete(place: Place) -> Command:
    return "runs", "delete", "discussion-0000"


ROWS: list[tuple[Callable[[Place], Command], tuple[str, ...]]] = [
    (missing_file, ("nowhere.json", "no such file", "experiment")),
    (a_folder, ("folder", "JSON file")),
    (not_json, ("broken.json", "JSON", "line 1")),
    (not_text, ("exp.json", "UTF-8")),
    (a_list, ("list.json", "object")),
    (wrong_type, ("exp.json", "paper_concept.open_questions[1]", "text")),
    (wrong_type_inside_a_plot, ("exp.json", "plots[0].caption")),
    (missing_field, ("exp.json", "reasoning, results or summary", "discussion")),
    (missing_field_of_one_of_six, ("exp.json", "experimental_plan", "methods")),
    (no_library, ("new", "no library", "ingest")),
    (empty_library, ("empty", "ingest")),
    (wrong_key, ("key", "CITELOOM_CHAT_API_KEY")),
    (unknown_model, ("unheard-of", "CITELOOM_CHAT_MODEL")),
    (refused_connection, ("127.0.0.1", "reached", "CITELOOM_CHAT_BASE_URL")),
    (no_address, ("CITELOOM_CHAT_BASE_URL", "localhost:1234")),
    (home_below_a_file, ("in-the-way", "--home")),
    (home_is_a_file, ("in-the-way", "--home")),
    (out_below_a_file, ("in-the-way", "--out")),
    (another_embedding, ("local:", "other-embedding", "CITELOOM_EMBEDDING_MODEL")),
    (another_embedding_at_ingest, ("local:", "other-embedding", "CITELOOM_EMBEDDING_MODEL")),
    (unknown_option, ("--colour", "--help")),
    (unknown_command, ("acknowledgements", "--help")),
    (unknown_style, ("--cite-style", "harvard", "numeric", "discussion --help")),
    (two_formats, ("docx", "Separate several values of --format by commas")),
    (two_formats_before_the_file, ("exp.json", "Separate several values of --format by commas")),
    (two_formats_and_a_named_file, ("docx", "Separate several values of --format by commas")),
    (table_files_nowhere, ("--format needs a folder", "--out")),
    (two_papers, ("varga2021calibration", "Separate several values of --papers by commas")),
    (an_empty_path, ("An empty path",)),
    (an_empty_home, ("--home is empty",)),
    (a_copy_to_an_empty_home, ("home is empty",)),
    (no_result_to_verify, ("nowhere.json: no such file",)),
    (unknown_mode, ("--mode:", "sparse", "bm25", "search --help")),
    (too_few_words, ("--words:", "80", "is 5")),
    (no_cost, ("--max-cost:", "greater than 0")),
    (no_cost_to_resume, ("--max-cost:", "greater than 0")),
    (no_model, ("--model:", "at least 1 character")),
    (no_database, ("--home:", "postgresql://")),
    (bad_environment, ("CITELOOM_TOP_K_INITIAL", "many")),
    (out_of_bounds, ("--max-searches", "50", "999")),
    (bad_toml_value, ("temperature", "9")),
    (toml_that_is_none, ("citeloom.toml",)),
    (a_key_of_a_wrong_type, ("chat_api_key",)),
    (prompts_that_are_not_there, ("prompts", "folder")),
    (a_prompt_without_its_variable, ("reader_task.md", "passage")),
    (nothing_to_ingest, ("nowhere",)),
    (no_bib, ("nowhere.bib",)),
    (nothing_to_ingest_into_a_new_home, ("nowhere",)),
    (no_papers_for_a_new_home, ("empty", ".md")),
    (no_bib_for_a_new_home, ("nowhere.bib", "--bib")),
    (an_unreadable_bib_for_a_new_home, ("own.bib",)),
    (unknown_paper, ("varga2021", "varga2021calibration")),
    (unknown_paper_to_remove, ("nobody1999",)),
    (unknown_run, ("discussion-0000", "runs list")),
    (unknown_run_to_delete, ("discussion-0000", "runs list")),
]


@pytest.mark.parametrize(("row", "named"), ROWS, ids=[row.__name__ for row, _ in ROWS])
def test_bad_input_is_reported_in_one_line_and_changes_nothing(
    row: Callable[[Place], Command], named: tuple[str, ...], place: Place, citeloom: Citeloom
) -> None:
    command = row(place)
    if "--home" not in command:
        command = ("--home", place.home, *command)
    before = contents(place.folder)
    done = citeloom(*command, **place.settings)
    assert done.code == 2, done.err
    assert len(done.errors) == 1 and done.out == "", done.err
    (error,) = done.errors
    assert [word for word in named if word not in error] == [], error
    assert done.err.endswith(f"{error}\n"), "the error is the last that is said"
    assert "Traceback" not in done.err
    for secret in ("right-key-7f3a", "wrong-key-9c1d", "424242"):
        assert secret not in done.err
    assert contents(place.folder) == before
    assert not (place.folder / "new").exists()


def test_no_home_is_created_if_every_file_is_refused(place: Place, citeloom: Citeloom) -> None:
    scan, home = place.file("scan.pdf", "not a PDF"), place.folder / "new"
    done = citeloom("ingest", scan, "--home", home, "--json")
    assert done.code == 4 and f"Refused: {scan}: " in done.err
    assert done.json["papers_added"] == 0 and [item["path"] for item in done.json["refused"]] == [str(scan)]
    assert not home.exists()
    paper = place.file("paper.md", "# T\n\nWords about looms.")
    assert citeloom("ingest", scan, paper, "--home", home, "--json").json["papers_added"] == 1


def test_the_command_works_once_the_input_is_corrected(place: Place, citeloom: Citeloom) -> None:
    place.endpoint(CHAT_API_KEY="wrong-key-9c1d")
    command = ("discussion", "--exp", place.exp, "--home", place.home, "--out", place.folder / "out", "--json")
    assert citeloom(*command, **place.settings).code == 2
    assert not (place.folder / "out").exists()
    assert citeloom("runs", "list", "--json", "--home", place.home).json == []
    place.endpoint(TOP_K_INITIAL="3")
    done = citeloom(*command, **place.settings)
    assert done.code == 0, done.err
    assert done.json["usage"]["llm_calls"] > 0

"""table and tables: from the library to the printed table, the JSON and the files, with a model on a real socket."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import finish, start
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import envelope

SENTENCE = re.compile(r"^(\d+): (.*?(?<![\w.])(\d{2,4})(?![\w.%]).*)$", re.MULTILINE)
CARD = re.compile(r"^(\d+)\. ", re.MULTILINE)
ASKED = ("table", "studies that calibrate", "--columns", "count:number,seeds:yes/no")


def tabulating(body: Any) -> Any:
    """A reader that fills the first column of a paper with the first number that it is shown."""
    form = body["response_format"]["json_schema"]["name"]
    text = str(body["messages"][-1]["content"])
    if form == "Screening":
        numbers = [int(number) for number in CARD.findall(text)]
        said: dict[str, Any] = {
            "screened": [{"need": "N1", "papers": numbers[1:]}],
            "near": [{"paper": numbers[0], "why": "it is a review"}],
        }
    elif form == "ColumnPlan":
        said = {"columns": [{"name": "count", "asks": "how many", "kind": "number", "queries": ["the number of"]}]}
    else:
        number, _, value = SENTENCE.findall(text)[0]
        cell = {"column": "count", "value": value, "sentences": [int(number)]}
        cells = [cell] if "count (" in text else []
        said = {"belongs": True, "reason": "it calibrates", "studies": [{"study": "", "cells": cells}]}
    return envelope(body, content=json.dumps(said))


@pytest.fixture
def chat(server: FakeOpenAI) -> dict[str, str]:
    server.behaviour = tabulating
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url}


def test_every_cell_is_a_slice_of_its_paper_and_every_paper_is_accounted_for(
    citeloom: Citeloom, home: Path, chat: dict[str, str]
) -> None:
    record = citeloom(*ASKED, "--json", "--home", home, **chat).json
    assert (record["papers"], record["screened"], record["included"], len(record["left_out"])) == (3, 3, 2, 1)
    assert record["left_out"][0]["reason"] == "it is a review"
    library = Library.open(FolderHome(home), LocalEmbedding())
    try:
        for row in record["rows"]:
            cell = row["cells"]["count"]
            (chunk,) = library.chunks([cell["chunk_id"]])
            assert (chunk.key, cell["status"]) == (row["key"], "reported")
            assert cell["spans"][0]["quote"] == chunk.text[cell["start"] : cell["end"]]
            assert cell["value"] in cell["quote"]
            missing = row["cells"]["seeds"]
            assert missing["status"] == "not_reported" and missing["searched"]
    finally:
        library.close()


def test_repeating_the_command_makes_no_call_and_after_a_pause_nothing_is_paid_twice(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    paused = citeloom(*ASKED, "--max-calls", "3", "--home", home, **chat)
    assert paused.code == 3 and server.calls() == 3
    whole = citeloom(*ASKED, "--json", "--home", home, **chat)
    calls = server.calls()
    bodies = [json.dumps(body, sort_keys=True) for body in server.requests]
    assert whole.code == 0 and len(set(bodies)) == len(bodies) == calls > 3
    again = citeloom(*ASKED, "--json", "--home", home, **chat)
    assert again.code == 0 and server.calls() == calls
    assert again.json["rows"] == whole.json["rows"] != []


def test_the_users_own_study_is_a_row_with_words_from_its_file(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    record = citeloom(*ASKED, "--exp", exp, "--json", "--home", home, **chat).json
    (own,) = [row for row in record["rows"] if row["key"] == "this study"]
    cell = own["cells"]["count"]
    assert cell["status"] == "reported" and cell["value"] in cell["quote"]
    assert (record["papers"], record["screened"], record["included"]) == (3, 3, 2), "it is none of the library's papers"
    calls = server.calls()
    again = citeloom(*ASKED, "--json", "--home", home, **chat).json
    assert server.calls() == calls and own in again["rows"]
    exp.write_text(exp.read_text("utf-8").replace("pumps", "fans"), "utf-8")
    assert citeloom(*ASKED, "--exp", exp, "--json", "--home", home, **chat).code == 0


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")
@pytest.mark.parametrize("at", [1, 3, 4])
def test_a_table_killed_at_any_request_resumes_without_paying_twice(
    home: Path, tmp_path: Path, server: FakeOpenAI, chat: dict[str, str], at: int
) -> None:
    paid: list[str] = []
    running: list[subprocess.Popen[str]] = []

    def killing(body: Any) -> Any:
        if len(paid) == at - 1 and len(running) == 1:
            running[0].kill()
        else:
            paid.append(json.dumps(body, sort_keys=True))
        return tabulating(body)

    server.behaviour = killing
    command = (*ASKED, "--json", "--home", str(home))
    settings = {**chat, "MAX_CONCURRENCY": "1"}
    running.append(start(*command, cwd=tmp_path, settings=settings))
    assert finish(running[0]).code == -signal.SIGKILL
    running.append(start(*command, cwd=tmp_path, settings=settings))
    done = finish(running[1])
    assert done.code == 0 and len(done.json["rows"]) == 2
    # Columns, cards, at least one reading of each of two papers; what arrived as it was killed may be asked again.
    assert len(set(paid)) >= 4 and len(paid) - len(set(paid)) <= 1


def test_a_persons_edits_stay_and_are_marked_in_all_files(
    citeloom: Citeloom, home: Path, tmp_path: Path, server: FakeOpenAI, chat: dict[str, str]
) -> None:
    made = citeloom(*ASKED, "--json", "--home", home, **chat).json
    key = made["rows"][0]["key"]
    assert citeloom("tables", "edit", made["table_id"], key, "count", "=2+2", "--home", home).code == 0
    formats = [part for name in ("csv", "xlsx", "html", "docx", "tex") for part in ("--format", name)]
    done = citeloom("tables", "show", made["table_id"], "--out", tmp_path / "out", *formats, "--home", home)
    assert done.code == 0 and "edited" in done.out
    files = {path.suffix[1:]: path for path in (tmp_path / "out").iterdir()}
    assert set(files) == {"md", "csv", "xlsx", "html", "docx", "tex", "json"}
    for name in ("md", "html", "tex"):
        assert "2+2" in files[name].read_text("utf-8"), name
    rows = list(csv.reader(io.StringIO(files["csv"].read_text("utf-8-sig"))))
    assert rows[1][2].startswith("'=2+2"), "a spreadsheet must not compute it"
    assert "=2+2" in zipfile.ZipFile(files["docx"]).read("word/document.xml").decode()
    assert "<f>" not in "".join(
        zipfile.ZipFile(files["xlsx"]).read(f"xl/worksheets/sheet{sheet}.xml").decode() for sheet in (1, 2, 3)
    )
    calls = server.calls()
    again = citeloom(*ASKED, "--json", "--home", home, **chat).json
    assert again["rows"][0]["cells"]["count"]["value"] == "=2+2" and server.calls() == calls


def test_without_a_model_no_cell_is_called_judged_or_missing(citeloom: Citeloom, home: Path) -> None:
    record = citeloom(*ASKED, "--json", "--home", home).json
    assert record["rows"] and "nothing is judged" in record["notice"]
    assert {cell["status"] for row in record["rows"] for cell in row["cells"].values()} == {"not_judged"}


def test_without_a_model_common_columns_contain_the_sentence_that_states_the_value(
    citeloom: Citeloom, tmp_path: Path
) -> None:
    paper = (
        "---\ntitle: Insoles for sore knees\nyear: 2019\n---\n\n## Abstract\n\nSore knees are common. **Methods:** "
        "Seventy adults with sore knees walked in five kinds of shoes. We found that soft shoes reduced pain.\n\n"
        "## Methods\n\nThis randomised controlled trial was approved. Multiple linear regression was used to test for "
        "differences between the 5 different conditions in outcomes of interest.\n"
    )
    (tmp_path / "knees.md").write_text(paper, encoding="utf-8")
    assert citeloom("ingest", tmp_path / "knees.md", "--home", tmp_path / "home").code == 0
    record = citeloom("table", "shoes", "--columns", "n,design,result", "--json", "--home", tmp_path / "home").json
    ((row),) = record["rows"]
    shown = {name: cell["value"] for name, cell in row["cells"].items()}
    assert shown["n"].startswith("Methods: Seventy adults") and "**" not in shown["n"], shown
    assert "randomised controlled trial" in shown["design"] and "reduced pain" in shown["result"]


def test_tables_are_listed_and_deleted(citeloom: Citeloom, home: Path) -> None:
    made = citeloom(*ASKED, "--papers", "varga2021calibration", "--json", "--home", home).json
    (listed,) = citeloom("tables", "list", "--json", "--home", home).json
    assert (listed["table_id"], listed["question"]) == (made["table_id"], made["question"])
    assert citeloom("tables", "delete", made["table_id"], "--home", home).code == 0
    assert citeloom("tables", "show", made["table_id"], "--home", home).code == 2


@pytest.mark.parametrize("columns", ["n,N", "x:colour", ":number", ",".join(map(str, range(1, 30)))])
def test_an_unclear_column_is_reported(citeloom: Citeloom, home: Path, columns: str) -> None:
    done = citeloom("table", "studies", "--columns", columns, "--home", home)
    assert done.code == 2 and len(done.errors) == 1


def test_a_section_without_a_chat_model_uses_and_shows_a_table(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    question = "studies of ensembles, by seeds"
    made = citeloom("table", question, "--columns", "finding", "--json", "--home", home).json
    assert made["rows"]
    given = ("discussion", exp, "--table", question, "--show-tables", "--out", tmp_path, "--json", "--home", home)
    record = citeloom(*given).json
    row = next(line for line in record["text"].splitlines() if line.startswith("| ") and "(20" in line)
    cited = next(item for item in record["citations"] if item["sentence"] == row)
    assert cited["key"] in {item["key"] for item in made["rows"]} and cited["quote"]
    assert citeloom("methods", exp, "--table", question, "--home", home).code == 2


def test_without_a_model_named_papers_become_rows_whatever_the_question(citeloom: Citeloom, home: Path) -> None:
    asked = ("table", "studies of zebras in winter", "--columns", "n", "--json", "--home", home)
    assert citeloom(*asked).json["included"] == 0
    named = [part for key in ("varga2021calibration", "obrien2019seeds") for part in ("--papers", key)]
    record = citeloom(*asked, *named).json
    assert {row["key"] for row in record["rows"]} == {"varga2021calibration", "obrien2019seeds"}
    assert {row["cells"]["n"]["status"] for row in record["rows"]} == {"not_judged"}

"""The user's words from exp.json in the files of a section: nothing is lost, changed or invented."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from citeloom import awrite_paper, awrite_section, export, open_library, verify, write_section
from citeloom.graph.session import open_session
from citeloom.models.http.client import close_connections
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from tests.support.openai_server import FakeOpenAI, completion
from tests.support.protocol_answers import envelope

OWN = (
    "The outcome is in line with Varga and Lindqvist (2021).",
    "Himmelstein et al. (2017) saw the same in networks.",
    "It is so \\cite{okafor2022ensembles} and [@none1999].",
)
TABLE = "| model | AP |\n|---|---|\n| hetionet v1 | 0.7 |"
LIST = "- DISEASES came first\n- estradiol (E2) came second [E1]"
HEADED = "# Aside\n\nText below it."
FORMATS = ("tex", "docx", "html")


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)

    parts = (b"IHDR", b"\0\0\0\1\0\0\0\1\x08\2\0\0\0"), (b"IDAT", zlib.compress(b"\0\xff\0\0")), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.fixture
def exp(experiment: dict[str, Any], tmp_path: Path) -> Path:
    """An exp.json as a user would write it, with one plot of two beside it and one that leads out of its folder."""
    reasoning = "\n\n".join([f"{experiment['reasoning']} {' '.join(OWN)}", LIST, TABLE, HEADED])
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "error.png").write_bytes(_png())
    (tmp_path / "secret.png").write_bytes(_png())
    plots = [{"path": path, "caption": f"Caption of {path}"} for path in ("gone.png", "error.png", "../secret.png")]
    changed = {**experiment, "reasoning": reasoning, "plots": plots, "hypotesis": {"description": "A slip."}}
    (folder / "exp.json").write_text(json.dumps(changed), encoding="utf-8")
    return folder / "exp.json"


def _words(docx: str) -> str:
    """The words that a Word file shows, without the codes of its fields."""
    xml = zipfile.ZipFile(docx).read("word/document.xml").decode()
    return re.sub(r"<w:instrText.*?</w:instrText>|<[^>]+>", "", xml, flags=re.DOTALL)


def test_a_section_without_a_model_keeps_everything_that_the_user_wrote(home: Path, exp: Path, tmp_path: Path) -> None:
    with open_library(home) as library:
        record = write_section(library, "discussion", exp, out=tmp_path / "out", formats=FORMATS)
    text = record["text"]
    assert all(words in text for words in (*OWN, LIST, TABLE, "## Aside\n\nText below it."))
    assert not [finding for finding in record["findings"] if finding["rule"] == "foreign-citation"]
    linked = {item["citation"]: item["keys"] for item in record["own_citations"]}
    assert linked == {
        "Varga and Lindqvist (2021)": ["varga2021calibration"],
        "Himmelstein et al. (2017)": [],
        "\\cite{okafor2022ensembles}": ["okafor2022ensembles"],
        "[@none1999]": [],
    }
    assert all(text[item["start"] : item["end"]] == item["citation"] for item in record["own_citations"])
    assert {"varga2021calibration", "okafor2022ensembles"} <= {entry["label"] for entry in record["references"]}
    assert any("did you mean hypothesis?" in warning for warning in record["warnings"])

    tex, docx = Path(record["files"]["tex"]).read_text("utf-8"), _words(record["files"]["docx"])
    page = Path(record["files"]["html"]).read_text("utf-8")
    for shown in (tex, docx, page):
        assert "Himmelstein et al. (2017) saw the same in networks." in shown
    # Nobody would submit such a paragraph.
    assert "Extractive mode" in tex.splitlines()[1] and "Extractive mode" not in docx + page.partition("<body>")[2]
    assert "Extractive mode" in page
    assert "\\begin{itemize}" in tex and "longtable" in tex and "okafor2022ensembles}" in tex
    assert "<li>" in page and "<table" in page and "<h2" in page
    report = Path(record["files"]["evidence.html"]).read_text("utf-8")
    assert "Kept as yours" in report and "Himmelstein et al. (2017)" in report


def test_an_existing_plot_is_shown_and_missing_ones_are_not_mentioned(home: Path, exp: Path, tmp_path: Path) -> None:
    with open_library(home) as library:
        record = write_section(library, "results", exp, out=tmp_path / "out", formats=FORMATS)
    assert "The outcome is shown in Figure 1." in record["text"]
    assert "Figure 2" not in record["text"] and "Figure 3" not in record["text"]
    assert [figure["number"] for figure in record["figures"]] == [1]
    assert Path(record["files"]["figure-1.png"]).read_bytes() == _png()
    md, tex, page = (Path(record["files"][name]).read_text("utf-8") for name in ("md", "tex", "html"))
    docx = _words(record["files"]["docx"])
    assert "![Figure 1](results.figure-1.png)" in md
    assert "{results.figure-1.png}" in tex and "{0.8\\textheight}" in tex  # a tall plot leaves room for its caption
    assert 'src="data:image/png;base64,' in " ".join(page.split())
    for shown in (md, page, docx):
        assert "Figure 1. Caption of error.png" in " ".join(shown.split())
        assert "Figure 2" not in shown
    assert "\\caption{Caption of error.png}\n\\label{fig:1}\n\\end{figure}" in tex
    assert "is shown in Figure~\\ref{fig:1}." in tex
    assert md.count("Caption of error.png") == 1
    media = [name for name in zipfile.ZipFile(record["files"]["docx"]).namelist() if "media/" in name]
    assert len(media) == 1
    assert any("secret.png" in warning and "gone.png" in warning for warning in record["warnings"])


def test_a_plot_without_a_caption_becomes_a_labelled_figure_and_its_mention_is_kept(
    home: Path, exp: Path, tmp_path: Path
) -> None:
    given = json.loads(exp.read_text("utf-8"))
    exp.write_text(json.dumps({**given, "plots": ["error.png"]}), encoding="utf-8")
    with open_library(home) as library:
        record = write_section(library, "results", exp, out=tmp_path / "out", formats=("tex",))
        tex, md = Path(record["files"]["tex"]), Path(record["files"]["md"])
        body = tex.read_text("utf-8").partition("\\begin{document}")[2]
        assert "\\begin{figure}" in body and "\\label{fig:1}\n\\end{figure}" in body
        assert "is shown in Figure~\\ref{fig:1}." in body
        assert not verify(library, tex)["mismatches"]

        md.write_text(md.read_text("utf-8").replace("# Results", "# Results\n\nAn added sentence."), "utf-8")
        page = export(library, md, ["html"])["files"]["html"]
    shown = " ".join(Path(page).read_text("utf-8").split())
    assert "The outcome is shown in Figure 1." in shown and "An added sentence." in shown


async def test_a_plot_not_mentioned_by_the_writer_is_shown_and_noted(
    home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, score_threshold=0)
    with open_session(settings, FolderHome(home)) as session:
        record = await awrite_section(session, "results", exp, out=tmp_path / "out", formats=("tex",))
    await close_connections()
    assert "Figure" not in record["text"]
    assert [figure["number"] for figure in record["figures"]] == [1]
    assert "Figure 1 (error.png) is shown, but the text does not mention it." in record["warnings"]
    assert "\\label{fig:1}" in Path(record["files"]["tex"]).read_text("utf-8")


def test_figure_numbers_mentioned_by_the_user_stay_the_same(home: Path, exp: Path, tmp_path: Path) -> None:
    given = json.loads(exp.read_text("utf-8"))
    given["results"] += " The error falls with depth (Fig. 2)."
    exp.write_text(json.dumps(given), encoding="utf-8")
    with open_library(home) as library:
        record = write_section(library, "results", exp, out=tmp_path / "out")
    assert "(Fig. 2)" in record["text"] and "The outcome is shown in Figure 2." in record["text"]
    assert [figure["number"] for figure in record["figures"]] == [2]
    assert "![Figure 2](results.figure-2.png)" in Path(record["files"]["md"]).read_text("utf-8")


def test_a_plot_is_shown_in_formats_that_support_it_and_others_say_where_it_is(
    home: Path, exp: Path, tmp_path: Path
) -> None:
    svg = b'<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "x" "y">\n<svg xmlns="http://www.w3.org/2000/svg"/>\n'
    (exp.parent / "curve.svg").write_bytes(svg)
    (exp.parent / "bars.pdf").write_bytes(b"%PDF-1.5\n%%EOF\n")
    (exp.parent / "page.svg").write_text("<!DOCTYPE html><svg/>", encoding="utf-8")
    plots = [{"path": path, "caption": f"Caption of {path}"} for path in ("curve.svg", "bars.pdf", "page.svg")]
    given = {**json.loads(exp.read_text("utf-8")), "plots": plots}
    exp.write_text(json.dumps(given), encoding="utf-8")
    with open_library(home) as library:
        record = write_section(library, "results", exp, out=tmp_path / "out", formats=FORMATS)
    (missing,) = [warning for warning in record["warnings"] if "no image" in warning]
    assert "page.svg" in missing and "curve" not in missing and "bars" not in missing
    files = {name: Path(path) for name, path in record["files"].items()}
    assert files["figure-1.svg"].read_bytes() == svg and files["figure-2.pdf"].exists()
    md, tex, page = (files[name].read_text("utf-8") for name in ("md", "tex", "html"))
    docx = _words(record["files"]["docx"])
    assert "![Figure 1](results.figure-1.svg)" in md and "![Figure 2]" not in md
    assert "{results.figure-2.pdf}" in tex and "includesvg" not in tex and "graphics{results.figure-1" not in tex
    assert 'src="data:image/svg+xml;base64,' in " ".join(page.split()) and "data:application" not in page
    assert not [name for name in zipfile.ZipFile(files["docx"]).namelist() if "media/" in name]
    for text, unheld in ((md, "figure-2.pdf"), (page, "figure-2.pdf"), (tex, "figure-1.svg")):
        assert f"results.{unheld}" in text
    assert "results.figure-1.svg" in docx and "results.figure-2.pdf" in docx
    for file, number in (("results.md", 2), ("results.html", 2), ("results.tex", 1), ("results.docx", 1)):
        assert any(f"{file} cannot hold Figure {number}" in warning for warning in record["warnings"]), file


async def test_a_model_neither_drops_nor_borrows_the_users_citations(
    home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    lie = "Cats cause cancer, as Himmelstein et al. (2017) found."

    def behave(body: Any) -> Any:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        return envelope(body, content=f"The sources bear on it [E1]. {OWN[0]} {lie} Estradiol (E2) rose.")

    server.behaviour = behave
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, max_retries=0, score_threshold=0.0)
    with open_session(settings, FolderHome(home)) as session:
        record = await awrite_section(session, "discussion", exp, out=tmp_path / "out", formats=("tex",))
    await close_connections()
    text = record["text"]
    assert all(text.count(words) == 1 for words in OWN)
    assert "cancer, as Himmelstein" not in text and "[citation needed]" in text
    assert {item["citation"]: bool(item["keys"]) for item in record["own_citations"]}["[@none1999]"] is False
    assert all(text[item["start"] : item["end"]] == item["citation"] for item in record["own_citations"])


async def test_an_abstract_names_what_it_leaves_to_other_sections_and_a_paper_leaves_nothing(
    home: Path, exp: Path, server: FakeOpenAI
) -> None:
    def behave(body: Any) -> Any:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        return envelope(body, content="We tried a thing and it went well.")

    server.behaviour = behave
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, max_retries=0, score_threshold=0.0)
    with open_session(settings, FolderHome(home)) as session:
        abstract = await awrite_section(session, "abstract", exp)
        paper = await awrite_paper(session, exp)
    await close_connections()
    (told,) = [warning for warning in abstract["warnings"] if "left to the other sections" in warning]
    assert all(words in told for words in OWN)
    assert not any("left to the other sections" in warning for warning in paper["warnings"])
    assert all(words in paper["text"] for words in OWN)

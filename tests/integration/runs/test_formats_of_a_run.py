"""The other formats of a finished section: written beside the markdown, and rendered again at no cost."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from citeloom import aopen_library, awrite_section, open_library, write_paper, write_section
from citeloom.citations.export import pandoc_formats
from citeloom.citations.export.latex_output import find_engine
from citeloom.citations.export.section_files import ExportError
from citeloom.errors import InputError
from citeloom.experiment import parse_experiment
from citeloom.graph.session import open_session
from citeloom.runs.execution import run_request
from citeloom.runs.output_files import save
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_each_format_is_written_beside_the_markdown(home: Path, experiment: dict[str, Any], tmp_path: Path) -> None:
    with open_library(home) as library:
        record = write_section(library, "discussion", experiment, out=tmp_path, formats=("tex", "docx", "html"))
    files = {name: Path(path) for name, path in record["files"].items()}
    assert sorted(files) == ["bib", "docx", "evidence.html", "html", "json", "md", "tex"]
    keys = {citation["key"] for citation in record["citations"]}
    tex = files["tex"].read_text("utf-8")
    assert keys == set(re.findall(r"\\cite(?!text)\w*(?:\[[^\]]*\])*\{([^}]*)\}", tex)), "no citation lost or undefined"
    assert keys == set(re.findall(r"@\w+\{([^,]+),", files["bib"].read_text("utf-8")))
    page = files["html"].read_text("utf-8")
    assert {f"ref-{key}" for key in keys} == set(re.findall(r'id="(ref-[^"]+)"', page))
    assert "word/document.xml" in zipfile.ZipFile(files["docx"]).namelist()


async def test_another_style_needs_no_new_run(home: Path, experiment: dict[str, Any], tmp_path: Path) -> None:
    request = SectionRequest("discussion", parse_experiment(experiment))
    texts = []
    for csl in ("", "ieee", "apa", "ieee"):
        with open_session(Settings(csl=csl), FolderHome(home)) as session:
            finished = await run_request(request, session)
        saved = save(finished.record, tmp_path, ["html"])
        texts.append([Path(saved["files"][name]).read_bytes() for name in ("md", "evidence.html", "html")])
        assert finished.finished_earlier == (len(texts) > 1)
    assert texts[1] == texts[3]
    assert all(len({text[index] for text in texts[:3]}) == 3 for index in range(3))


async def test_an_unknown_style_is_refused_before_anything_is_written(
    home: Path, experiment: dict[str, Any], tmp_path: Path
) -> None:
    with open_session(Settings(csl="gone.csl"), FolderHome(home)) as session:
        with pytest.raises(InputError, match=r"gone\.csl"):
            await awrite_section(session, "discussion", experiment, out=tmp_path / "out")
        assert not session.home.runs_file.exists()


async def test_a_failing_format_affects_no_other_file(
    home: Path, experiment: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pandoc_formats._WRITERS, "docx", "no-such-writer")  # type: ignore[index]
    async with aopen_library(home) as library:
        with pytest.raises(ExportError, match="docx"):
            await awrite_section(library, "discussion", experiment, out=tmp_path, formats=("docx", "tex"))
    names = sorted(path.name for path in tmp_path.glob("discussion.*"))
    assert names == [f"discussion.{name}" for name in ("bib", "evidence.html", "json", "md", "tex")]


def test_a_paper_is_exported_as_a_zip_for_submission(home: Path, tmp_path: Path) -> None:
    given = json.loads((EXAMPLES / "exp.json").read_text("utf-8"))
    given["reasoning"] += " As Figure 2 shows, it is so; “as Figure 1 of the other paper shows, it is not so at all”."
    for image in EXAMPLES.glob("*.png"):
        shutil.copy(image, tmp_path)
    exp = tmp_path / "exp.json"
    exp.write_text(json.dumps(given), encoding="utf-8")
    formats = ("tex", "docx", "html", "zip", *(["pdf"] if find_engine() else []))
    with open_library(home) as library:
        record = write_paper(library, exp, out=tmp_path / "out", formats=formats)
    files = {name: Path(path) for name, path in record["files"].items()}
    tex, page = files["tex"].read_text("utf-8"), files["html"].read_text("utf-8")
    docx = zipfile.ZipFile(files["docx"]).read("word/document.xml").decode()
    body = tex.partition("\\begin{document}")[2]
    assert re.search(r"\\maketitle\s+\\begin\{abstract\}\s+[\w\\]", body) and "\\section{Abstract}" not in tex
    assert 'w:val="Abstract"' in docx and 'class="abstract"' in page
    assert "\\citep{" in body and "in section" not in body + page + docx
    assert body.count("\\begin{figure}") == 3 == len(set(re.findall(r"\\label\{fig:(\d)\}", body)))
    assert "As Figure~\\ref{fig:2} shows" in body and "as Figure 1 of the other paper" in body
    assert page.count("<figcaption") == 3 and 'w:val="ImageCaption"' in docx
    names = {"paper.tex", "paper.bib", *(f"paper.figure-{number}.png" for number in (1, 2, 3))}
    assert set(zipfile.ZipFile(files["zip"]).namelist()) == names
    if "pdf" in files:
        document = pypdfium2.PdfDocument(files["pdf"])
        text = " ".join("\n".join(item.get_textpage().get_text_bounded() for item in document).split())
        assert "Abstract" in text and "Figure 2: Accuracy" in text and "References" in text and "??" not in text


def test_without_a_latex_engine_a_pdf_is_refused_with_a_remedy(
    home: Path, experiment: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with open_library(home) as library, pytest.raises(ExportError, match="tectonic") as refused:
        write_section(library, "discussion", experiment, out=tmp_path, formats=("pdf", "zip"))
    assert "texlive-xetex" in str(refused.value.help)
    assert (tmp_path / "discussion.zip").exists() and not (tmp_path / "discussion.pdf").exists()

"""Pages without text are read by OCR if the user wants it, and only those; a program that misbehaves harms nothing.

Real tesseract is tested if it is installed; a stand-in program imitates its faults.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import pytest

from citeloom.documents.pdf.ocr import Ocr, choose_ocr, draw_grey_page, find_ocr, read_scanned
from citeloom.errors import InputError
from citeloom.ingestion.doctor import rebuild
from citeloom.ingestion.ingest import ingest
from citeloom.settings.config import load_settings
from citeloom.stores.library import Library
from tests.support import cli_process
from tests.support.late_timer import expire_after
from tests.support.pdf_pages import share_on, words
from tests.support.plain_pdf import Line, write_pdf
from tests.support.scanned_pdfs import PAGE, hocr, printing, write_mixed, write_program, write_scan

TEXT = ("A page with text", "Introduction", "Every word of this page was there before, and none of it was scanned.")
SAID = "The program said that degree matters for every node."
PATIENCE = 300.0  # seconds, before a test that would hang fails instead
needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


def with_ocr(languages: str = "eng") -> Ocr:
    return find_ocr(languages)


def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reading: str, languages: str = "eng") -> Path:
    program = write_program(tmp_path / "bin", reading, languages)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def hanging(pipe: Path) -> str:
    """Shell that writes a line to a pipe, which it holds open until it is killed."""
    return f"exec 3> {pipe}\necho here >&3\nexec sleep 600"


def text_of(library: Library, key: str) -> str:
    return "\n".join(chunk.text for chunk in library.paper_chunks(key))


@needs_tesseract
@pytest.mark.parametrize("turned", [-90, 3, *(pytest.param(it, marks=pytest.mark.long) for it in (0, 90, 180, -2))])
def test_a_scan_is_read_at_any_rotation(turned: float, folder: Path, library: Library) -> None:
    write_scan(folder / "scan.pdf", [PAGE], turned=turned)
    report = asyncio.run(ingest(library, [folder], ocr=with_ocr()))
    assert report.added == ("scan",)
    assert share_on(words(" ".join(PAGE[2:])), words(text_of(library, "scan"))) == 1
    assert library.paper("scan").ocr_pages == (1,) and library.paper("scan").title == PAGE[0]


@needs_tesseract
def test_german_scans_are_read_as_german(folder: Path, library: Library) -> None:
    try:
        german = with_ocr("deu+eng")
    except InputError as error:
        pytest.skip(error.message)
    write_scan(
        folder / "scan.pdf", [("Die Grundlagen", "Zusammenfassung", "Wir zeigen das Ergebnis der Untersuchung.")]
    )
    asyncio.run(ingest(library, [folder], ocr=german))
    assert "das Ergebnis der Untersuchung" in text_of(library, "scan")


@needs_tesseract
def test_a_blank_page_between_scans_keeps_the_page_order(folder: Path, library: Library) -> None:
    last = ("Discussion", "Whoever turns the last page of a scan finds the discussion of the degrees there.")
    write_scan(folder / "scan.pdf", [PAGE, (), last])
    report = asyncio.run(ingest(library, [folder], ocr=with_ocr()))
    assert report.added == ("scan",) and not any("OCR" in line for line in report.warnings)
    assert library.paper("scan").ocr_pages == (1, 3) and library.paper("scan").pages == 3
    assert [chunk.page for chunk in library.paper_chunks("scan") if "turns the last page" in chunk.text] == [3]


def test_without_ocr_a_scan_is_refused_and_the_message_names_the_option(folder: Path, library: Library) -> None:
    write_scan(folder / "scan.pdf", [PAGE])
    (refusal,) = asyncio.run(ingest(library, [folder])).refused
    assert "without any text (scanned?)" in refusal.reason and "--ocr" in refusal.reason
    assert "CITELOOM_OCR=auto" in refusal.reason


def test_pages_that_have_text_keep_it(
    folder: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, printing(SAID))
    write_mixed(folder / "mixed.pdf", TEXT, PAGE)
    asyncio.run(ingest(library, [folder], ocr=with_ocr()))
    assert TEXT[2] in text_of(library, "mixed") and SAID in text_of(library, "mixed")
    assert library.paper("mixed").ocr_pages == (2,)


def test_an_unchanged_scan_is_read_once_per_choice_of_languages(
    folder: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "readings"
    install(monkeypatch, tmp_path, f"echo reading >> {counted}\n{printing(SAID)}", "eng deu")
    write_scan(folder / "scan.pdf", [PAGE])
    assert asyncio.run(ingest(library, [folder], ocr=with_ocr())).added == ("scan",)
    assert asyncio.run(ingest(library, [folder], ocr=with_ocr())).unchanged == ("scan",)
    without = asyncio.run(ingest(library, [folder]))
    assert without.unchanged == ("scan",) and not without.refused
    assert asyncio.run(rebuild(library)).updated == ("scan",) and library.paper("scan").ocr_pages == (1,)
    assert counted.read_text().count("reading") == 1
    asyncio.run(ingest(library, [folder], ocr=with_ocr("eng+deu")))
    assert counted.read_text().count("reading") == 2


def test_a_file_read_without_ocr_is_read_again_with_it(
    folder: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, printing(SAID))
    write_mixed(folder / "mixed.pdf", TEXT, PAGE)
    asyncio.run(ingest(library, [folder]))
    assert SAID not in text_of(library, "mixed") and library.paper("mixed").ocr_pages == ()
    assert asyncio.run(ingest(library, [folder], ocr=with_ocr())).updated == ("mixed",)
    assert SAID in text_of(library, "mixed")


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        ("exit 3", "made tesseract fail (exit code 3)"),
        ("kill -SEGV $$", "made tesseract fail (exit code 139)"),
        ("echo ready", "tesseract printed something other than hOCR"),
        ("echo '{\"blank\": 1'", "tesseract printed something other than hOCR"),
        (":", "tesseract printed something other than hOCR"),
    ],
)
def test_a_failing_page_is_reported_and_tried_again(
    reading: str, reason: str, folder: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, reading)
    write_mixed(folder / "mixed.pdf", TEXT, PAGE)
    report = asyncio.run(ingest(library, [folder], ocr=with_ocr()))
    assert report.added == ("mixed",) and library.paper("mixed").ocr_pages == ()
    (warning,) = [line for line in report.warnings if "OCR" in line]
    assert "mixed.pdf: OCR could not read page 2: it " in warning and reason in warning
    install(monkeypatch, tmp_path, printing(SAID))
    assert asyncio.run(ingest(library, [folder], ocr=with_ocr())).updated == ("mixed",)
    assert SAID in text_of(library, "mixed")


def test_a_scan_without_a_readable_page_is_refused_with_the_reason(
    folder: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path, "exit 3")
    write_scan(folder / "scan.pdf", [PAGE])
    (refusal,) = asyncio.run(ingest(library, [folder], ocr=with_ocr())).refused
    assert refusal.reason == "could not be read by OCR: page 1 made tesseract fail (exit code 3)"
    install(monkeypatch, tmp_path, f"cat <<'END'\n{hocr()}\nEND")
    (refusal,) = asyncio.run(ingest(library, [folder], ocr=with_ocr())).refused
    assert refusal.reason == "holds no text, nor did OCR find any on its pages"


def test_an_upright_reading_wins_even_with_one_word_less(folder: Path, tmp_path: Path) -> None:
    aside, upright = hocr("read as it lay on its side", angle=90), hocr("read as it should be read")
    mark = tmp_path / "read"
    both = f"if [ -e {mark} ]; then cat <<'END'\n{upright}\nEND\nelse touch {mark}; cat <<'END'\n{aside}\nEND\nfi"
    program = write_program(tmp_path / "bin", both)
    write_scan(folder / "scan.pdf", [PAGE])
    page = read_scanned(folder / "scan.pdf", [1], Ocr(str(program), "eng"))[0][1]
    assert " ".join(run.text for run in page.runs) == "read as it should be read"


def test_a_hanging_program_is_killed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = write_program(tmp_path / "bin", hanging(pipe))
    write_scan(folder / "scan.pdf", [PAGE])
    opened: list[TextIO] = []
    expire_after(monkeypatch, lambda: opened.append(pipe.open()))
    _, failed = read_scanned(folder / "scan.pdf", [1], Ocr(str(program), "eng"), seconds=0.1)
    assert failed == {1: "took longer than 0.1 seconds"}
    with opened[0] as program_end:
        assert program_end.read() == "here\n"  # and no more, since it has ended


async def test_a_stopped_ingest_leaves_no_process_and_no_file(
    folder: Path, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, scratch = tmp_path / "pipe", tmp_path / "tmp"
    scratch.mkdir()
    os.mkfifo(pipe)
    monkeypatch.setenv("TMPDIR", str(scratch))
    install(monkeypatch, tmp_path, hanging(pipe))
    write_scan(folder / "scan.pdf", [PAGE])
    ingesting = asyncio.create_task(ingest(library, [folder], ocr=with_ocr()))
    with await asyncio.to_thread(pipe.open) as program:
        assert await asyncio.to_thread(program.readline) == "here\n"
        ingesting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ingesting
        assert await asyncio.wait_for(asyncio.to_thread(program.read), PATIENCE) == ""  # it has ended
    assert list(scratch.iterdir()) == [] and list(library.home.converted.glob("*")) == []


def test_a_huge_page_is_drawn_at_a_smaller_size(tmp_path: Path) -> None:
    write_pdf(tmp_path / "huge.pdf", [Line("A line")])
    data = (tmp_path / "huge.pdf").read_bytes()
    (tmp_path / "huge.pdf").write_bytes(data.replace(b"[0 0 612 792]", b"[0 0 99999 99999]"))
    image, resolution = draw_grey_page(tmp_path / "huge.pdf", 1)
    assert image is None or image.width * image.height <= 16_000_000
    assert resolution < 300


RunCli = Callable[..., cli_process.Finished]


@pytest.fixture
def run_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCli:
    def run(*arguments: str | Path, **settings: str) -> cli_process.Finished:
        given = {"HOME": str(tmp_path / "home"), **settings}
        return cli_process.run_here(monkeypatch, capsys, *arguments, settings=given)

    monkeypatch.chdir(tmp_path)
    return run


def test_scans_are_read_and_marked_wherever_they_are_shown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    install(monkeypatch, tmp_path, printing("Degrees", SAID))
    write_scan(folder / "scan.pdf", [PAGE])
    assert run_cli("ingest", folder, "--ocr", "--json").json["papers_added"] == 1
    assert "Read by OCR: p. 1" in run_cli("papers", "show", "scan").out
    assert run_cli("papers", "show", "scan", "--json").json["ocr_pages"] == [1]
    (passage,) = run_cli("search", "degree of nodes", "--json").json
    assert passage["ocr"] is True and passage["page"] == 1
    asked = run_cli("research", "Why does degree matter for every node?", "--out", "out", "--json").json
    assert [item["ocr"] for item in asked["evidence"]] == [True]
    assert all(citation["ocr"] for citation in asked["citations"])
    (report,) = tmp_path.rglob("*.evidence.html")
    assert "page 1 (read by OCR)" in " ".join(report.read_text().split())


@pytest.mark.parametrize("mode", ["--ocr", ""])
def test_missing_programs_or_languages_are_reported_with_the_remedy(
    mode: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    install(monkeypatch, tmp_path, printing(SAID))
    write_scan(folder / "scan.pdf", [PAGE])
    options, settings = [mode] if mode else [], {} if mode else {"OCR": "auto"}
    done = run_cli("ingest", folder, *options, OCR_LANGUAGES="eng+deu", **settings)
    assert done.code == 2 and "tesseract has no language deu; it has eng" in done.errors[0]
    assert "tesseract-ocr-deu" in done.err
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run_cli("ingest", folder, *options, **settings)
    if mode:
        assert done.code == 2 and done.errors[0].startswith("Error: OCR needs tesseract: no 'tesseract' in PATH.")
        assert "apt install tesseract-ocr" in done.err
    else:
        assert done.code == 4 and "without any text (scanned?)" in done.err


def test_doctor_says_whether_scans_can_be_read(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: RunCli
) -> None:
    def ocr(**settings: str) -> dict[str, str]:
        found: Sequence[dict[str, str]] = run_cli("doctor", "--json", **settings).json["findings"]
        return next(finding for finding in found if finding["topic"] == "OCR")

    (folder / "paper.md").write_text("# Degrees\n\nThe degree of a node is the number of its edges.", encoding="utf-8")
    run_cli("ingest", folder)
    install(monkeypatch, tmp_path, printing(SAID))
    assert ocr()["message"].startswith("tesseract 9.9.9 with eng; off unless")
    assert ocr(OCR="auto")["message"] == "tesseract 9.9.9 with eng; on"
    assert ocr(OCR="auto", OCR_LANGUAGES="fra")["level"] == "problem"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ocr()["level"] == "fine" and "not available (OCR needs tesseract" in ocr()["message"]
    assert ocr(OCR="auto")["level"] == "notice"  # what 'auto' is for
    assert run_cli("doctor", OCR="auto").code == 0


def test_a_program_that_fails_to_start_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = install(monkeypatch, tmp_path, ":")
    program.write_text("#!/no/such/shell\n")
    with pytest.raises(InputError, match="does not start"):
        choose_ocr(load_settings(ocr="auto"))

"""Citation styles that attack, one row each: refused in one line, with no request and no file read."""

from __future__ import annotations

import http.server
import os
import re
import resource
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from citeloom.citations.export.pandoc_formats import convert
from citeloom.citations.export.section_files import ExportError
from citeloom.citations.references import build_references, read_style, style_file
from citeloom.documents import Paper
from citeloom.errors import InputError

pytestmark = pytest.mark.attack

SECRET = "root:x:0:0:the secret line"
BIB = "@article{b2019, title = {On Looms}, author = {Bea Brown}, year = {2019}, journal = {Networks}}"
PAPER = Paper(key="b2019", title="On Looms", authors=("Bea Brown",), year=2019, bibtex=BIB)


def style(inside: str = "", *, info: str = "", head: str = "", layout: str = '<text macro="m"/>') -> str:
    return (
        f'<?xml version="1.0" encoding="utf-8"?>{head}'
        '<style xmlns="http://purl.org/net/xbiblio/csl" class="in-text" version="1.0">'
        f"<info><title>Own</title><id>own</id>{info}</info>{inside}<citation><layout>{layout}</layout></citation>"
        f"<bibliography><layout>{layout}</layout></bibliography></style>"
    )


def parent(address: str) -> str:
    return style(info=f'<link href="{address}" rel="independent-parent"/>', layout='<text variable="title"/>')


def macro(name: str, *called: str, inside: str = "") -> str:
    return f'<macro name="{name}">{inside}{"".join(f"<text macro={c!r}/>" for c in called)}</macro>'.replace("'", '"')


DOUBLING = macro("m0", inside='<text variable="title"/>') + "".join(
    macro(f"m{n}", f"m{n - 1}", f"m{n - 1}") for n in range(1, 30)
)
LAUGHS = (
    '<!DOCTYPE style [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]>"
)


@dataclass(frozen=True)
class Row:
    """The content of a style ({secret} and {net} are filled in), and the value that the error names."""

    name: str
    content: str
    named: str = ""


ROWS = [
    Row("a parent that is a file", parent("{secret}")),
    Row("a parent that is a file by its address", parent("file://{secret}")),
    Row("a parent in the net", parent("{net}/style"), "'style'"),
    Row("a parent in the folder above", parent("../../secret"), "'secret'"),
    Row("a parent without a name", parent("{net}/")),
    Row("a parent with signs in its name", parent("{net}/a?b=c")),
    Row(
        "a parent in another place of the style",
        style('<link href="{net}/x" rel="independent-parent"/>'),
    ),
    Row(
        "a file for an entity",
        style(head='<!DOCTYPE x [<!ENTITY a SYSTEM "file://{secret}">]>', info="&a;"),
    ),
    Row("an address for a document type", style(head='<!DOCTYPE x SYSTEM "{net}/x.dtd">')),
    Row("a billion laughs", style(head=LAUGHS, info="&j;")),
    Row("a macro that calls itself", style(macro("m", "m")), "'m'"),
    Row("two macros that call each other", style(macro("m", "n") + macro("n", "m"))),
    Row("a macro called for sorting that calls itself", style(macro("m") + macro("s", "s")), "'s'"),
    Row("macros that double thirty times", style(DOUBLING, layout='<text macro="m29"/>'), "100,000"),
    Row("two macros of one name", style(macro("m") + macro("m", "m")), "'m'"),
    Row(
        "a macro of another namespace",
        style('<x:macro xmlns:x="urn:x" name="m"><x:text macro="m"/></x:macro>'),
    ),
    Row(
        "an attribute of another namespace",
        style(f'<macro xmlns:x="urn:x" x:name="m">{macro("m", "m")}</macro>'),
    ),
    Row("macros in a row of 5,000", style("".join(macro(f"m{n}", f"m{n + 1}") for n in range(5_000))), "200"),
    Row(
        "groups in groups",
        style("<macro name='m'>" + "<group>" * 3_000 + "</group>" * 3_000 + "</macro>"),
        "200",
    ),
    Row("120,000 parts side by side", style(layout='<text term="a"/>' * 60_000), "100,000"),
    Row(
        "a prefix of 200 kB",
        style(layout=f'<text variable="title" prefix="{"x" * 200_000}"/>'),
        "10000",
    ),
    Row("a term of 200 kB", style(f'<locale><terms><term name="a">{"x" * 200_000}</term></terms></locale>'), "10000"),
    Row("nothing but a tag", "<style/>"),
    Row("a web page", "<html><body>x</body></html>"),
    Row("cut off", style()[:100], "line"),
    Row("a file of passwords", SECRET, "line 1"),
]


@pytest.fixture
def net() -> Iterator[tuple[str, list[str]]]:
    """An address on loopback, and the paths requested from it."""
    asked: list[str] = []

    class Heard(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Heard) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def attack(tmp_path: Path, net: tuple[str, list[str]]) -> Callable[[str], Path]:
    """Writes a style, with the secret file and the address filled in."""
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n", encoding="utf-8")

    def written(content: str) -> Path:
        file = tmp_path / "hostile.csl"
        file.write_text(content.replace("{secret}", str(secret)).replace("{net}", net[0]), encoding="utf-8")
        return file

    return written


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_hostile_style_is_refused_before_pandoc_sees_it(
    row: Row, attack: Callable[[str], Path], net: tuple[str, list[str]]
) -> None:
    file = attack(row.content)
    with pytest.raises(InputError) as refused:
        style_file(str(file))
    said = str(refused.value)
    assert row.named in said and str(file) in said, said
    assert "\n" not in said and SECRET not in said
    # Handed over all the same, the references are pandoc's own, and no file is made by it.
    references = build_references([PAPER], "key", csl=file)
    assert "Brown" in references.entries[0].text and SECRET not in "\n".join(references.warnings)
    assert str(file) in references.warnings[0]
    with pytest.raises((InputError, ExportError)):
        convert("Text.", BIB, "html", csl=file)
    assert net[1] == []


@pytest.mark.parametrize(
    ("kind", "said"),
    [("pipe", "x.csl"), ("6 GB", "6000 MB"), ("device", "x.csl"), ("folder", "x.csl")],
)
def test_a_style_that_is_not_a_file_or_is_too_large_is_not_read(kind: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csl"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "folder":
        file.mkdir()
    else:
        with file.open("wb") as opened:
            opened.truncate(6_000_000_000)
    with pytest.raises(InputError, match=said):
        style_file(str(file))


def test_a_parent_style_is_taken_from_the_bundled_package_whatever_its_address(
    attack: Callable[[str], Path], net: tuple[str, list[str]]
) -> None:
    file = attack(parent("{net}/apa"))
    assert style_file(str(file)) == style_file("apa")
    with pytest.raises(InputError, match="apa"):
        read_style(file)
    assert net[1] == []


@pytest.mark.parametrize(
    "title",
    [
        r"\input{SECRET} On looms",
        r"\include{SECRET} On looms",
        r"\verbatiminput{SECRET} On looms",
        r"\includegraphics{SECRET} On looms",
        r"\def\a{\b\b}\def\b{\a\a}\a On looms",
        r"\def\a{xx}" + "".join(rf"\def\{chr(98 + n)}{{\{chr(97 + n)}\{chr(97 + n)}}}" for n in range(20)) + r"\u",
        "{" * 3_000 + "On looms" + "}" * 3_000,
        r"\textbf{" * 3_000 + "On looms" + "}" * 3_000,
        "On looms " * 30_000,
    ],
    ids=["input", "include", "verbatim", "picture", "macro loop", "macros that double", "braces", "bold", "270 kB"],
)
def test_a_hostile_entry_takes_bounded_time_and_reads_no_file(title: str, tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text(SECRET, encoding="utf-8")
    bibtex = f"@article{{x, title = {{{title.replace('SECRET', str(tmp_path / 'secret.tex'))}}}, author = {{A B}}}}"
    hostile = Paper(key="x", title="On looms", authors=("A B",), year=2020, bibtex=bibtex)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    references = build_references([PAPER, hostile], "key")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime
    assert used < 60
    text = " ".join(entry.text for entry in references.entries)
    assert re.search("Brown.*2019", text) and SECRET not in text
    assert [entry.key for entry in references.entries] == ["b2019", "x"]

"""One server on a small library with a PDF, one fake model and one browser for the tests of a module."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error as PlaywrightError,
    Page,
    Playwright,
    expect,
    sync_playwright,
)

from citeloom import aingest, aopen_library
from tests.support.browser import chromium
from tests.support.illustrated_home import illustrate_home
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.plain_pdf import Line, write_pdf
from tests.support.run_fixtures import sample_home
from tests.support.served_process import ServedProcess

__all__ = ["sample_home"]

expect.set_options(timeout=120_000)  # a server that writes and judges, on a machine that many tests share

PAPER = "weaver2024tension"
ILLUSTRATED = "obrien2019seeds"
_BROWSER = os.environ.get("CITELOOM_TEST_BROWSER", "chromium")  # read before tests lose the settings of this machine
QUESTION = "How does the tension of the warp change the width of the cloth?"
_TEXT = """\
Abstract
We measured how the tension of the warp changes the width of linen cloth.
Forty samples were woven on one loom at five tensions.
The width of the cloth fell by two percent for each newton of tension.
Humid air made the effect smaller but never removed it.
Methods
Every sample was woven by the same weaver and measured after one day of rest.
The tension of the warp was set with weights and checked with a spring balance.
Results
The width of the cloth was narrowest at the highest tension of the warp.
Cloth that was washed kept half of the difference in its width.
"""


def write_paper(path: Path, title: str = "Warp tension and the width of linen cloth") -> Path:
    """A paper of one page as a PDF."""
    headings = {"Abstract", "Methods", "Results"}
    body = [Line(line, size=13 if line in headings else 10) for line in _TEXT.splitlines()]
    write_pdf(path, [Line(title, size=20), Line(""), *body])
    return path


@pytest.fixture(scope="module")
def library_home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample papers, and one PDF."""
    folder = tmp_path_factory.mktemp("served")
    home = shutil.copytree(sample_home, folder / "home")
    pdf = write_paper(folder / f"{PAPER}.pdf")

    async def fill() -> None:
        async with aopen_library(home) as opened:
            assert (await aingest(opened, pdf))["papers_added"] == 1

    asyncio.run(fill())
    illustrate_home(home, ILLUSTRATED, ["Figure 1: Spread of the runs.", "Figure 2: Number of seeds."])
    return home


@pytest.fixture(scope="module")
def model() -> Iterator[FakeOpenAI]:
    """A chat model that reads, rewrites, and cites what it is shown."""
    with FakeOpenAI(behaviour=Librarian()) as running:
        yield running


@pytest.fixture(scope="module")
def served(library_home: Path, model: FakeOpenAI) -> Iterator[ServedProcess]:
    """The server on that library and model."""
    given = {"CHAT_MODEL": "fake", "CHAT_BASE_URL": model.base_url, "CHAT_API_KEY": "k", "MAX_REPAIRS": "0"}
    process = ServedProcess(library_home, given)
    process.start()
    try:
        yield process
    finally:
        process.stop()


def launch(playwright: Playwright, name: str) -> Browser:
    """The system's Chromium or Firefox; skips the test without it."""
    executable = chromium() if name == "chromium" else shutil.which("firefox-esr") or shutil.which("firefox")
    if executable is None:
        pytest.skip(f"no {name} (apt install {name})")
    if name == "chromium":
        return playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
    return playwright.firefox.launch(channel="moz-firefox", executable_path=executable)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Kill the browser after a time: Playwright waits without end for a window to open or close."""

    def kill() -> None:
        for child in psutil.Process().children(recursive=True):
            if "chrom" in child.name() or "firefox" in child.name():
                with suppress(psutil.NoSuchProcess):
                    child.kill()

    timer = Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.fixture(scope="module")
def browser(library_home: Path) -> Iterator[Callable[[], Browser]]:
    """Gives the browser, started when all fixtures with an event loop are made and again when it was killed."""
    started: list[Browser] = []
    with sync_playwright() as playwright:

        def running() -> Browser:
            if not started or not started[-1].is_connected():
                started.append(launch(playwright, _BROWSER))
            return started[-1]

        yield running
        with limited(60):
            for one in started:
                one.close()


class Complaints(list[str]):
    """What a browser complained about; `expected` parts of messages are not recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: list[str] = []

    def add(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.append(text)


@pytest.fixture
def complaints() -> Complaints:
    """What the pages of a test print to the console, such as errors of scripts and blocked resources."""
    return Complaints()


@pytest.fixture
def window(browser: Callable[[], Browser], complaints: Complaints) -> Iterator[Callable[..., BrowserContext]]:
    """Opens windows; at the end of the test nothing may have been blocked or have failed in them."""
    opened: list[BrowserContext] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.add(message.text)

    def open_(width: int = 1400, scheme: str = "light") -> BrowserContext:
        height = 900 if width > 500 else 800
        shown: Any = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
        context = browser().new_context(**shown, reduced_motion="reduce")  # what pulses is drawn by the processor
        context.set_default_timeout(300_000)
        context.on("console", note)
        context.on("weberror", lambda error: complaints.add(str(error.error)))
        opened.append(context)
        return context

    with limited(600):
        yield open_
    with limited(60), suppress(PlaywrightError):  # the test is done: a window that does not close is not its fault
        for context in opened:
            context.close()
    assert complaints == []


@pytest.fixture
def page(window: Callable[..., BrowserContext]) -> Page:
    """A page in a wide, light window."""
    return window().new_page()

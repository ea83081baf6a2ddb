"""A group's server in a browser: an owner invites, somebody sets a password, asks, and signs out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.integration.server.pages.conftest import Complaints
from tests.support.people import PASSWORD, add_person
from tests.support.served_process import ServedProcess

PAPER = "obrien2019seeds"
PAGES = (
    *("/", "/library", f"/library/{PAPER}", f"/library/{PAPER}/read", "/write", "/check", "/tables", "/runs"),
    *("/settings", "/settings/people"),
)
# What a reader sees that would send something that a reader may not.
REFUSED = """() => [...document.querySelectorAll("form, [data-send], [contenteditable], input[type=file]")]
  .filter((one) => one.checkVisibility() && !one.matches("[role=search], [method=get], [action^='/sign-out']"))
  .filter((one) => !one.matches("[action^='/settings/people/tokens']")).map((one) => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def group(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    """A server whose home has one account, an owner's."""
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("group") / "home")
    add_person(home, "olga", "owner")
    process = ServedProcess(home, {"CHAT_MODEL": "extractive"})
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="module")
def library_home(group: ServedProcess, sample_home: Path) -> Path:
    """No other server is needed here."""
    return sample_home


def test_an_invited_person_sets_a_password_asks_and_signs_out(
    group: ServedProcess, window: Callable[..., BrowserContext], complaints: Complaints
) -> None:
    complaints.expected += ["404"]  # of what is somebody else's
    owner, guest = window().new_page(), window(380).new_page()
    owner.goto(f"{group.url}/settings/people")
    owner.get_by_label("Name").fill("Olga")
    owner.get_by_label("Password").fill(PASSWORD)
    owner.get_by_role("button", name="Sign in").click()
    owner.goto(f"{group.url}/settings/people")
    owner.get_by_role("form", name="Invite").get_by_label("Name").fill("Ada")
    owner.get_by_role("button", name="Invite", exact=True).click()
    link = owner.locator("#invitation").inner_text()
    owner.reload()
    expect(owner.locator("#invitation")).to_have_count(0)
    expect(owner.get_by_role("form", name="ada")).to_have_count(1)

    guest.goto(link)
    expect(guest.get_by_role("heading")).to_have_text("Welcome, ada")
    guest.get_by_label("Password").fill("four words that hold")
    guest.get_by_role("button", name="Set password and sign in").click()
    guest.get_by_role("textbox", name="Question").fill("How do seeds change the spread of results?")
    guest.get_by_role("button", name="Ask", exact=True).click()
    expect(guest.locator("#turn-1 a.citation").first).to_be_visible()
    asked = guest.url
    owner.goto(asked)
    expect(owner.locator("main")).to_contain_text("There is no conversation")

    row = owner.goto(f"{group.url}/settings/people") and owner.get_by_role("form", name="ada")
    row.get_by_label("Role").select_option("reader")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_label("Role")).to_have_value("reader")
    for path in (urlsplit(asked).path, *PAGES):
        guest.goto(f"{group.url}{path}")
        expect(guest.locator("main")).to_be_visible()
        assert guest.evaluate(REFUSED) == [], path
    guest.goto(asked)
    expect(guest.locator("#turn-1 a.citation").first).to_be_visible()

    guest.get_by_role("button", name="Sign out").first.click()
    expect(guest.get_by_label("Password")).to_be_visible()
    guest.goto(asked)
    expect(guest.get_by_label("Password")).to_be_visible()
    guest.goto(link)
    expect(guest.get_by_role("heading")).to_have_text("This invitation is not valid")

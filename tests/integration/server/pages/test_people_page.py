"""A group's server in a browser: an invitation, a password, a question, and a memory that is one's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from citeloom.api.people import acting
from citeloom.stores.folder_home import find_home
from tests.integration.server.pages.conftest import Complaints
from tests.integration.server.pages.test_views import check_view
from tests.support.people import PASSWORD, add_person, signed_in
from tests.support.run_fixtures import ROOT
from tests.support.served_process import ServedProcess

PAPER = "obrien2019seeds"
PAGES = (
    *("/", "/library", f"/library/{PAPER}", f"/library/{PAPER}/read", "/write", "/check", "/tables", "/runs"),
    *("/settings", "/settings/people"),
)
# What a reader sees that would send something that a reader may not.
REFUSED = """() => [...document.querySelectorAll("form, [data-send], [data-suggest], [contenteditable], [type=file]")]
  .concat(...document.querySelectorAll("main a[href='/write']"))
  .filter((one) => one.checkVisibility() && !one.matches("[role=search], [method=get], [action^='/sign-out']"))
  .filter((one) => !one.matches("[action^='/settings/people/']")).map((one) => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def group(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    """A server whose home has accounts of an owner and two writers."""
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("group") / "home")
    for name in ("olga", "mira", "noor"):
        add_person(home, name, "owner" if name == "olga" else "writer")
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


def test_a_group_begins_on_the_page_and_its_links_are_copied(
    sample_home: Path, tmp_path: Path, window: Callable[..., BrowserContext], complaints: Complaints
) -> None:
    process = ServedProcess(shutil.copytree(sample_home, tmp_path / "home"), {"CHAT_MODEL": "extractive"})
    process.start()
    try:
        context = window(380)
        page = context.new_page()
        page.goto(f"{process.url}/settings")
        page.get_by_role("link", name="People").click()
        check_view(page, "the beginning of a group")
        page.get_by_label("Your name here").fill("Ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Create the owner's account").click()
        form = page.get_by_role("form", name="Invite")
        form.get_by_label("Name").fill("bo")
        form.get_by_role("button", name="Invite").click()
        page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text }")
        page.get_by_role("button", name="Copy").click()
        expect(page.locator("#toasts")).to_contain_text("Copied")
        assert page.evaluate("window.copied") == page.locator("#invitation").inner_text()
        page.get_by_label("What it is for").fill("my notebook")
        page.get_by_role("button", name="Create token").click()
        expect(page.get_by_role("button", name="Copy")).to_be_visible()
        page.goto(process.url)
        expect(page.get_by_role("banner")).to_contain_text("ada")
        check_view(page, "who is signed in")
        stranger = window().new_page()
        stranger.goto(process.url)
        expect(stranger.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    finally:
        process.stop()


def test_an_invited_person_sets_a_password_asks_and_signs_out(
    group: ServedProcess, window: Callable[..., BrowserContext], complaints: Complaints
) -> None:
    complaints.expected += ["404"]  # of what is somebody else's
    owner, guest = window().new_page(), window(380).new_page()
    owner.goto(f"{group.url}/settings/people")
    owner.get_by_label("Name").fill("Olga")
    owner.get_by_label("Password").fill(PASSWORD)
    owner.get_by_role("button", name="Sign in", exact=True).click()
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

    runs, nobody = find_home(group.home).runs(), acting.set("ada")
    runs.begin("paused-run", "f", "discussion", "Looms", {}, "v")
    runs.mark("paused-run", "paused", detail="The budget is reached.")
    acting.reset(nobody)
    row = owner.goto(f"{group.url}/settings/people") and owner.get_by_role("form", name="ada")
    row.get_by_label("Role").select_option("reader")
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_label("Role")).to_have_value("reader")
    for path in (urlsplit(asked).path, "/runs/paused-run", *PAGES):
        guest.goto(f"{group.url}{path}")
        expect(guest.locator("main")).to_be_visible()
        assert guest.evaluate(REFUSED) == [], path
    guest.goto(f"{group.url}/runs/paused-run")
    expect(guest.locator("#resume")).to_contain_text("The budget is reached.")
    expect(guest.locator("main")).to_contain_text("You are a reader here")
    guest.goto(asked)
    expect(guest.locator("#turn-1 a.citation").first).to_be_visible()

    guest.get_by_role("button", name="Sign out").first.click()
    expect(guest.get_by_label("Password")).to_be_visible()
    guest.goto(asked)
    expect(guest.get_by_label("Password")).to_be_visible()
    guest.goto(link)
    expect(guest.get_by_role("heading")).to_have_text("This invitation is not valid")


def share(page: Page, name: str, reads: bool) -> None:
    """Let a person read the open conversation, or no longer."""
    page.get_by_role("button", name="Share").click()
    page.get_by_role("checkbox", name=name).set_checked(reads)
    page.get_by_role("form", name="Share").get_by_role("button", name="Save").click()


def test_an_answer_shared_with_one_person_can_be_read_until_the_sharing_ends(
    group: ServedProcess, window: Callable[..., BrowserContext], complaints: Complaints
) -> None:
    complaints.expected += ["404"]
    pages = {}
    for name, width in (("mira", 1400), ("noor", 800)):
        with signed_in(group.url, name) as browser:
            cookies = [{"name": each.name, "value": str(each.value), "url": group.url} for each in browser.cookies.jar]
        context = window(width)
        context.add_cookies(cookies)  # type: ignore[arg-type]
        pages[name] = context.new_page()
    mira, noor = pages["mira"], pages["noor"]
    mira.goto(group.url)
    mira.get_by_role("textbox", name="Question").fill("How do seeds change the spread of results?")
    mira.get_by_role("button", name="Ask", exact=True).click()
    expect(mira.locator("#turn-1 a.citation").first).to_be_visible()
    link = f"{group.url}{mira.get_by_role('link', name='Link').get_attribute('href')}"
    noor.goto(link)
    expect(noor.locator("main")).to_contain_text("There is no conversation")
    brand, item = noor.locator(".brand").bounding_box(), noor.get_by_role("link", name="Library").bounding_box()
    assert brand and item and item["height"] <= 60 and brand["height"] <= 40, "no word of the menu is broken"

    share(mira, "noor", True)
    expect(mira.locator("#head")).to_contain_text("Shared with noor")
    noor.goto(group.url)
    if not noor.locator("#side").is_visible():
        noor.get_by_role("button", name="Conversations").click()
    noor.get_by_role("link", name="How do seeds change").filter(has_text="mira").click()
    expect(noor.locator("main")).to_contain_text("Shared by mira")
    assert noor.evaluate(REFUSED) == []
    expect(noor.get_by_role("link", name="Ask", exact=True)).to_be_visible()  # she asks questions of her own
    noor.locator("#turn-1 a.citation").first.click()
    expect(noor.locator("#panel")).to_contain_text("Citation 1")
    check_view(noor, "shared answer")

    share(mira, "noor", False)
    expect(mira.locator("#head")).not_to_contain_text("Shared with")
    noor.goto(link)
    expect(noor.locator("main")).to_contain_text("There is no conversation")


def test_suggestions_from_edits_are_remembered_changed_and_forgotten_per_person(
    group: ServedProcess, window: Callable[..., BrowserContext]
) -> None:
    with signed_in(group.url, "mira") as mira:
        experiment = json.loads((ROOT / "examples" / "exp.json").read_text(encoding="utf-8"))
        written = mira.post("/api/v1/sections/discussion", json={"experiment": experiment}, timeout=600)
        run = written.json()["thread_id"]
        for sentence in mira.get(f"/api/v1/runs/{run}/sentences").json()["sentences"]:
            if "wearers" in (said := sentence["text"]):
                said = said.replace("wearers", "participants").replace("windows", "segments")
                body = {"position": sentence["position"], "text": said, "keep": True, "check": False}
                assert mira.post(f"/api/v1/runs/{run}/sentences", json=body).status_code == 200
    page, other = window().new_page(), window(380).new_page()
    for one, name in ((page, "mira"), (other, "noor")):
        one.goto(f"{group.url}/settings")
        one.get_by_label("Name").fill(name)
        one.get_by_label("Password").fill(PASSWORD)
        one.get_by_role("button", name="Sign in", exact=True).click()
        one.get_by_role("link", name="Memory").click()
    expect(other.get_by_role("heading", name="No lines yet")).to_be_visible()
    expect(other.get_by_role("form", name="Proposal")).to_have_count(0)

    page.get_by_role("form", name="Proposal: segments, not windows").get_by_role("button", name="No").click()
    proposal = page.get_by_role("form", name="Proposal:")
    expect(proposal).to_have_count(1)
    proposal.locator("summary").click()
    expect(proposal.locator("del").first).to_contain_text("wearers")
    proposal.get_by_label("The line").fill("volunteers, not wearers")
    proposal.get_by_role("button", name="Remember it").click()
    expect(page.get_by_role("heading", name="1 line")).to_be_visible()
    new = page.get_by_role("form", name="New line")
    new.get_by_label("New line").fill("our cohort is called PANGEO-2")
    new.get_by_label("For everybody here").check()
    new.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="2 lines")).to_be_visible()
    line = page.get_by_role("form", name="Line: volunteers, not wearers")
    expect(line).to_contain_text("checked in each draft")
    line.get_by_label("The line").fill("x" * 300)
    line.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Delete: xxx").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("form", name="Line:")).to_have_count(1)
    check_view(page, "the memory")
    other.reload()
    expect(other.get_by_role("form", name="Line: our cohort is called PANGEO-2")).to_contain_text("everybody's")
    check_view(other, "the memory on a phone")


def test_a_passkey_works_until_it_is_revoked(
    group: ServedProcess, window: Callable[..., BrowserContext], complaints: Complaints
) -> None:
    pytest.importorskip("webauthn")
    complaints.expected += ["403"]  # of a passkey that was revoked
    url = group.url.replace("127.0.0.1", "localhost")  # passkeys are for names
    page = window().new_page()
    tools = page.context.new_cdp_session(page)
    tools.send("WebAuthn.enable")
    features = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    features |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    device = tools.send("WebAuthn.addVirtualAuthenticator", {"options": features})["authenticatorId"]
    page.goto(f"{url}/settings/people")
    page.get_by_label("Name").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.goto(f"{url}/settings/people")
    page.get_by_label("Where it is").fill("my laptop")
    page.get_by_role("button", name="Add passkey").click()
    revoke = page.get_by_role("button", name="Revoke my laptop")
    expect(revoke).to_be_visible()
    for _ in range(2):
        page.get_by_role("button", name="Sign out").first.click()
        page.goto(f"{url}/sign-in?next=/settings/people")
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("heading", name="Your passkeys")).to_be_visible()
    assert tools.send("WebAuthn.getCredentials", {"authenticatorId": device})["credentials"][0]["signCount"] == 3

    tools.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    revoke.click()
    expect(revoke).to_have_count(0)
    page.get_by_role("button", name="Sign out").first.click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator("#toasts")).not_to_be_empty()  # without a finger
    tools.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": True})
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator("#toasts")).to_contain_text("not valid here")

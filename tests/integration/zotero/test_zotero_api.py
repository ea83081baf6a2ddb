"""Zotero's local API: pages, versions, group libraries, and every way in which it may fail to answer well."""

from __future__ import annotations

import json

import pytest

from citeloom.errors import CiteloomError
from citeloom.settings.config import load_settings
from citeloom.zotero.local_api import LocalApi
from citeloom.zotero.zotero_records import ZoteroError, ZoteroLibrary
from citeloom.zotero.zotero_source import ZoteroRequest, open_source, read_zotero
from tests.support.made_zotero import MadeZotero, filled
from tests.support.zotero_server import ApiFault, ZoteroServer

LIBRARY = ZoteroLibrary()


async def test_a_long_list_is_read_in_pages(zotero: MadeZotero, api: ZoteroServer) -> None:
    filled(zotero, 300)
    content = await LocalApi(api.url).content(LIBRARY)
    assert content is not None and len(content.items) == 300
    assert [path for path in api.requests if "start=500" in path] and api.methods == {"GET"}


async def test_an_unchanged_library_takes_one_request(zotero: MadeZotero, api: ZoteroServer) -> None:
    filled(zotero, 3)
    first = await LocalApi(api.url).content(LIBRARY)
    assert first is not None and first.version == "Serv3rIdAbcd:1"
    api.requests.clear()
    assert await LocalApi(api.url).content(LIBRARY, first.version) is None and len(api.requests) == 1
    zotero.change("A0000001", title="Changed")
    assert await LocalApi(api.url).content(LIBRARY, first.version) is not None


async def test_the_version_number_of_an_old_zotero_is_ignored(zotero: MadeZotero) -> None:
    """It counts what was synchronized with zotero.org, not what was changed here."""
    filled(zotero, 1)
    with ZoteroServer(zotero, server_id="") as old:
        content = await LocalApi(old.url).content(LIBRARY)
        assert content is not None and content.version == ""
        assert await LocalApi(old.url).content(LIBRARY, "Serv3rIdAbcd:7") is not None


async def test_the_version_number_of_another_zotero_is_ignored(zotero: MadeZotero, api: ZoteroServer) -> None:
    filled(zotero, 1)
    assert await LocalApi(api.url).content(LIBRARY, "AnotherServe:999") is not None


def _page(records: object, total: int | None = None, **headers: str) -> ApiFault:
    body = json.dumps(records).encode()
    named = {"Content-Type": "application/json", **headers}
    return ApiFault(200, body, named if total is None else {**named, "Total-Results": str(total)})


RECORD = {"key": "AAAA1111", "data": {"key": "AAAA1111", "itemType": "book"}}
FAULTS = {
    "not allowed": (
        ApiFault(403, b"Local API is not enabled"),
        "403",
    ),
    "another program": (ApiFault(404, b"<html>"), "404"),
    "an error": (ApiFault(500, b"An error\noccurred \x1b[31m"), "500 .An error occurred"),
    "a long error": (ApiFault(500, b"x" * 1_000_000), "500"),
    "no JSON": (ApiFault(200, b"Nothing to see here."), "JSON"),
    "half an answer": (ApiFault(200, b'[{"key": "AAAA'), "JSON"),
    "nested too deeply": (ApiFault(200, b"[" * 100_000), "/api"),
    "no list": (_page({"error": "x"}), "collections"),
    "records that do not come": (_page([], 7), "\\b7\\b"),
    "a number of records beyond belief": (_page([RECORD], 10**9 - 1), "999,999,999"),
    "a redirect elsewhere": (ApiFault(302, b"", {"Location": "http://example.org/"}), "302"),
    "a wrong length": (ApiFault(200, b"", {"Content-Length": "9"}), "/api"),
}


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
async def test_an_unusable_answer_is_reported_in_one_line(api: ZoteroServer, fault: ApiFault, said: str) -> None:
    api.faults = [fault]
    with pytest.raises(ZoteroError, match=said) as raised:
        await LocalApi(api.url, seconds=2).content(LIBRARY)
    assert "\n" not in str(raised.value) and raised.value.help and len(str(raised.value)) < 500


async def test_a_zotero_that_does_not_answer_is_reported(api: ZoteroServer) -> None:
    api.faults = [ApiFault(hangs=True)]
    with pytest.raises(ZoteroError, match="within 0 s"):
        await LocalApi(api.url, seconds=0.2).content(LIBRARY)


async def test_an_answer_that_is_too_large_is_reported(api: ZoteroServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citeloom.zotero.local_api._MOST_BYTES", 3_000_000)
    api.faults = [ApiFault(200, b"[" + b"1," * 2_000_000 + b"1]")]
    with pytest.raises(ZoteroError, match="3 MB"):
        await LocalApi(api.url).content(LIBRARY)


async def test_a_library_that_changes_between_two_pages_is_read_again(zotero: MadeZotero, api: ZoteroServer) -> None:
    filled(zotero, 2)
    answer = [RECORD, RECORD]  # the same record twice: another one moved meanwhile
    version = {"Last-Modified-Version": "1", "Zotero-Server-ID": "Serv3rIdAbcd"}
    api.faults = [_page([], 0, **version), _page(answer, 2, **version)]
    content = await LocalApi(api.url).content(LIBRARY)
    assert content is not None and len(content.items) == 2


async def test_malformed_records_are_left_out_and_named(api: ZoteroServer) -> None:
    odd = [
        {"data": {"key": "../../etc", "itemType": "book"}},
        "text",
        {"key": "BBBB1111", "data": {"key": "BBBB1111", "itemType": ["book"], "creators": 3, "title": 5}},
        {
            "key": "CCCC1111",
            "data": {"key": "CCCC1111", "itemType": "book", "title": "A\0B\ud800", "creators": [1, {}]},
        },
    ]
    api.faults = [_page([], 0), _page(odd, 4)]
    content = await LocalApi(api.url).content(LIBRARY)
    assert content is not None
    assert [(item.key, item.title) for item in content.items] == [("CCCC1111", "AB?")]
    assert len(content.damaged) == 2


@pytest.mark.parametrize(
    "address",
    ["http://example.org:23119", "https://localhost:23119", "http://user@localhost", "http://localhost:99999",
     "http://localhost/elsewhere", "http://[::1", "http://127.0.0.1.example.org"],
)  # fmt: skip
def test_only_addresses_on_this_computer_are_accepted(address: str) -> None:
    with pytest.raises(CiteloomError, match="CITELOOM_ZOTERO"):
        LocalApi(address)


async def test_a_file_that_the_api_puts_elsewhere_is_not_read(zotero: MadeZotero, api: ZoteroServer) -> None:
    from citeloom.zotero.item_entry import FilePlaces, choose_file
    from citeloom.zotero.zotero_records import Attachment

    secret = zotero.folder.parent / "secret.pdf"
    secret.write_bytes(b"%PDF")
    (zotero.folder / "storage" / "FILE1111").mkdir()
    (zotero.folder / "storage" / "FILE1111" / "a.pdf").symlink_to(secret)
    for url, said in {
        secret.as_uri(): "outside of Zotero's storage",
        f"{zotero.folder.as_uri()}/storage/FILE1111/..%2F..%2F..%2Fsecret.pdf": "outside of Zotero's storage",
        f"{zotero.folder.as_uri()}/storage/FILE1111/a.pdf": "is a link out of Zotero's storage",
        "http://example.org/storage/FILE1111/a.pdf": "does not say where its file is",
        "file://example.org/storage/FILE1111/a.pdf": "does not say where its file is",
        "file:///nowhere/storage/FILE1111/a.pdf": "its file is missing",
        "": "does not say where its file is",
    }.items():
        found, problems = choose_file([Attachment("FILE1111", "A", "stored", "a.pdf", url=url)], FilePlaces(None, None))
        assert found is None and said in problems[0], (url, problems)


async def test_without_a_running_zotero_its_database_is_read(
    zotero: MadeZotero, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("citeloom.zotero.zotero_source.ADDRESS", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(zotero.folder.parent))
    reading = await read_zotero(load_settings(), ZoteroRequest(), on_notice=said.append)
    assert reading is not None and reading.source == str(zotero.folder / "zotero.sqlite")
    assert "it is not running. Reading its database" in said[0]


async def test_without_api_and_database_the_error_names_the_folder(
    monkeypatch: pytest.MonkeyPatch, zotero: MadeZotero
) -> None:
    monkeypatch.setattr("citeloom.zotero.zotero_source.ADDRESS", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(zotero.folder))
    with pytest.raises(ZoteroError, match="~/Zotero"):
        await open_source(load_settings(), lambda _: None)


async def test_only_a_named_address_is_contacted(monkeypatch: pytest.MonkeyPatch, zotero: MadeZotero) -> None:
    monkeypatch.setenv("HOME", str(zotero.folder.parent))
    with pytest.raises(ZoteroError, match=r"http://127\.0\.0\.1:9/api"):
        await read_zotero(load_settings(zotero="http://127.0.0.1:9"), ZoteroRequest())


async def test_an_unknown_group_is_refused_with_the_list_of_groups(api: ZoteroServer) -> None:
    with pytest.raises(CiteloomError, match=r"--group Weaver:.*'Weavers'"):
        await read_zotero(load_settings(zotero=api.url), ZoteroRequest("Weaver"))

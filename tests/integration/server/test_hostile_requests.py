"""Hostile requests, each with the status it is promised; the server answers the next request as before."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from citeloom.ingestion import paper_matching
from citeloom.ingestion.paper_matching import EntryError
from citeloom.server.job import Emit
from citeloom.server.server_options import COOKIE, Tokens
from citeloom.stores.server_jobs import JobOrder
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

TOKEN = "a-token-of-enough-characters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ASK = "/api/v1/research"
JSON = {"Content-Type": "application/json"}
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a token and small limits."""
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("hostile") / "home")
    limits = {"max_body": MEBIBYTE, "max_upload": 2 * MEBIBYTE, "per_minute": 100_000, "max_streams": 3}
    with served_app(home, token=SecretStr(TOKEN), **limits) as server:
        yield server


@pytest.fixture
def stranger(served: Served) -> Iterator[httpx.Client]:
    """A client without a token."""
    with httpx.Client(base_url=served.url, timeout=300) as client:
        yield client


def body(**fields: Any) -> dict[str, Any]:
    return {"content": json.dumps({"question": "What of it?", **fields}).encode(), "headers": JSON}


def text(content: str | bytes, media_type: str = "application/json") -> dict[str, Any]:
    return {"content": content, "headers": {"Content-Type": media_type}}


def header(**headers: str) -> dict[str, Any]:
    return {"headers": {name.replace("_", "-"): value for name, value in headers.items()}}


def file(name: str, content: bytes = b"# T\n\nText.", media_type: str = "application/octet-stream") -> dict[str, Any]:
    return {"files": [("files", (name, content, media_type))]}


REQUESTS: dict[str, tuple[str, str, dict[str, Any], int]] = {
    # Another site's page, or a name that was pointed at this machine
    "host of another site": ("GET", "/api/v1/runs", header(Host="evil.example"), 421),
    "host that begins with ours": ("GET", "/api/v1/runs", header(Host="localhost.evil.example"), 421),
    "host with a user": ("GET", "/api/v1/runs", header(Host="localhost@evil.example"), 421),
    "host that is no address": ("GET", "/api/v1/runs", header(Host="[::1"), 421),
    "host with a path": ("GET", "/api/v1/runs", header(Host="localhost/x"), 421),
    "empty host": ("GET", "/api/v1/runs", header(Host=""), 421),
    "origin null": ("POST", ASK, {**body(), "headers": JSON | {"Origin": "null"}}, 403),
    "origin of another site": ("POST", ASK, {**body(), "headers": JSON | {"Origin": "https://evil.example"}}, 403),
    "origin on another port": ("POST", ASK, {**body(), "headers": JSON | {"Origin": "http://127.0.0.1:1"}}, 403),
    "origin that is no address": ("POST", ASK, {**body(), "headers": JSON | {"Origin": "http://["}}, 403),
    "cross-site post": ("POST", ASK, {**body(), "headers": JSON | {"Sec-Fetch-Site": "cross-site"}}, 403),
    "same-site post": ("POST", ASK, {**body(), "headers": JSON | {"Sec-Fetch-Site": "same-site"}}, 403),
    "cross-site delete": ("DELETE", "/api/v1/runs/x", header(Sec_Fetch_Site="cross-site"), 403),
    "cross-site image": ("GET", "/api/v1/runs", header(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors"), 403),
    "foreign referer with the origin": (
        "POST",
        ASK,
        {**body(), "headers": JSON | {"Origin": "https://evil.example", "Referer": "https://evil.example/"}},
        403,
    ),
    "form of text": ("POST", ASK, text('{"question": "What of it?"}', "text/plain"), 422),
    "form of fields": ("POST", ASK, text("question=What", "application/x-www-form-urlencoded"), 422),
    "large form to a route without uploads": ("POST", ASK, file("a.md", b"x" * (MEBIBYTE + 1)), 413),
    # Ids and keys that look like paths or commands
    "run that climbs": ("GET", "/api/v1/runs/..%2f..%2fetc%2fpasswd", {}, 404),
    "run with a null": ("GET", "/api/v1/runs/research%00", {}, 404),
    "run with a quote": ("GET", "/api/v1/runs/x'%20OR%201=1--", {}, 404),
    "run with a line break": ("GET", "/api/v1/runs/x%0d%0aSet-Cookie:%20a=b", {}, 404),
    "run with a wildcard": ("DELETE", "/api/v1/runs/%25", {}, 404),
    "run by one letter": ("DELETE", "/api/v1/runs/r", {}, 404),
    "conversation that climbs": ("GET", "/api/v1/conversations/..%2f..%2fhome", {}, 404),
    "conversation of bytes that are no text": ("GET", "/api/v1/conversations/%ff%fe", {}, 404),
    "events of a path": ("GET", "/api/v1/runs/..%2f..%2fx/events", {}, 404),
    "ingest that climbs": ("GET", "/api/v1/ingests/..%2f..%2f", {}, 404),
    "paper that climbs": ("GET", "/api/v1/papers/..%2f..%2f..%2fetc%2fpasswd", {}, 404),
    "paper with an absolute path": ("GET", "/api/v1/papers//etc/passwd", {}, 404),
    "deleted paper that climbs": ("DELETE", "/api/v1/papers/..%2f..%2fhome", {}, 404),
    "long id": ("GET", f"/api/v1/runs/{'a' * 30_000}", {}, 404),
    # Bodies
    "no body": ("POST", ASK, {"headers": JSON}, 422),
    "no JSON": ("POST", ASK, text("{"), 422),
    "null for everything": ("POST", ASK, text("null"), 422),
    "list for everything": ("POST", ASK, text("[]"), 422),
    "null question": ("POST", ASK, body(question=None), 422),
    "empty question": ("POST", ASK, body(question="   "), 422),
    "question of half a character": ("POST", ASK, text(r'{"question": "\ud800"}'), 422),
    "field of half a character": ("POST", ASK, text(r'{"question": "q", "\udfff": 1}'), 422),
    "long question": ("POST", ASK, body(question="x" * 5000), 422),
    "unknown field": ("POST", ASK, body(home="/etc"), 422),
    "file among the settings": ("POST", ASK, body(csl="/etc/passwd"), 422),
    "key of a paper that climbs": ("POST", ASK, body(papers=["../../x"]), 404),
    "deep JSON": ("POST", ASK, text("[" * 100_000 + "]" * 100_000), 400),
    "number of 5,000 digits": ("POST", ASK, text('{"question": "q", "max_calls": ' + "9" * 5000 + "}"), 400),
    "infinite cost": ("POST", ASK, text('{"question": "q", "max_cost": Infinity}'), 422),
    "negative budget": ("POST", ASK, body(max_calls=-1), 422),
    "body over the limit": ("POST", ASK, text(b"x" * (MEBIBYTE + 1)), 413),
    "chunked body over the limit": ("POST", ASK, text(b"x" * 1024 for _ in range(1025)), 413),  # type: ignore[arg-type]
    "experiment with half a character": (
        "POST",
        "/api/v1/sections/methods",
        text(r'{"experiment": {"a": "\ud800"}}'),
        422,
    ),
    "section of no kind": ("POST", "/api/v1/sections/..%2fpaper", text('{"experiment": {}}'), 404),
    "key with a line break": ("POST", ASK, {**body(), "headers": JSON | {"Idempotency-Key": "a b"}}, 422),
    "long idempotency key": ("POST", ASK, {**body(), "headers": JSON | {"Idempotency-Key": "k" * 300}}, 422),
    "offset of 5,000 digits": ("GET", f"/api/v1/runs?offset={'9' * 5000}", {}, 422),
    "limit below zero": ("GET", "/api/v1/runs?limit=-1", {}, 422),
    "query of nothing": ("GET", "/api/v1/search?q=%00", {}, 422),
    "unknown search mode": ("GET", "/api/v1/search?q=x&mode=..%2f", {}, 422),
    # Uploads
    "upload of an image": ("POST", "/api/v1/papers", file("a.svg", b"<svg onload=alert(1)>", "image/svg+xml"), 422),
    "upload of a program": ("POST", "/api/v1/papers", file("a.exe", b"MZ"), 422),
    "upload of an archive": ("POST", "/api/v1/papers", file("42.zip", b"PK\3\4"), 422),
    "upload with two endings": ("POST", "/api/v1/papers", file("a.pdf.exe", b"MZ"), 422),
    "upload without a name": ("POST", "/api/v1/papers", file("...", b"x"), 422),
    "upload of an empty file": ("POST", "/api/v1/papers", file("a.md", b""), 422),
    "upload over the limit": ("POST", "/api/v1/papers", file("a.md", b"x" * (2 * MEBIBYTE + 1)), 413),
    "upload of nothing": ("POST", "/api/v1/papers", {}, 422),
    # Methods
    "method of another": ("PUT", "/api/v1/runs", {}, 405),
    "method that is overridden": ("GET", "/api/v1/health", header(X_HTTP_Method_Override="DELETE"), 200),
    "trace": ("TRACE", "/api/v1/runs", {}, 405),
}


@pytest.mark.parametrize(("method", "path", "options", "status"), REQUESTS.values(), ids=REQUESTS)
def test_a_hostile_request_is_answered_safely(
    served: Served, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    given = {**options, "headers": BEARER | options.get("headers", {})}
    with httpx.Client(base_url=served.url, timeout=300) as client:
        answer = client.request(method, path, **given)
        assert answer.status_code == status, answer.text
        assert client.get("/api/v1/ready", headers=BEARER).status_code == 200
    require_safe(answer)
    assert "set-cookie" not in answer.headers and "/etc" not in answer.headers.get("location", "")
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status and len(answer.text) < 40_000


def require_safe(answer: httpx.Response) -> None:
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers


RAW: dict[str, tuple[str, int]] = {
    "no host": ("GET /api/v1/health HTTP/1.1\r\n", 421),
    "two hosts": ("GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n", 421),
    "address of a proxy": ("GET http://evil.example/api/v1/runs HTTP/1.1\r\nHost: evil.example\r\n", 421),
    "length that is no number": ("POST {ask} HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n", 400),
    "negative length": ("POST {ask} HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n", 400),
    "two lengths": ("POST {ask} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n", 400),
    "length of 5,000 digits": (f"POST {{ask}} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {'9' * 5000}\r\n", 400),
    "huge length": ("POST {ask} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n{bearer}", 413),
    "length and chunks": (
        "POST {ask} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        400,
    ),
    "two origins": (
        "POST {ask} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n",
        403,
    ),
    "upgrade to a socket": (
        "GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n",
        401,
    ),
    "tunnel": ("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n", 400),
    "method that does not exist": ("BREW /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n", 400),
    "no HTTP": ("\x16\x03\x01\r\n", 400),
}


@pytest.mark.parametrize(("request_", "status"), RAW.values(), ids=RAW)
def test_a_malformed_request_is_refused_and_the_server_stays_ready(served: Served, request_: str, status: int) -> None:
    signed_in = f"Authorization: Bearer {TOKEN}\r\n"
    answer = served.raw((request_.format(ask=ASK, bearer=signed_in) + "\r\n").encode("latin-1"))
    assert answer.split(b" ", 2)[1] == str(status).encode(), answer
    assert served.api.get("/ready").status_code == 200


SIGNED_OUT: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, ""),
    "another token": ({"Authorization": f"Bearer {TOKEN}x"}, ""),
    "a part of the token": ({"Authorization": f"Bearer {TOKEN[:-1]}"}, ""),
    "an empty token": ({"Authorization": "Bearer"}, ""),
    "another scheme": ({"Authorization": f"Basic {TOKEN}"}, ""),
    "a token in the address": ({}, f"?token={TOKEN}&access_token={TOKEN}"),
    "a token as the cookie": ({"Cookie": f"{COOKIE}={TOKEN}"}, ""),
    "a made-up session": ({"Cookie": f"{COOKIE}={'a' * 43}"}, ""),
    "a signed cookie of an earlier version": ({"Cookie": f"{COOKIE}=99999999999.{'0' * 64}"}, ""),
    "a session of half a character": ({"Cookie": f"{COOKIE}=\udc80"}, ""),
    "a session of another's SQL": ({"Cookie": f"{COOKIE}=' OR 1=1 --"}, ""),
    "a cookie of no number": ({"Cookie": f"{COOKIE}=²³.{'0' * 64}"}, ""),
    "a cookie of 5,000 digits": ({"Cookie": f"{COOKIE}={'9' * 5000}.0"}, ""),
    "a forwarded address": ({"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"}, ""),
}


@pytest.mark.parametrize(("headers", "query"), SIGNED_OUT.values(), ids=SIGNED_OUT)
def test_only_the_token_signs_in(stranger: httpx.Client, headers: dict[str, str], query: str) -> None:
    sent = [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers.items()]
    for path in ("/api/v1/runs", "/api/v1/openapi.json", "/api/v1/metrics", "/api/v1/papers/x/text"):
        answer = stranger.get(f"{path}{query}", headers=sent)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in answer.text and TOKEN not in str(answer.headers)
        require_safe(answer)


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, own: bytes) -> bool:
        compared.append((given, own))
        return given == own

    monkeypatch.setattr("hmac.compare_digest", compare)
    tokens = Tokens(SecretStr(TOKEN))
    assert tokens.valid_header(f"Bearer {TOKEN}") and not tokens.valid_header("Bearer x")
    assert len(compared) == 2


def test_only_the_health_route_is_open_to_all(stranger: httpx.Client) -> None:
    assert stranger.get("/api/v1/health").json() == {"status": "ok"}
    assert stranger.get("/api/v1/ready").status_code == 401


def test_a_page_that_needs_a_token_redirects_to_the_sign_in(stranger: httpx.Client) -> None:
    answer = stranger.get("/library?token=x", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/library")


def test_more_streams_than_permitted_are_refused_until_one_is_closed(served: Served, stranger: httpx.Client) -> None:
    thread_id = served.conversation()
    release = asyncio.Event()

    async def work(emit: Emit) -> dict[str, Any]:
        emit("stage", {"text": "working"})
        await release.wait()
        return {}

    order = JobOrder(thread_id, "turn", {})
    served.run(served.state.jobs.start(order, work))
    path = f"/api/v1/conversations/{thread_id}/events"
    with ExitStack() as streams:
        opened = [streams.enter_context(stranger.stream("GET", path, headers=BEARER)) for _ in range(3)]
        lines = [answer.iter_lines() for answer in opened]
        assert all(next(each) for each in lines)
        refused = stranger.get(path, headers=BEARER)
        assert (refused.status_code, refused.json()["detail"]) == (429, "Too many event streams are open.")
        assert refused.headers["retry-after"] and served.api.get("/runs").status_code == 200
    served.run(served.state.jobs.stop(thread_id))
    assert served.events(f"/conversations/{thread_id}/events")[-1].name == "stopped"


def test_a_client_that_sends_too_many_requests_has_to_wait(home: Path) -> None:
    with served_app(home, per_minute=3) as served:
        spoofed = [served.api.get("/health", headers={"X-Forwarded-For": f"10.0.0.{place}"}) for place in range(4)]
    assert [answer.status_code for answer in spoofed] == [200, 200, 200, 429]
    assert spoofed[-1].headers["retry-after"] == "60"


def test_an_entry_that_is_slow_to_read_delays_nobody(
    served: Served, stranger: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, release = threading.Event(), threading.Event()

    def read(*_: object, **__: object) -> None:
        reading.set()
        assert release.wait(300)
        raise EntryError("released")

    monkeypatch.setattr(paper_matching, "parse_bibliography", read)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(served.api.put, "/papers/obrien2019seeds/entry", json={"bibtex": "@a{" * 6_000})
        assert reading.wait(300)
        try:
            assert stranger.get("/api/v1/health", timeout=10).status_code == 200
        finally:
            release.set()
    assert sent.result().status_code == 422


def test_an_unexpected_error_reveals_no_internals(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ValueError(f"secret of the inside, {TOKEN[:0]}")

    with monkeypatch.context() as patch:
        patch.setattr(type(served.state.session.library), "papers", broken)
        answer = served.api.get(f"/papers?q={TOKEN}")
    assert answer.status_code == 500 and "secret" not in answer.text
    require_safe(answer)
    assert "secret of the inside" in caplog.text and TOKEN not in caplog.text


def test_the_name_of_an_upload_never_leads_out_of_its_folder(home: Path) -> None:
    outside = home.parent / "outside.md"
    outside.write_text("mine", encoding="utf-8")
    names = ["../../outside.md", "..\\..\\outside.md", "/etc/cron.d/x.md", "C:\\x.md", ".hidden.md", "a\u202egnp.md"]
    with served_app(home) as served:
        for name in names:
            sent = served.api.post("/papers", files=[("files", (name, b"# T of it\n\nText of it.", "text/plain"))])
            assert sent.status_code == 202, name
            served.events(f"/ingests/{sent.json()['id']}/events")
    stored = [path.relative_to(home / "papers") for path in (home / "papers").rglob("*.md")]
    assert stored and all(len(path.parts) == 2 and not path.name.startswith(".") for path in stored)
    assert outside.read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in home.parent.iterdir()) == ["home", "outside.md"]


BOMBS = {
    "zip bomb": ("bomb.docx", lambda: _zip({"word/document.xml": b" " * 300_000_000})),
    "zip that climbs": ("climb.epub", lambda: _zip({"../../outside.txt": b"x"})),
    "page for another format": ("page.pdf", lambda: b"<script>alert(1)</script>"),
    "binary as text": ("binary.md", lambda: b"\0\1\2"),
    "outer entity": (
        "entity.xml",
        lambda: b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><article><body>&x;</body></article>',
    ),
}


@pytest.mark.parametrize(("name", "content"), BOMBS.values(), ids=BOMBS)
def test_a_file_that_cannot_be_a_paper_is_refused_with_its_reason(
    served: Served, name: str, content: Callable[[], bytes]
) -> None:
    sent = served.api.post("/papers", files=[("files", (name, content(), "application/octet-stream"))])
    report = served.events(f"/ingests/{sent.json()['id']}/events")[-1].data["result"]
    (refused,) = report["refused"]
    assert refused["name"] == name and refused["reason"]
    assert "root:" not in json.dumps(report) and str(served.state.session.home.root) not in json.dumps(report)
    folder = served.state.session.home.papers
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def _zip(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()

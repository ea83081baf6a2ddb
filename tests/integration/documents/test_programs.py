"""Programs that read other people's files: limited, killed when their work is cancelled, ended with Citeloom."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.documents.pandoc import PandocError, PandocLimitError, pandoc
from citeloom.documents.sandbox import OutOfTimeError, in_thread, run
from tests.support.late_timer import expire_after

PATIENCE = 300.0  # seconds, before a test that would hang fails instead
# A program that reports on a socket that it runs, and ignores every signal that can be ignored.
PROGRAM = """\
import signal, socket, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
line.sendall(b"here")
line.recv(1)
"""
# The command line with that program instead of pandoc.
COMMAND = """\
import sys
import pypandoc
pypandoc.get_pandoc_path = lambda: sys.argv[1]
program, sys.argv = sys.argv[1], ["cli.py", *sys.argv[2:]]
pypandoc.get_pandoc_path = lambda: program
from citeloom.cli import main
main()
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        yield server


def command(listener: socket.socket) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(listener.getsockname()[1])]


def came(listener: socket.socket) -> socket.socket:
    line, _ = listener.accept()
    line.settimeout(PATIENCE)
    assert line.recv(4) == b"here"
    return line


def ended(line: socket.socket) -> bool:
    """Whether the program at the other end has ended; raises TimeoutError if it still runs."""
    with line:
        try:
            return line.recv(1) == b""
        except ConnectionResetError:
            return True


def test_a_program_is_killed_at_its_time_limit(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[socket.socket] = []
    expire_after(monkeypatch, lambda: lines.append(came(listener)))
    with pytest.raises(OutOfTimeError):
        run(command(listener), seconds=0.1)
    assert ended(lines[0])


async def test_a_program_is_killed_when_its_work_is_cancelled(listener: socket.socket) -> None:
    work = asyncio.ensure_future(in_thread(run, command(listener), seconds=PATIENCE))
    line = await asyncio.to_thread(came, listener)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await asyncio.to_thread(ended, line)


async def test_cancelled_work_starts_no_other_program(listener: socket.socket) -> None:
    def two() -> None:
        try:
            run(command(listener), seconds=PATIENCE)
        finally:
            run(command(listener), seconds=PATIENCE)

    work = asyncio.ensure_future(in_thread(two))
    line = await asyncio.to_thread(came, listener)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await asyncio.to_thread(ended, line)
    await asyncio.get_running_loop().shutdown_default_executor()
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_pandoc_ends_with_the_command_that_started_it(
    number: signal.Signals, listener: socket.socket, tmp_path: Path
) -> None:
    program = tmp_path / "pandoc"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.argv[1] = '{listener.getsockname()[1]}'\n{PROGRAM}")
    program.chmod(0o755)
    (tmp_path / "papers").mkdir()
    for name in ("a.html", "b.html"):
        (tmp_path / "papers" / name).write_text("<p>Looms weave cloth.</p>", encoding="utf-8")
    ours = subprocess.Popen(
        [sys.executable, "-c", COMMAND, program, "ingest", "papers", "--home", "home"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = came(listener)
    ours.send_signal(number)
    assert ended(line)
    _, said = ours.communicate(timeout=PATIENCE)
    assert ours.returncode != 0 and "Traceback" not in said
    if number is signal.SIGINT:
        assert "same command" in said


def test_external_programs_get_no_api_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "CITELOOM_CHAT_API_KEY", "GHCRTS", "NO_PROXY"):
        monkeypatch.setenv(name, "sk-secret")
    shown = tmp_path / "pandoc"
    shown.write_text(f"#!{sys.executable}\nimport os\nprint(dict(os.environ))\n")
    shown.chmod(0o755)
    monkeypatch.setattr("pypandoc.get_pandoc_path", lambda: str(shown))
    environment = pandoc([], seconds=PATIENCE, megabytes=100).decode()
    assert "sk-secret" not in environment and "127.0.0.1:9" in environment


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.stderr.write('first\\nsecond\\n' + 'x' * 10**7); sys.exit(3)", "first second xxx"),
        ("import sys; sys.exit(251)", "more than 100 MB of memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "limits of time or output"),
        (
            "import os, sys\ntry:\n  while True: os.write(1, b'x' * 2**24)\nexcept OSError as e: sys.exit(e.strerror)",
            "File too large",
        ),
        ("while True: pass", "within 1 seconds"),
    ],
    ids=["a long complaint", "its own limit of memory", "killed", "output without end", "no end"],
)
def test_a_failure_of_pandoc_is_reported_in_one_line(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "pandoc"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr("pypandoc.get_pandoc_path", lambda: str(script))
    seconds = 1 if said == "within 1 seconds" else PATIENCE
    with pytest.raises(PandocError, match=said) as failed:
        pandoc([], seconds=seconds, megabytes=100)
    assert len(str(failed.value)) < 300 and "\n" not in str(failed.value)


def test_the_memory_of_pandoc_itself_is_limited(tmp_path: Path) -> None:
    wide = tmp_path / "wide.html"
    wide.write_text("<table><tr><td colspan=1000000000 rowspan=1000000>x</td></tr></table>", encoding="utf-8")
    with pytest.raises(PandocLimitError, match="64 MB"):
        pandoc(["--from", "html", "--to", "gfm", "--", str(wide)], seconds=PATIENCE, megabytes=64)


def test_a_missing_program_is_reported() -> None:
    done = run(["/nowhere/pandoc"], seconds=PATIENCE)
    assert done.code == 127 and "No such file" in done.errors

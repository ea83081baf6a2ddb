"""The wheel: it contains everything that the package needs, and works without the rest of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.cli_process import ROOT
from tests.support.served_home import address_of

OUTSIDE = {"tests", "docs", "editors", "examples", "bench"}  # folders that are not part of the package
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS: dict[str, Any] = PROJECT["tool"]["setuptools"]


def project_files() -> list[Path]:
    """The files that are or will be in version control, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def package_of(file: Path) -> str:
    """The dotted name of the nearest package that holds a file."""
    folders = [folder for folder in file.parents if (ROOT / folder / "__init__.py").is_file()]
    return ".".join(["citeloom", *folders[0].parts])


def test_every_package_and_data_file_is_declared() -> None:
    inside = [file for file in project_files() if file.parts[0] not in OUTSIDE and len(file.parts) > 1]
    code = {package_of(file) for file in inside if file.suffix == ".py"} | {"citeloom"}
    assert sorted(SETUPTOOLS["packages"]) == sorted(code)
    data = [file for file in inside if file.suffix != ".py" and not file.parts[0].startswith(".")]
    forgotten = []
    for file in data:
        package = package_of(file)
        within = file.relative_to(Path(*package.split(".")[1:]))
        globs = SETUPTOOLS["package-data"].get(package, [])
        if not any(fnmatch(str(within), glob.replace("**/", "")) for glob in globs):
            forgotten.append(str(file))
    assert not forgotten


@pytest.mark.long
def test_the_wheel_works_in_another_folder(tmp_path: Path) -> None:
    """Installed with its declared dependencies into a clean environment, it ingests, answers and serves."""
    source, elsewhere = tmp_path / "source", tmp_path / "elsewhere"
    for file in project_files():
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, source / file)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    binaries = tmp_path / "venv" / "bin"
    constraints = ROOT / "constraints.txt"
    run(binaries / "pip", "install", "--quiet", "-c", constraints, f"{wheel}[server]", cwd=tmp_path)
    shutil.copytree(ROOT / "examples" / "library", elsewhere / "papers")
    shutil.rmtree(source)

    version = f"citeloom {PROJECT['project']['version']}\n"
    assert run(binaries / "citeloom", "--version", cwd=elsewhere) == version
    assert run(binaries / "python", "-m", "citeloom", "--version", cwd=elsewhere) == version
    run(binaries / "citeloom", "ingest", "papers", "--bib", "papers/library.bib", cwd=elsewhere)
    process = subprocess.Popen(
        [binaries / "citeloom", "serve", "--port", "0"], cwd=elsewhere, env=clean(), stderr=subprocess.PIPE, text=True
    )
    try:
        url = address_of(process)
        asked = {"model": "citeloom", "messages": [{"role": "user", "content": "How do seeds matter?"}]}
        answer = httpx.post(f"{url}/v1/chat/completions", json=asked, timeout=300).raise_for_status().json()
        assert "[1]" in answer["choices"][0]["message"]["content"]
    finally:
        process.terminate()
        process.communicate()


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=clean(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean() -> dict[str, str]:
    """The environment without anything of this one that Python or Citeloom would read."""
    foreign = ("CITELOOM_", "OPENAI_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}

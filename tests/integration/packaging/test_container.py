"""The container's files agree with each other and with the program; no container runs in the tests."""

from __future__ import annotations

import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli_process import ROOT, start

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["citeloom"]


def test_the_image_starts_a_server_that_requires_a_token(tmp_path: Path) -> None:
    (command,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    program, *arguments = json.loads(command)
    assert program == "citeloom"
    out, err = start("--home", tmp_path / "home", *arguments, cwd=tmp_path).communicate()
    assert not out and "Set CITELOOM_SERVER_TOKEN" in err


def test_a_missing_secret_is_reported(tmp_path: Path) -> None:
    named = {name.removeprefix("CITELOOM_"): value for name, value in SERVICE["environment"].items() if "TOKEN" in name}
    assert named == {"SERVER_TOKEN_FILE": f"/run/secrets/{SERVICE['secrets'][0]}"}
    _, err = start("--home", tmp_path / "home", "serve", cwd=tmp_path, settings=named).communicate()
    assert "Error: CITELOOM_SERVER_TOKEN_FILE: /run/secrets/citeloom_token: cannot be read" in err


def test_the_service_runs_as_the_images_user_and_writes_only_to_its_volume() -> None:
    assert f"\nUSER {SERVICE['user']}\n" in DOCKERFILE and f"--uid {SERVICE['user'].partition(':')[0]} " in DOCKERFILE
    assert SERVICE["read_only"] is True and SERVICE["cap_drop"] == ["ALL"]
    assert [volume for volume in SERVICE["volumes"] if not volume.endswith(":ro")] == ["library:/library"]
    assert "CITELOOM_HOME=/library" in DOCKERFILE
    assert SERVICE["ports"] == ["127.0.0.1:8765:8765"]


@pytest.mark.parametrize("named", ["pyproject.toml", "constraints.txt", "README.md", "LICENSE", "py.typed", "cli.py"])
def test_dockerignore_keeps_what_the_build_needs(named: str) -> None:
    assert _sent(named)


def test_every_package_and_no_secret_is_sent_to_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["setuptools"]["packages"]
    assert all(_sent(package.split(".")[1]) for package in packages if "." in package)
    assert not any(map(_sent, (".env", "citeloom-token.txt", ".citeloom", ".git", ".venv", "tests", "papers")))


def _sent(name: str) -> bool:
    """Whether `.dockerignore` lets a file or folder of the root through: the last line that fits decides."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    fitting = [line for line in lines if fnmatch(name, line.removeprefix("!"))]
    return fitting[-1].startswith("!")

"""Finds a chat model, tries it, and writes it to the user's settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..documents.safe_files import replace_file
from ..errors import InputError
from ..models.chat_caller import chat_identity, chat_model
from ..models.http.endpoints import (
    USUAL_PORTS as USUAL_PORTS,
    FoundServer as FoundServer,
    find_servers as find_servers,
    models_at as models_at,
)
from ..settings.config import load_settings


async def atry_model(model: str, url: str) -> None:
    """Make one small call; raises `InputError` if it fails."""
    settings = load_settings(chat_model=model, chat_base_url=url)
    try:
        await chat_model(settings, "writer").ainvoke("Answer with the word OK.", max_tokens=64)
    except InputError:
        raise
    except Exception as error:
        said = chat_identity(settings, "writer").without_secret(" ".join(str(error).split()))[:300]
        raise InputError(
            f"{url}: {model} did not answer ({type(error).__name__}: {said}).",
            help="Nothing was written. Check the server, the model's name and the key.",
        ) from error


def write_settings(file: Path, values: dict[str, str]) -> None:
    """Set values in a TOML file, leaving other lines unchanged."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        tables = next((place for place, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
        names = "|".join(map(re.escape, values))
        kept = [line for line in lines[:tables] if not re.match(rf"\s*(?:{names})\s*=", line)]
        given = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, "\n".join([*kept, *given, *lines[tables:], ""]).encode("utf-8"), private=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read or written ({error}).") from error

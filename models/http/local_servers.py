"""Finds chat models that can be used at once: OpenAI's with a key in the environment, and servers on this machine."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final

from ...settings.config import OPENAI_BASE_URL

USUAL_PORTS: Final[Mapping[str, int]] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
_OPENAI_MODEL: Final = "gpt-4.1-mini"
_SECONDS: Final = 2.0
_MOST_BYTES: Final = 1_000_000
_NO_CHAT: Final = ("embed", "rerank", "whisper", "tts", "bge-")


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A server of chat models, with the names of those that it offers."""

    name: str
    base_url: str
    models: tuple[str, ...]


def find_servers(ports: Mapping[str, int] = USUAL_PORTS) -> list[FoundServer]:
    """OpenAI if its key is in the environment, then the servers that answer on their usual local ports; blocks."""
    found: list[FoundServer] = []
    if os.environ.get("OPENAI_API_KEY", "").strip():
        found.append(FoundServer("OpenAI", OPENAI_BASE_URL, (_OPENAI_MODEL,)))
    urls = {name: f"http://localhost:{port}/v1" for name, port in ports.items()}
    with ThreadPoolExecutor(len(urls) or 1) as threads:
        offered = dict(zip(urls, threads.map(models_at, urls.values()), strict=True))
    found += [FoundServer(name, urls[name], models) for name, models in offered.items() if models]
    return found


def models_at(base_url: str) -> tuple[str, ...]:
    """The chat models that a server lists; empty if none answers there. Only for addresses without a key."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{base_url.rstrip('/')}/models", timeout=_SECONDS) as answer:
            listed = json.loads(answer.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError, HTTPException):
        return ()
    return tuple(_names(listed.get("data") if isinstance(listed, dict) else None))


def _names(listed: object) -> Iterator[str]:
    for item in listed if isinstance(listed, Sequence) else ():
        name = item.get("id") if isinstance(item, dict) else None
        if isinstance(name, str) and name and not any(word in name.lower() for word in _NO_CHAT):
            yield name

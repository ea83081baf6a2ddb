"""setup: find a chat model, try one call, and write the user's settings file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..api.messages import command
from ..errors import InputError
from .output import notice, result
from .terminal_text import one_line


def setup(
    model: Annotated[str | None, typer.Option(help="Chat model. Default: one that is found.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint. Default: one that is found.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take the first that is found, without asking.")] = False,
) -> None:
    """Choose a chat model, try one call, and write it to your own settings file.

    Looks for an OPENAI_API_KEY, and for a server of Ollama, LM Studio, llama.cpp or vLLM on its usual local port.
    Keys are not written: they stay in the environment.

    Example: citeloom setup --yes
    """
    from ..api.blocking import run_async
    from ..api.model_setup import atry_model, write_settings
    from ..settings.key_trust import user_configuration

    asking = not yes and sys.stdin.isatty()
    if not asking and not yes:
        raise InputError("There is no terminal to ask on.", help="Give --yes to take the first model that is found.")
    url, name = _chosen(model, base_url, asking=asking)
    run_async(atry_model(name, url))
    file = user_configuration()
    if asking and not typer.confirm(f"{name} answers. Write it to {file}?", default=True):
        raise typer.Exit(0)
    write_settings(file, {"chat_model": name, "chat_base_url": url})
    result(one_line(f"{name} at {url} answers, and is now the chat model ({file})."))
    result(f"Next: {command('ingest PAPERS --bib FILE')}")


def _chosen(model: str | None, base_url: str | None, *, asking: bool) -> tuple[str, str]:
    from ..api.model_setup import USUAL_PORTS, FoundServer, find_servers, models_at
    from ..settings.config import OPENAI_BASE_URL

    if base_url is not None:
        found = [FoundServer("server", base_url, (model,) if model else models_at(base_url))]
    else:
        found = find_servers()
        for server in found:
            notice(f"Found {server.name} at {server.base_url} ({', '.join(server.models[:5])})")
    if model is not None and base_url is None:
        having = [server for server in found if model in server.models or server.base_url == OPENAI_BASE_URL]
        return (having[0].base_url if having else OPENAI_BASE_URL), model
    found = [server for server in found if server.models]
    if not found:
        ports = ", ".join(f"{name} ({port})" for name, port in USUAL_PORTS.items())
        raise InputError(
            f"No chat model was found: no OPENAI_API_KEY is set, and no server answers of {ports}."
            if base_url is None
            else f"{base_url}: lists no chat model.",
            help="Start a server, or give --base-url and --model. Without a chat model Citeloom quotes your papers.",
        )
    server = found[_asked("Server", [each.name for each in found]) if asking and len(found) > 1 else 0]
    place = _asked("Model", list(server.models)) if asking and len(server.models) > 1 else 0
    return server.base_url, server.models[place]


def _asked(what: str, names: list[str]) -> int:
    for number, name in enumerate(names, 1):
        notice(f"  {number}  {one_line(name)}")
    chosen = 0
    while not 1 <= chosen <= len(names):
        chosen = typer.prompt(what, default=1, type=int, err=True)
    return chosen - 1

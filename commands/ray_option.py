"""The options of `ingest` that name a Ray cluster; `--ray` alone starts one on this computer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperCommand

from ..errors import InputError

if TYPE_CHECKING:
    from ..ingestion.ray_cluster import RayRequest

_LOCAL: Final = "local"
# What may follow --ray as its address; anything else is the next argument.
_ADDRESS: Final = re.compile(r"local|auto|ray://\S*|[^/\s]*:\d+")

RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Read, chunk and embed on a Ray cluster: host:port, ray://host:port, 'auto' for the one of this computer; "
        "without ADDRESS, on a Ray started here. Needs the extra 'ray'.",
        show_default=False,
    ),
]
RayWorkersOption = Annotated[
    int | None,
    typer.Option("--ray-workers", min=1, help="Ray tasks at once.", show_default="the CPUs of the cluster"),
]


class RayCommand(TyperCommand):
    """A command whose option `--ray` may lack its value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, with the address of a local cluster after each `--ray` that has none."""
        if "" in args:  # as a path it would be the current folder
            raise InputError("An empty path was given.", help="Name the folder that holds your papers.")
        return super().parse_args(ctx, _with_address(args))


def _with_address(arguments: list[str]) -> list[str]:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    whole: list[str] = []
    for place, argument in enumerate(options):
        whole.append(argument)
        following = options[place + 1] if place + 1 < len(options) else ""
        if argument == "--ray" and not _ADDRESS.fullmatch(following):
            whole.append(_LOCAL)
    return [*whole, *arguments[len(options) :]]


def ray_request(address: str | None, workers: int | None) -> RayRequest | None:
    """The requested cluster, if any; raises `InputError`."""
    from ..ingestion.ray_cluster import RayRequest

    if address is not None:
        return RayRequest(address, workers)
    if workers is not None:
        raise InputError("--ray-workers was given without --ray.")
    return None

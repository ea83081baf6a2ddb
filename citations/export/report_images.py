"""The images that an evidence report shows: pages of PDFs and figures that citations rest on."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A figure whose caption or rows are evidence; `content` is a PNG or JPEG, empty if it is too large to show.

    `description` is that of the model `described_by`, never the paper's words.
    """

    name: str
    content: bytes = b""
    media_type: str = "image/png"
    description: str = ""
    described_by: str = ""

    @property
    def address(self) -> str:
        """The image as a data URI; empty without one."""
        return data_uri(self.content, self.media_type) if self.content else ""


@dataclass(frozen=True, slots=True)
class ReportImages:
    """PNG images of pages and figures, by the id of the evidence."""

    pages: Mapping[str, bytes] = field(default_factory=dict)
    figures: Mapping[str, ReportFigure] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether the report has an image at all."""
        return bool(self.pages) or any(figure.content for figure in self.figures.values())


def data_uri(image: bytes, media_type: str = "image/png") -> str:
    """An image as an address that holds it."""
    return f"data:{media_type};base64,{base64.b64encode(image).decode()}"

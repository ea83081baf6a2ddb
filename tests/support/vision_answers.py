"""A fake vision model: checks the image of each request as a server does, and answers by the bytes of the image."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

from PIL import Image

from tests.support.openai_server import Raw, Status
from tests.support.protocol_answers import envelope

Json = dict[str, Any]


class FakeVision:
    """A behaviour for `FakeOpenAI`: `said` are the answers by the colour of the image's first pixel."""

    def __init__(self, said: Mapping[str, str] | None = None, usual: str = "A plain surface.") -> None:
        self.said = dict(said or {})
        self.usual = usual
        self.images: list[bytes] = []
        self.captions: list[str] = []

    def __call__(self, body: Json) -> Json | Raw | Status | None:
        parts = [part for message in body.get("messages", ()) for part in _parts(message)]
        images = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
        if not images:
            return None
        if len(images) != 1 or set(parts[-2]) != {"type", "text"}:
            return Status(400, "expected one text and one image")
        kind, _, content = images[0].partition(";base64,")
        try:
            image = base64.b64decode(content, validate=True)
            with Image.open(io.BytesIO(image)) as opened:
                if kind != f"data:{Image.MIME[opened.format or '']}":
                    return Status(400, f"the image is no {kind}")
                colour = "#" + bytes(opened.convert("RGB").tobytes()[:3]).hex()
        except (ValueError, OSError) as error:
            return Status(400, f"not an image: {error}")
        self.images.append(image)
        self.captions.append(parts[-2]["text"])
        return envelope(body, content=self.said.get(colour, self.usual))


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def png(colour: str, size: tuple[int, int] = (120, 80)) -> bytes:
    """A PNG in one colour."""
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "PNG")
    return content.getvalue()

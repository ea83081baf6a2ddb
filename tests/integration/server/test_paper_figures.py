"""Figures over HTTP and MCP: listed with captions, their images typed and cached, descriptions marked."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from citeloom.documents.figures import PaperFigure
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.server.routes.paper_routes import list_figures
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.support.illustrated_home import colour_of, illustrate
from tests.support.openai_server import FakeOpenAI, Status
from tests.support.served_app import Served, served_app
from tests.support.vision_answers import FakeVision, png

KEY = "obrien2019seeds"
SAID = "<script>alert(1)</script> A chart \u202eof runs."


@pytest.fixture
def figures(home: Path) -> list[PaperFigure]:
    """Three figures: with a description, without an image, and with the type of a drawing."""
    library = Library.open(FolderHome(home), LocalEmbedding())
    first, second, third = illustrate(library, KEY, ["Figure 1: <b>Runs</b>.", "Figure 2: Seeds.", "Figure 3: Sums."])
    described = replace(first, description=SAID, described_by="see-1")
    library.catalog.describe(KEY, [described])
    library.close()
    return [described, second, third]


@pytest.fixture
def served(home: Path, figures: list[PaperFigure]) -> Iterator[Served]:
    with served_app(home) as server:
        yield server


def test_figures_are_listed_with_captions_and_descriptions(served: Served, figures: list[PaperFigure]) -> None:
    listed = served.api.get(f"/papers/{KEY}/figures").json()
    assert [item["caption"] for item in listed["figures"]] == [figure.caption for figure in figures]
    first, second, _ = listed["figures"]
    assert (first["description"], first["described_by"]) == (SAID, "see-1")
    assert (second["description"], second["described_by"]) == ("", "")
    assert "vector" not in first
    assert served.api.get("/papers/nobody/figures").status_code == 404


def test_an_image_is_served_with_its_type_and_cached(served: Served, figures: list[PaperFigure]) -> None:
    address = f"/papers/{KEY}/figures/0/image"
    given = served.api.get(address)
    assert given.content == png(colour_of(1))
    assert given.headers["content-type"] == "image/png"
    assert given.headers["x-content-type-options"] == "nosniff"
    assert given.headers["etag"] == f'"{figures[0].image_hash}"'
    same = served.api.get(address, headers={"If-None-Match": given.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert served.api.get(address, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_damaged_image_and_an_unknown_figure_are_not_found(
    served: Served, figures: list[PaperFigure], home: Path
) -> None:
    (home / "figures" / str(figures[1].image_hash)).write_bytes(b"<svg onload='alert(1)'/>")
    assert served.api.get(f"/papers/{KEY}/figures/1/image").status_code == 404
    for number, status in ((99, 404), (-1, 422), ("0.svg", 422)):
        assert served.api.get(f"/papers/{KEY}/figures/{number}/image").status_code == status
    assert served.api.get("/papers/nobody/figures/0/image").status_code == 404


def test_the_page_of_a_paper_shows_figures_and_marks_model_descriptions(served: Served) -> None:
    page = httpx.get(f"{served.url}/library/{KEY}").text
    assert page.count('loading="lazy"') == 3
    assert "Figure 1: &lt;b&gt;Runs&lt;/b&gt;." in page
    assert "Described by <bdi>see-1</bdi>" in page
    panel = httpx.get(f"{served.url}/library/{KEY}/figures/0", headers={"X-Part": "1"}).text
    assert "A model's words, not the paper's" in html.unescape(panel)
    assert "<script>" not in panel and "\u202e" not in panel and html.escape("<script>alert(1)</script>") in panel
    quotes = panel.split("<blockquote")[1].split("</blockquote>")[0]
    assert "alert" not in quotes
    assert httpx.get(f"{served.url}/library/{KEY}/figures/9").status_code == 404


def test_an_agent_lists_figures(served: Served) -> None:
    found = served.run(list_figures(served.state.session, KEY))
    assert [item["name"] for item in found["figures"]] == ["Figure 1", "Figure 2", "Figure 3"]
    assert found["figures"][0]["described_by"] == "see-1"


LOOM = """# Looms

## Abstract

We weave. Looms hold threads under tension, and weights keep the warp straight while the weaver works.

![Figure 1: The frame, a loom with warp weights.](data:image/png;base64,%s)
"""


@pytest.mark.parametrize("works", [True, False])
def test_figures_of_an_upload_are_described_once_its_papers_exist(home: Path, works: bool) -> None:
    content = (LOOM % base64.b64encode(png(colour_of(1))).decode()).encode()
    vision = FakeVision(usual="A purple zeppelin.") if works else lambda _: Status(401, "wrong key")
    with FakeOpenAI(behaviour=vision) as eye:
        settings = {"vision_model": "see-1", "vision_base_url": eye.base_url}
        with served_app(home, settings) as server:
            sent = server.api.post("/papers", files=[("files", ("loom2020.md", content))])
            events = server.events(f"/ingests/{sent.json()['id']}/events")
            (figure,) = server.api.get("/papers/loom2020/figures").json()["figures"]
    assert events[-1].name == "done" and events[-1].data["result"]["added"] == ["loom2020"]
    assert ("described" in [event.name for event in events]) is works
    assert figure["description"] == ("A purple zeppelin." if works else "")
    assert any("wrong key" in line for line in events[-1].data["result"]["warnings"]) is not works

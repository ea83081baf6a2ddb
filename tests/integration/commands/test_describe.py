"""`papers describe` and the descriptions of `ingest`, with a vision model behind a real socket."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.documents.figures import PaperFigure
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import finish, start
from tests.support.illustrated_home import colour_of, illustrate_home
from tests.support.openai_server import FakeOpenAI, Status
from tests.support.vision_answers import FakeVision, png

KEY = "obrien2019seeds"
CAPTIONS = tuple(f"Figure {number}: Panel {number}." for number in range(1, 7))
PAPER = """# Looms

## Abstract

We weave. Looms hold threads under tension, and weights keep the warp straight while the weaver works.

## Methods

Cloth was woven on a wooden frame by one person over several weeks of work in a heated room.

![Figure 1: The frame, a loom with warp weights.](loom.png)

The cloth was measured after it had rested for a day.
"""
SAID = "A purple zeppelin hovers above three sand dunes."


@pytest.fixture
def vision() -> FakeVision:
    return FakeVision({colour_of(1): SAID})


@pytest.fixture
def eye(vision: FakeVision) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=vision) as running:
        yield running


@pytest.fixture
def illustrated(home: Path) -> Path:
    illustrate_home(home, KEY, CAPTIONS)
    return home


def settings(eye: FakeOpenAI) -> dict[str, str]:
    return {"VISION_MODEL": "see-1", "VISION_BASE_URL": eye.base_url}


def described(home: Path) -> list[str]:
    library = Library.open(FolderHome(home), LocalEmbedding())
    try:
        return [figure.description for figure in library.figures(KEY)]
    finally:
        library.close()


def test_each_figure_is_described_once(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, vision: FakeVision
) -> None:
    done = citeloom("papers", "describe", "--home", illustrated, **settings(eye))
    assert (done.code, done.out.strip()) == (0, "6 figures described, 0 not described, 0 described before.")
    assert "described 6 of 6 figures" in done.err
    assert len(set(vision.images)) == eye.calls() == 6
    assert all(any(caption in shown for shown in vision.captions) for caption in CAPTIONS)
    assert described(illustrated) == [SAID, *["A plain surface."] * 5]
    again = citeloom("papers", "describe", KEY, "--home", illustrated, "--json", **settings(eye))
    assert again.json == {"described": 0, "already_described": 6, "refused": []}
    refreshed = citeloom("papers", "describe", "--refresh", "--home", illustrated, **settings(eye))
    assert refreshed.out.startswith("6 figures described")
    assert eye.calls() == 6


def test_a_home_without_descriptions_gets_them_back_from_the_journal(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI
) -> None:
    citeloom("papers", "describe", "--home", illustrated, **settings(eye))
    illustrate_home(illustrated, KEY, CAPTIONS)
    assert described(illustrated) == [""] * 6
    citeloom("papers", "describe", "--home", illustrated, **settings(eye))
    assert described(illustrated)[0] == SAID
    assert eye.calls() == 6
    journal = sum(file.stat().st_size for file in illustrated.glob("journal*"))
    assert journal < 1_000_000


def test_another_model_describes_again_only_when_asked(citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI) -> None:
    citeloom("papers", "describe", "--home", illustrated, **settings(eye))
    other = {**settings(eye), "VISION_MODEL": "see-2"}
    citeloom("papers", "describe", "--home", illustrated, **other)
    assert eye.calls() == 6
    citeloom("papers", "describe", "--refresh", "--home", illustrated, **other)
    assert eye.calls() == 12


def test_a_small_budget_stops_cleanly_and_the_same_command_continues(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI
) -> None:
    counts = []
    for _ in range(3):
        done = citeloom("papers", "describe", "--max-calls", "2", "--home", illustrated, **settings(eye))
        counts.append((done.code, eye.calls(), sum(map(bool, described(illustrated)))))
    assert counts == [(3, 2, 2), (3, 4, 4), (0, 6, 6)]


def test_tokens_for_an_image_are_reserved(citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI) -> None:
    done = citeloom("papers", "describe", "--max-tokens", "30000", "--home", illustrated, **settings(eye))
    assert (done.code, eye.calls()) == (3, 0)
    done = citeloom("papers", "describe", "--max-tokens", "60000", "--home", illustrated, **settings(eye))
    assert done.code == 0
    assert eye.calls() == 6


def test_without_a_vision_model_nothing_is_sent(citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI) -> None:
    done = citeloom("papers", "describe", "--home", illustrated, CHAT_MODEL="chat", CHAT_BASE_URL=eye.base_url)
    assert done.code == 2
    assert "CITELOOM_VISION_MODEL" in done.err
    assert eye.calls() == 0


def test_a_key_from_the_environment_is_not_sent_to_an_address_set_by_a_folder(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(f"CITELOOM_VISION_BASE_URL={eye.base_url}\n", encoding="utf-8")
    given = {"VISION_MODEL": "see-1", "VISION_API_KEY": "secret-of-the-user"}
    done = citeloom("papers", "describe", "--home", illustrated, **given)
    assert done.code == 2
    assert "the key was not sent" in done.err and "secret-of-the-user" not in done.err
    assert eye.calls() == 0


def test_a_busy_server_is_tried_again(citeloom: Citeloom, illustrated: Path, vision: FakeVision) -> None:
    with FakeOpenAI(behaviour=vision, failures=[Status(429, retry_after="0")]) as busy:
        done = citeloom("papers", "describe", "--home", illustrated, **settings(busy))
    assert done.code == 0
    assert all(described(illustrated))


def test_a_model_without_image_input_is_named_as_the_cause(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI
) -> None:
    eye.behaviour = lambda _: Status(400, "this model does not support images")
    done = citeloom("papers", "describe", "--home", illustrated, MAX_CONCURRENCY="1", **settings(eye))
    assert done.code == 2
    assert "does not support images" in done.err and "CITELOOM_VISION_MODEL" in done.err
    assert eye.calls() == 3
    assert not any(described(illustrated))


def test_one_refused_figure_does_not_stop_the_others(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, vision: FakeVision
) -> None:
    def refuses_the_third(body: dict[str, object]) -> object:
        return Status(400, "image is too odd") if CAPTIONS[2] in json.dumps(body) else vision(body)

    eye.behaviour = refuses_the_third  # type: ignore[assignment]
    done = citeloom("papers", "describe", "--home", illustrated, **settings(eye))
    assert done.code == 4
    assert f"Not described: {KEY}, Figure 3: " in done.err and "image is too odd" in done.err
    assert [bool(text) for text in described(illustrated)] == [True, True, False, True, True, True]


@pytest.mark.parametrize(
    ("answer", "stored"),
    [
        ("", ""),
        ("<think>It shows", ""),
        ("<html><body><script>alert(1)</script><p>A chart.</p></body></html>", "alert(1) A chart."),
        ("A \x1b[31mred\x00 chart\u202e of ![x](http://evil.example/p.png) [links](javascript:alert(1)).", None),
        ("word " * 50_000, None),
        ("x" * 300_000, None),
    ],
)
def test_an_odd_answer_is_stored_as_short_plain_text_or_not_at_all(
    citeloom: Citeloom, illustrated: Path, answer: str, stored: str | None
) -> None:
    with FakeOpenAI(behaviour=FakeVision(usual=answer)) as eye:
        done = citeloom("papers", "describe", "--home", illustrated, **settings(eye))
    said = described(illustrated)[0]
    assert done.code == (4 if stored == "" else 0)
    assert stored is None or said == stored
    assert len(said) <= 3_000 and said.isprintable()
    assert not {"<", "\x1b", "](", "evil.example"} & {
        part for part in ("<", "\x1b", "](", "evil.example") if part in said
    }


@pytest.mark.parametrize("fault", ["html", "not-json", "empty", "huge", "truncated", "no-choices"])
def test_a_server_that_violates_the_protocol_changes_nothing(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, fault: str
) -> None:
    eye.behaviour = lambda _: fault  # type: ignore[assignment, return-value]
    done = citeloom("papers", "describe", "--home", illustrated, MAX_RETRIES="0", MAX_CONCURRENCY="1", **settings(eye))
    assert done.code in (2, 3) and "Traceback" not in done.err
    assert not any(described(illustrated))


def test_after_a_kill_no_answer_is_paid_for_twice(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, vision: FakeVision, tmp_path: Path
) -> None:
    arguments = ("papers", "describe", "--home", illustrated)
    victim: list[subprocess.Popen[str]] = []

    def kills_at_the_fourth(body: dict[str, object]) -> object:
        if eye.calls() == 4:
            victim[0].kill()
        return vision(body)

    eye.behaviour = kills_at_the_fourth  # type: ignore[assignment]
    one_by_one = {**settings(eye), "MAX_CONCURRENCY": "1"}
    victim.append(start(*arguments, cwd=tmp_path, settings=one_by_one))
    assert finish(victim[0]).code == -signal.SIGKILL
    kept = sum(map(bool, described(illustrated)))
    assert kept in (2, 3)  # the third answer may be committed but not stored yet
    done = citeloom(*arguments, "--json", **one_by_one)
    assert done.json["described"] == 6 - kept
    assert all(described(illustrated))
    assert eye.calls() == 7  # the fourth was lost, and asked again


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A paper with a figure beside it."""
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "loom.png").write_bytes(png(colour_of(1)))
    (papers / "loom2020.md").write_text(PAPER, encoding="utf-8")
    return papers


def figure_of(home: Path) -> PaperFigure:
    library = Library.open(FolderHome(home), LocalEmbedding())
    try:
        (figure,) = library.figures("loom2020")
        return figure
    finally:
        library.close()


def test_ingesting_describes_the_figures_of_new_papers(
    citeloom: Citeloom, folder: Path, eye: FakeOpenAI, vision: FakeVision, tmp_path: Path
) -> None:
    vision.usual = SAID
    home = tmp_path / "new"
    asked = ("search", "zeppelin above dunes", "--home", home, "--json", "--limit", "1")
    done = citeloom("ingest", folder, "--home", home, "--no-describe", **settings(eye))
    assert (done.code, eye.calls(), figure_of(home).description) == (0, 0, "")
    assert citeloom(*asked).json[0]["described_figures"] == []
    assert citeloom("papers", "describe", "--home", home, **settings(eye)).code == 0
    (hit,) = citeloom(*asked).json
    assert "a loom with warp weights" in hit["text"] and "zeppelin" not in hit["text"]
    assert hit["described_figures"][0]["description"] == SAID
    assert f"as see-1 describes it: {SAID}" in " ".join(citeloom(*asked[:-3]).out.replace("│", " ").split())
    (folder / "loom2020.md").write_text(PAPER.replace("We weave.", "We weave linen."), encoding="utf-8")
    again = citeloom("ingest", folder, "--home", home, "--json", **settings(eye))
    assert again.json["papers_updated"] == 1
    assert again.json["figures"] == {"described": 0, "already_described": 1, "refused": []}
    assert eye.calls() == 1
    assert citeloom(*asked).json[0]["described_figures"][0]["description"] == SAID
    assert "1 of 1 image described" in citeloom("doctor", "--home", home).out


def test_a_failing_vision_model_loses_no_paper(
    citeloom: Citeloom, folder: Path, eye: FakeOpenAI, tmp_path: Path
) -> None:
    eye.behaviour = lambda _: Status(401, "wrong key")
    done = citeloom("ingest", folder, "--home", tmp_path / "new", **settings(eye))
    assert done.code == 4
    assert "1 paper added" in done.out and "papers describe" in done.err and "wrong key" in done.err
    listed = citeloom("papers", "list", "--home", tmp_path / "new", "--json").json
    assert [paper["key"] for paper in listed] == ["loom2020"]


def test_an_ingest_pauses_if_the_budget_runs_out_at_a_figure(
    citeloom: Citeloom, folder: Path, eye: FakeOpenAI, tmp_path: Path
) -> None:
    done = citeloom("ingest", folder, "--home", tmp_path / "new", "--max-tokens", "1000", **settings(eye))
    assert (done.code, eye.calls()) == (3, 0)
    assert "1 paper added" in done.out

"""`papers describe` and the descriptions of `ingest`, with a vision model behind a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.models.embeddings.local import LocalEmbedding
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.integration.commands.conftest import Citeloom
from tests.support.illustrated_home import colour_of, illustrate_home
from tests.support.openai_server import FakeOpenAI, Status
from tests.support.vision_answers import FakeVision

KEY = "obrien2019seeds"
CAPTIONS = tuple(f"Figure {number}: Panel {number}." for number in range(1, 7))
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
    library = Library.open(Home(home), LocalEmbedding())
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


def test_a_home_without_its_descriptions_gets_them_from_the_journal(
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


def test_the_tokens_of_an_image_are_reserved(citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI) -> None:
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


def test_the_key_of_the_environment_is_not_sent_where_a_folder_says(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(f"CITELOOM_VISION_BASE_URL={eye.base_url}\n", encoding="utf-8")
    given = {"VISION_MODEL": "see-1", "VISION_API_KEY": "secret-of-the-user"}
    done = citeloom("papers", "describe", "--home", illustrated, **given)
    assert done.code == 2
    assert "the key was not sent" in done.err and "secret-of-the-user" not in done.err
    assert eye.calls() == 0


def test_a_busy_server_is_asked_again(citeloom: Citeloom, illustrated: Path, vision: FakeVision) -> None:
    with FakeOpenAI(behaviour=vision, failures=[Status(429, retry_after="0")]) as busy:
        done = citeloom("papers", "describe", "--home", illustrated, **settings(busy))
    assert done.code == 0
    assert all(described(illustrated))


def test_a_model_that_takes_no_images_is_named_as_the_cause(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI
) -> None:
    eye.behaviour = lambda _: Status(400, "this model does not support images")
    done = citeloom("papers", "describe", "--home", illustrated, MAX_CONCURRENCY="1", **settings(eye))
    assert done.code == 2
    assert "does not support images" in done.err and "CITELOOM_VISION_MODEL" in done.err
    assert eye.calls() == 3
    assert not any(described(illustrated))


def test_one_refused_figure_does_not_keep_the_others_from_being_described(
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
def test_a_strange_answer_is_stored_as_short_plain_text_or_not_at_all(
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
def test_a_server_that_breaks_the_protocol_changes_nothing(
    citeloom: Citeloom, illustrated: Path, eye: FakeOpenAI, fault: str
) -> None:
    eye.behaviour = lambda _: fault  # type: ignore[assignment, return-value]
    done = citeloom("papers", "describe", "--home", illustrated, MAX_RETRIES="0", MAX_CONCURRENCY="1", **settings(eye))
    assert done.code in (2, 3) and "Traceback" not in done.err
    assert not any(described(illustrated))

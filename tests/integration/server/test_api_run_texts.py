"""The text of a finished run over HTTP: its files, and its sentences edited and checked again."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom import open_library, write_section
from citeloom.citations.export.latex_output import find_engine
from tests.support.judging_model import GOOD, WEAK, JudgingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.run_fixtures import experiment
from tests.support.served_app import Served, served_app

__all__ = ["experiment"]

TEXT = f"{GOOD} {WEAK}"
PDF = ("pdf",) if find_engine() else ()
FORMATS = ("md", "bib", "evidence.html", "json", "tex", "docx", "odt", "html", *PDF, "zip")


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=JudgingModel(TEXT)) as running:
        yield running


@pytest.fixture
def served(home: Path, model: FakeOpenAI) -> Iterator[Served]:
    settings = {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k", "max_repairs": 0}
    with served_app(home, settings) as server:
        yield server


def write(served: Served, experiment: dict[str, Any], **limits: int) -> str:
    """The id of a finished discussion."""
    answer = served.post("/sections/discussion", {"experiment": experiment, **limits})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["thread_id"])


def sentences(served: Served, run: str) -> list[dict[str, Any]]:
    return list(served.api.get(f"/runs/{run}/sentences").json()["sentences"])


def check(served: Served, run: str, text: str, position: int = 0, **more: Any) -> dict[str, Any]:
    answer = served.post(f"/runs/{run}/sentences", {"position": position, "text": text, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_every_file_of_a_run_is_an_attachment_and_equals_that_of_the_command_line(
    served: Served, home: Path, experiment: dict[str, Any], tmp_path: Path
) -> None:
    run = write(served, experiment)
    listed = served.api.get(f"/runs/{run}/files").json()["files"]
    assert [item["name"] for item in listed] == [f"discussion.{name}" for name in FORMATS]
    got = {item["format"]: served.api.get(item["href"].removeprefix("/api/v1")) for item in listed}
    for name, answer in got.items():
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''discussion.{name}"
        assert answer.headers["x-content-type-options"] == "nosniff"
    with zipfile.ZipFile(io.BytesIO(got["docx"].content)) as document:
        assert "word/document.xml" in document.namelist()
    settings = served.state.session.settings
    with open_library(home, settings=settings) as library:
        write_section(library, "discussion", experiment, out=tmp_path / "out", formats=("tex", "html"))
    for name in ("md", "bib", "evidence.html", "tex", "html"):
        assert got[name].content == (tmp_path / "out" / f"discussion.{name}").read_bytes(), name


@pytest.mark.parametrize(
    "name", ["nothing.md", "discussion.exe", "..%2F..%2Fjournal.sqlite", "discussion.edited.md", "%00"]
)
def test_a_file_is_found_by_its_name_and_never_by_a_path(served: Served, experiment: dict[str, Any], name: str) -> None:
    run = write(served, experiment)
    answer = served.api.get(f"/runs/{run}/files/{name}")
    assert answer.status_code == 404 and b"SQLite" not in answer.content


def test_an_unfinished_run_has_no_files_or_sentences(served: Served, experiment: dict[str, Any]) -> None:
    paused = served.post("/sections/discussion", {"experiment": experiment, "max_calls": 1})
    assert paused.status_code == 503
    run = paused.headers["content-location"].rpartition("/")[2]
    assert served.api.get(f"/runs/{run}/files").status_code == 409
    assert served.api.get(f"/runs/{run}/sentences").status_code == 422
    assert served.api.get("/runs/unknown/files").status_code == 404


def test_the_report_opens_in_the_browser_under_a_policy_without_scripts(
    served: Served, experiment: dict[str, Any]
) -> None:
    run = write(served, experiment)
    shown = served.api.get(f"/runs/{run}/files/discussion.evidence.html", params={"inline": True})
    assert shown.headers["content-disposition"] == "inline"
    policy = shown.headers["content-security-policy"]
    assert policy.startswith("sandbox") and "default-src 'none'" in policy and "script-src" not in policy
    other = served.api.get(f"/runs/{run}/files/discussion.html", params={"inline": True})
    assert other.headers["content-disposition"].startswith("attachment"), "only the report is shown"


def test_sentences_are_listed_with_their_findings_and_positions(served: Served, experiment: dict[str, Any]) -> None:
    run = write(served, experiment)
    text = served.api.get(f"/runs/{run}").json()["result"]["text"]
    good, weak = sentences(served, run)
    assert text[good["start"] : good["end"]] == good["text"] and good["verdict"] == "supported"
    assert len(good["keys"]) == 1 and (good["findings"], good["edited"]) == ([], None)
    assert weak["verdict"] == "partly" and [item["rule"] for item in weak["findings"]] == ["partly-supported"]


def test_an_edited_sentence_is_checked_and_the_run_stays_unchanged(
    served: Served, model: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    run = write(served, experiment)
    before = served.api.get(f"/runs/{run}").json()["result"]
    key = sentences(served, run)[0]["keys"][0]
    wrong = check(served, run, f"Every wearer slept 7.77 hours ({key}), as (smith2020sleep) says.")
    rules = {item["rule"] for item in wrong["findings"]}
    assert wrong["verdict"] == "unsupported" and not wrong["ok"]
    assert rules == {"unsupported", "number-not-found", "foreign-citation"}
    for finding in wrong["findings"]:
        assert 0 <= finding["start"] < finding["end"] <= len(wrong["text"])
    assert wrong["citations"][0]["key"] == key and wrong["citations"][0]["quote"]
    asked = model.calls()
    assert check(served, run, wrong["text"])["usage"]["llm_calls"] == 0 and model.calls() == asked, "paid once"
    right = check(served, run, f"Ensembles were compared with single networks ({key}).")
    assert (right["verdict"], right["ok"], right["findings"]) == ("supported", True, [])
    assert right["usage"]["llm_calls"] == 1, "the judge is billed to the run"
    assert served.api.get(f"/runs/{run}").json()["result"] == before
    assert all(item["edited"] is None for item in sentences(served, run))


def test_saved_edits_are_a_version_beside_the_run(served: Served, experiment: dict[str, Any]) -> None:
    run = write(served, experiment)
    key = sentences(served, run)[0]["keys"][0]
    mine = f"My own words on ensembles ({key})."
    check(served, run, mine, keep=True)
    check(served, run, "", position=1, keep=True)
    first, second = sentences(served, run)
    assert first["edited"]["text"] == mine and first["edited"]["checked"]["verdict"] == "supported"
    assert second["edited"]["text"] == ""
    path = f"/runs/{run}/files"
    names = [item["name"] for item in served.api.get(path).json()["files"]]
    assert names[len(FORMATS) :] == [f"discussion.edited.{name}" for name in FORMATS]
    edited = {name: served.api.get(f"{path}/discussion.edited.{name}") for name in FORMATS}
    assert all(answer.status_code == 200 for answer in edited.values())
    for name in ("md", "tex", "html", "evidence.html"):
        assert "My own words on ensembles" in edited[name].text and "It may help others" not in edited[name].text, name
    assert "2 sentences were edited by hand." in edited["md"].text
    assert edited["json"].json()["citations"][0]["verdict"] == "supported"
    page = served.api.get(f"{served.url}/runs/{run}").text
    whole = page.partition('<div class="prose"')[2].partition("</div>")[0]
    assert "My own words on ensembles" in whole and "It may help others" not in whole, "as one text"
    assert page.count('<div class="prose"') == 1 and "discussion.edited.docx" in page
    original = served.api.get(f"{path}/discussion.md").text
    assert "My own words" not in original and "It may help others" in original
    for position in (0, 1):
        assert served.api.delete(f"/runs/{run}/sentences/{position}").status_code == 204
    assert served.api.delete(f"/runs/{run}/sentences/0").status_code == 422
    assert len(served.api.get(path).json()["files"]) == len(FORMATS)


@pytest.mark.parametrize("kind", ["docx", "odt", "tex", "md"])
def test_a_file_edited_elsewhere_is_imported(served: Served, experiment: dict[str, Any], kind: str) -> None:
    run = write(served, experiment)
    content = served.api.get(f"/runs/{run}/files/discussion.{kind}").content
    if kind in ("docx", "odt"):
        content = _edited(content, "It may help others", "My words help others")
    else:
        content = content.replace(b"It may help others", b"My words help others")
    sent = {"file": (f"../my.{kind}", content)}
    answer = served.api.post(f"/runs/{run}/import", files=sent)
    assert answer.status_code == 200, answer.text
    assert answer.json()["file"] == f"my.{kind}" and answer.json()["counts"] == {"kept": 1, "edited": 1}, answer.json()[
        "sentences"
    ]
    shown = served.api.get(f"/runs/{run}/files/discussion.edited.md").text
    assert "My words help others" in shown and "It may help others" not in shown
    for name, wrong in (("x.pdf", content), ("x.docx", b"PK no"), ("", content)):
        refused = served.api.post(f"/runs/{run}/import", files={"file": (name or ".", wrong)})
        assert refused.status_code == 422 and "citeloom-" not in refused.json()["detail"], refused.text
    assert served.api.post("/runs/unknown/import", files=sent).status_code == 404


def _edited(content: bytes, old: str, new: str) -> bytes:
    """A document in which words are replaced."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as read, zipfile.ZipFile(made, "w") as written:
        for name in read.namelist():
            data = read.read(name)
            written.writestr(name, data.replace(old.encode(), new.encode()) if name.endswith(".xml") else data)
    return made.getvalue()


def test_the_users_own_words_get_no_marks(served: Served, experiment: dict[str, Any]) -> None:
    run = write(served, experiment)
    key = sentences(served, run)[0]["keys"][0]
    check(served, run, f"Every wearer slept 7.77 hours ({key}).", position=1, keep=True)
    edited = served.api.get(f"/runs/{run}/files/discussion.edited.json").json()
    assert f"Every wearer slept 7.77 hours ({key})." in edited["text"]
    assert {"unsupported", "number-not-found"} <= {item["rule"] for item in edited["findings"]}


def test_a_check_counts_towards_the_budget_and_an_edit_can_be_saved_without_it(
    served: Served, experiment: dict[str, Any]
) -> None:
    run = write(served, experiment)
    spent = served.api.get(f"/runs/{run}").json()["result"]["usage"]["llm_calls"]
    key = sentences(served, run)[0]["keys"][0]
    body = {"position": 0, "text": f"New words ({key}).", "max_calls": spent, "keep": True}
    refused = served.post(f"/runs/{run}/sentences", body)
    assert refused.status_code == 503 and refused.json()["paused"] and "--max-calls" in refused.json()["help"]
    assert sentences(served, run)[0]["edited"] is None
    kept = served.post(f"/runs/{run}/sentences", {**body, "check": False}).json()
    assert kept["kept"] and kept["verdict"] is None
    assert sentences(served, run)[0]["edited"]["checked"] is None
    edited = served.api.get(f"/runs/{run}/files/discussion.edited.json").json()
    assert edited["citations"][0]["verdict"] == "unjudged", "nothing is claimed that was not checked"


def test_edits_are_deleted_with_their_run(served: Served, home: Path, experiment: dict[str, Any]) -> None:
    run = write(served, experiment)
    check(served, run, "Mine.", keep=True)
    assert served.api.delete(f"/runs/{run}").status_code == 204
    assert write(served, experiment) == run
    assert all(item["edited"] is None for item in sentences(served, run))


def test_an_edit_of_words_changed_meanwhile_is_refused_and_an_identical_one_ignored(
    served: Served, experiment: dict[str, Any]
) -> None:
    run = write(served, experiment)
    (shown, _) = (item["text"] for item in sentences(served, run))
    check(served, run, "Mine", keep=True, before=shown)
    assert sentences(served, run)[0]["edited"]["text"] == "Mine.", "it does not run into the next sentence"
    late = {"position": 0, "text": "Late.", "keep": True, "before": shown}
    refused = served.post(f"/runs/{run}/sentences", late)
    assert refused.status_code == 409 and "now it is “Mine.”" in refused.json()["detail"]
    check(served, run, "", keep=True, before="Mine.")
    check(served, run, shown, keep=True, before="")
    assert all(item["edited"] is None for item in sentences(served, run))


def test_a_sentence_can_be_rewritten_only_in_known_ways(served: Served, experiment: dict[str, Any]) -> None:
    run = write(served, experiment)
    body = {"text": sentences(served, run)[1]["text"], "how": "careful"}
    assert served.post(f"/runs/{run}/sentences/1/rewrite", {**body, "how": "longer"}).status_code == 422
    assert served.post(f"/runs/{run}/sentences/9/rewrite", body).status_code == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"position": 99, "text": "x"}, 422),
        ({"position": -1, "text": "x"}, 422),
        ({"position": 0, "text": "x" * 4001}, 422),
        ({"position": 0}, 422),
        ({"position": 0, "text": "x", "more": 1}, 422),
    ],
)
def test_a_bad_edit_is_refused(served: Served, experiment: dict[str, Any], body: dict[str, Any], status: int) -> None:
    run = write(served, experiment)
    answer = served.post(f"/runs/{run}/sentences", body)
    assert answer.status_code == status and answer.headers["content-type"] == "application/problem+json"


@pytest.mark.long
def test_a_sentence_of_a_paper_is_edited_in_its_section(served: Served, experiment: dict[str, Any]) -> None:
    answer = served.post("/manuscripts", {"experiment": experiment})
    assert answer.status_code == 200, answer.text
    run = answer.json()["thread_id"]
    found = sentences(served, run)
    assert [item["position"] for item in found] == list(range(len(found)))
    place = next(item for item in found if item["section"] == "discussion" and item["keys"])
    check(served, run, f"A line of mine ({place['keys'][0]}).", position=place["position"], keep=True)
    edited = served.api.get(f"/runs/{run}/files/paper.edited.md").text
    assert edited.index("## Discussion") < edited.index("A line of mine") and edited.count("A line of mine") == 1
    assert "A line of mine" not in served.api.get(f"/runs/{run}/files/paper.md").text
    assert json.loads(served.api.get(f"/runs/{run}/files/paper.edited.json").content)["sections"]


def test_an_answer_has_files_and_editable_sentences(served: Served) -> None:
    run = served.post("/research", {"question": "How were ensembles of seeds compared?"}).json()["thread_id"]
    names = [item["name"] for item in served.api.get(f"/runs/{run}/files").json()["files"]]
    assert names[0] == "how-were-ensembles-of-seeds-compared.md"
    assert served.api.get(f"/runs/{run}/files/{names[0]}").status_code == 200
    assert [item["section"] for item in sentences(served, run)] == ["answer", "answer"]
    check(served, run, "Ensembles of seeds were compared in pairs [1].", keep=True)
    edited = served.api.get(f"/runs/{run}/files/{names[0].removesuffix('.md')}.edited.md").text
    assert "compared in pairs [1]." in edited and "others too" in edited and "edited by hand" in edited


def test_an_answer_in_a_conversation_is_a_document_like_a_section(served: Served, model: FakeOpenAI) -> None:
    thread = served.conversation()
    for question in ("How were ensembles of seeds compared?", "Do they help others?"):
        served.post(f"/conversations/{thread}/turns", {"question": question, "alone": True})
    first, text = f"{thread}.1", f"{thread}.2"
    before = [item["text"] for item in sentences(served, first)]
    kept = sentences(served, text)[1]["text"]
    shown = sentences(served, text)[0]["text"]
    spent = served.api.get(f"/conversations/{thread}").json()["turns"]
    wrong = check(served, text, "They slept 7.77 hours [1].", before=shown)
    assert (wrong["verdict"], wrong["kept"]) == ("unsupported", False)
    assert "number-not-found" in {item["rule"] for item in wrong["findings"]}
    check(served, text, "Nobody said so.", before=shown, keep=True)
    uncited = sentences(served, text)[0]
    assert uncited["edited"]["checked"]["findings"][0]["rule"] == "citation-missing", "each needs one"
    conflict = served.post(f"/runs/{text}/sentences", {"position": 0, "text": "X [1].", "before": shown, "keep": True})
    assert conflict.status_code == 409 and "Nobody said so" in conflict.json()["detail"]
    check(served, text, "Mine of seeds [1].", before="Nobody said so.", keep=True)
    rewritten = served.post(f"/runs/{text}/sentences/1/rewrite", {"text": kept, "how": "shorter"})
    assert rewritten.status_code in (200, 422) and model.behaviour.repairs[-1].count("too long") == 1

    def exported() -> dict[str, str]:
        address = f"/conversations/{thread}"
        files = {name: f"{address}/turns/2/files/answer.{name}" for name in ("md", "json", "tex")}
        files |= {f"whole {name}": f"{address}/export?format={name}" for name in ("md", "json")}
        return {name: served.api.get(path).text for name, path in files.items()}

    for name, content in exported().items():
        assert "Mine of seeds" in content and kept.partition(" [")[0] in content, name
    assert [item["text"] for item in sentences(served, first)] == before
    assert served.api.get(f"/conversations/{thread}").json()["turns"] == spent, "the answer itself stays"
    assert served.api.delete(f"/runs/{text}/sentences/0").status_code == 204
    assert all("Mine of seeds" not in content for content in exported().values())
    assert served.api.get(f"/runs/{thread}.9/sentences").status_code == 404
    assert served.api.delete(f"/runs/{text}").status_code == 404, "it is no run"
    check(served, text, "Mine again [1].", before=shown, keep=True)
    assert served.api.delete(f"/conversations/{thread}").status_code == 204
    assert served.state.session.home.runs().edited_ids() == []
    assert served.api.get(f"/runs/{text}/sentences").status_code == 404


def test_an_answer_in_a_conversation_can_be_downloaded(served: Served) -> None:
    thread = served.conversation()
    served.post(f"/conversations/{thread}/turns", {"question": "How were ensembles of seeds compared?"})
    files = f"/conversations/{thread}/turns/1/files"
    assert served.api.get(f"{files}/answer.tex").text.startswith(("%", "\\"))
    assert served.api.get(f"{files}/answer.exe").status_code == 404
    assert served.api.get(f"/conversations/{thread}/turns/9/files/answer.md").status_code == 404


def test_an_experiment_is_checked_before_anything_is_paid_for(served: Served, model: FakeOpenAI) -> None:
    report = served.post("/experiments/check", {"experiment": {"metrics": 3, "hypotesis": {}}}).json()
    assert [item["field"] for item in report["problems"]] == ["metrics"] and report["ready"] == []
    report = served.post("/experiments/check", {"experiment": {"summary": "Good."}}).json()
    assert report["ready"] == ["discussion"] and report["missing"]["methods"]
    assert model.calls() == 0


def test_an_altered_quotation_is_found_and_stays_listed_without_a_chat_model(home: Path) -> None:
    with served_app(home) as served:
        answer = served.post("/research", {"question": "How were ensembles of seeds compared?"}).json()
        run, said = answer["thread_id"], "is not in the cited paper word for word"
        quoted = next(item for item in sentences(served, run) if "“" in item["text"] and item["keys"])
        text, position = quoted["text"], quoted["position"]
        for fair in (text, f"They say: {text}"):
            assert said not in str(check(served, run, fair, position=position, before=text)["findings"])
        opening, words = text.split("“", 1)
        false = f"{opening}“{words.replace(' ', ' never ', 1)}"
        wrong = check(served, run, false, position=position, before=text, keep=True)
        assert not wrong["ok"] and said in str(wrong["findings"])
        assert said in str(sentences(served, run)[position]["edited"])
        for kind in ("json", "evidence.html"):
            names = [item["name"] for item in served.api.get(f"/runs/{run}/files").json()["files"]]
            (name,) = [name for name in names if name.endswith(f".edited.{kind}")]
            assert said in served.api.get(f"/runs/{run}/files/{name}").text, kind

"""check on the command line: faults exit with code 4, a limit with 3."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.commands.conftest import Citeloom
from tests.support.checking_model import CheckingModel
from tests.support.openai_server import FakeOpenAI

GOOD = "Temperature scaling improves calibration [@varga2021calibration].\n"
WRONG = "Ensembles of seeds never help [@okafor2022ensembles].\n"


def chat(server: FakeOpenAI) -> dict[str, str]:
    server.behaviour = CheckingModel()
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url}


def test_faults_are_reported_with_their_line_and_the_exit_code_is_4(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    file = tmp_path / "draft.md"
    file.write_text(f"{GOOD}\n{WRONG}", encoding="utf-8")
    done = citeloom("check", file, "--home", home, "--out", tmp_path / "out", "--format", "html,sarif", **chat(server))
    assert done.code == 4 and "draft.md, line 3" in done.out and "Contradicted" in done.out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"draft.check.html", "draft.check.sarif"}
    found = json.loads((tmp_path / "out" / "draft.check.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert [(item["ruleId"], item["level"]) for item in found] == [("claim-contradicted", "error")]
    region = found[0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": len(WRONG)}


def test_a_text_without_faults_exits_with_0_and_json_has_every_sentence(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    file = tmp_path / "draft.md"
    file.write_text(GOOD, encoding="utf-8")
    done = citeloom("check", file, "--home", home, "--json", **chat(server))
    assert done.code == 0 and [item["label"] for item in done.json["sentences"]] == ["supported"]
    assert "1 sentence, 1 with citations" in done.err


def test_a_limit_exits_with_3_and_wrong_use_with_2(
    citeloom: Citeloom, home: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    file = tmp_path / "draft.md"
    file.write_text("\n\n".join(f"Nets of kind {n} work [@varga2021calibration]." for n in range(40)), encoding="utf-8")
    given = chat(server)
    assert citeloom("check", file, "--home", home, "--max-calls", "1", "--only", "claims", **given).code == 3
    assert citeloom("check", file, "--home", home, "--only", "sums", **given).code == 2
    assert citeloom("check", tmp_path / "gone.tex", "--home", home, **given).code == 2


def test_without_a_model_the_nearest_passages_are_shown(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "draft.md"
    file.write_text(GOOD, encoding="utf-8")
    done = citeloom("check", file, "--home", home)
    record = citeloom("check", file, "--home", home, "--json").json
    passage = record["sentences"][0]["sources"][0]["passages"][0]
    assert done.code == 0 and f'Nearest in {passage["key"]}: "{passage["quote"][:40]}' in done.out


def test_an_empty_file_is_called_empty_and_every_counted_fault_is_reported(
    citeloom: Citeloom, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.md").touch()
    wrong = (
        "@misc{varga2021calibration, title={Temperature Scaling for Wearers the Classifier Has Never Met}, year={1971}}"
    )
    (tmp_path / "own.bib").write_text(wrong, encoding="utf-8")
    done = citeloom("check", tmp_path / "empty.md", "--home", home, "--bib", tmp_path / "own.bib")
    assert done.code == 4 and "empty.md is empty." in done.out and "0 sentences" not in done.out
    assert 'varga2021calibration: year: the entry says "1971"' in done.out
    assert "1 entry of the reference list is at fault." in done.out


def test_each_format_is_written_or_reported_as_impossible(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "draft.md", tmp_path / "out"
    file.write_text(GOOD, encoding="utf-8")
    done = citeloom("check", file, "--home", home, "--out", out, "--format", "html,tex", "--format", "json")
    assert {path.name for path in out.iterdir()} == {"draft.check.html", "draft.check.json"}
    assert "draft.md is not a .tex file, so" in done.err
    assert citeloom("check", file, "--home", home, "--out", tmp_path / "none", "--format", "tex").code == 2
    assert not (tmp_path / "none").exists()

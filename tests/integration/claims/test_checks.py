"""check: from the text to verdicts with words, with a judge on a real socket and without one."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom import Settings, check_claims, check_text, open_library, write_section
from citeloom.api.checking import needs_attention, summary_lines
from citeloom.documents.passages import readable_units
from citeloom.documents.plain_text import plain_text
from citeloom.errors import InputError
from citeloom.experiment import Experiment
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.checking_model import CheckingModel
from tests.support.metadata_server import MetadataServer, ServedWork
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import envelope
from tests.support.sample_library import EXPERIMENT, index_samples
from tests.support.word_files import paragraph, run, write_word

TEXT = """\
# Introduction

Temperature scaling improves calibration [@varga2021calibration]. It always works for every network
[@varga2021calibration; @okafor2022ensembles]. Ensembles of seeds never help [@okafor2022ensembles]. On tuesday the
networks were trained by hand [@obrien2019seeds]. A third of all networks worldwide are overconfident.
Nobody knows the paper [@nobody2020paper].

# Methods

We trained five networks.
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_samples(tmp_path_factory.mktemp("checks") / "home", LocalEmbedding()).root


@pytest.fixture
def home(samples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(samples, tmp_path / "home"))


@pytest.fixture
def model() -> CheckingModel:
    return CheckingModel()


@pytest.fixture
def server(model: CheckingModel) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=model) as running:
        yield running


@pytest.fixture
def library(home: Path, server: FakeOpenAI) -> Any:
    with open_library(home, settings=settings(server)) as opened:
        yield opened


def settings(server: FakeOpenAI, **more: Any) -> Settings:
    return Settings(_env_file=None, chat_model="fake", chat_base_url=server.base_url, **more)  # type: ignore[call-arg]


def written(folder: Path, text: str = TEXT) -> Path:
    file = folder / "draft.md"
    file.write_text(text, encoding="utf-8")
    return file


def labels(record: Any) -> list[str]:
    return [item["label"] for item in record["sentences"] if item["kind"] == "cited"]


def test_each_sentence_gets_a_verdict_with_words_from_the_cited_paper(library: Any, tmp_path: Path) -> None:
    file = written(tmp_path)
    record = check_text(library, file)
    assert labels(record) == ["supported", "overstated", "contradicted", "not_found", "not_in_library"]
    first = record["sentences"][0]["sources"][0]
    assert first["paper"] == "varga2021calibration" and first["label"] == "supported"
    (passage,) = [item for item in first["passages"] if item["does"] == "supports"][:1]
    (chunk,) = library.library.chunks([passage["chunk_id"]])
    assert passage["quote"] == chunk.text[passage["start"] : passage["end"]] != ""
    assert passage["shown"] == plain_text(passage["quote"])
    both = record["sentences"][1]["sources"]
    assert [source["key"] for source in both] == ["varga2021calibration", "okafor2022ensembles"]
    assert {item["rule"] for item in record["sentences"][4]["faults"]} == {"needs-citation"}
    assert needs_attention(record) and record["complete"] and file.read_text("utf-8") == TEXT


def test_support_missing_in_the_cited_paper_is_searched_for_in_the_others(library: Any, tmp_path: Path) -> None:
    text = "Temperature scaling on tuesday improves calibration [@obrien2019seeds]."
    record = check_text(library, written(tmp_path, text), only="claims")
    assert labels(record) == ["not_found"]
    assert record["sentences"][0]["elsewhere"] == []  # the judge did not find it there either


def test_an_empty_citation_is_a_fault_and_totals_count_each_kind_of_sentence(home: Path, tmp_path: Path) -> None:
    text = (
        "The average of five seeds was better on the wrist [@]. Accuracy had a mean of 0.946 across seeds on the wrist "
        "data [@obrien2019seeds]. We trained networks, as Figure 7 shows."
    )
    with open_library(home, settings=Settings(_env_file=None)) as library:  # type: ignore[call-arg]
        record = check_text(library, written(tmp_path, text))
    first, second, third = record["sentences"]
    assert first["kind"] == "needs" and [item["rule"] for item in first["faults"]] == ["empty-citation"]
    assert [item["rule"] for item in second["faults"]] == ["number-differs"]
    assert [item["rule"] for item in third["faults"]] == ["pointer-to-nothing"]
    (line,) = summary_lines(record)
    assert "1 in need of a citation, 1 with a wrong or doubtful detail, 1 with a faulty citation, 1 pointing" in line


def test_a_second_check_costs_nothing_and_an_edit_rechecks_only_what_changed(
    library: Any, server: FakeOpenAI, model: CheckingModel, tmp_path: Path
) -> None:
    file = written(tmp_path)
    before = labels(check_text(library, file))
    calls = server.calls()
    assert labels(check_text(library, file)) == before and server.calls() == calls
    model.judged.clear()
    file.write_text(TEXT.replace("never help", "help"), encoding="utf-8")
    again = check_text(library, file)
    assert labels(again)[2] == "supported"
    assert len(model.judged) == 1 and "help" in model.judged[0]


def test_a_limit_leaves_sentences_unjudged_and_repeating_the_check_continues(
    home: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    sentences = [f"Networks of kind {number} are calibrated [@varga2021calibration]." for number in range(40)]
    file = written(tmp_path, "\n\n".join(sentences))
    with open_library(home, settings=settings(server)) as library:
        part = check_text(library, file, only="claims", max_calls=2)
        assert not part["complete"] and 0 < labels(part).count("unjudged") < 40
        assert part["usage"]["llm_calls"] == 2 == server.calls()
        whole = check_text(library, file, only="claims", max_calls=50)
    assert whole["complete"] and set(labels(whole)) == {"supported"}
    assert server.calls() == whole["usage"]["llm_calls"]


def test_sixty_citations_in_six_thousand_words_stay_within_calls_and_tokens(
    library: Any, server: FakeOpenAI, tmp_path: Path
) -> None:
    filler = "The networks of group {0} were trained on the same split and their scores were kept for later comparison."
    topics = ("calibration errors of temperature scaling", "ensembles of seeds", "seeds and the spread of accuracy")
    keys = ("varga2021calibration", "okafor2022ensembles", "obrien2019seeds")
    parts = []
    for number in range(60):
        claim = f"In case {number}, {topics[number % 3]} were measured on held-out data [@{keys[number % 3]}]."
        parts.append(f"{claim} {' '.join(filler.format(f'{number}.{step}') for step in range(5))}")
    record = check_text(library, written(tmp_path, "# Results\n\n" + "\n\n".join(parts)))
    assert record["words"] >= 6_000 and len(labels(record)) == 60
    usage = record["usage"]
    tokens = sum(len(str(request)) for request in server.requests) / 4
    assert usage["llm_calls"] <= 25 and tokens <= 120_000, (usage, tokens)


def test_without_a_model_passages_are_candidates_and_nothing_is_judged(home: Path, tmp_path: Path) -> None:
    with open_library(home) as library:
        record = check_text(library, written(tmp_path))
    assert record["model"] == "" and set(labels(record)) == {"unjudged", "not_in_library"}
    assert record["sentences"][0]["sources"][0]["passages"][0]["does"] == ""
    assert record["usage"]["llm_calls"] == 0


def test_without_a_model_an_uncited_sentence_shows_only_passages_that_are_near(home: Path, tmp_path: Path) -> None:
    near = "Temperature scaling has been shown to reduce the calibration error of networks."
    far = "The meaning of words has been shown to change across cultures by 12% per year."
    with open_library(home) as library:
        record = check_text(library, written(tmp_path, f"# Introduction\n\n{near}\n\n{far}"))
    assert [bool(sentence["elsewhere"]) for sentence in record["sentences"]] == [True, False]


def test_the_bibliography_of_a_citeloom_text_is_not_mistaken_for_a_drafts(home: Path, tmp_path: Path) -> None:
    (tmp_path / "discussion.bib").write_text("@misc{other2020, title={Of another text}, year={2020}}", encoding="utf-8")
    with open_library(home) as library:
        taken = check_text(library, written(tmp_path))
        (tmp_path / "discussion.json").write_text("{}", encoding="utf-8")
        left = check_text(library, written(tmp_path))
    assert any("discussion.bib" in line for line in taken["warnings"])
    assert not any("discussion.bib" in line for line in left["warnings"])


@pytest.mark.parametrize("kind", ["docx", "md"])
def test_an_unedited_text_written_without_a_model_has_no_faults(kind: str, home: Path, tmp_path: Path) -> None:
    with open_library(home) as library:
        write_section(library, "discussion", EXPERIMENT, out=tmp_path, formats=["docx"])
        record = check_text(library, tmp_path / f"discussion.{kind}", experiment=EXPERIMENT)
    assert "cited" in {sentence["kind"] for sentence in record["sentences"]}
    assert [sentence for sentence in record["sentences"] if sentence["faults"]] == []
    assert [entry for entry in record["references"] if entry["faults"]] == []


def test_a_number_that_differs_from_the_experiments_own_sentence_is_reported(home: Path, tmp_path: Path) -> None:
    own = "The difference between the best models is near zero over the 84 genes, although SGD wins for 58 of them."
    text = f"# Findings\n\n{own}\n\n{own.replace('58', '61')}"
    experiment = Experiment(reasoning=f"{own} It holds in part.")
    with open_library(home) as library:
        record = check_text(library, written(tmp_path, text), experiment=experiment)
    assert faults_of(record) == [[], ["number-differs"]]
    assert "61: the experiment has 58" in record["sentences"][1]["faults"][0]["message"]


def faults_of(record: Any) -> list[list[str]]:
    return [[fault["rule"] for fault in sentence["faults"]] for sentence in record["sentences"]]


def test_copied_words_need_a_citation_and_are_found_without_a_model(home: Path, tmp_path: Path) -> None:
    with open_library(home) as library:
        chunks = library.library.paper_chunks("obrien2019seeds")
        words = [unit.text for chunk in chunks[1:] for unit in readable_units(chunk.text)]
        copied = next(text for text in words if 90 < len(text) < 200 and text.endswith(".") and "We " not in text)
        cited = [f"{copied[:-1]} [@{key}]." for key in ("varga2021calibration", "obrien2019seeds")]
        text = "\n\n".join(["# Findings", copied, *cited])
        record = check_text(library, written(tmp_path, text))
    assert faults_of(record) == [["copied-uncited"], ["wrong-key"], []]
    first = record["sentences"][0]
    assert first["kind"] == "needs" and first["elsewhere"][0]["key"] == "obrien2019seeds"
    assert "obrien2019seeds" in first["faults"][0]["message"] and copied[:60] in first["faults"][0]["message"]


def test_entries_unknown_to_services_are_reported_and_an_unchecked_list_says_so(home: Path, tmp_path: Path) -> None:
    bib = tmp_path / "own.bib"
    entry = "@article{{{0}, title = {{{1}}}, author = {{Roe, Ada}}, year = 2019, journal = {{Looms}}, doi = {{{2}}}}}\n"
    entries = (("real2019", "How looms are seeded", ""), ("made2019", "A loom of pure fiction", "10.5555/made.up"))
    bib.write_text("".join(entry.format(*one) for one in entries), encoding="utf-8")
    file = written(tmp_path, "Looms scale [@real2019; @made2019].")
    known = ServedWork("10.5555/real", "How looms are seeded", (("Ada", "Roe"),), 2019, "Looms")
    with MetadataServer(known) as services:
        services.found["seeded"] = [known]
        given = {name.lower(): value for name, value in services.settings().items()}
        with open_library(home, settings=Settings(_env_file=None, **given)) as library:  # type: ignore[call-arg]
            quiet = check_text(library, file, bib=bib, only="references")
            assert not services.requests and "2 entries not in the library" in quiet["warnings"][-1]
            record = check_text(library, file, bib=bib, only="references", look_up=True)
    rules = {one["key"]: [fault["rule"] for fault in one["faults"]] for one in record["references"]}
    assert rules == {"real2019": [], "made2019": ["entry-invented"]}
    with open_library(home, settings=Settings(_env_file=None, **given)) as library:  # type: ignore[call-arg]
        gone = check_text(library, written(tmp_path, "So [@new2020]."), bib=tmp_path / "own.bib", look_up=True)
    assert {fault["rule"] for one in gone["references"] for fault in one["faults"]} >= {"entry-not-cited"}


def test_claims_are_checked_against_papers_given_passages_or_the_library(library: Any) -> None:
    given = {"claim": "Looms never scale.", "passages": [{"text": "Looms scale. They are slow."}]}
    named = {"claim": "Scaling improves calibration.", "papers": ["varga2021calibration"]}
    record = check_claims(library, [given, named, "Ensembles of seeds help."])
    assert [item["label"] for item in record["claims"]] == ["contradicted", "supported", "supported"]
    assert record["claims"][0]["sources"][0]["passages"][0]["quote"] == "Looms scale."
    assert record["claims"][2]["elsewhere"] and record["judged"] == 3
    found = check_claims(library, [named], judge=False, most=5)["claims"][0]
    assert found["label"] == "unjudged" and len(found["sources"][0]["passages"]) == 5
    with pytest.raises(InputError, match="nobody"):
        check_claims(library, [{"claim": "Looms scale.", "papers": ["nobody"]}])
    with pytest.raises(InputError, match=r"claims\[0\]"):
        check_claims(library, [" "])


def test_a_small_checker_model_answers_yes_or_no_for_a_document_and_a_claim(home: Path, tmp_path: Path) -> None:
    def answer(body: Any) -> Any:
        (message,) = body["messages"]
        assert message["content"].startswith("Document: ") and "\nClaim: " in message["content"]
        claim = message["content"].partition("\nClaim: ")[2]
        return envelope(body, content="No." if "never" in claim else "Yes")

    with (
        FakeOpenAI(behaviour=answer) as server,
        open_library(home, settings=settings(server, judge_protocol="minicheck")) as library,
    ):
        record = check_text(library, written(tmp_path), only="claims")
    assert labels(record) == ["supported", "supported", "not_found", "supported", "not_in_library"]


def test_an_indirect_source_is_reported_with_the_work_that_it_cites(library: Any, server: FakeOpenAI) -> None:
    def answer(body: Any) -> Any:
        share = {"does": "supports", "sentences": [1]}
        return envelope(body, content=json.dumps({"P1": {"reason": "r", "E1": share, "verdict": "indirect"}}))

    server.behaviour = answer
    cited, own = "Looms scale [@smith2020looms].", "Looms scale, as our trials show."
    for text, label in ((cited, "indirect"), (own, "supported")):
        claim = {"claim": f"Looms scale well in {label} words.", "passages": [{"text": text}]}
        record = check_claims(library, [claim])["claims"][0]
        assert record["label"] == label
        assert record["sources"][0]["cites"] == (["smith2020looms"] if label == "indirect" else [])


def test_the_output_shows_each_problem_and_the_users_text_is_never_changed(library: Any, tmp_path: Path) -> None:
    word = write_word(
        tmp_path / "draft.docx",
        paragraph(run("Ensembles of seeds never help (Okafor et al., 2022). They are fine.")),
        paragraph(run("References")),
        paragraph(run("Okafor, N., Lindqvist, A., & Roe, B. (2022). Averaging over seeds. Journal of Looms.")),
    )
    before = word.read_bytes()
    record = check_text(library, word, out=tmp_path / "out", formats=("html", "docx", "json", "sarif"))
    files = {name: Path(path) for name, path in record["files"].items()}
    assert word.read_bytes() == before and set(files) == {"html", "docx", "json", "sarif"}
    with zipfile.ZipFile(files["docx"]) as copy:
        document, names = copy.read("word/document.xml").decode(), copy.namelist()
        comments = copy.read("word/comments.xml").decode() if "word/comments.xml" in names else ""
    assert ("Okafor" in comments) == ("commentRangeStart" in document)
    report = files["html"].read_text("utf-8")
    assert "Ensembles of seeds never help" in report and "<script>" in report and "http://" not in report
    sarif = json.loads(files["sarif"].read_text("utf-8"))
    assert sarif["version"] == "2.1.0"
    rules = {rule["id"]: rule["shortDescription"]["text"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]}
    assert all(rules.values()) and {found["ruleId"] for found in sarif["runs"][0]["results"]} <= set(rules)
    again = check_text(library, word, out=tmp_path / "out", formats="docx")
    assert Path(again["files"]["docx"]).name == "draft.checked.2.docx"


def test_margin_notes_are_put_where_latex_allows_them(library: Any, tmp_path: Path) -> None:
    text = (
        "\\documentclass{article}\n\\begin{document}\n"
        "Ensembles never help \\cite{okafor2022ensembles}."
        "\\footnote{They never helped \\cite{okafor2022ensembles}.} So.\n"
        "\\begin{figure}\\caption{They never help \\cite{okafor2022ensembles}.}\\end{figure}\n\\end{document}\n"
    )
    file = tmp_path / "draft.tex"
    file.write_text(text, encoding="utf-8")
    record = check_text(library, file, out=tmp_path / "out", formats="tex")
    copy = Path(record["files"]["tex"]).read_text("utf-8")
    plain = copy.replace("\\citeloomnote", "\x00")
    assert file.read_text("utf-8") == text and plain.count("\x00") == 4  # the definition and three notes
    assert "helped \\cite{okafor2022ensembles}.}\x00" in plain and "\\end{figure}\x00" in plain


@pytest.mark.parametrize("kind", ["tex", "docx"])
def test_inline_comments_keep_the_original_and_are_not_checked_again(kind: str, library: Any, tmp_path: Path) -> None:
    said = "Ensembles of seeds never help "
    file = tmp_path / f"draft.{kind}"
    if kind == "tex":
        tex = f"\\begin{{document}}\n{said}\\cite{{okafor2022ensembles}}.\n\\end{{document}}\n"
        file.write_text(tex, encoding="utf-8")
    else:
        write_word(file, paragraph(run(f"{said}[@okafor2022ensembles].")))
    before = file.read_bytes()
    record = check_text(library, file, in_place_comments=True)
    assert [Path(path).read_bytes() for path in record["kept"]] == [before] and file.read_bytes() != before
    again = check_text(library, file)
    assert [one["claim"] for one in again["sentences"]] == [one["claim"] for one in record["sentences"]]


def test_formats_parts_and_files_that_do_not_exist_are_reported(library: Any, tmp_path: Path) -> None:
    file = written(tmp_path)
    with pytest.raises(InputError, match="sums"):
        check_text(library, file, only="sums")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"not a \.docx"):
        check_text(library, file, out=tmp_path, formats="docx")
    with pytest.raises(InputError, match="out is given"):
        check_text(library, file, formats="html")
    with pytest.raises(InputError, match=r"gone\.md"):
        check_text(library, tmp_path / "gone.md")


def test_a_key_of_the_library_names_its_entry_in_a_list_without_keys(library: Any, tmp_path: Path) -> None:
    title = "Temperature Scaling for Wearers the Classifier Has Never Met."
    listed = f"Varga, E., & Lindqvist, P. (2021). {title} Citeloom Sample Proceedings."
    text = (
        "Scaling was fitted on wearers [@varga2021calibration]. Seeds differ [@obrien2019seeds].\n\n# References\n\n"
        + listed
    )
    record = check_text(library, written(tmp_path, text))
    first, second = (sentence for sentence in record["sentences"] if sentence["sources"])
    assert [source["paper"] for source in (*first["sources"], *second["sources"])] == [
        "varga2021calibration",
        "obrien2019seeds",
    ]
    assert [fault["rule"] for fault in first["faults"]] == []
    assert [fault["rule"] for fault in second["faults"]] == ["key-without-entry"]
    assert "entry-not-cited" not in json.dumps(record["references"])

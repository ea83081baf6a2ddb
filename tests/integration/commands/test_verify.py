"""verify: a change in a result, or in its library, is reported with its field."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from citeloom import Conversation, open_library, research, write_section
from tests.integration.commands.conftest import Citeloom
from tests.support.sample_library import EXPERIMENT

EXAMPLES = Path(__file__).parents[3] / "examples"
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def discussion(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON file of a discussion; to be copied, never written to."""
    folder = tmp_path_factory.mktemp("discussion")
    with open_library(shutil.copytree(sample_home, folder / "home")) as library:
        write_section(library, "discussion", EXPERIMENT, out=folder)
    return folder / "discussion.json"


@pytest.fixture
def written(discussion: Path, tmp_path: Path) -> Path:
    """The JSON file of a discussion, to be changed."""
    return Path(shutil.copy(discussion, tmp_path))


def test_each_citation_can_be_checked_from_the_file_alone(citeloom: Citeloom, written: Path, home: Path) -> None:
    record = json.loads(written.read_text("utf-8"))
    assert record["citations"]
    for citation in record["citations"]:
        assert citation["chunk_text"][citation["start"] : citation["end"]] == citation["quote"]
    done = citeloom("verify", written, "--home", home)  # a library without the run
    of_sources = [trace for trace in record["numbers"] if "evidence_id" in (trace["found"] or {})]
    assert done.code == 0 and not done.out and "all hold" not in done.err
    assert f"and {len(of_sources)} numbers were checked" in done.err
    assert f"Not checked: {len(record['numbers']) - len(of_sources)} numbers of the experiment" in done.err


def test_a_number_from_the_experiment_is_compared_with_the_runs_experiment(
    citeloom: Citeloom, home: Path, tmp_path: Path
) -> None:
    written = tmp_path / "out" / "discussion.json"
    assert citeloom("discussion", EXPERIMENT, "--home", home, "--out", written.parent).code == 0
    record = json.loads(written.read_text("utf-8"))
    done = citeloom("verify", written, "--home", home)
    assert done.code == 0 and "all hold" in done.err and "Not checked" not in done.err
    assert f"and {len(record['numbers'])} numbers were checked" in done.err
    assert done.err.count(f"{len(record['citations'])} citations with key and quote") == 1
    assert f"{len(record['evidence'])} findings, cited or not" in done.err
    place, trace = next((n, item) for n, item in enumerate(record["numbers"]) if "path" in (item["found"] or {}))
    old, begin = trace["text"], trace["start"]
    new = "9" * len(old)
    record["text"] = f"{record['text'][:begin]}{new}{record['text'][begin + len(old) :]}"
    trace["text"] = new
    written.write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", written, "--home", home)
    assert done.code == 4 and f"numbers[{place}].found" in done.out and new in done.out


def _set(name: str, field: str, value: Any) -> Change:
    def change(record: dict[str, Any]) -> None:
        record[name][0][field] = value

    return change


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_set("citations", "quote", "They never slept."), "citations[0].quote"),
        (_set("citations", "start", 1), "citations[0].quote"),
        (_set("citations", "start", "1"), "citations[0].quote"),
        (_set("citations", "key", "nobody2020"), "citations[0].key"),
        (_set("citations", "chunk_text", "Another text."), "citations[0].chunk_text"),
        (_set("citations", "chunk_id", "gone#1"), "citations[0].chunk_id"),
        (_set("references", "key", "nobody2020"), "references[0].key"),
        (_set("evidence", "quote", "Invented."), "evidence[0].quote"),
        (_set("numbers", "text", "123456"), "numbers[0].text"),
    ],
)
def test_a_failed_check_is_reported_by_file_and_field(
    citeloom: Citeloom, written: Path, home: Path, change: Change, field: str
) -> None:
    record = json.loads(written.read_text("utf-8"))
    change(record)
    written.write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", written, "--home", home)
    assert done.code == 4 and f"{written}:{field}: " in done.out.replace("\n", "")
    listed = citeloom("verify", written, "--home", home, "--json").json
    assert field in {item["field"] for item in listed["mismatches"]}


def test_a_paper_that_left_the_library_is_reported(citeloom: Citeloom, written: Path, home: Path) -> None:
    key = json.loads(written.read_text("utf-8"))["citations"][0]["key"]
    assert citeloom("papers", "remove", key, "--home", home).code == 0
    done = citeloom("verify", written, "--home", home)
    assert done.code == 4 and f"the library has no paper '{key}'" in done.out


def test_papers_answers_and_conversations_are_checked_too(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    assert citeloom("paper", "--exp", exp, "--home", home, "--out", tmp_path).code == 0
    with open_library(home) as library:
        answer = research(library, "How well are scores calibrated?", out=tmp_path)
        talk = Conversation(library)
        talk.ask("How well are scores calibrated?")
        talk.export(tmp_path / "talk.json")
    for file in (tmp_path / "paper.json", Path(answer["files"]["json"]), tmp_path / "talk.json"):
        done = citeloom("verify", file, "--home", home)
        assert done.code == 0 and "hold" in done.err, done.out
    record = json.loads((tmp_path / "paper.json").read_text("utf-8"))
    number = next(n for n, section in enumerate(record["sections"]) if section["citations"])
    record["sections"][number]["citations"][0]["quote"] = "Invented."
    (tmp_path / "paper.json").write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", tmp_path / "paper.json", "--home", home)
    assert done.code == 4 and f"paper.json:sections[{number}].citations[0].quote" in done.out.replace("\n", "")


def test_an_older_file_is_checked_and_says_what_it_lacks(citeloom: Citeloom, written: Path, home: Path) -> None:
    record = json.loads(written.read_text("utf-8"))
    for citation in record["citations"]:
        del citation["chunk_text"]
    written.write_text(json.dumps(record), "utf-8")
    done = citeloom("verify", written, "--home", home)
    assert done.code == 0 and "citations without the text of their chunk" in done.err


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"citations": 3}', '{"text": "x"}', "\udcff"])
def test_a_file_that_is_not_a_result_is_wrong_input(
    citeloom: Citeloom, home: Path, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content.encode("utf-8", errors="surrogateescape"))
    done = citeloom("verify", file, "--home", home)
    assert done.code == 2 and str(file) in done.err
    assert citeloom("verify", tmp_path / "none.json", "--home", home).code == 2


@pytest.mark.parametrize("command", [("verify",), ("export", "--format", "docx")])
def test_a_file_not_written_by_citeloom_is_reported(
    citeloom: Citeloom, home: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "README.md"
    file.write_text("# Mine\n", "utf-8")
    done = citeloom(*command, file, "--home", home)
    assert done.code == 2 and f"Error: {file}: is not a result" in done.err


@pytest.fixture(scope="module")
def exported(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a discussion in all formats; to be copied, never written to."""
    folder = tmp_path_factory.mktemp("exported")
    with open_library(shutil.copytree(sample_home, folder / "home")) as library:
        write_section(library, "discussion", EXPERIMENT, out=folder / "files", formats=["tex", "docx", "odt", "html"])
    return folder / "files"


def _edit(file: Path, old: str, new: str) -> bool:
    """Replace words in a file, or in the document of a .docx or .odt; returns whether they were there."""
    if file.suffix == ".json":
        record = json.loads(file.read_text("utf-8"))
        before, record["text"] = record["text"], record["text"].replace(old, new)
        file.write_text(json.dumps(record), "utf-8")
        return old in before
    part = {".docx": "word/document.xml", ".odt": "content.xml"}.get(file.suffix)
    if part is None:
        text = file.read_text("utf-8")
        file.write_text(text.replace(old, new), "utf-8")
        return old in text
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    text = parts[part].decode("utf-8")
    parts[part] = text.replace(old, new).encode("utf-8")
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return old in text


@pytest.mark.parametrize("suffix", ["json", "md", "tex", "docx", "odt", "odt for Zotero", "html"])
def test_the_text_of_each_format_is_checked(
    citeloom: Citeloom, exported: Path, home: Path, suffix: str, tmp_path: Path
) -> None:
    folder = shutil.copytree(exported, tmp_path / "files")
    if fields := suffix == "odt for Zotero":
        zotero = ("--format", "odt", "--citations", "zotero", "--home", exported.parent / "home", "--force")
        assert citeloom("export", exported / "discussion.md", *zotero, "--out", folder).code == 0
    suffix = suffix.partition(" ")[0]
    file = folder / f"discussion.{suffix}"
    source = file.read_bytes()
    done = citeloom("verify", file, "--home", home)
    assert done.code == 0 and "hold" in done.err, done.out + done.err
    record = json.loads((folder / "discussion.json").read_text("utf-8"))
    first = record["citations"][0]
    other = next(item["key"] for item in record["citations"] if item["key"] != first["key"])
    by_key = {"md": "({})", "json": "({})", "tex": "{{{}}}"}.get(suffix, "#ref-{}")
    author = next(entry for entry in record["references"] if entry["key"] == first["key"])["authors"][0].split()[-1]
    word = next(word for word in first["quote"].split() if len(word) > 6 and word.isalpha())
    number = next(item["text"] for item in record["numbers"] if "path" in (item["found"] or {}))
    changes = {
        "another key": (by_key.format(first["key"]), by_key.format(other)),
        "a key of nobody": (by_key.format(first["key"]), by_key.format("nobody2020made")),
        "a word in a quote": (word, "penguin"),
        "a number": (number, "77.31"),
    }
    if suffix in ("docx", "odt"):  # where a link is an attribute
        changes["another key"] = (f"ref-{first['key']}", f"ref-{other}")
        changes["a key of nobody"] = (f"ref-{first['key']}", "ref-nobody2020made")
    if fields:
        changes["another key"] = (f"id&quot;:&quot;{first['key']}", f"id&quot;:&quot;{other}")
        changes["a key of nobody"] = (f"id&quot;:&quot;{first['key']}", "id&quot;:&quot;nobody2020made")
    if suffix in ("docx", "odt", "html"):  # which cite by author and year
        changes["an author"] = (author, "Nobodyson")
    if suffix != "json":
        changes["a new citation"] = ("For new wearers", "As Miller (2019) showed, for new wearers")
    for what, change in changes.items():
        shutil.copytree(exported, folder, dirs_exist_ok=True)
        if fields:
            file.write_bytes(source)
        plain = [words.replace("&quot;", '"') for words in change]  # these contain an attribute without an apostrophe
        assert _edit(file, *change) or _edit(file, *plain), what
        done = citeloom("verify", file, "--home", home)
        assert done.code == 4, f"{what}: {done.err}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limited by eight test wearers", "limited by nine test wearers"),
        ("limited by eight test wearers", "limited by one test wearer"),
        ("Five pooled seeds", "15 pooled seeds"),
        ("43 to 66 per cent includes", "43 to 67 per cent include"),
    ],
)
def test_a_changed_number_is_noticed_in_words_too(
    citeloom: Citeloom, exported: Path, home: Path, tmp_path: Path, old: str, new: str
) -> None:
    file = shutil.copytree(exported, tmp_path / "files") / "discussion.md"
    assert _edit(file, old, new)
    done = citeloom("verify", file, "--home", home)
    assert done.code == 4 and "differs from the run in its numbers" in done.out, done.out + done.err


def test_an_untouched_file_passes_with_long_keys_and_addresses_in_the_references(
    citeloom: Citeloom, tmp_path: Path
) -> None:
    papers, out, home = shutil.copytree(EXAMPLES / "library", tmp_path / "papers"), tmp_path / "out", tmp_path / "own"
    short, long = (
        "okafor2022ensembles",
        "okafor2022dihydroartemisininpiperaquine",
    )  # over 40 with ref-
    (papers / f"{short}.md").rename(papers / f"{long}.md")
    bib = (papers / "library.bib").read_text("utf-8").replace(short, long)
    (papers / "library.bib").write_text(bib.replace("  year ", "  doi = {10.1371/journal.1},\n  year "), "utf-8")
    assert citeloom("ingest", papers, "--bib", papers / "library.bib", "--home", home).code == 0
    formats = ("--format", "docx,odt,html,tex", "--out", out)
    assert citeloom("discussion", EXAMPLES / "exp.json", *formats, "--home", home).code == 0
    assert long in (out / "discussion.md").read_text("utf-8")
    for suffix in ("docx", "odt", "html", "tex"):
        done = citeloom("verify", out / f"discussion.{suffix}", "--home", home)
        assert done.code == 0 and "all hold" in done.err, done.out + done.err
    for suffix in ("docx", "odt", "tex"):
        done = citeloom("import", out / f"discussion.{suffix}", "--json", "--home", home)
        assert set(json.loads(done.out)["counts"]) == {"kept"}, done.out


@pytest.mark.parametrize("style", ["ieee", "chicago-notes-bibliography"])
def test_an_untouched_file_passes_with_numbers_and_footnotes(
    citeloom: Citeloom, exported: Path, tmp_path: Path, style: str
) -> None:
    folder, home = shutil.copytree(exported, tmp_path / "files"), exported.parent / "home"
    written = ("--format", "docx,odt,html,tex", "--csl", style, "--citations", "text", "--force")
    assert citeloom("export", folder / "discussion.md", *written, "--home", home).code == 0
    for suffix in ("docx", "odt", "html", "tex"):
        done = citeloom("verify", folder / f"discussion.{suffix}", "--home", home)
        assert done.code == 0 and "hold" in done.err, done.out + done.err


def test_an_edited_sentence_may_cite_evidence_found_by_the_run(
    citeloom: Citeloom, exported: Path, home: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(exported, tmp_path / "files")
    citation = json.loads((folder / "discussion.json").read_text("utf-8"))["citations"][0]
    text = (folder / "discussion.md").read_text("utf-8")
    new = f"In my own words, this was seen before: “{citation['quote']}” ({citation['key']})."
    (folder / "discussion.md").write_text(text.replace("\n\n## References", f"\n\n{new}\n\n## References"), "utf-8")
    done = citeloom("verify", folder / "discussion.md", "--home", home)
    assert done.code == 0 and "1 edited sentence" in done.err, done.out


def test_faults_are_shown_in_whole_words_without_markup(
    citeloom: Citeloom, exported: Path, home: Path, tmp_path: Path
) -> None:
    file = shutil.copytree(exported, tmp_path / "files") / "discussion.md"
    quote = json.loads(file.with_suffix(".json").read_text("utf-8"))["citations"][0]["quote"].split()
    assert _edit(file, quote[3], "penguin")
    assert _edit(file, "**Verdict.** ", "**Verdict.** It holds for 7731 *unforeseeable* wearers (Miller 2019). ")
    done = citeloom("verify", file, "--home", home)
    assert done.code == 4 and "the number 7731 (" in done.out and '"It holds for 7731 unforeseeable' in done.out
    words = {word.strip('“”"…().,:;') for word in (file.read_text("utf-8") + "\n").replace("*", "").split()}
    for shown in re.findall(r'"([^"]+)"', done.out):
        assert not re.search(r"[*`“”]|\[E\d", shown.strip("“”")) and "**" not in shown, shown
        inner = shown.strip("…").split()[1:-1]
        assert all(word.strip('“”"…().,:;') in words for word in inner), shown


@pytest.mark.parametrize("suffix", ["md", "tex", "docx", "html"])
def test_the_text_of_a_paper_is_checked_with_its_abstract_and_figures(
    citeloom: Citeloom, home: Path, tmp_path: Path, suffix: str
) -> None:
    for file in EXAMPLES.glob("*.*"):
        shutil.copy(file, tmp_path)
    formats = [] if suffix == "md" else ["--format", suffix]
    written = citeloom("paper", tmp_path / "exp.json", "--home", home, "--out", tmp_path, "--json", *formats)
    abstract = next(part for part in written.json["sections"] if part["section"] == "abstract")
    file = tmp_path / f"paper.{suffix}"
    done = citeloom("verify", file, "--home", home)
    assert done.code == 0 and "hold" in done.err, done.out
    first = next(said for said in abstract["text"].split(". ") if re.search(r"\b\d+\b", said) and "“" not in said)
    number = next(word for word in first.split() if word.isdigit())
    assert _edit(file, first, first.replace(number, "7731"))
    done = citeloom("verify", file, "--home", home)
    assert done.code == 4 and "7731" in done.out, done.err

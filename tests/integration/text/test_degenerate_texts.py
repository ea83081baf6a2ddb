"""No text holds a command up: the time that one takes grows with its length, whoever wrote it.

Here each reader meets the texts that most often took quadratic time; `tests/torture` has all eighty at 100 kB.
"""

from __future__ import annotations

import ast
import gc
import time
from pathlib import Path

import pytest

from citeloom.citations.checks import draft_checks, foreign_citations
from citeloom.documents import chunking, heading_translations, markdown
from citeloom.experiment import Experiment
from citeloom.roles.extractive import planners
from citeloom.roles.protocols import Draft
from tests.support.degenerate_texts import TEXTS, degenerate
from tests.support.reader_company import SOURCES
from tests.support.text_readers import READERS

ROOT = Path(__file__).resolve().parents[3]
WORST = ("'-'", "'1'", "'('", "'`'", "' '", "'a'", "'<!--'", "'\"'", "blanks behind a marker", "'1,'")
_REPAIRS = 3.0  # every sentence is replaced, and the draft cut into sentences some ten times
_SECONDS = 0.5  # of the processor; quadratic readers took 0.6 to 145 for as much


def _cpu(function, *arguments) -> float:  # type: ignore[no-untyped-def]
    """Seconds of this thread; a search for garbage would look at what all tests before have left."""
    gc.disable()
    try:
        begun = time.thread_time()
        function(*arguments)
        return time.thread_time() - begun
    finally:
        gc.enable()


def test_there_are_eighty_texts() -> None:
    assert len(TEXTS) >= 80


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_done_with_a_degenerate_text_at_once(name: str) -> None:
    READERS[name]("Plain words of a paper.")  # what is made once is not measured
    most = _REPAIRS if name.startswith("repairing") else _SECONDS
    for text in WORST:
        assert _cpu(READERS[name], degenerate(text, 5_000)) < most, text


NAMED = {
    "4,000 dashes, a library of 500 keys": lambda: foreign_citations.find_foreign(
        "-" * 4_000, known_keys=[f"smith{year}deep" for year in range(1500, 2000)]
    ),
    "16 kB of digits, a library of 500 keys": lambda: foreign_citations.find_foreign(
        "1" * 16_000, known_keys=[f"smith{year}deep" for year in range(1500, 2000)]
    ),
    "a megabyte of parentheses": lambda: chunking.chunk_paper(
        "a", markdown.parse_markdown("(" * 1_000_000), lambda texts: [len(text) for text in texts]
    ),
    "a heading of 100 kB of blanks": lambda: heading_translations.in_english(" " * 100_000),
    "100 kB of numbers as a need": lambda: planners.searchable("1 " * 50_000),
    "2 MB of results": lambda: draft_checks.check_draft(
        Draft("The baseline explains 72.5% of the edges (Lee, 2020) [12]."),
        SOURCES,
        kind="discussion",
        experiment=Experiment(results="The baseline explains 72.5% of the edges. " * 48_000),
    ),
}


@pytest.mark.parametrize(("name", "seconds"), [(name, 30.0 if "MB" in name else 10.0) for name in NAMED])
def test_what_took_minutes_takes_seconds(name: str, seconds: float) -> None:
    assert _cpu(NAMED[name]) < seconds


def test_every_key_of_a_library_is_found_wherever_it_is_glued() -> None:
    keys = ("smith2021deep", "Özil_2020")
    text = "As SMITH2021deep-x and preözil_2020 say, smith2021deepsmith2021deep."

    found = [text[item.start : item.end] for item in foreign_citations.find_foreign(text, known_keys=keys)]

    assert found == ["SMITH2021deep-x", "preözil_2020", "smith2021deepsmith2021deep"]


def _uses_patterns(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(
        isinstance(node, ast.Import) and any(name.name == "re" for name in node.names) for node in ast.walk(tree)
    )


ROOMS = (
    "api",
    "citations",
    "commands",
    "documents",
    "graph",
    "ingestion",
    "models",
    "prompts",
    "roles",
    "runs",
    "stores",
    "text",
    "tools",
    "zotero",
)

# Modules with patterns that no reader reaches, and why none has to.
ELSEWHERE = {
    "citations/csl_styles.py": "reads the styles of the extra",
    "commands/shell/plain_text.py": "reads a line of the shell of two words at most",
    "roles/chat/needs_planner.py": "reads the line that counts the library",
    "program.py": "reads help texts of its own",
    "database_url.py": "reads the address of a database that the user set",
    "commands/ray_option.py": "reads the address of a cluster that the user gives",
    "stores/run_records.py": "names the ids of sets of plots that the server made",
    "stores/postgres/postgres_uploads.py": "reads names of folders that the server made",
    "stores/local/local_uploads.py": "reads names of folders that the server made",
    "ingestion/ray_cluster.py": "reads the address of a cluster that the user gives",
    "vectors_url.py": "reads the address of Milvus that the user set",
    "stores/postgres/migrations.py": "reads names of its own SQL files",
    "citations/text_verification.py": "reads a file that the user names, sentence by sentence",
    "citations/export/latex_engine.py": "reads what an engine of LaTeX printed",
    "runs/edited_files.py": "reads a file that the user edited",
    "citations/export/report_model.py": "replaces single line breaks of passages",
    "documents/pandoc.py": "reads names of variables of the environment",
    "documents/figures.py": "reads the name of a stored image",
    "documents/image_extraction.py": "reads in a process of its own, with limits; elsewhere the scheme of an address",
    "documents/blocks.py": "reached through parse_markdown",
    "graph/conversation_graph.py": "reads a question, of 4,000 characters at most",
    "models/journal/serialization.py": "reads what is committed to the journal",
    "models/http/capabilities.py": "reads a message that was shortened",
    "models/embeddings/bundled_weights.py": "reads its own package",
    "roles/extractive/source_matching.py": "reads passages of at most 30 words",
    "roles/extractive/answer_kinds.py": "reads a question, of 4,000 characters at most, and passages of 45 words",
    "roles/extractive/readers.py": "reads a question, of 4,000 characters at most",
    "experiment.py": "reached through the Experiment of the readers",
    "ingestion/opendataloader_process.py": "reads what the program java of this machine says of its version",
    "ingestion/tesseract.py": "reads the names of languages that the program tesseract of this machine lists",
    "prompts/loader.py": "reads prompt files of the package and the user",
    "commands/shell/display.py": "reads addresses of a shown answer",
    "commands/shell/file_commands.py": "reads a question, of 4,000 characters at most",
}


READERS_FILES = ("text_readers.py", "answer_readers.py", "user_readers.py")


def _tried() -> set[str]:
    """The modules that the readers import."""
    found: set[str] = set()
    for name in READERS_FILES:
        tree = ast.parse((ROOT / "tests" / "support" / name).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("citeloom"):
                path = (node.module or "").replace(".", "/").removeprefix("citeloom").removeprefix("/")
                found |= {f"{path}.py", *(f"{path}/{alias.name}.py".removeprefix("/") for alias in node.names)}
    return found


def test_every_module_with_patterns_is_reached() -> None:
    """A new module that searches text has to be tried on the table, or say why not."""
    inside = [path.relative_to(ROOT) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    modules = [*(Path(path.name) for path in sorted(ROOT.glob("*.py"))), *inside]
    known = {*ELSEWHERE, *_tried()}
    missed = [
        path.as_posix()
        for path in modules
        if _uses_patterns(ROOT / path)
        and path.as_posix() not in known
        and not path.is_relative_to("documents/pdf")  # in a process of its own, with limits
    ]
    assert missed == []


def test_what_is_said_to_need_no_reader_has_patterns() -> None:
    assert [place for place in ELSEWHERE if not _uses_patterns(ROOT / place)] == []
    assert [place for place in ELSEWHERE if place in _tried()] == []

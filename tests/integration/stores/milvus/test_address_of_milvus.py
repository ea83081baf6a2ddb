"""Only the user can set the address of Milvus, beside a database; messages never show a token."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from citeloom.errors import ConfigurationError
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import parse_home, parse_vectors
from citeloom.stores.folder_home import find_home
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.milvus.milvus_rows import MilvusError, MilvusUnavailableError
from tests.support.cli_process import ROOT, run
from tests.support.library_fixtures import papers
from tests.support.milvus_lite import MilvusServer
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
UNREACHABLE = "http://ada:s3cr3t@127.0.0.1:9"
SEARCHING = """
import os, sys
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.settings.addresses import parse_vectors
from tests.support.word_embedding import WordEmbedding

library = Library.open(find_home(parse_home(sys.argv[1]), vectors=parse_vectors(sys.argv[2])), WordEmbedding())
rows = library.stores.rows()
before = rows.missing()
child = os.fork()
if child == 0:
    os._exit(0 if rows.missing() == before else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def with_milvus(url: str, vectors: str | Path) -> Home:
    return find_home(parse_home(url), vectors=parse_vectors(str(vectors))).prepare()


def test_a_settings_file_in_a_folder_cannot_set_the_milvus_address(url: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"CITELOOM_VECTORS={UNREACHABLE}\n", encoding="utf-8")
    done = run("papers", "list", cwd=tmp_path, settings={"HOME": url})
    assert done.code == 2 and len(done.errors) == 1
    assert "it was not opened" in done.errors[0] and "CITELOOM_VECTORS" in done.errors[0]
    assert "s3cr3t" not in done.out + done.err


@pytest.mark.parametrize("home", [(), ("--home", "here")], ids=["the nearest folder", "a named folder"])
def test_milvus_is_refused_for_a_library_in_a_folder(home: tuple[str, ...], tmp_path: Path) -> None:
    done = run("papers", "list", *home, cwd=tmp_path, settings={"VECTORS": UNREACHABLE})
    assert done.code == 2 and len(done.errors) == 1
    assert "CITELOOM_VECTORS" in done.errors[0] and "works with a library in PostgreSQL only" in done.errors[0]
    assert str(tmp_path / (home[1] if home else ".citeloom")) in done.errors[0]
    assert "s3cr3t" not in done.out + done.err


def test_a_folder_being_copied_is_read_without_the_milvus_of_its_copy(tmp_path: Path) -> None:
    command = ("library", "copy", "--to", "there", "--home", "here")
    done = run(*command, cwd=tmp_path, settings={"VECTORS": UNREACHABLE})
    assert done.code == 2 and "here holds no library" in done.errors[0]
    refused = run(*command, "--to-vectors", UNREACHABLE, cwd=tmp_path)
    assert refused.code == 2 and "--to-vectors" in refused.errors[0] and "there" in refused.errors[0]
    (tmp_path / ".env").write_text(f"CITELOOM_VECTORS={UNREACHABLE}\n", encoding="utf-8")
    assert "it was not opened" in run(*command, cwd=tmp_path).errors[0]


async def test_doctor_says_that_milvus_is_unreachable(url: str, milvus: MilvusServer, papers: Path) -> None:
    library = Library.open(with_milvus(url, milvus.url), WordEmbedding())
    await ingest(library, [papers])
    library.close()
    elsewhere = Library.open(with_milvus(url, UNREACHABLE), WordEmbedding())
    found = [message for good, topic, message in elsewhere.stores.state() if not good and topic == "Milvus"]
    assert len(found) == 1 and "Connection refused" in found[0] and "CITELOOM_VECTORS" in found[0]
    assert "s3cr3t" not in found[0] and "ada" not in found[0]
    with pytest.raises(MilvusUnavailableError, match=r"127\.0\.0\.1:9"):
        elsewhere.fulltext.create()
    elsewhere.close()


def test_a_library_that_uses_milvus_cannot_be_opened_without_it(url: str, milvus: MilvusServer) -> None:
    library = Library.open(with_milvus(url, milvus.url), WordEmbedding())
    library.finish_staged()
    library.close()
    with pytest.raises(ConfigurationError, match="is searched in Milvus") as refused:
        Library.open(find_home(parse_home(url)), WordEmbedding())
    assert "CITELOOM_VECTORS" in refused.value.help


def test_a_milvus_lite_file_serves_one_process(url: str, tmp_path: Path) -> None:
    holding = "import sys\nfrom milvus_lite import MilvusLite\nMilvusLite(sys.argv[1])\nprint(1, flush=True)\ninput()\n"
    file = tmp_path / "vectors.db"
    process = subprocess.Popen(
        [sys.executable, "-c", holding, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline()
    library = Library.open(with_milvus(url, file), WordEmbedding())
    with pytest.raises(MilvusError, match="another process") as refused:
        library.finish_staged()
    assert "run a Milvus server" in refused.value.help
    process.communicate("\n")
    library.finish_staged()
    library.close()


def test_a_forked_process_opens_its_own_connection(url: str, milvus: MilvusServer) -> None:
    library = Library.open(with_milvus(url, milvus.url), WordEmbedding())
    library.finish_staged()
    library.close()
    done = subprocess.run([sys.executable, "-c", SEARCHING, url, milvus.url], cwd=ROOT, timeout=300, check=False)
    assert done.returncode == 0


def test_a_missing_extra_is_reported(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    library = Library.open(with_milvus(url, tmp_path / "v.db"), WordEmbedding())
    with pytest.raises(ConfigurationError, match="pymilvus") as missing:
        library.finish_staged()
    assert "-e '.[milvus]'" in missing.value.help
    library.close()

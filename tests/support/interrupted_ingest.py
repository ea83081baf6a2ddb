"""An ingest in a process of its own that stops at a chosen point: killed, or waiting for a line.

    python interrupted_ingest.py HOME PAPERS TOGETHER kill EVENT NUMBER    kills itself at the NUMBERth such event
    python interrupted_ingest.py HOME PAPERS TOGETHER wait EVENT NUMBER    says so, continues after a line on stdin

TOGETHER is the maximum number of papers written at once. EVENT is the name of an ingest event, "Vectors" for the moment
between writing chunks and summaries, "FullText" for the one before the words are written, or "Words" for the one after.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from citeloom.ingestion import indexing
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.local.chroma import VectorStore
from citeloom.stores.local.fulltext import FullText
from citeloom.stores.postgres import postgres_catalog
from tests.support.word_embedding import WordEmbedding


def main(home: str, papers: str, together: int, action: str, event: str, number: int) -> None:
    indexing._QUEUE_SIZE = together
    seen = 0

    def stop(name: str) -> None:
        nonlocal seen
        seen += name == event
        if seen != number or name != event:
            return
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        sys.stdin.readline()

    put_vectors = VectorStore.put

    def interrupted(*arguments: object) -> None:
        if arguments[-1] == "summaries":
            stop("Vectors")
        put_vectors(*arguments)  # type: ignore[arg-type]

    VectorStore.put = interrupted  # type: ignore[method-assign,assignment]
    put = FullText.put

    def interrupted_text(*arguments: object) -> None:
        stop("FullText")
        put(*arguments)  # type: ignore[arg-type]
        stop("Words")

    FullText.put = interrupted_text  # type: ignore[method-assign,assignment]
    put_postings = postgres_catalog.write_postings

    def interrupted_postings(*arguments: object) -> None:
        stop("FullText")
        put_postings(*arguments)  # type: ignore[arg-type]
        stop("Words")

    postgres_catalog.write_postings = interrupted_postings  # type: ignore[assignment]
    embedding = WordEmbedding()
    embedding.at_once = 1 if together == 1 else sys.maxsize  # one group, which reaches the writer as one batch
    library = Library.open(find_home(parse_home(home)), embedding)
    asyncio.run(ingest(library, [Path(papers)], on_event=lambda told: stop(type(told).__name__)))
    library.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6]))

"""An ingest into PostgreSQL with Milvus, in a process that kills itself at a step between the two engines.

    python interrupted_milvus_ingest.py HOME VECTORS PAPERS STEP

STEP is the name of a function in `STEPS`, perhaps with its argument; the process dies before it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import parse_home, parse_vectors
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.milvus.milvus_catalog import MilvusCatalog
from citeloom.stores.milvus.milvus_rows import MilvusRows
from tests.support.word_embedding import WordEmbedding

STEPS: dict[str, Any] = {
    "put": MilvusRows,
    "commit": MilvusCatalog,
    "delete": MilvusRows,
    "forget_outdated": MilvusCatalog,
}


def main(home: str, vectors: str, papers: str, step: str) -> None:
    library = Library.open(find_home(parse_home(home), vectors=parse_vectors(vectors)), WordEmbedding())
    name, _, kind = step.partition(" ")
    function = getattr(STEPS[name], name)

    def die(*given: object) -> None:
        if kind and kind not in given:
            return function(*given)
        return os.kill(os.getpid(), signal.SIGKILL)

    setattr(STEPS[name], name, die)
    asyncio.run(ingest(library, [Path(papers)], prune=True))


if __name__ == "__main__":
    main(*sys.argv[1:])

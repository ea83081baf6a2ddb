"""Edits the first half of a library's papers without pause, until it is killed: `restless_writer.py HOME SYNC`.

SYNC is the number of records after which Chroma writes its index files; the default of a library is 1,000.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from citeloom.stores.folder_home import FolderHome, FolderLock
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local import chroma
from tests.support.made_papers import carry_out, change, similar
from tests.support.word_embedding import WordEmbedding

KEYS = tuple(f"paper{number:02d}" for number in range(12))
EDITED = KEYS[:6]


def main(home: Home, sync: int) -> None:
    chroma._CONFIGURATION["hnsw"]["sync_threshold"] = sync
    library = Library.open(home, WordEmbedding())
    library.finish_staged()
    random = np.random.default_rng(1)
    with FolderLock(home).try_held():
        carry_out(library, [change(key, similar(random, 50), "first") for key in KEYS])
        sys.stdout.write("written\n")
        sys.stdout.flush()
        while True:
            carry_out(library, [change(random.choice(EDITED), similar(random, int(random.integers(20, 50))), "edit")])


if __name__ == "__main__":
    main(FolderHome(Path(sys.argv[1])), int(sys.argv[2]))

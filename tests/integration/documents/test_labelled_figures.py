"""The figures and tables of real PDFs against those counted by hand: the score must not fall."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figures import Score, score_pdfs

# Of 73; eight are of tables in sections that are never quoted, which are in no chunk.
CELLS = 63


@pytest.mark.long
def test_figures_tables_and_cells_of_real_pdfs_are_found(shared_dir: Path) -> None:
    whole = Score()
    for score in score_pdfs(shared_dir / "corpus" / "pdfs").values():
        whole.add(score)
    missed = "\n".join(whole.missed)
    assert whole.recall("figure") >= 35 / 36 and whole.precision("figure") == 1.0, missed
    assert (whole.recall("table"), whole.precision("table")) == (1.0, 1.0), missed
    assert whole.images >= 35, missed
    assert whole.cells_found >= CELLS, missed

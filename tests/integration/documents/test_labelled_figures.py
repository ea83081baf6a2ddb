"""The figures and tables of real PDFs against those counted by hand: what was reached is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figures import Score, score_pdfs

# Cells of tables in sections that are never quoted are in no chunk: three tables of the three papers.
CELLS = 45


@pytest.mark.long
def test_figures_tables_and_cells_of_real_pdfs_are_found(shared_dir: Path) -> None:
    whole = Score()
    for score in score_pdfs(shared_dir / "corpus" / "pdfs").values():
        whole.add(score)
    missed = "\n".join(whole.missed)
    assert (whole.recall("figure"), whole.precision("figure")) >= (35 / 36, 1.0), missed
    assert whole.recall("table") == 1.0, missed
    assert whole.precision("table") >= 37 / 39, missed
    assert whole.images >= 35, missed
    assert whole.cells_found >= CELLS, missed

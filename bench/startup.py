"""`python cli.py --help` against `python -c "import chromadb"`, each as a whole process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Row, alternate, row_of

ROOT = Path(__file__).resolve().parent.parent
TARGET = 0.5 / 0.9


async def measure(rounds: int) -> list[Row]:
    """One row; the first pair only fills the disk cache and does not count."""

    async def help_() -> float:
        return _seconds([str(ROOT / "cli.py"), "--help"])

    async def chroma() -> float:
        return _seconds(["-c", "import chromadb"])

    pairs = await alternate(help_, chroma, rounds + 1)
    return [row_of("cli.py --help : import chromadb", pairs[1:], target=TARGET)]


def _seconds(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started

"""Which onnxruntime setting embeds fastest here: `python bench/embedder.py [--chunks N] [--rounds N]`.

Takes passages of about 400 tokens from the real papers (CITELOOM_SHARED, else ../shared), embeds the same ones with
each setting and prints chunks per second and the ratio to the slowest. The last column says whether the vectors are
bit for bit those of a single text on one thread; a setting that changes them is ruled out, however fast.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from citeloom.models.embeddings.bundled_models import EMBEDDER, MAX_TOKENS, check_model_file, load_tokenizer

ROOT = Path(__file__).resolve().parent.parent
LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Setting:
    """`threads` within a run, `workers` concurrent runs, over one shared session or one each."""

    threads: int = 1
    workers: int = 2
    own_sessions: bool = False
    batch: int = 1
    spinning: bool = False
    arena: bool = True
    level: str = "all"

    def __str__(self) -> str:
        shared = "own sessions" if self.own_sessions else "one session"
        return (
            f"{self.workers} worker(s) x {self.threads} thread(s), {shared}, batch {self.batch}, "
            f"spinning {'on' if self.spinning else 'off'}, arena {'on' if self.arena else 'off'}, "
            f"{self.level}"
        )


SETTINGS = (
    Setting(),  # the one in use
    Setting(own_sessions=True),
    Setting(spinning=True),
    Setting(arena=False),
    Setting(level="basic"),
    Setting(level="none"),
    Setting(workers=1),
    Setting(workers=1, threads=2),
    Setting(workers=1, threads=2, spinning=True),
    Setting(workers=4),
    Setting(batch=4),
    Setting(batch=16),
    Setting(workers=1, threads=2, spinning=True, batch=8),
    Setting(workers=1, threads=2, spinning=True, batch=32),
)


def passages(count: int) -> list[list[int]]:
    """Token ids of `count` passages of 300-500 tokens, spread over the papers."""
    folder = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared")) / "corpus" / "papers"
    papers = sorted(folder.glob("*.md"))
    if not papers:
        sys.exit(f"no papers in {folder}: set CITELOOM_SHARED")
    tokenizer = load_tokenizer(EMBEDDER)
    found: list[list[int]] = []
    for number in range(count):
        paper = papers[number % len(papers)]
        offset = 4000 + 2500 * (number // len(papers))
        length = 1200 + (number * 397) % 800  # characters: about 300 to 500 tokens
        text = paper.read_text(encoding="utf-8")[offset : offset + length]
        found.append(tokenizer.encode(text).ids[:MAX_TOKENS])
    return found


def batches(texts: list[list[int]], size: int) -> Iterator[list[int]]:
    """Indices of `texts` in batches of similar length."""
    order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def open_session(content: bytes, setting: Setting) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = setting.threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = setting.arena
    options.graph_optimization_level = LEVELS[setting.level]
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if setting.spinning else "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def embedder(content: bytes, setting: Setting) -> Callable[[list[list[int]]], Floats]:
    """A function that embeds token ids with `setting`, its sessions already open."""
    count = setting.workers if setting.own_sessions else 1
    sessions = [open_session(content, setting) for _ in range(count)]

    def embed(texts: list[list[int]]) -> Floats:
        vectors = np.zeros((len(texts), 384), dtype=np.float32)

        def run(job: tuple[int, list[int]]) -> None:
            number, positions = job
            width = max(len(texts[position]) for position in positions)
            ids = np.zeros((len(positions), width), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, position in enumerate(positions):
                ids[row, : len(texts[position])] = texts[position]
                mask[row, : len(texts[position])] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            rows = sessions[number % count].run(None, inputs)[0][:, 0]
            vectors[positions] = rows / np.linalg.norm(rows, axis=1, keepdims=True)

        with ThreadPoolExecutor(setting.workers) as pool:
            list(pool.map(run, enumerate(batches(texts, setting.batch))))
        return vectors

    return embed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    texts = passages(given.chunks)
    content = check_model_file(EMBEDDER, "model.onnx", EMBEDDER.onnx_sha256).read_bytes()
    reference = embedder(content, Setting(workers=1))(texts)
    rates: list[float] = []
    notes: list[str] = []
    for setting in SETTINGS:
        embed = embedder(content, setting)
        embed(texts[:4])
        best = 0.0
        for _ in range(given.rounds):
            started = time.perf_counter()
            vectors = embed(texts)
            best = max(best, len(texts) / (time.perf_counter() - started))
        rates.append(best)
        cosine = float((vectors * reference).sum(axis=1).min())
        notes.append("same bits" if np.array_equal(vectors, reference) else f"differs, cosine >= {cosine:.4f}")
    tokens = sum(map(len, texts)) / len(texts)
    print(
        f"{len(texts)} passages of {tokens:.0f} tokens on average, {os.cpu_count()} cores, "
        f"best of {given.rounds} rounds"
    )
    print(f"{'chunks/s':>9} {'ratio':>6}  setting")
    for rate, setting, note in sorted(zip(rates, SETTINGS, notes, strict=True), key=lambda row: -row[0]):
        print(f"{rate:9.1f} {rate / min(rates):6.2f}  {setting}  [{note}]")


if __name__ == "__main__":
    main()

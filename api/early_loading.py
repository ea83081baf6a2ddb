"""Checks a command's words, and loads in a thread, beside the imports, what the command needs last.

Preparing a bundled model's weights takes a quarter of a second, most of it without Python's lock; so does pandoc.
What fails here is tried again, and raises, where it is first used.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Literal

from ..errors import CiteloomError
from ..settings.config import EXTRACTIVE, LOCAL_EMBEDDING, Settings
from ..tools.scope import plain_question as plain_question, require_words as require_words


def load_early(settings: Settings, purpose: Literal["search", "answer"]) -> None:
    """Begin to load the bundled models that a search, or an answer without a chat model, will use."""
    local = settings.embedding_model == LOCAL_EMBEDDING and settings.retrieval_mode != "bm25"
    extractive = purpose == "answer" and settings.chat_model == EXTRACTIVE

    def load() -> None:
        from ..models.embeddings.bundled_models import EMBEDDER, RERANKER, load_session, load_tokenizer

        with suppress(CiteloomError, OSError, RuntimeError):
            for model in [EMBEDDER] * local + [RERANKER] * extractive:
                load_session(model)
                load_tokenizer(model)
            if extractive and not settings.csl:
                from ..citations.references import read_style

                read_style(None)

    if local or extractive:
        threading.Thread(target=load, name="citeloom-early").start()

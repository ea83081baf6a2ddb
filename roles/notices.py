"""What a text says of itself that was written without a chat model."""

from __future__ import annotations

from typing import Final

NOTICE: Final = (
    "Extractive mode: no chat model is configured, so sources are quoted beside your own statements and nothing "
    "is argued; set CITELOOM_CHAT_MODEL for written prose."
)

ANSWER_NOTICE: Final = (
    "Extractive mode: no chat model is configured, so papers are quoted and nothing is summed up; "
    "set CITELOOM_CHAT_MODEL for written prose."
)

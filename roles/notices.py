"""What a text says of itself that was written without a chat model."""

from __future__ import annotations

from typing import Final

NOTICE: Final = (
    "Extractive mode: no chat model is configured, so your own statements are kept and passages near to them listed; "
    "nothing is argued or judged. Set CITELOOM_CHAT_MODEL for written prose."
)

ANSWER_NOTICE: Final = (
    "Extractive mode: no chat model is configured, so the nearest passages are listed; nothing is summed up or judged. "
    "Set CITELOOM_CHAT_MODEL for written prose."
)

"""The words that chat models are given, as files, and their one strict loader."""

from .loader import PROMPT_NAMES, Prompt, PromptError, PromptLibrary, PromptOverrideError, load_prompt

__all__ = ["PROMPT_NAMES", "Prompt", "PromptError", "PromptLibrary", "PromptOverrideError", "load_prompt"]

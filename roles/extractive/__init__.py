"""The roles without a chat model: deterministic, by sentence selection and templates."""

from .factory import ANSWER_NOTICE, NOTICE, extractive_roles

__all__ = ["ANSWER_NOTICE", "NOTICE", "extractive_roles"]

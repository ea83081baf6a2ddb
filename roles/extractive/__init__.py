"""The five roles without a chat model: deterministic, from sentence selection and templates."""

from .factory import ANSWER_NOTICE, NOTICE, extractive_roles

__all__ = ["ANSWER_NOTICE", "NOTICE", "extractive_roles"]

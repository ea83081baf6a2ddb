"""The five roles without a chat model: deterministic, from sentence selection and templates."""

from citeloom.models.extractive.assembly import ANSWER_NOTICE, NOTICE, extractive_roles

__all__ = ["ANSWER_NOTICE", "NOTICE", "extractive_roles"]

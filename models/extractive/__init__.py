"""The five roles without a chat model: deterministic, from sentence selection and templates."""

from citeloom.models.extractive.assembly import NOTICE, extractive_roles

__all__ = ["NOTICE", "extractive_roles"]

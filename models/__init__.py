"""Who reads and writes: chat models, embedding and re-ranker, the journal before them, the roles on top."""

from citeloom.models.roles import Roles

__all__ = ["Roles"]

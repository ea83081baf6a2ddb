"""Fixtures of a served library."""

from tests.support.run_fixtures import home, sample_home

__all__ = ["home", "sample_home"]

"""Fixtures of runs."""

from tests.support.run_fixtures import experiment, home, sample_home, server, session, usual

__all__ = ["experiment", "home", "sample_home", "server", "session", "usual"]

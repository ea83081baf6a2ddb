"""Fixtures of libraries."""

from tests.support.library_fixtures import home, library, open_library, papers

__all__ = ["home", "library", "open_library", "papers"]

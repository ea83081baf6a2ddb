"""The journal caches model calls: every answer is committed before it is used, and never paid for twice."""

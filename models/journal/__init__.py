"""The journal of model calls: every answer is committed before it is used, and never paid for twice."""

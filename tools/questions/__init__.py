"""Analyses questions: their route, and the papers and authors that they name."""
